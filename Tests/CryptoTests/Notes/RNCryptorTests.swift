import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@Suite("Messages of old notes (RNCryptor)")
struct RNCryptorTests {
    private static func secret(_ text: String) -> SecureBytes { SecureBytes(copying: Array(text.utf8)) }
    private static func clear(_ secret: SecureBytes) -> [UInt8] { secret.withUnsafeBytes { Array($0) } }

    /// Blocks of `key: value`; hex with spaces.
    private static func blocks(_ name: String) throws -> [[String: String]] {
        let text = String(decoding: try Vectors.bytes("rncryptor/\(name)"), as: UTF8.self)
        var blocks: [[String: String]] = [[:]]
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.isEmpty { blocks.append([:]) }
            guard !line.hasPrefix("#"), let colon = line.firstIndex(of: ":") else { continue }
            let value: Substring = line[line.index(after: colon)...]
            let name = String(line[..<colon])
            blocks[blocks.count - 1][name] = String(
                value.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        }
        return blocks.filter { $0["version"] != nil }
    }

    private static func hex(_ block: [String: String], _ name: String) throws -> [UInt8] {
        // One of the published names has two colons.
        let text = try #require(block[name])
        return try #require(Hex.decode(text.filter { !$0.isWhitespace && $0 != ":" }))
    }

    private static let isAtHand = Vectors.has("rncryptor")

    @Test("every published password message opens, and format 3 seals to the same bytes", .enabled(if: isAtHand))
    func passwords() throws {
        var count = 0
        for block in try Self.blocks("v2-password.txt") + Self.blocks("v3-password.txt") {
            let (message, plain) = (
                try Self.hex(block, "ciphertext_hex"), try Self.hex(block, "plaintext_hex")
            )
            let password = Self.secret(try #require(block["password"]))
            let stretching = try RNCryptor.Stretching()
            #expect(Self.clear(try RNCryptor.open(message, password: password, stretching)) == plain)
            count += 1
            guard block["version"] == "3" else { continue }
            let fresh = try RNCryptor.Freshness(
                encryptionSalt: Self.hex(block, "enc_salt_hex"), codeSalt: Self.hex(block, "hmac_salt_hex"),
                vector: Self.hex(block, "iv_hex"))
            #expect(
                try RNCryptor.seal(SecureBytes(copying: plain), password: password, stretching, fresh) == message)
        }
        #expect(count == 7)
    }

    @Test("every published message under keys opens, and seals to the same bytes", .enabled(if: isAtHand))
    func keys() throws {
        let blocks = try Self.blocks("v3-key.txt")
        #expect(blocks.count == 4)
        for block in blocks {
            let (message, plain) = (
                try Self.hex(block, "ciphertext_hex"), try Self.hex(block, "plaintext_hex")
            )
            let encryption = SecureBytes(copying: try Self.hex(block, "enc_key_hex"))
            let code = SecureBytes(copying: try Self.hex(block, "hmac_key_hex"))
            #expect(
                Self.clear(try RNCryptor.open(message, encryptionKey: encryption, codeKey: code)) == plain)
            let fresh = try RNCryptor.Freshness(
                encryptionSalt: .init(repeating: 0, count: 8), codeSalt: .init(repeating: 0, count: 8),
                vector: Self.hex(block, "iv_hex"))
            #expect(
                try RNCryptor.seal(
                    SecureBytes(copying: plain), encryptionKey: encryption, codeKey: code, fresh) == message)
            expectFailure("a message under keys, with a password") {
                _ = try RNCryptor.open(message, password: code, .init())
            }
        }
    }

    @Test("every published derived key is PBKDF2's", .enabled(if: isAtHand))
    func derivation() throws {
        let blocks = try Self.blocks("v2-kdf.txt") + Self.blocks("v3-kdf.txt")
        for block in blocks {
            let key = try PBKDF2.derive(
                .sha1, password: Self.secret(try #require(block["password"])), salt: Self.hex(block, "salt_hex"),
                rounds: RNCryptor.rounds)
            #expect(key == SecureBytes(copying: try Self.hex(block, "key_hex")))
        }
        #expect(blocks.count == 10)
    }

    @Test("a message of one block has 82 bytes; a shorter one, or one without whole blocks, is refused")
    func shape() throws {
        let (password, stretching): (SecureBytes, RNCryptor.Stretching) = (Self.secret("p"), try .init(rounds: 1))
        let message = try RNCryptor.seal(Self.secret(""), password: password, stretching)
        #expect(message.count == 82)
        #expect(Self.clear(try RNCryptor.open(message, password: password, stretching)) == [])
        for count in 0..<message.count {
            expectFailure("cut to \(count)") {
                _ = try RNCryptor.open(Array(message.prefix(count)), password: password, stretching)
            }
        }
        expectFailure("longer") { _ = try RNCryptor.open(message + [0], password: password, stretching) }
    }

    @Test("T5: every flipped bit is refused, with the one error")
    func everyBit() throws {
        let (password, stretching): (SecureBytes, RNCryptor.Stretching) = (
            Self.secret("password"), try .init(rounds: 2)
        )
        let message = try RNCryptor.seal(Self.secret("short"), password: password, stretching)
        for bit in 0..<message.count * 8 {
            var changed = message
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            expectFailure("bit \(bit)") { _ = try RNCryptor.open(changed, password: password, stretching) }
        }
    }

    @Test("a wrong padding under a right code gives the same error")
    func padding() throws {
        // Only a writer that has the keys and writes nonsense can make a wrong padding.
        let (encryption, code): (SecureBytes, SecureBytes) = (.random(32), .random(32))
        var text = try RNCryptor.seal(
            Self.secret("0123456789abcdef"), encryptionKey: encryption, codeKey: code)
        text.removeLast(32 + 16)
        text += HMAC.code(.sha256, key: code, text)
        expectFailure("no padding") { _ = try RNCryptor.open(text, encryptionKey: encryption, codeKey: code) }
    }

    @Test("two messages of one text differ")
    func fresh() throws {
        let stretching = try RNCryptor.Stretching(rounds: 1)
        let both = Set(
            try (0..<2).map { _ in try RNCryptor.seal(Self.secret("x"), password: Self.secret("p"), stretching) })
        #expect(both.count == 2)
    }

    @Test(
        "T7: rounds of an iteration bomb, and none, are refused before anything is computed",
        arguments: [0, -1, 10_000_001, 1 << 31, .max, .min])
    func bombs(rounds: Int) {
        expectFailure("\(rounds) rounds") { _ = try RNCryptor.Stretching(.sha1, rounds: rounds) }
    }
}
