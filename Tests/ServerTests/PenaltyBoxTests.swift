import Testing
@testable import ThicketScheduling

@testable import ThicketServer

/// Throttling of users after costly work.
@Suite("Users whose work is costly")
struct PenaltyBoxTests {
    private static let cost: Int64 = 5_000_000
    private static let now: Int64 = 1_000_000_000_000

    private func throttle(_ users: inout PenaltyBox, _ user: TenantID, at now: Int64, factor: Int = 250) -> Int64? {
        users.throttle(of: user, cost: Self.cost, factor: factor, now: now)
    }

    @Test("a user's first costly work is not throttled; the next is, for 250 times its cost")
    func again() {
        var users = PenaltyBox()
        #expect(throttle(&users, 1, at: Self.now) == nil)
        #expect(throttle(&users, 2, at: Self.now) == nil, "another user's first")
        #expect(throttle(&users, 1, at: Self.now + 1) == Self.now + 1 + 250 * Self.cost)
        #expect(throttle(&users, 1, at: Self.now + 250 * Self.cost) != nil)
    }

    @Test("costly work is forgotten a minute after the throttle ends")
    func forgotten() {
        var users = PenaltyBox()
        #expect(throttle(&users, 1, at: Self.now) == nil)
        #expect(throttle(&users, 1, at: Self.now + PenaltyBox.memory) == nil)
        let end: Int64? = users.throttle(of: 1, cost: 1_000_000_000, factor: 250, now: Self.now + PenaltyBox.memory + 1)
        let later: Int64 = (end ?? 0) + PenaltyBox.memory
        #expect(throttle(&users, 1, at: later - 1) != nil, "however long the throttle was")
        #expect(throttle(&users, 1, at: later + 250 * Self.cost + PenaltyBox.memory) == nil)
    }

    @Test("a factor of 0 throttles no user, and no cost overflows")
    func limits() {
        var users = PenaltyBox()
        for _ in 0..<3 { #expect(throttle(&users, 1, at: Self.now, factor: 0) == nil) }
        let end: Int64? = users.throttle(of: 1, cost: .max / 2, factor: 10_000, now: Self.now)
        #expect(end.map { $0 > Self.now } == true)
    }

    @Test("the number of remembered users is bounded; a user that is remembered already displaces no other")
    func bound() {
        var users = PenaltyBox()
        for user in 1...UInt32(PenaltyBox.countMax) { _ = throttle(&users, TenantID(user), at: Self.now) }
        #expect(throttle(&users, 1, at: Self.now) != nil && throttle(&users, 2, at: Self.now) != nil)
        users = .init()
        for user in 1...UInt32(PenaltyBox.countMax + 1) { _ = throttle(&users, TenantID(user), at: Self.now) }
        #expect(throttle(&users, 1, at: Self.now) == nil, "forgotten with all others")
        #expect(throttle(&users, TenantID(UInt32(PenaltyBox.countMax + 1)), at: Self.now) != nil)
    }
}
