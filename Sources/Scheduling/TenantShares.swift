/// What the users have used of a thread whose work comes in mixed groups. A group's time is divided among its users by
/// their number of pieces.
package struct TenantShares {
    /// Users with a budget in memory. Above this number all budgets are dropped at once, in favour of the users.
    package static let accountsMax = 4_096
    /// Nanoseconds of debt that a user may have: a few groups and their commits, one of which the disk may have
    /// delayed.
    package static let free: Int64 = 1_000_000

    /// Pieces of one user in a group while other users want the thread: a change takes about 20 microseconds, and a
    /// user behind the group waits for all of it.
    package static let shareOfGroup = 16

    private var accounts = [TenantID: CPUBudget]()
    private var recent = RecentUsers()
    /// Pieces in the current group, by user.
    private var counts = [TenantID: Int]()
    private var total = 0

    package init() {}

    /// Counts a piece of the current group for this user.
    package mutating func count(_ tenant: TenantID) {
        counts[tenant, default: 0] += 1
        total += 1
    }

    /// Whether another user is in the current group or wanted the thread recently.
    package func hasOther(than tenant: TenantID, now: Int64) -> Bool {
        counts.count > 1 || counts.count == 1 && counts[tenant] == nil || recent.hasOther(than: tenant, now: now)
    }

    /// Whether more than one user wanted the thread recently.
    package func isShared(now: Int64) -> Bool { recent.isShared(now: now) }

    /// Divides the time of the finished group among its users.
    /// - Parameter throttle: called with each user to throttle and the time until which it is throttled.
    package mutating func charge(used: Int64, percent: Int, now: Int64, throttle: (TenantID, Int64) -> Void) {
        guard total > 0 else { return }
        for tenant in counts.keys { recent.record(tenant, now: now) }
        if accounts.count > Self.accountsMax { accounts.removeAll(keepingCapacity: true) }
        for (tenant, count) in counts {
            let until = accounts[tenant, default: CPUBudget()].charge(
                used * Int64(count) / Int64(total), percent: percent, free: Self.free,
                mustShare: recent.hasOther(than: tenant, now: now), now: now)
            if let until { throttle(tenant, until) }
        }
        counts.removeAll(keepingCapacity: true)
        total = 0
    }
}
