/// Queues the work of many users. Each user's work keeps its order, and users take turns. A user whose work cost too
/// much is throttled, and what it sends meanwhile delays only itself. A user is held while its work waits for a result
/// from another thread, because its next piece depends on that result.
///
/// Pure: times are passed in, in nanoseconds of a monotonic clock.
struct RoundRobinQueue<Work> {
    private struct Waiting {
        var line = Deque<Work>()
        var throttledUntil = Int64.min
        /// Pieces taken by `takeOne` and not reported by `done` yet.
        var atWork = 0
        var isHeld = false

        var count: Int { line.count }
    }

    /// Weight of a piece within a turn: roughly how long it takes, in units of a usual piece.
    private let weigh: (Work) -> Int
    private var tenants = [TenantID: Waiting]()
    /// Tenants with queued work, in the order of their turns.
    private var turns = [TenantID]()
    private var next = 0
    private(set) var count = 0
    /// Number of tenants whose work waits for a result from elsewhere.
    private(set) var heldCount = 0

    init(weigh: @escaping (Work) -> Int = { _ in 1 }) { self.weigh = weigh }

    mutating func append(_ work: Work, of tenant: TenantID) {
        count += 1
        if tenants[tenant, default: Waiting()].count == 0 { turns.append(tenant) }
        tenants[tenant, default: Waiting()].line.append(work)
    }

    /// Takes up to `share` pieces from each tenant in turn, at most `most` in all.
    ///
    /// - Parameters:
    ///   - weightMax: bound on the weight of one tenant's pieces together, its last piece not counted.
    ///   - throttles: false ignores throttling, so that everything is finished at shutdown.
    mutating func take(most: Int, share: Int, weightMax: Int = .max, now: Int64, throttles: Bool = true) -> [Work] {
        var taken = [Work]()
        for _ in 0..<turns.count {
            guard taken.count < most else { break }
            if next >= turns.count { next = 0 }
            let tenant: TenantID = turns[next]
            if isHeld(tenant) || throttles && isThrottled(tenant, at: now) {
                next += 1
            } else {
                take(min(share, most - taken.count), weightMax, of: tenant, &taken)
            }
        }
        return taken
    }

    /// The next piece of the next tenant with fewer than `atOnce` pieces in progress; nil when no such tenant has work.
    mutating func takeOne(atOnce: Int) -> (tenant: TenantID, work: Work)? {
        for _ in 0..<turns.count {
            if next >= turns.count { next = 0 }
            let tenant: TenantID = turns[next]
            if tenants[tenant]?.atWork ?? 0 < atOnce {
                var taken = [Work]()
                take(1, .max, of: tenant, &taken)
                tenants[tenant, default: Waiting()].atWork += 1
                return taken.first.map { (tenant, $0) }
            }
            next += 1
        }
        return nil
    }

    /// Reports that a piece from `takeOne` is finished.
    /// - Returns: whether the tenant has more work queued.
    @discardableResult
    mutating func done(_ tenant: TenantID) -> Bool {
        tenants[tenant]?.atWork -= 1
        let waits = (tenants[tenant]?.count ?? 0) > 0
        forgetIfIdle(tenant)
        return waits
    }

    /// Puts work that was taken and not begun back to the front of the tenant's queue, in its order.
    mutating func putBack(_ work: [Work], of tenant: TenantID) {
        guard !work.isEmpty else { return }
        count += work.count
        if tenants[tenant, default: Waiting()].count == 0 { turns.append(tenant) }
        var waiting = tenants.removeValue(forKey: tenant) ?? Waiting()
        waiting.line.putBack(work)
        tenants[tenant] = waiting
    }

    /// Hands out no work of the tenant until `resume`, not even at shutdown.
    mutating func hold(_ tenant: TenantID) {
        guard !isHeld(tenant) else { return }
        tenants[tenant, default: Waiting()].isHeld = true
        heldCount += 1
    }

    /// Ends a hold; `work` is the tenant's next piece.
    mutating func resume(_ tenant: TenantID, with work: Work) {
        if isHeld(tenant) { heldCount -= 1 }
        tenants[tenant]?.isHeld = false
        putBack([work], of: tenant)
    }

