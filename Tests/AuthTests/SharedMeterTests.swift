import Synchronization
import Testing
import ThicketAuth
import ThicketPlatform
import ThicketServer

/// Counts that services on several threads share.
@Suite("Shared counts")
struct SharedMeterTests {
    @Test("threads that try at once share one limit per name, and each name has its own limit")
    func threads() {
        let meter = SharedMeter(perMinute: 100)
        let taken = Mutex<[String: Int]>([:])
        let threads = (0..<4).map { number in
            OwnThread("meter-\(number)") {
                for name in ["a", "b"] {
                    for _ in 0..<100 where meter.admit(name, now: 0) == nil {
                        taken.withLock { $0[name, default: 0] += 1 }
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(taken.withLock { $0 } == ["a": 100, "b": 100])
        #expect(meter.wait("a", now: 0) != nil && meter.wait("c", now: 0) == nil)
        meter.perMinute = 1_000
        #expect(meter.wait("a", now: 0) == nil)
    }
}
