import Glibc

/// Finds, among pieces of work done one after the other on one thread, those that cost it much.
///
/// Looking at the clock costs nothing beside a change; the processor's own time, which does not count waiting for the
/// disk or for a core, is asked for only when a piece took long.
struct CostMeter {
    private let costly: Int64
    private var last: Int64
    /// Processor time of the thread when `begin` was called.
    private var processor: Int64

    init(_ limits: ServerLimits) {
        costly = Int64(limits.costlyMicroseconds) * 1_000 * Self.slowness
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
    /// - Returns: what it cost, nanoseconds; nil when it was not costly.
    mutating func lap() -> Int64? {
        let now = SystemClock.monotonic()
        defer { last = now }
        guard now - last >= costly else { return nil }
        let spent = SystemClock.threadTime()
        let cost = min(now - last, spent - processor)
        processor = spent
        return cost >= costly ? cost : nil
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

/// Users who did something costly of late: whoever does it again rests.
///
/// Not the first time: to a thread that is stopped by the machine below it, or by an interrupt, that time is processor
/// time as any other, and whoever's small change it was would rest for a second and more. What it really took is on its
/// account of the thread anyway (`ShareAccount`). Pure: times are nanoseconds of a clock that never goes back.
struct CostlyUsers {
    /// Nanoseconds, after the rest, for which it is remembered.
    static let memory: Int64 = 60_000_000_000
    /// Users who are remembered; beyond it all are forgotten at once, in their favour.
    static let countMax = 4_096

    /// Until when each is remembered.
    private var remembered = [UInt32: Int64]()

    /// A user did something costly.
    ///
    /// - Parameters:
    ///   - cost: nanoseconds.
    ///   - factor: how many times as long it rests; 0 asks nobody to rest.
    /// - Returns: until when it is to rest; nil when it may go on.
    mutating func rest(of user: UInt32, cost: Int64, factor: Int, now: Int64) -> Int64? {
        let (product, isOver) = cost.multipliedReportingOverflow(by: Int64(factor))
        let rest = isOver ? Self.memory : product
        let isAgain = remembered[user].map { $0 > now } ?? false
        if remembered[user] == nil, remembered.count >= Self.countMax { remembered.removeAll(keepingCapacity: true) }
        remembered[user] = now + (isAgain ? rest : 0) + Self.memory
        return isAgain && rest > 0 ? now + rest : nil
    }
}
