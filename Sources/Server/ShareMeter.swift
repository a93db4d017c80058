/// What one user takes of a thread that it shares with others, paid off as time passes.
///
/// A user that has taken more than its part rests until it is paid: the thread then lies idle for a part of the time,
/// and who asks little finds it so. Without that a flood in turns that are short still keeps the thread busy without
/// end, and everybody waits for a turn of the flood each time. Pure: times are nanoseconds of a clock that never goes
/// back.
struct ShareAccount {
    /// Nanoseconds taken and not paid off.
    private var debt: Int64 = 0
    private var paidAt = Int64.min

    /// Longest rest: a step that took very long is another limit's business.
    static let restMax: Int64 = 1_000_000_000

    /// Notes what was taken.
    ///
    /// - Parameters:
    ///   - percent: the part of the time that pays off, 1...100; 100 asks nobody to rest.
    ///   - free: nanoseconds that may be owed.
    ///   - mustShare: whether anybody else wants the thread; if not, nothing is owed.
    /// - Returns: until when the user is to rest; nil when it may go on.
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

/// Who wanted a thread of late: the two last ones are enough to know whether there was anybody else.
struct RecentUsers {
    private var last: (user: UInt32, time: Int64)?
    private var other: (user: UInt32, time: Int64)?

    /// Nanoseconds after which a user is no longer there.
    static let memory: Int64 = 1_000_000_000

    mutating func note(_ user: UInt32, now: Int64) {
        if last?.user != user { other = last }
        last = (user, now)
    }

    /// Whether there was more than one.
    func isShared(now: Int64) -> Bool { last.map { hasOther(than: $0.user, now: now) } ?? false }

    /// Whether anybody but `user` was there.
    func hasOther(than user: UInt32, now: Int64) -> Bool {
        let found = last?.user == user ? other : last
        guard let found else { return false }
        return now - found.time < Self.memory
    }
}

/// What the users took of a thread whose work comes in mixed groups: each has the part of a group's time that it has of
/// its pieces.
struct LaneShares {
    /// Users whose account is kept; beyond it all are forgotten at once, in their favour.
    static let accountsMax = 4_096
    /// Nanoseconds that a user may owe: some groups and their commits, one of which the disk may have kept waiting.
    static let free: Int64 = 1_000_000

    /// Pieces of one user in a group while others want the thread too: a change takes some 20 microseconds, and who
    /// comes behind the group waits for all of it.
    static let shareOfGroup = 16

    private var accounts = [UInt32: ShareAccount]()
    private var recent = RecentUsers()
    /// Pieces of the group at hand.
    private var counts = [UInt32: Int]()
    private var total = 0

    /// A piece of the group is this user's.
    mutating func count(_ lane: UInt32) {
        counts[lane, default: 0] += 1
        total += 1
    }

    /// Whether anybody but this user is in the group at hand, or was there of late.
    func hasOther(than lane: UInt32, now: Int64) -> Bool {
        counts.count > 1 || counts.count == 1 && counts[lane] == nil || recent.hasOther(than: lane, now: now)
    }

    /// Whether more than one user was there of late.
    func isShared(now: Int64) -> Bool { recent.isShared(now: now) }

    /// The group is done.
    /// - Parameter rest: gets each user that is to rest, and until when.
    mutating func settle(used: Int64, percent: Int, now: Int64, rest: (UInt32, Int64) -> Void) {
        guard total > 0 else { return }
        for lane in counts.keys { recent.note(lane, now: now) }
        if accounts.count > Self.accountsMax { accounts.removeAll(keepingCapacity: true) }
        for (lane, count) in counts {
            let until = accounts[lane, default: ShareAccount()].take(
                used * Int64(count) / Int64(total), percent: percent, free: Self.free,
                mustShare: recent.hasOther(than: lane, now: now), now: now)
            if let until { rest(lane, until) }
        }
        counts.removeAll(keepingCapacity: true)
        total = 0
    }
}

/// How long commits of late waited, for the disk above all.
///
/// A user pays for the waits that its changes need, and for no others: while the disk was busy or others had the core,
/// nobody had the thread, and whoever's change it happened to hold would rest four times as long for it. What a commit
/// needs is what the quickest of late got by with.
struct RecentWaits {
    /// Commits that are looked back to.
    static let commitsMax = 16

    /// Nanoseconds, the oldest at `next`.
    private var waits = [Int64](repeating: .max, count: Self.commitsMax)
    private var next = 0

    /// What some changes took of the thread.
    /// - Parameters:
    ///   - computed: nanoseconds of processor time.
    ///   - passed: nanoseconds that went by.
    ///   - commits: groups that were written in that time.
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
