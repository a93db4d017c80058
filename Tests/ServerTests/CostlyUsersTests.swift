import Testing

@testable import ThicketServer

/// Who rests after something costly.
@Suite("Users who cost much")
struct CostlyUsersTests {
    private static let cost: Int64 = 5_000_000
    private static let now: Int64 = 1_000_000_000_000

    private func rest(_ users: inout CostlyUsers, _ user: UInt32, at now: Int64, factor: Int = 250) -> Int64? {
        users.rest(of: user, cost: Self.cost, factor: factor, now: now)
    }

    @Test("once may be the machine's doing, and nobody rests for it; whoever does it again rests so many times as long")
    func again() {
        var users: CostlyUsers = .init()
        #expect(rest(&users, 1, at: Self.now) == nil)
        #expect(rest(&users, 2, at: Self.now) == nil, "another user's first")
        #expect(rest(&users, 1, at: Self.now + 1) == Self.now + 1 + 250 * Self.cost)
        #expect(rest(&users, 1, at: Self.now + 250 * Self.cost) != nil)
    }

    @Test("it is forgotten a minute after the rest")
    func forgotten() {
        var users: CostlyUsers = .init()
        #expect(rest(&users, 1, at: Self.now) == nil)
        #expect(rest(&users, 1, at: Self.now + CostlyUsers.memory) == nil)
        let end: Int64? = users.rest(of: 1, cost: 1_000_000_000, factor: 250, now: Self.now + CostlyUsers.memory + 1)
        let later: Int64 = (end ?? 0) + CostlyUsers.memory
        #expect(rest(&users, 1, at: later - 1) != nil, "however long the rest was")
        #expect(rest(&users, 1, at: later + 250 * Self.cost + CostlyUsers.memory) == nil)
    }

    @Test("with a factor of 0 nobody rests, and no cost overflows")
    func limits() {
        var users: CostlyUsers = .init()
        for _ in 0..<3 { #expect(rest(&users, 1, at: Self.now, factor: 0) == nil) }
        let end: Int64? = users.rest(of: 1, cost: .max / 2, factor: 10_000, now: Self.now)
        #expect(end.map { $0 > Self.now } == true)
    }

    @Test("those remembered have a bound, and who is one of them makes no other forgotten")
    func bound() {
        var users: CostlyUsers = .init()
        for user: UInt32 in 1...UInt32(CostlyUsers.countMax) { _ = rest(&users, user, at: Self.now) }
        #expect(rest(&users, 1, at: Self.now) != nil && rest(&users, 2, at: Self.now) != nil)
        users = .init()
        for user: UInt32 in 1...UInt32(CostlyUsers.countMax + 1) { _ = rest(&users, user, at: Self.now) }
        #expect(rest(&users, 1, at: Self.now) == nil, "forgotten with all others")
        #expect(rest(&users, UInt32(CostlyUsers.countMax + 1), at: Self.now) != nil)
    }
}
