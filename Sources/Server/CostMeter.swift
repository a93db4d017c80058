import Glibc

/// Finds, among pieces of work done one after the other on one thread, those that cost it much.
///
/// Looking at the clock costs nothing beside a change; the processor's own time, which does not count waiting for the disk
/// or for a core, is asked for only when a piece took long.
struct CostMeter {
    private let costly: Int64
    private let factor: Int64
    private var last: Int64
    /// Processor time of the thread when `begin` was called.
    private var processor: Int64

    init(_ limits: ServerLimits) {
        costly = Int64(limits.costlyMicroseconds) * 1_000 * Self.slowness
        factor = Int64(limits.costlyRestFactor)
        last = SystemClock.monotonic()
        processor = SystemClock.threadTime()
    }

    /// What came before is nobody's.
    mutating func begin() {
        last = SystemClock.monotonic()
        processor = SystemClock.threadTime()
    }

    /// A piece of work begins here, in the span of `begin`.
    mutating func start() { last = SystemClock.monotonic() }

    /// A piece of work is done.
    /// - Returns: until when its author is to rest, on the monotonic clock; nil when it was not costly.
    mutating func lap() -> Int64? {
        let now: Int64 = SystemClock.monotonic()
        defer { last = now }
        guard now - last >= costly, factor > 0 else { return nil }
        let spent: Int64 = SystemClock.threadTime()
        let cost: Int64 = min(now - last, spent - processor)
        processor = spent
        return cost >= costly ? now + cost * factor : nil
    }

    /// A build for debugging takes so many times as long for the same work.
    private static var slowness: Int64 {
        #if DEBUG
            50
        #else
            1
        #endif
    }
}