    func isHeld(_ tenant: TenantID) -> Bool { heldCount > 0 && tenants[tenant]?.isHeld ?? false }

    /// Throttles the tenant until `time`, or until the end of a longer throttle.
    mutating func throttle(_ tenant: TenantID, until time: Int64) {
        tenants[tenant, default: Waiting()].throttledUntil = max(time, tenants[tenant]?.throttledUntil ?? .min)
    }

    /// Whether the tenant is throttled at that time.
    func isThrottled(_ tenant: TenantID, at now: Int64) -> Bool { tenants[tenant]?.throttledUntil ?? .min > now }

    /// The earliest end of a throttle among tenants with work; nil when none is throttled.
    func wakes(after now: Int64) -> Int64? {
        turns.lazy.filter { !isHeld($0) }.compactMap { tenants[$0]?.throttledUntil }.filter { $0 > now }.min()
    }

    /// Whether a tenant has work and is neither held nor throttled.
    /// - Parameter throttles: as in `take`.
    func hasWork(_ now: Int64, throttles: Bool = true) -> Bool {
        turns.contains { !isHeld($0) && !(throttles && isThrottled($0, at: now)) }
    }

    /// Takes pieces of one tenant and passes the turn on.
    private mutating func take(_ wanted: Int, _ weightMax: Int, of tenant: TenantID, _ taken: inout [Work]) {
        guard var waiting = tenants.removeValue(forKey: tenant) else { return }
        var number = min(wanted, waiting.count)
        if weightMax < .max {
            var (fitting, weight) = (0, 0)
            while fitting < number, weight < weightMax {
                weight += weigh(waiting.line[fitting])
                fitting += 1
            }
            number = fitting
        }
        taken.append(contentsOf: waiting.line.takeFirst(number))
        count -= number
        if waiting.count == 0 { turns.remove(at: next) } else { next += 1 }
        tenants[tenant] = waiting
        forgetIfIdle(tenant)
    }

    private mutating func forgetIfIdle(_ tenant: TenantID) {
        guard let waiting = tenants[tenant], waiting.count == 0, waiting.atWork <= 0, waiting.throttledUntil == .min,
            !waiting.isHeld
        else { return }
        tenants[tenant] = nil
    }

    /// Drops throttles that are over, so that users that left long ago take no memory.
    mutating func forgetRests(before now: Int64) {
        for (tenant, waiting) in tenants where waiting.throttledUntil <= now {
            tenants[tenant]?.throttledUntil = .min
            forgetIfIdle(tenant)
        }
    }
}

/// A `RoundRobinQueue` shared between threads.
///
/// It has no bound of its own: the hub counts the work in progress, in total and per user, and stops reading from
/// clients before the queue grows further.
///
/// Another thread can briefly take the place of the thread that waits in `take` (`claim`), so that it does small work
/// itself, without a wake-up.
final class FairQueue<Work: Sendable>: @unchecked Sendable {
    // All mutable state is touched only inside `monitor`.
    private let monitor = Monitor()
    private var row: RoundRobinQueue<Work>
    private var isClosed = false
    private var restCount = 0
    /// A thread sleeps in `take`.
    private var isAwaited = false
    private var isClaimed = false
    /// The thread in `take` woke up while its place was claimed, and sleeps without a deadline until the place is free.
    private var isHeldBack = false
    /// `take` must return, even with nothing.
    private var isRoused = false

    /// - Parameter weigh: see `RoundRobinQueue`; called inside the monitor.
    init(weigh: @escaping @Sendable (Work) -> Int = { _ in 1 }) { row = RoundRobinQueue(weigh: weigh) }

    /// Queues work; after `close` it is dropped.
    func push(_ work: [(tenant: TenantID, work: Work)]) {
        guard !work.isEmpty else { return }
        monitor.locked {
            if !isClosed { for (tenant, piece) in work { row.append(piece, of: tenant) } }
        }
        if work.count == 1 { monitor.wakeOne() } else { monitor.wakeAll() }
    }

    /// Ends the queue: work that is queued is still handed out, new work is dropped.
    func close() {
        monitor.locked { isClosed = true }
        monitor.wakeAll()
    }

