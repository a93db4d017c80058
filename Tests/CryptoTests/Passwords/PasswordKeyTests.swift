import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@Suite("Keys derived from passwords, and what they seal", .nonceWatch)
struct PasswordKeyTests {
    private let place = AccountPlace(app: "app", user: "u1", version: 1)

    @Test(
        "the published passwords give their keys, in either spelling of their letters",
        .enabled(if: Vectors.has("container/password-keys.json")))
    func published() throws {
        let cases = try #require(try VectorFile("container/password-keys.json").root["cases"])
        var count = 0
        for node in cases.elements {
            let each = VectorCase(node: node, group: node)
            let password = try #require(node["password"]?.string)
            let cost = try PasswordRules.tests.cost(
                kdf: 1, log2N: each.number("log2N"), r: each.number("r"), p: each.number("p"))
            let keys = try PasswordKeys(
                password: SecureBytes(copying: Array(password.utf8)), salt: each.bytes("salt"), cost: cost)
            #expect(keys.authKey == (try each.secret("auth_key")))
            #expect(keys.vaultKey == (try each.secret("vault_key")))
            count += 1
        }
        #expect(count == 5)
    }

    @Test("T7: a server's parameters below or above the bounds are refused before anything is computed")
    func bounds() throws {
        let rules = PasswordRules.product
        for log2N in 17...20 {
            for p in 1...4 { #expect(try rules.cost(kdf: 1, log2N: log2N, r: 8, p: p).log2N == log2N) }
        }
        #expect(try rules.cost(kdf: 1, log2N: 17, r: 8, p: 1) == .standard)
        let refused = [
            (10, 8, 1), (14, 8, 1), (16, 8, 1), (21, 8, 1), (30, 8, 1), (0, 8, 1), (-1, 8, 1), (64, 8, 1),
            (.max, 8, 1), (.min, 8, 1), (17, 1, 1), (17, 7, 1), (17, 9, 1), (17, 0, 1), (17, .max, 1), (17, 8, 0),
            (17, 8, 5), (17, 8, -1), (17, 8, .max),
        ]
        for (log2N, r, p) in refused {
            #expect(throws: CryptoError.outOfBounds(.cost), "\(log2N) \(r) \(p)") {
                try rules.cost(kdf: 1, log2N: log2N, r: r, p: p)
            }
        }
        for kdf in [-1, 0, 2, 3] {
            #expect(throws: CryptoError.outOfBounds(.suite)) { try rules.cost(kdf: kdf, log2N: 17, r: 8, p: 1) }
        }
        #expect(throws: CryptoError.outOfBounds(.cost)) {
            try PasswordRules.tests.cost(kdf: 1, log2N: 13, r: 8, p: 1)
        }
    }

    @Test("salts of other lengths, and passwords that are not UTF-8 or too long, are refused")
    func refused() throws {
        let cost = try PasswordRules.tests.cost(kdf: 1, log2N: 14, r: 8, p: 1)
        for count: Int in [0, 15, 17] {
            #expect(throws: CryptoError.outOfBounds(.salt)) {
                try PasswordKeys(
                    password: SecureBytes(copying: [65]), salt: .init(repeating: 0, count: count), cost: cost)
            }
        }
        for bytes: [UInt8] in [[0xFF], [0xC3], .init(repeating: 65, count: 65_537)] {
            #expect(throws: CryptoError.outOfBounds(.password)) {
                try PasswordKeys(
                    password: SecureBytes(copying: bytes), salt: .init(repeating: 0, count: 16), cost: cost)
            }
        }
    }

    @Test("an access key opens under its vault key, in its place, and not elsewhere")
    func access() throws {
        let (key, vault): (AccessKey, SecureBytes) = (.random(), .random(32))
        let sealed = try place.seal(key, under: vault)
        #expect(sealed.count == 1 + 12 + 32 + 16 && sealed[0] == 1)
        #expect(try place.openAccessKey(sealed, under: vault) == key)
        expectFailure("another password") { _ = try place.openAccessKey(sealed, under: .random(32)) }
        for other in others {
            expectFailure("\(other)") { _ = try other.openAccessKey(sealed, under: vault) }
        }
        for byte in sealed.indices {
            var flipped = sealed
            flipped[byte] ^= 0x80
            expectFailure("byte \(byte)") { _ = try place.openAccessKey(flipped, under: vault) }
        }
        // A bundle is not an access key, even if it were sealed under the same key.
        let bundle = try place.seal(bundle: .random(32), with: key)
        expectFailure("a bundle") { _ = try place.openAccessKey(bundle, under: vault) }
    }

    @Test("a bundle of any length opens with its access key, in its place; a password change does not affect it")
    func bundle() throws {
        let key = AccessKey.random()
        for count in [0, 1, 300] {
            let bundle = SecureBytes.random(count)
            let sealed = try place.seal(bundle: bundle, with: key)
            #expect(try place.openBundle(sealed, with: key) == bundle)
            expectFailure("another key") { _ = try place.openBundle(sealed, with: .random()) }
            for other in others {
                expectFailure("\(other)") { _ = try other.openBundle(sealed, with: key) }
            }
        }
        let (before, after): (SecureBytes, SecureBytes) = (.random(32), .random(32))
        let sealed = try place.seal(bundle: SecureBytes(copying: [1, 2]), with: key)
        let carried = try place.openAccessKey(place.seal(key, under: before), under: before)
        let again = try place.openAccessKey(place.seal(carried, under: after), under: after)
        #expect(try place.openBundle(sealed, with: again) == SecureBytes(copying: [1, 2]))
    }

    @Test("the proof shown to the server is derived from the access key, and is not what seals the bundle")
    func recovery() throws {
        let key = try AccessKey(SecureBytes(copying: Array(0..<32)))
        // HKDF-SHA-256 without salt and with the label, computed by another implementation.
        let wanted = try #require(
            Hex.decode("41f36088d559132606d7d5e641dbd2811e9d4ee8ed06cdb690a936fe013c2380"))
        #expect(try key.recoveryAuth() == SecureBytes(copying: wanted))
        #expect(try key.recoveryAuth() != AccessKey.random().recoveryAuth())
    }

    private var others: [AccountPlace] {
        [
            .init(app: "ap", user: "pu1", version: 1), .init(app: "app", user: "u2", version: 1),
            .init(app: "app", user: "u1", version: 2), .init(app: "u1", user: "app", version: 1),
        ]
    }
}
