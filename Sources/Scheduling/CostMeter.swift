import ThicketPlatform

/// Finds the costly pieces among pieces of work that one thread does in sequence.
///
/// Reading the wall clock costs little compared with a change. The thread's processor time, which excludes waits for
/// the disk or for a core, is read only after a piece took long.
package struct CostMeter {
    private let costly: Int64
    private var last: Int64
    /// Processor time of the thread when `begin` was called.
    private var processor: Int64

    /// - Parameter microseconds: time from which on a piece is costly.
    package init(costlyMicroseconds microseconds: Int) {
        costly = Int64(microseconds) * 1_000 * Self.slowness
        last = SystemClock.monotonic()
        processor = SystemClock.threadTime()
    }

    /// Starts a span; earlier time counts for no piece.
    package mutating func begin() {
        last = SystemClock.monotonic()
        processor = SystemClock.threadTime()
    }

    /// Marks the start of a piece within the span of `begin`.
    package mutating func start() { last = SystemClock.monotonic() }

    /// Marks the end of a piece.
    /// - Returns: its cost in nanoseconds; nil when it was not costly.
    package mutating func lap() -> Int64? {
        let now = SystemClock.monotonic()
        defer { last = now }
        guard now - last >= costly else { return nil }
        let spent = SystemClock.threadTime()
        let cost = min(now - last, spent - processor)
        processor = spent
        return cost >= costly ? cost : nil
    }

    /// How many times as long a debug build takes for the same work.
    private static var slowness: Int64 {
        #if DEBUG
            50
        #else
            1
        #endif
    }
}
