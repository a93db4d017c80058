import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketOnions

@Suite("Opening and sealing stored notes")
struct NoteKeysTests {
    private static func keys(_ password: String? = "PASSWORD", vault: SecureBytes? = nil) -> NoteKeys {
        NoteKeys(user: "user-1", password: password.map(secret), vaultSecret: vault)
    }

    private static func open(
        _ object: JSONObject, _ keys: NoteKeys, _ field: NoteField = .title, consents: Bool = false
    ) throws(OnionError) -> String {
        let text = try keys.open(field, of: StoredNote(id: "note-é", object: object), consents: consents)
        return text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    private static func expectUnreadable(_ object: JSONObject, _ keys: NoteKeys, _ what: String) {
        do throws(OnionError) {
            _ = try open(object, keys)
            Issue.record("\(what): it opened")
        } catch {
            #expect(error == .unreadable, "\(what)")
        }
    }

    private static let hasVectors = Vectors.has("onions")

    @Test(
        "every published note opens as it is stored, and with line ends and other foreign characters around its text",
        .enabled(if: hasVectors, "needs the onions vectors"))
    func published() throws {
        let cases = try Vectors.json("onions/messages.json").list("cases")
        #expect(cases.count == 48)
        for each in cases {
            var object: JSONObject = [
                "onionTitle": .string(try each.text("stored_text")),
                "iterations": .number(JSONNumber(Int64(try each.int("iterations")))),
            ]
            object["onionVersion"] = each["onionVersion"].flatMap { $0 == .null ? nil : $0 }
            let keys = Self.keys(try each.text("password"))
            #expect(try Self.open(object, keys) == each.text("plaintext"))
            object["onionTitle"] = .string(" \t" + (try each.text("stored_text")) + "\u{FEFF}-_\r\n")
            #expect(try Self.open(object, keys) == each.text("plaintext"))
        }
    }

    @Test(
        "T5: every published message that must fail is unreadable",
        .enabled(if: hasVectors, "needs the onions vectors"))
    func mustFail() throws {
        let cases = try Vectors.json("onions/messages.json").list("must_fail")
        #expect(cases.count == 18)
        for each in cases {
            let object: JSONObject = [
                "onionTitle": .string(Base64.encode(try each.hex("message_hex"))),
                "iterations": .number(JSONNumber(Int64(try each.int("iterations")))),
                "onionVersion": .number(JSONNumber(try each.text("prf") == "sha1" ? 2 : 1)),
            ]
            Self.expectUnreadable(object, Self.keys(try each.text("password")), try each.text("name"))
        }
    }

    @Test("every published note of version 3 opens", .enabled(if: hasVectors, "needs the onions vectors"))
    func version3() throws {
        for each in try #require(Vectors.json("onions/notes-v3.json").arrayValue) {
            let object: JSONObject = [
                try each.text("field"): .string(try each.text("stored")), "onionVersion": .number(JSONNumber(3)),
            ]
            let field: NoteField = try each.text("field") == "onionTitle" ? .title : .info
            let keys = Self.keys(nil, vault: SecureBytes(copying: try each.hex("vault_secret")))
            #expect(try Self.open(object, keys, field) == each.text("text"))
        }
    }

