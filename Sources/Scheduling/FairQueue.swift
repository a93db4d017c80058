import ThicketPlatform

/// A `RoundRobinQueue` shared between threads.
///
/// It has no bound of its own: the hub counts the work in progress, in total and per user, and stops reading from
/// clients before the queue grows further.
///
/// Another thread can briefly take the place of the thread that waits in `take` (`claim`), so that it does small work
/// itself, without a wake-up.
package final class FairQueue<Work: Sendable>: @unchecked Sendable {
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
    package init(weigh: @escaping @Sendable (Work) -> Int = { _ in 1 }) { row = RoundRobinQueue(weigh: weigh) }

    /// Queues work; after `close` it is dropped.
    package func push(_ work: [(tenant: TenantID, work: Work)]) {
        guard !work.isEmpty else { return }
        monitor.locked {
            if !isClosed { for (tenant, piece) in work { row.append(piece, of: tenant) } }
        }
        if work.count == 1 { monitor.wakeOne() } else { monitor.wakeAll() }
    }

    /// Ends the queue: work that is queued is still handed out, new work is dropped.
    package func close() {
        monitor.locked { isClosed = true }
        monitor.wakeAll()
    }

    /// Hands out no work of the tenant until `resume`, which must follow. Pieces that were handed out and not begun are
    /// handed out again after that.
    package func hold(_ tenant: TenantID, puttingBack work: [Work]) {
        monitor.locked {
            row.hold(tenant)
            row.putBack(work, of: tenant)
        }
    }

    /// Ends a hold, also after `close`; `work` is the tenant's next piece.
    package func resume(_ tenant: TenantID, with work: Work) {
        monitor.locked { row.resume(tenant, with: work) }
        monitor.wakeAll()
    }

    /// Throttles the tenant until `time`. Pieces that were handed out and not begun are handed out again after that.
    package func throttle(_ tenant: TenantID, until time: Int64, puttingBack work: [Work]) {
        monitor.locked { row.putBack(work, of: tenant) }
        throttle(tenant, until: time)
    }

    /// The next work, a share of each tenant; waits for the first piece. nil when closed and empty.
    /// - Parameter seconds: longest wait, after which the result is an empty array; 0 does not wait.
    package func take(most: Int, share: Int, weightMax: Int = .max, waitingSeconds seconds: Double) -> [Work]? {
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
    package func claim(_ tenants: some Sequence<TenantID>) -> Bool {
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
    package func release(rousing: Bool) {
        let wakes = monitor.locked {
            isClaimed = false
            if rousing { isRoused = true }
            return isRoused || isClosed || row.count > 0 || isHeldBack
        }
        if wakes { monitor.wakeAll() }
    }

    /// One piece of a tenant with fewer than `atOnce` pieces in progress; waits for it. nil when closed and empty. The
    /// caller reports the end of the piece with `done`.
    package func next(atOnce: Int) -> (tenant: TenantID, work: Work)? {
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
    package func done(_ tenant: TenantID) -> Bool {
        let (waits, wakes) = monitor.locked { (row.done(tenant), row.count > 0) }
        if wakes { monitor.wakeOne() }
        return waits
    }

    /// Throttles the tenant until `time`.
    package func throttle(_ tenant: TenantID, until time: Int64) {
        monitor.locked {
            row.throttle(tenant, until: time)
            restCount += 1
            if restCount % 256 == 0 { row.forgetRests(before: SystemClock.monotonic()) }
        }
    }
}
