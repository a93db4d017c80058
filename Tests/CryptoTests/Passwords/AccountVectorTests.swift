import Testing
import ThicketCrypto
import ThicketPlatform

/// What another implementation (Python's hashlib, hmac and cryptography) computes from the same input.
@Suite("Keys of accounts, against another implementation")
struct AccountVectorTests {
    private func key() throws -> AccessKey { try AccessKey(SecureBytes(copying: Array(0..<32))) }

    @Test("ids of users and codes of pairings equal the other implementation's")
    func names() throws {
        let digest = Hash.sha256([UInt8](repeating: 2, count: 32))
        #expect(try AccountPlace.userID(app: "notes", recoveryDigest: digest) == "d0d602cca9031093e4498a5a29aa10d3")
        #expect(PairingCode.text(of: Array(0..<32) + Array("phone".utf8)) == "tn4lnarta5g5svdh2dulk5vgie")
    }

    @Test("a sealed bundle and a sealed access key open, in their place only")
    func sealed() throws {
        let bundle = try #require(
            Hex.decode("016465666768696a6b6c6d6e6fe71f7a036d5b05144bf1ec8a9b7e4eff58caebf8b3c1c375020eaa79"))
        let third = AccountPlace(app: "notes", user: "u1", version: 3)
        #expect(try third.openBundle(bundle, with: key()) == SecureBytes(copying: Array(#"{"format":1}"#.utf8)))
        #expect(throws: CryptoError.openingFailed) {
            try AccountPlace(app: "notes", user: "u1", version: 4).openBundle(bundle, with: key())
        }
        let access = try #require(
            Hex.decode(
                "016465666768696a6b6c6d6e6f38a7226c6f158dad4b4c6a94a6edd6fe9ba123efe2106ce11e69dc450a930e9e6df1d70906c73c3d"
                    + "c11eda2aa639ce32"))
        let vault = SecureBytes(copying: .init(repeating: 9, count: 32))
        #expect(try AccountPlace.ofAccessKey(app: "notes", user: "u1").openAccessKey(access, under: vault) == key())
        #expect(throws: CryptoError.openingFailed) {
            try AccountPlace.ofAccessKey(app: "notes", user: "u2").openAccessKey(access, under: vault)
        }
    }

    @Test("a code to write down has a check in each line, and is read back")
    func written() throws {
        let bytes = SecureBytes(copying: Array(0..<25))
        let text = try #require(WrittenCode.text(of: bytes))
        let expected = "aaaq eaye auda ocaj bifq ydio b4ib ceqt fl\ncqkr mfyy b4\n"
        #expect(text == SecureBytes(copying: Array(expected.utf8)))
        for count in [1, 2, 19, 20, 21, 39, 40, 80, 186, 2_000] {
            let bytes = SecureBytes.random(count)
            #expect(try WrittenCode.bytes(of: try #require(WrittenCode.text(of: bytes))) == bytes)
        }
        for count in [0, 2_001] { #expect(WrittenCode.text(of: SecureBytes(count: count) { _ in }) == nil) }
    }

    @Test("secrets are written in letters like other base64url texts, and read as strictly")
    func letters() throws {
        for count in 0...70 {
            let bytes = RandomBytes.make(count)
            let text: String = Base64.encodeURL(bytes)
            #expect(SecureBytes(copying: bytes).base64URL == SecureBytes(copying: Array(text.utf8)))
            let read = Array(text.utf8).withUnsafeBytes { SecureBytes(base64URL: $0) }
            #expect(read == SecureBytes(copying: bytes))
        }
        for byte: UInt8 in 0...255 {
            let text: [UInt8] = [65, byte, 65, 65]
            let strict: [UInt8]? = Base64.decodeURL(text[...])
            let read = text.withUnsafeBytes { SecureBytes(base64URL: $0) }
            #expect(read == strict.map { SecureBytes(copying: $0) }, "\(byte)")
        }
        for text in ["A", "AB", "AAB", "AAAAA"] {
            let read = Array(text.utf8).withUnsafeBytes { SecureBytes(base64URL: $0) }
            #expect((read == nil) == (Base64.decodeURL(Array(text.utf8)[...]) == nil))
        }
    }
}
