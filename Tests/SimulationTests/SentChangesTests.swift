import Testing

@testable import ThicketSimulation

/// The cases that the check passes are as much a rule as its findings. Changes are numbered through all buckets: those
/// of this bucket are 10, 20, 30 and so on.
@Suite("The order of changes on a channel")
struct SentChangesTests {
    /// A channel that asked for the changes after 10 and got 20.
    private static func following() throws -> SentChanges {
        var sent = SentChanges()
        sent.asked(since: 10)
        try #require(sent.record(20, after: 10, isOwn: false) == nil)
        return sent
    }

    @Test("each change comes once, and none is left out", arguments: [false, true])
    func inOrder(isOwn: Bool) throws {
        var sent = try Self.following()
        #expect(sent.record(30, after: 20, isOwn: isOwn) == nil)
        #expect(sent.record(50, after: 40, isOwn: isOwn) == "change 50 after 30: changes are missing before it")
        #expect(sent.record(50, after: 40, isOwn: isOwn) == "change 50 after 50: doubled")
        #expect(sent.record(60, after: 50, isOwn: isOwn) == nil, "a fault is reported once")
    }

    @Test("a change that is requested again comes again, and not a third time")
    func askedAgain() throws {
        var sent = try Self.following()
        sent.asked(since: 10)
        #expect(sent.record(20, after: 10, isOwn: false) == nil)
        #expect(sent.record(20, after: 10, isOwn: false) == "change 20 after 20: doubled")
    }

    @Test("after an index the channel continues at its position, however many pages have it")
    func index() throws {
        var sent = try Self.following()
        sent.askedForIndex()
        for _ in 0..<3 { sent.index(at: 50) }
        #expect(sent.record(60, after: 50, isOwn: false) == nil)
        #expect(sent.record(60, after: 50, isOwn: false) == "change 60 after 60: doubled")
        sent.index(at: 70)
        #expect(sent.record(90, after: 80, isOwn: false) == "change 90 after 60: changes are missing before it")
    }

    @Test("a channel whose position is unknown gets its own changes, with gaps, until it asks")
    func lost() throws {
        var sent = try Self.following()
        sent.positionUnknown()
        for change: Int64 in [40, 60, 90] { #expect(sent.record(change, after: change - 10, isOwn: true) == nil) }
        sent.askedForIndex()
        sent.index(at: 100)
        #expect(sent.record(110, after: 100, isOwn: true) == nil)
        #expect(sent.record(130, after: 120, isOwn: true) == "change 130 after 110: changes are missing before it")
    }

    @Test("after a request by cv no change may be missing")
    func lostAsksSince() throws {
        var sent = try Self.following()
        sent.positionUnknown()
        #expect(sent.record(60, after: 50, isOwn: true) == nil)
        sent.asked(since: 60)
        #expect(sent.record(70, after: 60, isOwn: true) == nil)
        #expect(sent.record(90, after: 80, isOwn: true) == "change 90 after 70: changes are missing before it")
    }

    @Test("a change of another client shows the channel's position: no change may be missing after it")
    func lostButFollowing() throws {
        var sent = try Self.following()
        sent.positionUnknown()
        #expect(sent.record(60, after: 50, isOwn: true) == nil)
        #expect(sent.record(80, after: 70, isOwn: false) == nil)
        #expect(sent.record(100, after: 90, isOwn: true) == "change 100 after 80: changes are missing before it")
    }

    @Test("a channel reopened with the next token keeps its position, known or unknown")
    func openedAgain() throws {
        var sent = try Self.following()
        sent.positionUnknown()
        sent = SentChanges(after: sent)
        for change: Int64 in [40, 60] { #expect(sent.record(change, after: change - 10, isOwn: true) == nil) }
        sent = SentChanges(after: try Self.following())
        #expect(sent.record(40, after: 30, isOwn: true) == nil, "the first change shows its position")
        #expect(sent.record(60, after: 50, isOwn: true) == "change 60 after 40: changes are missing before it")
    }

    @Test("an index scan that began again closes the gap before its own end, and no other")
    func scannedAgain() throws {
        var sent = try Self.following()
        sent.scannedAgain()
        #expect(sent.record(60, after: 50, isOwn: false) == nil)
        #expect(sent.record(80, after: 70, isOwn: false) == "change 80 after 60: changes are missing before it")
    }
}