    @Test("a sealed note opens again in each format, and the longest texts fit the server's limits")
    func roundTrips() throws {
        let keys = Self.keys(vault: .random(32))
        let longest = note(String(repeating: "日", count: 30), String(repeating: "日", count: 2_500))
        for format: NoteFormat in [.first, .second, .sealed] {
            for text in [note("", ""), note("t", "é日😀\r\n"), longest] {
                var object = try keys.seal(text, id: "note-é", format, rounds: 1)
                #expect(NoteFormat(object["onionVersion"]) == format)
                for field in NoteField.allCases {
                    #expect(try Self.open(object, keys, field) == String(decoding: text[field].bytes, as: UTF8.self))
                    #expect((object[field.member]?.stringValue?.utf8.count ?? .max) <= field.lettersMax)
                }
                // The stored number of rounds is the number that was used.
                object["iterations"] = .number(JSONNumber(2))
                if format != .sealed { Self.expectUnreadable(object, keys, "other rounds") }
            }
        }
        let over = note(String(repeating: "x", count: 31))
        #expect(throws: OnionError.tooLong(.title, units: 31)) {
            _ = try keys.seal(over, id: "n", .second, rounds: 1)
        }
        let emoji = note("", String(repeating: "😀", count: 1_251))
        #expect(throws: OnionError.tooLong(.info, units: 2_502)) {
            _ = try keys.seal(emoji, id: "n", .sealed, rounds: 1)
        }
    }

    @Test("T5: every flipped byte of a note is refused, in each format")
    func flipped() throws {
        let keys = Self.keys(vault: .random(32))
        for format: NoteFormat in [.first, .second, .sealed] {
            var object = try keys.seal(note("x"), id: "note-é", format, rounds: 1)
            let stored = try #require(object["onionTitle"]?.stringValue)
            let letters: [UInt8] = stored.utf8.filter { $0 > 0x20 }
            let message = try #require(
                format == .sealed ? Base64.decodeURL(letters[...]) : Base64.decode(letters[...]))
            for place in message.indices {
                var changed = message
                changed[place] ^= 1 << UInt8(place % 8)
                object["onionTitle"] = .string(
                    format == .sealed ? Base64.encodeURL(changed) : Base64.encode(changed))
                Self.expectUnreadable(object, keys, "\(format), byte \(place)")
            }
        }
    }

    @Test("T6: a swap of title and text, or of two notes' titles, fails in the sealed format and opens in the second")
    func swapped() throws {
        let keys = Self.keys(vault: .random(32))
        for format: NoteFormat in [.second, .sealed] {
            let one = try keys.seal(note("title", "text"), id: "note-é", format, rounds: 1)
            let other = try keys.seal(note("other", "text"), id: "other", format, rounds: 1)
            var swapped = one
            (swapped["onionTitle"], swapped["onionInfo"]) = (one["onionInfo"], one["onionTitle"])
            var moved = one
            moved["onionTitle"] = other["onionTitle"]
            if format == .sealed {
                Self.expectUnreadable(swapped, keys, "title and text")
                Self.expectUnreadable(moved, keys, "another note's title")
            } else {
                #expect(try Self.open(swapped, keys) == "text")
                #expect(try Self.open(moved, keys) == "other")
            }
        }
    }

    @Test(
        "T7: a number of rounds that no client uses makes the note unreadable, before any round is done",
        arguments: ["2147483648", "0", "-1", "1.5", #""x""#, "10000001", "1e400", "null", "true", "[]"])
    func bombs(rounds: String) throws {
        var object = try Self.keys().seal(note("x"), id: "note-é", .second, rounds: 1)
        object["iterations"] = try JSONValue(parsing: Array(rounds.utf8))
        Self.expectUnreadable(object, Self.keys(), rounds)
        #expect(Onion(StoredNote(id: "n", object: object)).rounds == nil)
    }

    @Test("T7: more than a million rounds need the user's consent; 1.0 is accepted as a number of rounds")
    func consent() throws {
        var object = try Self.keys().seal(note("x"), id: "note-é", .second, rounds: 1)
        object["iterations"] = .number(JSONNumber(1_000_001))
        let onion = Onion(StoredNote(id: "n", object: object))
        #expect(onion.needsConsent)
        #expect(throws: OnionError.needsConsent(rounds: 1_000_001)) { _ = try Self.open(object, Self.keys()) }
        object["iterations"] = try JSONValue(parsing: Array("1.0".utf8))
        #expect(try Self.open(object, Self.keys()) == "x")
    }

    @Test(
        "the next save writes at least 10,000 rounds and at most the 1,000,000 that need no consent",
        arguments: [(1, 10_000), (9_999, 10_000), (10_000, 10_000), (20_000, 20_000), (9_000_000, 1_000_000)])
    func nextSave(read: Int, written: Int) { #expect(NoteRounds.toWrite(after: read) == written) }

    @Test("an unknown version, a damaged text and a missing key are unreadable, never an empty note")
    func unknown() throws {
        let keys = Self.keys()
        let good = try keys.seal(note("x"), id: "note-é", .second, rounds: 1)
        for version in ["4", "3.5", #""2""#, "3", "{}"] {
            var object = good
            object["onionVersion"] = try JSONValue(parsing: Array(version.utf8))
            Self.expectUnreadable(object, keys, "version \(version)")
        }
        for value: JSONValue in [.null, .string(""), .string("===="), .number(JSONNumber(1))] {
            var object = good
            object["onionTitle"] = value
            Self.expectUnreadable(object, keys, "\(value)")
        }
        Self.expectUnreadable(good, Self.keys(nil), "no password")
        // Bytes that are not UTF-8: a save would write other bytes.
        var object = good
        let message = try RNCryptor.seal(
            SecureBytes(copying: [0xFF, 0xFE]), password: secret("PASSWORD"), .init(.sha1, rounds: 1))
        object["onionTitle"] = .string(Base64.encode(message))
        Self.expectUnreadable(object, keys, "no UTF-8")
    }
}

extension SecureBytes {
    var bytes: [UInt8] { withUnsafeBytes { Array($0) } }
}
