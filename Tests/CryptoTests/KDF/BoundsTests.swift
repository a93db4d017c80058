import Testing
import ThicketCrypto
import ThicketPlatform

@Suite("Bounds of derivations and of CBC")
struct DerivationBoundsTests {
    private let nothing = SecureBytes(copying: [])

    @Test(
        "PBKDF2 with no rounds, with fewer, or with more than can be counted is refused",
        arguments: [0, -1, .min, 1 << 31, .max])
    func rounds(rounds: Int) {
        for function in HashFunction.allCases {
            #expect(throws: CryptoError.outOfBounds(.rounds)) {
                try PBKDF2.derive(function, password: .random(8), salt: [1], rounds: rounds)
            }
        }
    }

    @Test("lengths out of bounds are refused", arguments: [0, -1, .min, 65_537, .max])
    func counts(count: Int) {
        #expect(throws: CryptoError.outOfBounds(.count)) {
            try PBKDF2.derive(.sha256, password: .random(8), salt: [1], rounds: 1, count: count)
        }
        #expect(throws: CryptoError.outOfBounds(.count)) {
            try HKDF.derive(.sha256, secret: .random(8), info: [], count: count)
        }
        #expect(throws: CryptoError.outOfBounds(.count)) {
            try HKDF.expand(.sha256, key: .random(32), info: [], count: count)
        }
    }

    @Test("an info that OpenSSL would refuse is refused by name; the longest one is accepted")
    func info() throws {
        #expect(throws: CryptoError.outOfBounds(.info)) {
            try HKDF.derive(.sha256, secret: .random(8), info: .init(repeating: 0, count: 32_769))
        }
        #expect(try HKDF.derive(.sha256, secret: .random(8), info: .init(repeating: 0, count: 32_768)).count == 32)
    }

    @Test("an empty secret, password, salt and message give their known values")
    func empty() throws {
        let wanted = try #require(
            Hex.decode("eb70f01dede9afafa449eee1b1286504e1f62388b3f7dd4f956697b0e828fe18"))
        #expect(try HKDF.derive(.sha256, secret: nothing, info: []) == SecureBytes(copying: wanted))
        let password = try #require(
            Hex.decode("f7ce0b653d2d72a4108cf5abe912ffdd777616dbbb27a70e8204f3ae2d0f6fad"))
        #expect(
            try PBKDF2.derive(.sha256, password: nothing, salt: [], rounds: 1) == SecureBytes(copying: password))
        #expect(
            Hex.encode(HMAC.code(.sha256, key: nothing, [UInt8]()))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
        #expect(
            Hex.encode(HMAC.code(.sha1, key: nothing, [UInt8]())) == "fbdb1d1b18aa6c08324b7d64b71fb76370690e1d")
    }

    @Test("CBC: keys and vectors of other lengths are refused, an empty text is one block, cut texts do not open")
    func cbc() throws {
        let (key, vector): (SecureBytes, [UInt8]) = (.random(32), RandomBytes.make(16))
        for count in [0, 15, 17, 31, 33] {
            #expect(throws: CryptoError.outOfBounds(.key)) {
                try AESCBC.encrypt([1], key: .random(count), vector: vector)
            }
            #expect(throws: CryptoError.outOfBounds(.nonce)) {
                try AESCBC.decrypt(vector, key: key, vector: .init(repeating: 0, count: count))
            }
        }
        let text = try AESCBC.encrypt([UInt8](), key: key, vector: vector)
        #expect(text.count == 16)
        #expect(try AESCBC.decrypt(text, key: key, vector: vector) == nothing)
        for count in 0..<16 {
            expectFailure("\(count) bytes") {
                _ = try AESCBC.decrypt(Array(text.prefix(count)), key: key, vector: vector)
            }
        }
    }
}
