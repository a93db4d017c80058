import Testing
@testable import ThicketScheduling

@testable import ThicketServer

/// A user that uses more than its share of a thread that others want is throttled until the debt is paid off.
@Suite("Shares of a thread")
struct ShareMeterTests {
    private static let millisecond: Int64 = 1_000_000

    @Test("a user that uses at most its share is never throttled")
    func modest() {
        var account = CPUBudget()
        for number: Int64 in 0..<1_000 {
            let rest: Int64? = account.charge(
                Self.millisecond / 4, percent: 25, free: Self.millisecond / 2, mustShare: true,
                now: number * Self.millisecond)
            #expect(rest == nil)
        }
    }

    @Test(
        "a user that uses all it can get has its share of the time, whatever the size of its pieces",
        arguments: [10, 25, 50, 90])
    func greedy(percent: Int) {
        var account = CPUBudget()
        var (now, used, pieces): (Int64, Int64, Int64) = (0, 0, 0)
        while now < 10_000 * Self.millisecond {
            pieces += 1
            let piece: Int64 = Self.millisecond / 10 * (1 + pieces % 7)
            now += piece
            used += piece
            now =
                account.charge(piece, percent: percent, free: 2 * Self.millisecond, mustShare: true, now: now) ?? now
        }
        let part: Double = Double(used) / Double(now) * 100
        // A throttle may lose some of the time, but never gains any.
        #expect(part > Double(percent) - 5 && part < Double(percent) + 0.5, "\(part) percent")
    }

    @Test("a user alone on the thread has no debt, and the time it used alone is not charged later")
    func alone() {
        var account = CPUBudget()
        let second: Int64 = 1_000 * Self.millisecond
        #expect(account.charge(60 * second, percent: 25, free: 0, mustShare: false, now: 60 * second) == nil)
        #expect(account.charge(1, percent: 25, free: 1, mustShare: true, now: 60 * second) == nil)
    }

    @Test("at 100 percent no user is throttled, and a throttle has a longest duration")
    func bounds() {
        var account = CPUBudget()
        let long: Int64 = 1_000_000 * Self.millisecond
        #expect(account.charge(long, percent: 100, free: 0, mustShare: true, now: long) == nil)
        let rest: Int64? = account.charge(long, percent: 1, free: 0, mustShare: true, now: long)
        #expect(rest == long + CPUBudget.throttleMax)
    }

    @Test("another user counts for one second after it wanted the thread")
    func others() {
        var recent = RecentUsers()
        #expect(!recent.hasOther(than: 1, now: 0) && !recent.isShared(now: 0))
        recent.record(1, now: 0)
        #expect(!recent.hasOther(than: 1, now: 0) && recent.hasOther(than: 2, now: 0) && !recent.isShared(now: 0))
        recent.record(2, now: 10)
        recent.record(1, now: 20)
        recent.record(1, now: 30)
        #expect(recent.hasOther(than: 1, now: 40) && recent.isShared(now: 40))
        #expect(!recent.hasOther(than: 1, now: 10 + RecentUsers.memory))
        #expect(!recent.isShared(now: 10 + RecentUsers.memory))
    }

    @Test("the time of a mixed group is divided by the number of pieces: only the user that floods is throttled")
    func tenants() {
        var shares = TenantShares()
        var (throttled, now): ([TenantID: Int], Int64) = ([:], 0)
        for _ in 0..<100 {
            for _ in 0..<15 { shares.count(7) }
            shares.count(8)
            now += Self.millisecond
            shares.charge(used: Self.millisecond, percent: 25, now: now) { tenant, until in
                #expect(until > now)
                throttled[tenant, default: 0] += 1
            }
        }
        #expect(throttled[7] ?? 0 > 90 && throttled[8] == nil, "\(throttled)")
        #expect(shares.isShared(now: now))
    }

    @Test("work of no user throttles no user and does not make the thread shared")
    func nothing() {
        var shares = TenantShares()
        shares.charge(used: 1 << 40, percent: 1, now: 1 << 40) { tenant, _ in Issue.record("\(tenant) is throttled") }
        #expect(!shares.isShared(now: 1 << 40))
    }

    @Test("a commit is charged the shortest recent wait, not the time that the disk took this once")
    func waits() {
        var waits = RecentWaits()
        let (computed, quick, slow): (Int64, Int64, Int64) = (50_000, 120_000, 40 * Self.millisecond)
        // No wait is known yet.
        #expect(waits.used(computed: computed, passed: computed + slow, commits: 1) == computed + slow)
        #expect(waits.used(computed: computed, passed: computed + quick, commits: 1) == computed + quick)
        #expect(waits.used(computed: computed, passed: computed + slow, commits: 1) == computed + quick)
        #expect(waits.used(computed: computed, passed: computed + 3 * slow, commits: 3) == computed + 3 * quick)
    }

    @Test("computing is charged in full, whatever the disk does; work without a commit does not change the known wait")
    func computing() {
        var waits = RecentWaits()
        let long: Int64 = 9 * Self.millisecond
        #expect(waits.used(computed: long, passed: long, commits: 0) == long)
        #expect(waits.used(computed: 10, passed: 510, commits: 1) == 510)
        for _ in 0..<100 { #expect(waits.used(computed: 10, passed: 10, commits: 0) == 10) }
        #expect(waits.used(computed: 10, passed: 9_000, commits: 0) == 510)
        // The processor's clock may run ahead of the other by a little.
        #expect(waits.used(computed: 20, passed: 10, commits: 0) == 20)
    }

    @Test("a disk that stays slow is charged in full after commitsMax commits")
    func slowForGood() {
        var waits = RecentWaits()
        _ = waits.used(computed: 0, passed: 100, commits: 1)
        for _ in 1..<RecentWaits.commitsMax {
            #expect(waits.used(computed: 0, passed: 8_000, commits: 1) == 100)
        }
        #expect(waits.used(computed: 0, passed: 8_000, commits: 1) == 8_000)
    }
}
