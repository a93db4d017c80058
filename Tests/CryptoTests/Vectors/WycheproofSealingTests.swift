import Testing
import ThicketCrypto
import ThicketTestSupport

/// Wycheproof's cases of sealing algorithms.
@Suite("Wycheproof: AEAD and CBC")
struct WycheproofSealingTests {
    private static let gcmFile = "wycheproof/aes_gcm_test.json"
    private static let isTooLong = "a nonce of more bytes than OpenSSL 3.0 takes"

    @Test("AES-GCM with nonces of every length that OpenSSL accepts", .enabled(if: Vectors.has(gcmFile)))
    func gcm() throws {
        let count = try run(Self.gcmFile, Self.gcm)
        // Three cases have nonces of 257 bytes: `definition` checks those.
        #expect(count == VectorCount(valid: 226, refused: 87, skipped: [Self.isTooLong: 3]))
    }

    @Test(
        "AES-GCM as SP 800-38D defines it, of single blocks, gives every valid case", .enabled(if: Vectors.has(gcmFile))
    )
    func definition() throws {
        var (all, otherNonces) = (0, 0)
        for each in try VectorFile(Self.gcmFile).cases() where each.result == "valid" {
            let nonce = try each.bytes("iv")
            let sealed = try PlainGCM(key: each.secret("key")).seal(
                each.bytes("msg"), nonce: nonce, data: each.bytes("aad"))
            #expect(try sealed == each.bytes("ct") + each.bytes("tag"), "\(each)")
            all += 1
            if nonce.count != AEADSuite.nonceBytes { otherNonces += 1 }
        }
        #expect(all == 229 && otherNonces == 113)
    }

    @Test("AES-GCM under nonces of 1 to 128 bytes gives what its definition does; other lengths are refused")
    func lengths() throws {
        for (algorithm, keyBytes): (AEADAlgorithm, Int) in [(.aes128GCM, 16), (.aes192GCM, 24), (.aes256GCM, 32)] {
            let secret = SecureBytes.random(keyBytes)
            let key = try AEAD(algorithm: algorithm, key: secret)
            for count in [1, 11, 12, 13, 16, 17, 127, 128] {
                let (nonce, clear) = (RandomBytes.make(count), RandomBytes.make(count + 20))
                let sealed = try key.seal(clear, gcmNonce: nonce, data: [1, 2])
                #expect(try sealed == PlainGCM(key: secret).seal(clear, nonce: nonce, data: [1, 2]), "\(count)")
                #expect(try key.open(sealed, gcmNonce: nonce, data: [1, 2]) == clear, "\(count)")
                expectFailure("\(count), other data") { _ = try key.open(sealed, gcmNonce: nonce, data: [1]) }
                expectFailure("\(count), cut") {
                    _ = try key.open(Array(sealed.prefix(15)), gcmNonce: nonce, data: [1, 2])
                }
            }
            for count in [0, 129, 257] { expectRefused(key, [UInt8](repeating: 1, count: count), "\(count)") }
            // The contexts of usual nonces were not touched.
            let (usual, nonce): (AEADNonce, [UInt8]) = (
                .chunk(1, isLast: true), AEADNonce.chunk(1, isLast: true).octets
            )
            #expect(
                try key.seal([7], nonce: usual, data: []) == PlainGCM(key: secret).seal([7], nonce: nonce, data: []))
        }
        for count in [8, 12, 16] {
            let nonce = [UInt8](repeating: 1, count: count)
            expectRefused(try AEAD(.chaCha20Poly1305, key: .random(32)), nonce, "ChaCha20-Poly1305, \(count)")
        }
    }

    private static func gcm(_ each: VectorCase) throws -> AEADAlgorithm {
        switch try each.number("keySize") {
        case 128: .aes128GCM
        case 192: .aes192GCM
        default: .aes256GCM
        }
    }

    @Test("ChaCha20-Poly1305", .enabled(if: Vectors.has("wycheproof/chacha20_poly1305_test.json")))
    func chaCha() throws {
        let count = try run("wycheproof/chacha20_poly1305_test.json") { _ in .chaCha20Poly1305 }
        #expect(count == VectorCount(valid: 256, refused: 69))
    }

    private func expectRefused(_ key: AEAD, _ nonce: [UInt8], _ name: String) {
        #expect(throws: CryptoError.outOfBounds(.nonce), "\(name)") { try key.seal([1], gcmNonce: nonce, data: []) }
        #expect(throws: CryptoError.outOfBounds(.nonce), "\(name)") {
            try key.open([UInt8](repeating: 0, count: 17), gcmNonce: nonce, data: [])
        }
    }

    private func run(_ name: String, _ algorithm: (VectorCase) throws -> AEADAlgorithm) throws -> VectorCount {
        var count = VectorCount()
        // Published keys and nonces, on purpose more than once.
        try SealRecorder.$current.withValue(SealRecorder()) {
            for each in try VectorFile(name).cases() {
                let nonceBytes = try each.bytes("iv")
                let key = try AEAD(algorithm: algorithm(each), key: each.secret("key"))
                if nonceBytes.count == AEADSuite.nonceBytes {
                    try run(each, key, AEADNonce(nonceBytes), &count)
                } else {
                    try run(each, key, other: nonceBytes, &count)
                }
            }
        }
        return count
    }

    private func run(_ each: VectorCase, _ key: AEAD, _ nonce: AEADNonce, _ count: inout VectorCount) throws {
        let (clear, data) = (try each.bytes("msg"), try each.bytes("aad"))
        let sealed = try each.bytes("ct") + each.bytes("tag")
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

    /// Nonces that our formats do not have (RFC 5116, 5.1 and 5.2): the public type refuses every one.
    private func run(_ each: VectorCase, _ key: AEAD, other nonce: [UInt8], _ count: inout VectorCount) throws {
        #expect(throws: CryptoError.outOfBounds(.nonce), "\(each)") { try AEADNonce(nonce) }
        guard each.result == "valid" else {
            // Invalid by the nonce: it is empty, or of a length that ChaCha20-Poly1305 does not have.
            count.refused += 1
            return expectRefused(key, nonce, "\(each)")
        }
        guard AEAD.gcmNonceBytes.contains(nonce.count) else {
            expectRefused(key, nonce, "\(each)")
            return count.skipped[Self.isTooLong, default: 0] += 1
        }
        count.valid += 1
        let (clear, data) = (try each.bytes("msg"), try each.bytes("aad"))
        let sealed = try each.bytes("ct") + each.bytes("tag")
        #expect(try key.seal(clear, gcmNonce: nonce, data: data) == sealed, "\(each)")
        #expect(try key.open(sealed, gcmNonce: nonce, data: data) == clear, "\(each)")
    }

    @Test("AES-CBC with PKCS#7 padding", .enabled(if: Vectors.has("wycheproof/aes_cbc_pkcs5_test.json")))
    func cbc() throws {
        var count = VectorCount()
        for each in try VectorFile("wycheproof/aes_cbc_pkcs5_test.json").cases() {
            let (key, vector) = (try each.secret("key"), try each.bytes("iv"))
            let (clear, text) = (try each.bytes("msg"), try each.bytes("ct"))
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
