import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Many connections that come or end at once. The loop is turned by hand, and a turn has time for one of them.
@Suite("A turn accepts and ends as many connections as it has time for")
struct LoopEndsTests {
    private let hand: LoopByHand

    init() throws { hand = try LoopByHand { $0.endNanosecondsPerTurn = 1 } }

    private var loop: EventLoop { hand.loop }

    private func strangers(_ count: Int) throws -> [(TestPeer, Connection)] {
        try (0..<count).map { _ in try hand.join() }
    }

    private func runOut(_ connections: [Connection]) {
        for connection: Connection in connections { loop.deadlines[Int(connection.id.slot)] = loop.now - 1 }
        loop.nextSweep = 0
    }

    private func dead(_ all: [(TestPeer, Connection)]) -> Int { all.count { $0.1.phase == .dead } }

    // MARK: Deadlines

    @Test("of five whose time is over one is ended in each turn, and the loop does not sleep before all are")
    func deadlines() throws {
        let all: [(TestPeer, Connection)] = try strangers(5)
        runOut(all.map(\.1))
        for turn: Int in 1...5 {
            #expect(turn == 1 || loop.waitMilliseconds() == 0)
            hand.turn()
            #expect(dead(all) == turn)
        }
        // The last turn had no time to see that nobody else is there.
        hand.turn()
        #expect(loop.sweepNext == nil && loop.waitMilliseconds() != 0 && hand.isQuiet)
        #expect(loop.connectionCount == 0)
    }

    @Test("a sweep that is under way when the next one is due goes on where it was")
    func nextSweep() throws {
        let all: [(TestPeer, Connection)] = try strangers(4)
        runOut(all.map(\.1))
        for turn: Int in 1...4 {
            loop.nextSweep = 0
            hand.turn()
            #expect(dead(all) == turn)
        }
    }

    @Test("who speaks while a sweep has not come to it is not given up")
    func speaksInTime() throws {
        let all: [(TestPeer, Connection)] = try strangers(4)
        runOut(all.map(\.1))
        hand.turn()
        let (peer, last): (TestPeer, Connection) = all[3]
        try peer.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        hand.turn(6)
        #expect(try peer.readResponse().status == 200)
        #expect(last.phase == .http && dead(all) == 3)
    }

    @Test("a sweep has time of its own: answers are written and messages are read in the turns that it takes")
    func others() throws {
        let (speaker, connection): (TestPeer, Connection) = try hand.open(user: 7)
        #expect(try speaker.readResponse().status == 101)
        let all: [(TestPeer, Connection)] = try strangers(4)
        runOut(all.map(\.1))
        for turn: Int in 1...4 {
            try speaker.send(Told.frame("\(turn)"))
            loop.send(connection.id, text: Array("answer \(turn)".utf8))
            hand.turn()
            #expect(hand.told.messages[connection.id]?.count == turn && dead(all) == turn)
            #expect(try speaker.readAnswer() == .text(Array("answer \(turn)".utf8)))
        }
    }

    @Test("ending is on the account of those who are ended, and on nobody else's")
    func account() throws {
        let hand: LoopByHand = try .init { $0.percentPerGroup = 1 }
        let (first, speaker): (TestPeer, Connection) = try hand.open(user: 7)
        let others: [(TestPeer, Connection)] = try (0..<400).map { _ in try hand.join() }
        hand.loop.strangers.restsUntil = .min
        for (_, connection): (TestPeer, Connection) in others {
            hand.loop.deadlines[Int(connection.id.slot)] = hand.loop.now - 1
        }
        try first.send(Told.frame("somebody wants the loop"))
        hand.turn()
        let before: Int64 = speaker.group.restsUntil
        hand.loop.sweepNow()
        #expect(dead(others) == others.count)
        #expect(hand.loop.strangers.restsUntil > hand.loop.now)
        #expect(speaker.group.restsUntil == before)
    }

    // MARK: Peers that have gone

    /// WebSockets that the delegate has paused: nothing of them is read.
    private func paused(_ count: Int) throws -> [(TestPeer, Connection)] {
        let all: [(TestPeer, Connection)] = try (0..<count).map { _ in try hand.open(user: 7) }
        for (_, connection): (TestPeer, Connection) in all { loop.pauseReading(connection.id) }
        return all
    }

