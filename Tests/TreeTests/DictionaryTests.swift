import Testing
import ThicketCrypto
import ThicketProtocol

@testable import ThicketTree
@testable import ThicketTreeShape

/// An attacker with the server's database and a list of names that people give to files.
@Suite("Dictionaries against tags")
struct DictionaryTests {
    private static let stems = [
        "photo", "img", "document", "invoice", "report", "letter", "contract", "budget", "notes", "scan", "backup",
        "recipe", "draft", "meeting", "trip", "family", "birthday", "holiday", "passport", "tax",
    ]
    private static let endings = [".jpg", ".pdf", ".txt", ".doc", ""]
    private static let numbers = 10_000

    /// All names of the list are ASCII in small letters, so folding leaves them as they are.
    private static func name(_ stem: String, _ number: Int, _ ending: String) -> String {
        let digits = String(number)
        return stem + String(repeating: "0", count: 4 - digits.utf8.count) + digits + ending
    }

    /// How many names of a list of a million, tagged with a salt, are in the dump.
    private static func matches(_ dump: Set<[UInt8]>, salt: [UInt8], numbers: Int = numbers) -> Int {
        var found = 0
        for stem in stems {
            for ending in endings {
                var bytes = Array("thicket/name/1".utf8) + [0] + Array(name(stem, 0, ending).utf8)
                let place = 15 + stem.utf8.count
                for _ in 0..<numbers {
                    if dump.contains(Hash.hmacSHA256(key: salt, bytes)) { found += 1 }
                    // The next number, in place: this is most of the attacker's time otherwise.
                    var digit = place + 3
                    while digit >= place, bytes[digit] == 0x39 {
                        bytes[digit] = 0x30
                        digit -= 1
                    }
                    if digit >= place { bytes[digit] += 1 }
                }
            }
        }
        return found
    }

    /// The bytes of which a tag is a part are not stored: the dump is made of whole codes, which give more to match.
    private static func code(_ name: String, _ salt: SecureBytes) -> [UInt8] {
        salt.withUnsafeBytes { Hash.hmacSHA256(key: Array($0), Array("thicket/name/1".utf8) + [0] + Array(name.utf8)) }
    }

    @Test("A17: a million common names, tagged with every salt that a server knows, match no tag of a dump")
    func dictionary() throws {
        let trees = try TreeCase(seed: 171)
        let folder = try trees.node("folder", below: trees.home)
        let names = (0..<200).map { Self.name(Self.stems[$0 % 20], $0 * 2, Self.endings[$0 % 5]) }
        let dump = Set(try names.map { try trees.node($0, below: folder.childKeys).record.tag })
        #expect(dump.count == names.count)
        let salt = folder.metadata.childSalt
        // The tags are the first 20 bytes of what is compared here.
        for name in names {
            let tag = try NodeTag(of: Array(name.utf8), salt: salt.withUnsafeBytes { Array($0) })
            #expect(dump.contains(tag) && Base32.encode(Array(Self.code(name, salt).prefix(20))) == tag.text)
        }
        let codes = Set(names.map { Self.code($0, salt) })
        #expect(Self.matches(codes, salt: Trunk.inboxSalt) == 0)
        // Other values that a server has, or may try, with a part of the list.
        let guesses: [[UInt8]] = [
            [], [UInt8](repeating: 0, count: 32), folder.id.octets, folder.record.commitment,
            Array(folder.record.tag.text.utf8), Array("notes".utf8), Array("ann".utf8), Hash.sha256(folder.id.octets),
        ]
        for guess in guesses {
            for name in names { #expect(try !dump.contains(NodeTag(of: Array(name.utf8), salt: guess))) }
        }
        // Counterproof: with the parent's salt a part of the same list finds every name.
        #expect(Self.matches(codes, salt: salt.withUnsafeBytes { Array($0) }, numbers: 400) == 200)
    }
}
