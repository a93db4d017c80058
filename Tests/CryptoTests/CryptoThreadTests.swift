import Testing
import ThicketCrypto

@Suite("OpenSSL and threads")
struct CryptoThreadTests {
    @Test("a thread that gave back what OpenSSL keeps for it may go on, and give it back again")
    func release() {
        var seen: Set<String> = []
        for _ in 0..<100 {
            seen.insert(RandomBytes.hex(16))
            CryptoThread.release()
            CryptoThread.release()
            #expect(Hash.sha256([]).count == 32)
        }
        #expect(seen.count == 100)
    }
}