    @Test("of five whose peers have gone one is dropped in each turn, each of them once")
    func broken() throws {
        let all: [(TestPeer, Connection)] = try paused(5)
        for (peer, _): (TestPeer, Connection) in all { peer.reset() }
        for turn: Int in 1...5 {
            hand.turn()
            #expect(dead(all) == turn)
            #expect(loop.broken.count == 5 - turn)
            #expect(turn == 5 || loop.waitMilliseconds() == 0)
        }
        #expect(all.allSatisfy { hand.told.ends[$0.1.id] == [.vanished] })
        #expect(loop.broken.isEmpty && hand.isQuiet)
    }

    @Test("who is to be dropped and is listened to again has said what it said before it went")
    func heardAgain() throws {
        let all: [(TestPeer, Connection)] = try paused(3)
        let (peer, last): (TestPeer, Connection) = all[2]
        for (peer, _): (TestPeer, Connection) in all {
            try peer.send(Told.frame("last words"))
            peer.reset()
        }
        hand.turn()
        #expect(last.isBroken && last.phase == .open)
        loop.resumeReading(last.id)
        hand.turn(6)
        #expect(hand.told.messages[last.id] == ["last words"])
        #expect(hand.told.ends[last.id] == [.vanished] && !last.isBroken)
        withExtendedLifetime(peer) {}
    }

    @Test("one that is dropped otherwise while it is to be dropped ends once")
    func droppedOtherwise() throws {
        let all: [(TestPeer, Connection)] = try paused(3)
        for (peer, _): (TestPeer, Connection) in all { peer.reset() }
        hand.turn()
        let last: Connection = try #require(all.last { $0.1.isBroken }).1
        loop.drop(last, .slowReader)
        hand.turn(4)
        #expect(hand.told.ends[last.id] == [.slowReader])
        #expect(loop.connectionCount == 0 && hand.isQuiet)
    }

    @Test("however many peers go, those whose time is over are ended, and the other way round")
    func bothKinds() throws {
        let gone: [(TestPeer, Connection)] = try paused(4)
        let late: [(TestPeer, Connection)] = try strangers(4)
        runOut(late.map(\.1))
        for (peer, _): (TestPeer, Connection) in gone { peer.reset() }
        for turn: Int in 1...4 {
            hand.turn()
            #expect(dead(gone) == turn && dead(late) == turn)
        }
    }

    // MARK: Coming

    @Test("of five that come at once one is accepted in each turn that has time for one")
    func accepted() throws {
        let hand: LoopByHand = try .init { $0.acceptNanosecondsPerTurn = 1 }
        let peers: [TestPeer] = try (0..<5).map { _ in try TestPeer(path: hand.path) }
        for turn: Int in 1...5 {
            hand.turn()
            #expect(hand.loop.connectionCount == turn)
        }
        withExtendedLifetime(peers) {}
    }

    @Test("strangers have a quarter of a user's part of a turn, and never nothing")
    func parts() throws {
        let (_, connection): (TestPeer, Connection) = try hand.open(user: 7)
        #expect(loop.part(of: connection.group) == 1 && loop.part(of: loop.strangers) == 1)
        var settings: NetSettings = loop.settings
        settings.turnNanosecondsPerGroup = 100_000
        loop.use(settings)
        #expect(loop.part(of: connection.group) == 100_000 && loop.part(of: loop.strangers) == 25_000)
    }

    @Test("many that have left a row are met a part at a time, and those behind them are served")
    func metInParts() throws {
        let row: ConnectionRow = .init()
        let all: [(TestPeer, Connection)] = try strangers(130)
        for (_, connection): (TestPeer, Connection) in all { row.append(connection) }
        for (_, connection): (TestPeer, Connection) in all.dropLast() { connection.row = nil }
        #expect(row.popFirst() == nil && !row.isEmpty)
        #expect(row.popFirst() == nil && !row.isEmpty)
        #expect(row.popFirst() === all.last?.1 && row.isEmpty)
    }
}
