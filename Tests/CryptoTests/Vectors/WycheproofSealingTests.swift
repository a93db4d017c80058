import Testing
import ThicketCrypto
import ThicketTestSupport

/// Wycheproof's cases of what seals.
@Suite("Wycheproof: AEAD and CBC")
struct WycheproofSealingTests {
    @Test("AES-GCM with nonces of 12 bytes", .enabled(if: Vectors.has("wycheproof/aes_gcm_test.json")))
    func gcm() throws {
        let count: VectorCount = try run("wycheproof/aes_gcm_test.json") { each in
            switch try each.number("keySize") {
            case 128: .aes128GCM
            case 192: .aes192GCM
            default: .aes256GCM
            }
        }
        // RFC 5116, 5.1 and 5.2: a nonce has 12 bytes, and there is no other in our formats. Those of 0 bytes must fail anyway.
        #expect(count == VectorCount(valid: 116, refused: 87, skipped: ["nonce of other than 12 bytes": 113]))
    }

    @Test("ChaCha20-Poly1305", .enabled(if: Vectors.has("wycheproof/chacha20_poly1305_test.json")))
    func chaCha() throws {
        let count: VectorCount = try run("wycheproof/chacha20_poly1305_test.json") { _ in .chaCha20Poly1305 }
        #expect(count == VectorCount(valid: 256, refused: 69))
    }

    private func run(_ name: String, _ algorithm: (VectorCase) throws -> AEADAlgorithm) throws -> VectorCount {
        var count: VectorCount = .init()
        // Published keys and nonces, on purpose more than once.
        try SealRecorder.$current.withValue(SealRecorder()) {
            for each: VectorCase in try VectorFile(name).cases() {
                let nonceBytes: [UInt8] = try each.bytes("iv")
                guard nonceBytes.count == AEADSuite.nonceBytes else {
                    #expect(throws: CryptoError.outOfBounds(.nonce), "\(each)") { try AEADNonce(nonceBytes) }
                    if each.result == "valid" {
                        count.skipped["nonce of other than 12 bytes", default: 0] += 1
                    } else {
                        count.refused += 1
                    }
                    continue
                }
                try run(each, AEAD(algorithm: algorithm(each), key: each.secret("key")), AEADNonce(nonceBytes), &count)
            }
        }
        return count
    }

    private func run(_ each: VectorCase, _ key: AEAD, _ nonce: AEADNonce, _ count: inout VectorCount) throws {
        let (clear, data): ([UInt8], [UInt8]) = (try each.bytes("msg"), try each.bytes("aad"))
        let sealed: [UInt8] = try each.bytes("ct") + each.bytes("tag")
        guard each.result == "valid" else {
            count.refused += 1
            return expectFailure(each) { _ = try key.open(sealed, nonce: nonce, data: data) }
        }
        count.valid += 1
        #expect(key.seal(clear, nonce: nonce, data: data) == sealed, "\(each)")
        #expect(try key.open(sealed, nonce: nonce, data: data) == clear, "\(each)")
        #expect(
            try key.openSecret(sealed, nonce: nonce, data: data) == SecureBytes(copying: clear), "\(each)")
    }

    @Test("AES-CBC with PKCS#7 padding", .enabled(if: Vectors.has("wycheproof/aes_cbc_pkcs5_test.json")))
    func cbc() throws {
        var count: VectorCount = .init()
        for each: VectorCase in try VectorFile("wycheproof/aes_cbc_pkcs5_test.json").cases() {
            let (key, vector): (SecureBytes, [UInt8]) = (try each.secret("key"), try each.bytes("iv"))
            let (clear, text): ([UInt8], [UInt8]) = (try each.bytes("msg"), try each.bytes("ct"))
            if each.result == "valid" {
                count.valid += 1
                #expect(try AESCBC.encrypt(clear, key: key, vector: vector) == text, "\(each)")
                #expect(
                    try AESCBC.decrypt(text, key: key, vector: vector) == SecureBytes(copying: clear), "\(each)")
            } else {
                count.refused += 1
                expectFailure(each) { _ = try AESCBC.decrypt(text, key: key, vector: vector) }
            }
        }
        #expect(count == VectorCount(valid: 72, refused: 144))
    }
}
