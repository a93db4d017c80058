import Testing

@testable import ThicketSimulation

/// What the check lets pass is as much a rule as what it finds. Changes are numbered through all buckets: those of this one are
/// 10, 20, 30 and so on.
@Suite("The order in which a channel is told of changes")
struct ToldChangesTests {
    /// A channel that asked for what came after 10 and was told 20.
    private static func following() throws -> ToldChanges {
        var told: ToldChanges = ToldChanges()
        told.asked(since: 10)
        try #require(told.record(20, after: 10, isOwn: false) == nil)
        return told
    }

    @Test("each change once, none left out", arguments: [false, true])
    func inOrder(isOwn: Bool) throws {
        var told: ToldChanges = try Self.following()
        #expect(told.record(30, after: 20, isOwn: isOwn) == nil)
        #expect(told.record(50, after: 40, isOwn: isOwn) == "change 50 after 30: changes are missing before it")
        #expect(told.record(50, after: 40, isOwn: isOwn) == "change 50 after 50: doubled")
        #expect(told.record(60, after: 50, isOwn: isOwn) == nil, "what is wrong is told once")
    }

    @Test("what it asks for once more is told once more, and not a third time")
    func askedAgain() throws {
        var told: ToldChanges = try Self.following()
        told.asked(since: 10)
        #expect(told.record(20, after: 10, isOwn: false) == nil)
        #expect(told.record(20, after: 10, isOwn: false) == "change 20 after 20: doubled")
    }

    @Test("behind an index it goes on where that stands, however many pages name the place")
    func index() throws {
        var told: ToldChanges = try Self.following()
        told.askedForIndex()
        for _: Int in 0..<3 { told.index(at: 50) }
        #expect(told.record(60, after: 50, isOwn: false) == nil)
        #expect(told.record(60, after: 50, isOwn: false) == "change 60 after 60: doubled")
        told.index(at: 70)
        #expect(told.record(90, after: 80, isOwn: false) == "change 90 after 60: changes are missing before it")
    }

    @Test("a channel whose position is unknown is told its own changes, with gaps, until it asks")
    func lost() throws {
        var told: ToldChanges = try Self.following()
        told.positionUnknown()
        for change: Int64 in [40, 60, 90] { #expect(told.record(change, after: change - 10, isOwn: true) == nil) }
        told.askedForIndex()
        told.index(at: 100)
        #expect(told.record(110, after: 100, isOwn: true) == nil)
        #expect(told.record(130, after: 120, isOwn: true) == "change 130 after 110: changes are missing before it")
    }

    @Test("it asks by cv as well: from there on nothing may be missing")
    func lostAsksSince() throws {
        var told: ToldChanges = try Self.following()
        told.positionUnknown()
        #expect(told.record(60, after: 50, isOwn: true) == nil)
        told.asked(since: 60)
        #expect(told.record(70, after: 60, isOwn: true) == nil)
        #expect(told.record(90, after: 80, isOwn: true) == "change 90 after 70: changes are missing before it")
    }

    @Test("a change of somebody else's shows that it has a place after all: nothing may be missing behind it")
    func lostButFollowing() throws {
        var told: ToldChanges = try Self.following()
        told.positionUnknown()
        #expect(told.record(60, after: 50, isOwn: true) == nil)
        #expect(told.record(80, after: 70, isOwn: false) == nil)
        #expect(told.record(100, after: 90, isOwn: true) == "change 100 after 80: changes are missing before it")
    }

    @Test("opened anew with the next token it stands where it stood: its position is as unknown as before, or as known")
    func openedAnew() throws {
        var told: ToldChanges = try Self.following()
        told.positionUnknown()
        told = ToldChanges(after: told)
        for change: Int64 in [40, 60] { #expect(told.record(change, after: change - 10, isOwn: true) == nil) }
        told = ToldChanges(after: try Self.following())
        #expect(told.record(40, after: 30, isOwn: true) == nil, "the first one shows where it goes on")
        #expect(told.record(60, after: 50, isOwn: true) == "change 60 after 40: changes are missing before it")
    }

    @Test("a walk that was begun anew closes the gap before its own end, and no other")
    func walkedAnew() throws {
        var told: ToldChanges = try Self.following()
        told.walkedAnew()
        #expect(told.record(60, after: 50, isOwn: false) == nil)
        #expect(told.record(80, after: 70, isOwn: false) == "change 80 after 60: changes are missing before it")
    }
}