    /// Hands out no work of the tenant until `resume`, which must follow. Pieces that were handed out and not begun are
    /// handed out again after that.
    func hold(_ tenant: TenantID, puttingBack work: [Work]) {
        monitor.locked {
            row.hold(tenant)
            row.putBack(work, of: tenant)
        }
    }

    /// Ends a hold, also after `close`; `work` is the tenant's next piece.
    func resume(_ tenant: TenantID, with work: Work) {
        monitor.locked { row.resume(tenant, with: work) }
        monitor.wakeAll()
    }

    /// Throttles the tenant until `time`. Pieces that were handed out and not begun are handed out again after that.
    func throttle(_ tenant: TenantID, until time: Int64, puttingBack work: [Work]) {
        monitor.locked { row.putBack(work, of: tenant) }
        throttle(tenant, until: time)
    }

    /// The next work, a share of each tenant; waits for the first piece. nil when closed and empty.
    /// - Parameter seconds: longest wait, after which the result is an empty array; 0 does not wait.
    func take(most: Int, share: Int, weightMax: Int = .max, waitingSeconds seconds: Double) -> [Work]? {
        monitor.locked {
            var now = SystemClock.monotonic()
            let end = now + Int64(seconds * 1e9)
            while isClaimed || waits(now, until: end) {
                isAwaited = true
                isHeldBack = isClaimed
                monitor.wait(until: isClaimed || isClosed ? .max : min(end, row.wakes(after: now) ?? end))
                isAwaited = false
                now = SystemClock.monotonic()
            }
            isRoused = false
            let taken = row.take(
                most: most, share: share, weightMax: weightMax, now: now, throttles: !isClosed)
            return taken.isEmpty && isClosed ? nil : taken
        }
    }

    /// Whether nothing can be taken at that time. After `close`, only held work is waited for.
    private func waits(_ now: Int64, until end: Int64) -> Bool {
        guard !row.hasWork(now, throttles: !isClosed) else { return false }
        return isClosed ? row.heldCount > 0 : !isRoused && now < end
    }

    /// Puts the caller in the place of the thread that waits in `take`, until `release`. That thread has no work and
    /// begins none, so the caller may do work of these tenants itself, in their order.
    /// - Returns: false, with no effect, when work is queued or in progress, a tenant is throttled or held, or the
    ///   queue is closed.
    func claim(_ tenants: some Sequence<TenantID>) -> Bool {
        monitor.locked {
            guard isAwaited, !isClaimed, !isClosed, row.count == 0 else { return false }
            let now = SystemClock.monotonic()
            guard !tenants.contains(where: { row.isThrottled($0, at: now) || row.isHeld($0) }) else { return false }
            isClaimed = true
            return true
        }
    }

    /// Ends a claim.
    /// - Parameter rousing: whether `take` must return even when no work was queued.
    func release(rousing: Bool) {
        let wakes = monitor.locked {
            isClaimed = false
            if rousing { isRoused = true }
            return isRoused || isClosed || row.count > 0 || isHeldBack
        }
        if wakes { monitor.wakeAll() }
    }

    /// One piece of a tenant with fewer than `atOnce` pieces in progress; waits for it. nil when closed and empty. The
    /// caller reports the end of the piece with `done`.
    func next(atOnce: Int) -> (tenant: TenantID, work: Work)? {
        monitor.locked {
            while true {
                if let found = row.takeOne(atOnce: isClosed ? .max : atOnce) {
                    return found
                }
                guard !isClosed else { return nil }
                monitor.wait()
            }
        }
    }

    /// Reports that a piece from `next` is finished.
    /// - Returns: whether the tenant has more work queued.
    @discardableResult
    func done(_ tenant: TenantID) -> Bool {
        let (waits, wakes) = monitor.locked { (row.done(tenant), row.count > 0) }
        if wakes { monitor.wakeOne() }
        return waits
    }

    /// Throttles the tenant until `time`.
    func throttle(_ tenant: TenantID, until time: Int64) {
        monitor.locked {
            row.throttle(tenant, until: time)
            restCount += 1
            if restCount % 256 == 0 { row.forgetRests(before: SystemClock.monotonic()) }
        }
    }
}
