import ThicketPlatform

/// Queues the work of many users. Each user's work keeps its order, and users take turns. A user whose work cost too
/// much is throttled, and what it sends meanwhile delays only itself. A user is held while its work waits for a result
/// from another thread, because its next piece depends on that result.
///
/// Pure: times are passed in, in nanoseconds of a monotonic clock.
public struct RoundRobinQueue<Work> {
    @usableFromInline struct Waiting {
        @usableFromInline var line = Deque<Work>()
        @usableFromInline var throttledUntil = Int64.min
        /// Pieces taken by `takeOne` and not reported by `done` yet.
        @usableFromInline var atWork = 0
        @usableFromInline var isHeld = false

        @inlinable var count: Int { line.count }

        @inlinable init() {}
    }

    /// Weight of a piece within a turn: roughly how long it takes, in units of a usual piece.
    @usableFromInline let weigh: (Work) -> Int
    @usableFromInline var tenants = [TenantID: Waiting]()
    /// Tenants with queued work, in the order of their turns.
    @usableFromInline var turns = [TenantID]()
    @usableFromInline var next = 0
    @usableFromInline var pieces = 0
    @usableFromInline var held = 0

    /// Number of pieces queued.
    @inlinable public var count: Int { pieces }
    /// Number of tenants whose work waits for a result from elsewhere.
    @inlinable public var heldCount: Int { held }

    @inlinable public init(weigh: @escaping (Work) -> Int = { _ in 1 }) { self.weigh = weigh }

    @inlinable public mutating func append(_ work: Work, of tenant: TenantID) {
        pieces += 1
        if tenants[tenant, default: Waiting()].count == 0 { turns.append(tenant) }
        tenants[tenant, default: Waiting()].line.append(work)
    }

    /// Takes up to `share` pieces from each tenant in turn, at most `most` in all.
    ///
    /// - Parameters:
    ///   - weightMax: bound on the weight of one tenant's pieces together, its last piece not counted.
    ///   - throttles: false ignores throttling, so that everything is finished at shutdown.
    @inlinable public mutating func take(
        most: Int, share: Int, weightMax: Int = .max, now: Int64, throttles: Bool = true
    )
        -> [Work]
    {
        var taken = [Work]()
        for _ in 0..<turns.count {
            guard taken.count < most else { break }
            if next >= turns.count { next = 0 }
            let tenant = turns[next]
            if isHeld(tenant) || throttles && isThrottled(tenant, at: now) {
                next += 1
            } else {
                dequeue(min(share, most - taken.count), weightMax, of: tenant, &taken)
            }
        }
        return taken
    }

    /// The next piece of the next tenant with fewer than `atOnce` pieces in progress; nil when no such tenant has work.
    @inlinable public mutating func takeOne(atOnce: Int) -> (tenant: TenantID, work: Work)? {
        for _ in 0..<turns.count {
            if next >= turns.count { next = 0 }
            let tenant = turns[next]
            if tenants[tenant]?.atWork ?? 0 < atOnce {
                var taken = [Work]()
                dequeue(1, .max, of: tenant, &taken)
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
    @inlinable public mutating func done(_ tenant: TenantID) -> Bool {
        tenants[tenant]?.atWork -= 1
        let waits = (tenants[tenant]?.count ?? 0) > 0
        forgetIfIdle(tenant)
        return waits
    }

    /// Puts work that was taken and not begun back to the front of the tenant's queue, in its order.
    @inlinable public mutating func putBack(_ work: [Work], of tenant: TenantID) {
        guard !work.isEmpty else { return }
        pieces += work.count
        if tenants[tenant, default: Waiting()].count == 0 { turns.append(tenant) }
        var waiting = tenants.removeValue(forKey: tenant) ?? Waiting()
        waiting.line.putBack(work)
        tenants[tenant] = waiting
    }

    /// Hands out no work of the tenant until `resume`, not even at shutdown.
    @inlinable public mutating func hold(_ tenant: TenantID) {
        guard !isHeld(tenant) else { return }
        tenants[tenant, default: Waiting()].isHeld = true
        held += 1
    }

    /// Ends a hold; `work` is the tenant's next piece.
    @inlinable public mutating func resume(_ tenant: TenantID, with work: Work) {
        if isHeld(tenant) { held -= 1 }
        tenants[tenant]?.isHeld = false
        putBack([work], of: tenant)
    }

    @inlinable public func isHeld(_ tenant: TenantID) -> Bool { heldCount > 0 && tenants[tenant]?.isHeld ?? false }

    /// Throttles the tenant until `time`, or until the end of a longer throttle.
    @inlinable public mutating func throttle(_ tenant: TenantID, until time: Int64) {
        tenants[tenant, default: Waiting()].throttledUntil = max(time, tenants[tenant]?.throttledUntil ?? .min)
    }

    /// Whether the tenant is throttled at that time.
    @inlinable public func isThrottled(_ tenant: TenantID, at now: Int64) -> Bool {
        tenants[tenant]?.throttledUntil ?? .min > now
    }

    /// The earliest end of a throttle among tenants with work; nil when none is throttled.
    @inlinable public func wakes(after now: Int64) -> Int64? {
        turns.lazy.filter { !isHeld($0) }.compactMap { tenants[$0]?.throttledUntil }.filter { $0 > now }.min()
    }

    /// Whether a tenant has work and is neither held nor throttled.
    /// - Parameter throttles: as in `take`.
    @inlinable public func hasWork(_ now: Int64, throttles: Bool = true) -> Bool {
        turns.contains { !isHeld($0) && !(throttles && isThrottled($0, at: now)) }
    }

    /// Takes pieces of one tenant and passes the turn on.
    @inlinable mutating func dequeue(_ wanted: Int, _ weightMax: Int, of tenant: TenantID, _ taken: inout [Work]) {
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
        pieces -= number
        if waiting.count == 0 { turns.remove(at: next) } else { next += 1 }
        tenants[tenant] = waiting
        forgetIfIdle(tenant)
    }

    @inlinable mutating func forgetIfIdle(_ tenant: TenantID) {
        guard let waiting = tenants[tenant], waiting.count == 0, waiting.atWork <= 0, waiting.throttledUntil == .min,
            !waiting.isHeld
        else { return }
        tenants[tenant] = nil
    }

    /// Drops throttles that are over, so that users that left long ago take no memory.
    @inlinable public mutating func forgetThrottles(before now: Int64) {
        for (tenant, waiting) in tenants where waiting.throttledUntil <= now {
            tenants[tenant]?.throttledUntil = .min
            forgetIfIdle(tenant)
        }
    }
}
