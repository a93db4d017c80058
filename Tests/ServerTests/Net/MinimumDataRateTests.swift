import Testing
@testable import ThicketScheduling

@testable import ThicketServer

/// How long a slow peer is waited for, on a simulated clock.
@Suite("Minimum data rate of slow peers")
struct PaceTests {
    private static let second: Int64 = 1_000_000_000

    /// Sends `bytes` every `pause` seconds.
    /// - Returns: seconds until the peer was given up; nil: it was not within an hour.
    private func run(_ bytes: Int, every pause: Double, pace: Int, patience: Int64 = 10) -> Int64? {
        let pace = MinimumDataRate(bytesPerSecond: pace, patience: patience * Self.second)
        var now: Int64 = 0
        var deadline: Int64 = patience * Self.second
        while now < 3_600 * Self.second {
            now += Int64(pause * Double(Self.second))
            if now > deadline { return deadline / Self.second }
            deadline = pace.deadline(deadline, after: bytes, now: now)
        }
        return nil
    }

    @Test("a peer that keeps the rate may continue forever, whatever the size of its pieces")
    func kept() {
        for (bytes, pause): (Int, Double) in [(1_024, 1), (2, 0.001_95), (9_216, 9), (1 << 20, 9.9), (1_500, 1)] {
            #expect(run(bytes, every: pause, pace: 1_024) == nil, "\(bytes) bytes every \(pause) s")
        }
    }

    @Test("a slower peer is given up within 25 s, however often it sends a byte")
    func lost() throws {
        for (bytes, pause): (Int, Double) in [(1, 9), (1, 0.1), (100, 1), (511, 1), (5_000, 9.9)] {
            let seconds: Int64 = try #require(run(bytes, every: pause, pace: 1_024), "\(bytes) bytes every \(pause) s")
            #expect(seconds <= 25, "\(bytes) bytes every \(pause) s")
        }
    }

    @Test("a burst extends the deadline by the patience at most, and extreme sizes do no harm")
    func burst() {
        let pace = MinimumDataRate(bytesPerSecond: 1, patience: 10 * Self.second)
        #expect(pace.deadline(5 * Self.second, after: .max, now: 0) == 10 * Self.second)
        #expect(pace.deadline(5 * Self.second, after: 1_000_000, now: 3) == 10 * Self.second + 3)
        #expect(pace.deadline(.max, after: 1, now: 0) == 10 * Self.second)
        #expect(MinimumDataRate(bytesPerSecond: 0, patience: 7).deadline(0, after: 1, now: 100) == 107)
    }
}
