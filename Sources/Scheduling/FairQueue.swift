import ThicketPlatform

/// A `RoundRobinQueue` shared between threads.
///
/// It has no bound of its own: the hub counts the work in progress, in total and per user, and stops reading from
/// clients before the queue grows further.
///
/// The thread that waits here takes the work while it holds a lock of its own. Another thread that gets that lock while
/// the queue is idle (`isIdle`) can do small work itself, in the order of its tenants and without a wake-up.
public final class FairQueue<Work: Sendable>: @unchecked Sendable {
    // All mutable state is touched only inside `monitor`.
    @usableFromInline let monitor = Monitor()
    @usableFromInline var turns: RoundRobinQueue<Work>
    @usableFromInline var isClosed = false
    @usableFromInline var throttleCount = 0
    /// `awaitWork` must return, even without work.
    @usableFromInline var isRoused = false

    /// - Parameter weigh: see `RoundRobinQueue`; called inside the monitor.
    @inlinable public init(weigh: @escaping @Sendable (Work) -> Int = { _ in 1 }) {
        turns = RoundRobinQueue(weigh: weigh)
    }

    /// Queues work; after `close` it is dropped.
    @inlinable public func push(_ work: [(tenant: TenantID, work: Work)]) {
        guard !work.isEmpty else { return }
        monitor.locked {
            if !isClosed { for (tenant, piece) in work { turns.append(piece, of: tenant) } }
        }
        if work.count == 1 { monitor.wakeOne() } else { monitor.wakeAll() }
    }

    /// Ends the queue: work that is queued is still handed out, new work is dropped.
    @inlinable public func close() {
        monitor.locked { isClosed = true }
        monitor.wakeAll()
    }

    /// Hands out no work of the tenant until `resume`, which must follow. Pieces that were handed out and not begun are
    /// handed out again after that.
    @inlinable public func hold(_ tenant: TenantID, puttingBack work: [Work]) {
        monitor.locked {
            turns.hold(tenant)
            turns.putBack(work, of: tenant)
        }
    }

    /// Ends a hold, also after `close`; `work` is the tenant's next piece.
    @inlinable public func resume(_ tenant: TenantID, with work: Work) {
        monitor.locked { turns.resume(tenant, with: work) }
        monitor.wakeAll()
    }

    /// Throttles the tenant until `time`. Pieces that were handed out and not begun are handed out again after that.
    @inlinable public func throttle(_ tenant: TenantID, until time: Int64, puttingBack work: [Work]) {
        monitor.locked { turns.putBack(work, of: tenant) }
        throttle(tenant, until: time)
    }

    /// Waits until work can be taken, `rouse` is called, or the time is over.
    /// - Parameter seconds: longest wait; 0 does not wait.
    /// - Returns: false when the queue is closed and empty.
    @inlinable public func awaitWork(seconds: Double) -> Bool {
        monitor.locked {
            var now = SystemClock.monotonic()
            let end = now + Int64(seconds * 1e9)
            while waits(now, until: end) {
                monitor.wait(until: isClosed ? .max : min(end, turns.wakes(after: now) ?? end))
                now = SystemClock.monotonic()
            }
            isRoused = false
            return !isClosed || turns.hasWork(now, throttles: false)
        }
    }

    /// Whether nothing can be taken at that time. After `close`, only held work is waited for.
    @inlinable func waits(_ now: Int64, until end: Int64) -> Bool {
        guard !turns.hasWork(now, throttles: !isClosed) else { return false }
        return isClosed ? turns.heldCount > 0 : !isRoused && now < end
    }

    /// The next work, a share of each tenant; does not wait.
    @inlinable public func take(most: Int, share: Int, weightMax: Int = .max) -> [Work] {
        monitor.locked {
            turns.take(
                most: most, share: share, weightMax: weightMax, now: SystemClock.monotonic(), throttles: !isClosed)
        }
    }

    /// Whether no work is queued, the queue is open, and none of these tenants is throttled or held.
    @inlinable public func isIdle(for tenants: some Sequence<TenantID>) -> Bool {
        monitor.locked {
            guard !isClosed, turns.count == 0 else { return false }
            let now = SystemClock.monotonic()
            return !tenants.contains { turns.isThrottled($0, at: now) || turns.isHeld($0) }
        }
    }

    /// Makes `awaitWork` return.
    @inlinable public func rouse() {
        monitor.locked { isRoused = true }
        monitor.wakeAll()
    }

    /// One piece of a tenant with fewer than `atOnce` pieces in progress; waits for it. nil when closed and empty. The
    /// caller reports the end of the piece with `done`.
    @inlinable public func next(atOnce: Int) -> (tenant: TenantID, work: Work)? {
        monitor.locked {
            while true {
                if let found = turns.takeOne(atOnce: isClosed ? .max : atOnce) {
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
    @inlinable public func done(_ tenant: TenantID) -> Bool {
        let (waits, wakes) = monitor.locked { (turns.done(tenant), turns.count > 0) }
        if wakes { monitor.wakeOne() }
        return waits
    }

    /// Throttles the tenant until `time`.
    @inlinable public func throttle(_ tenant: TenantID, until time: Int64) {
        monitor.locked {
            turns.throttle(tenant, until: time)
            throttleCount += 1
            if throttleCount % 256 == 0 { turns.forgetThrottles(before: SystemClock.monotonic()) }
        }
    }
}
