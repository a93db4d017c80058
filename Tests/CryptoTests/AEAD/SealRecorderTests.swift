import Testing
import ThicketCrypto

/// T19: the recorder finds a nonce that was used twice. It exists in debug builds, which tests are.
@Suite("T19: nonces that were used twice are detected")
struct SealRecorderTests {
    @Test("two texts under one key and one nonce are detected, in whatever object the key is")
    func seen() throws {
        let recorder = SealRecorder()
        try SealRecorder.$current.withValue(recorder) {
            let secret = SecureBytes.random(32)
            let (first, second) = (
                try AEAD(.aes256GCM, key: secret), try AEAD(.aes256GCM, key: secret)
            )
            let nonce = AEADNonce.random()
            _ = first.seal([1], nonce: nonce, data: [])
            _ = second.seal([1], nonce: nonce, data: [])
            #expect(recorder.reuses.isEmpty)
            _ = second.seal([2], nonce: nonce, data: [])
            #expect(recorder.reuses.map(\.nonce) == [nonce.octets])
            _ = first.seal([1], nonce: nonce, data: [0])
            #expect(recorder.reuses.count == 2)
        }
        #expect(recorder.count == 4 && !recorder.isFull)
    }

    @Test("seals under another key, another nonce or another suite are not reported")
    func unseen() throws {
        let recorder = SealRecorder()
        try SealRecorder.$current.withValue(recorder) {
            let (secret, nonce): (SecureBytes, AEADNonce) = (.random(32), .random())
            _ = try AEAD(.aes256GCM, key: secret).seal([1], nonce: nonce, data: [])
            _ = try AEAD(.chaCha20Poly1305, key: secret).seal([2], nonce: nonce, data: [])
            _ = try AEAD(.aes256GCM, key: .random(32)).seal([3], nonce: nonce, data: [])
            _ = try AEAD(.aes256GCM, key: secret).seal([4], nonce: .random(), data: [])
        }
        #expect(recorder.reuses.isEmpty && recorder.count == 4)
    }
}
