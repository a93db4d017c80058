/// The time that one user has used on a thread shared with others. Passing time pays the debt off.
///
/// A user that has used more than its share is throttled until the debt is paid. The thread then idles for part of the
/// time, and a user that sends little finds it free. Without the throttle, a flood of short turns keeps the thread busy
/// without a break, and every other user waits for a turn of the flood each time. Pure: times are nanoseconds of a
/// monotonic clock.
struct CPUBudget {
    /// Nanoseconds used and not paid off yet.
    private var debt: Int64 = 0
    private var paidAt = Int64.min

    /// Longest throttle, in nanoseconds. Another limit bounds a single step that takes very long.
    static let restMax: Int64 = 1_000_000_000

    /// Records time that was used.
    ///
    /// - Parameters:
    ///   - percent: the share of the time that pays off debt, 1...100; 100 disables throttling.
    ///   - free: nanoseconds of debt that are allowed.
    ///   - mustShare: whether another user wants the thread; if not, the debt is cleared.
    /// - Returns: the time until which the user is throttled; nil when it may continue.
    mutating func take(_ used: Int64, percent: Int, free: Int64, mustShare: Bool, now: Int64) -> Int64? {
        guard mustShare, percent < 100 else {
            (debt, paidAt) = (0, now)
            return nil
        }
        let passed = paidAt == .min ? .max / 200 : max(0, now - paidAt)
        paidAt = now
        debt = max(0, debt - min(passed, .max / 200) * Int64(percent) / 100) + used
        guard debt > free else { return nil }
        return now + min(Self.restMax, debt * 100 / Int64(percent))
    }
}

/// Which users wanted a thread recently. The last two suffice to know whether a user was alone.
struct RecentUsers {
    private var last: (user: TenantID, time: Int64)?
    private var other: (user: TenantID, time: Int64)?

    /// Nanoseconds after which a user is not counted any more.
    static let memory: Int64 = 1_000_000_000

    mutating func note(_ user: TenantID, now: Int64) {
        if last?.user != user { other = last }
        last = (user, now)
    }

    /// Whether more than one user wanted the thread recently.
    func isShared(now: Int64) -> Bool { last.map { hasOther(than: $0.user, now: now) } ?? false }

    /// Whether any user except `user` wanted the thread recently.
    func hasOther(than user: TenantID, now: Int64) -> Bool {
        let found = last?.user == user ? other : last
        guard let found else { return false }
        return now - found.time < Self.memory
    }
}

/// What the users have used of a thread whose work comes in mixed groups. A group's time is divided among its users by
/// their number of pieces.
struct TenantShares {
    /// Users with a budget in memory. Above this number all budgets are dropped at once, in favour of the users.
    static let accountsMax = 4_096
    /// Nanoseconds of debt that a user may have: a few groups and their commits, one of which the disk may have
    /// delayed.
    static let free: Int64 = 1_000_000

    /// Pieces of one user in a group while other users want the thread: a change takes about 20 microseconds, and a
    /// user behind the group waits for all of it.
    static let shareOfGroup = 16

    private var accounts = [TenantID: CPUBudget]()
    private var recent = RecentUsers()
    /// Pieces in the current group, by user.
    private var counts = [TenantID: Int]()
    private var total = 0

    /// Counts a piece of the current group for this user.
    mutating func count(_ tenant: TenantID) {
        counts[tenant, default: 0] += 1
        total += 1
    }

    /// Whether another user is in the current group or wanted the thread recently.
    func hasOther(than tenant: TenantID, now: Int64) -> Bool {
        counts.count > 1 || counts.count == 1 && counts[tenant] == nil || recent.hasOther(than: tenant, now: now)
    }

    /// Whether more than one user wanted the thread recently.
    func isShared(now: Int64) -> Bool { recent.isShared(now: now) }

    /// Divides the time of the finished group among its users.
    /// - Parameter throttle: called with each user to throttle and the time until which it is throttled.
    mutating func settle(used: Int64, percent: Int, now: Int64, throttle: (TenantID, Int64) -> Void) {
        guard total > 0 else { return }
        for tenant in counts.keys { recent.note(tenant, now: now) }
        if accounts.count > Self.accountsMax { accounts.removeAll(keepingCapacity: true) }
        for (tenant, count) in counts {
            let until = accounts[tenant, default: CPUBudget()].take(
                used * Int64(count) / Int64(total), percent: percent, free: Self.free,
                mustShare: recent.hasOther(than: tenant, now: now), now: now)
            if let until { throttle(tenant, until) }
        }
        counts.removeAll(keepingCapacity: true)
        total = 0
    }
}

/// How long recent commits waited, mostly for the disk.
///
/// A user pays for the waits that its own changes need. While the disk is busy with other work, or other threads have
/// the core, no user uses the thread, and the user whose change happens to wait would be throttled four times as long
/// for it. The shortest recent wait is taken as what a commit needs.
struct RecentWaits {
    /// Number of recent commits that are taken into account.
    static let commitsMax = 16

    /// Nanoseconds; the oldest is at `next`.
    private var waits = [Int64](repeating: .max, count: Self.commitsMax)
    private var next = 0

    /// The time that some changes used of the thread, in nanoseconds.
    /// - Parameters:
    ///   - computed: nanoseconds of processor time.
    ///   - passed: nanoseconds of elapsed time.
    ///   - commits: groups that were committed in that time.
    mutating func used(computed: Int64, passed: Int64, commits: Int) -> Int64 {
        let waited = max(0, passed - computed)
        let count = Int64(max(1, commits))
        if commits > 0 {
            waits[next] = waited / count
            next = (next + 1) % Self.commitsMax
        }
        let (needed, isOver) = (waits.min() ?? 0).multipliedReportingOverflow(by: count)
        return computed + (isOver ? waited : min(waited, needed))
    }
}
