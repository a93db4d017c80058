import Testing
import ThicketCrypto

@testable import ThicketKeyLog

@Suite("Public keys of an account")
struct PublicKeysTests {
    private static func keys(_ user: String, _ first: UInt8, _ second: UInt8) throws -> PublicKeys {
        let signing = try Ed25519.SigningKey(seed: SecureBytes(copying: [UInt8](repeating: first, count: 32)))
        let opening = try X25519.PrivateKey(SecureBytes(copying: [UInt8](repeating: second, count: 32)))
        return try PublicKeys(user: user, identity: signing.verifyingKey, encryption: opening.publicKey)
    }

    @Test("a key id depends on the account and both its keys, and changes with any of the three")
    func idsNameAll() throws {
        let keys = try Self.keys("ann", 1, 2)
        #expect(keys.id.utf8.count == 32)
        #expect(keys == (try Self.keys("ann", 1, 2)))
        for other in [
            try Self.keys("ben", 1, 2), try Self.keys("ann", 3, 2), try Self.keys("ann", 1, 3),
        ] {
            #expect(other != keys)
            #expect(other.id != keys.id)
        }
    }

    @Test("two spellings of one name are two accounts, since names are compared as bytes")
    func spellings() throws {
        #expect(try Self.keys("\u{E9}", 1, 2) != Self.keys("e\u{301}", 1, 2))
    }
}
