import Glibc

/// Finds the costly pieces among pieces of work that one thread does in sequence.
///
/// Reading the wall clock costs little compared with a change. The thread's processor time, which excludes waits for
/// the disk or for a core, is read only after a piece took long.
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

    /// Starts a span; earlier time counts for no piece.
    mutating func begin() {
        last = SystemClock.monotonic()
        processor = SystemClock.threadTime()
    }

    /// Marks the start of a piece within the span of `begin`.
    mutating func start() { last = SystemClock.monotonic() }

    /// Marks the end of a piece.
    /// - Returns: its cost in nanoseconds; nil when it was not costly.
    mutating func lap() -> Int64? {
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

/// Users that did something costly recently. A user that does so again within the memory time is throttled.
///
/// The first time is not punished: when a hypervisor or an interrupt stops the thread, the lost time looks like
/// processor time, and the user of a small change would be throttled for more than a second. The time that a user
/// really uses is counted in its `CPUBudget`. Pure: times are nanoseconds of a monotonic clock.
struct PenaltyBox {
    /// Nanoseconds after the end of a throttle for which costly work is remembered.
    static let memory: Int64 = 60_000_000_000
    /// Users that are remembered. Above this number all are forgotten at once, in favour of the users.
    static let countMax = 4_096

    /// The time until which each user is remembered.
    private var remembered = [TenantID: Int64]()

    /// Records costly work of a user.
    ///
    /// - Parameters:
    ///   - cost: nanoseconds.
    ///   - factor: the throttle lasts this multiple of the cost; 0 disables throttling.
    /// - Returns: the time until which the user is throttled; nil when it may continue.
    mutating func throttle(of user: TenantID, cost: Int64, factor: Int, now: Int64) -> Int64? {
        let (product, isOver) = cost.multipliedReportingOverflow(by: Int64(factor))
        let throttle = isOver ? Self.memory : product
        let isAgain = remembered[user].map { $0 > now } ?? false
        if remembered[user] == nil, remembered.count >= Self.countMax { remembered.removeAll(keepingCapacity: true) }
        remembered[user] = now + (isAgain ? throttle : 0) + Self.memory
        return isAgain && throttle > 0 ? now + throttle : nil
    }
}
