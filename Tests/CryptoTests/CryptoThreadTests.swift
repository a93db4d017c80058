import Testing
import ThicketCrypto

@Suite("OpenSSL and threads")
struct CryptoThreadTests {
    @Test("a thread that released what OpenSSL keeps for it may continue, and release it again")
    func release() {
        var seen = Set<String>()
        for _ in 0..<100 {
            seen.insert(RandomBytes.hex(16))
            CryptoThread.release()
            CryptoThread.release()
            #expect(Hash.sha256([]).count == 32)
        }
        #expect(seen.count == 100)
    }
}
