import Testing
@testable import ThicketNet
import ThicketProtocol
@testable import ThicketScheduling
import ThicketTestSupport

@testable import ThicketServer

/// Many connections that open or end at once. The loop is turned by hand, and a turn has time for one of them.
@Suite("A turn accepts and ends as many connections as it has time for")
struct LoopEndsTests {
    private let hand: LoopByHand

    init() throws { hand = try LoopByHand { $0.endNanosecondsPerTurn = 1 } }

    private var loop: EventLoop { hand.loop }

    private func unauthenticated(_ count: Int) throws -> [(TestPeer, Connection)] {
        try (0..<count).map { _ in try hand.join() }
    }

    /// Unauthenticated connections that a sweep checks after another connection. Slots are file descriptors, and tests
    /// that run at the same time open and close lower ones, too: connections that get such a slot stay and are not part
    /// of the test.
    private func unauthenticated(_ count: Int, behind first: Connection) throws -> [(TestPeer, Connection)] {
        var found: [(TestPeer, Connection)] = []
        while found.count < count {
            let outsider = try hand.join()
            if outsider.1.id.slot > first.id.slot { found.append(outsider) } else { hand.kept.append(outsider.0) }
        }
        return found
    }

    private func runOut(_ connections: [Connection]) {
        for connection in connections { loop.deadlines[Int(connection.id.slot)] = loop.now - 1 }
        loop.nextSweep = 0
    }

    private func dead(_ all: [(TestPeer, Connection)]) -> Int { all.count { $0.1.phase == .dead } }

    // MARK: Deadlines

    @Test(
        "of five connections past their deadline each turn ends one, and the loop does not sleep before all are ended")
    func deadlines() throws {
        let all: [(TestPeer, Connection)] = try unauthenticated(5)
        runOut(all.map(\.1))
        for turn: Int in 1...5 {
            #expect(turn == 1 || loop.waitMilliseconds() == 0)
            hand.turn()
            #expect(dead(all) == turn)
        }
        #expect(loop.sweepNext == nil && loop.waitMilliseconds() != 0 && hand.isQuiet)
        #expect(loop.connectionCount == 0)
    }

    @Test("a sweep in progress when the next is due continues where it was: a connection that stays delays none")
    func nextSweep() throws {
        // The delegate has paused it: each check starts its time again, and the test makes it overdue for the next one.
        let (peer, first): (TestPeer, Connection) = try hand.open(user: 7)
        loop.pauseReading(first.id)
        let all: [(TestPeer, Connection)] = try unauthenticated(4, behind: first)
        runOut([first] + all.map(\.1))
        hand.turn()
        #expect(dead(all) == 0 && loop.sweepNext != nil)
        defer { withExtendedLifetime(peer) {} }
        for turn: Int in 1...4 {
            runOut([first])
            hand.turn()
            #expect(dead(all) == turn && first.phase == .open)
        }
    }

    @Test("a connection that waits in a ready queue costs a sweep no time and is not given up")
    func waitingInRow() throws {
        let (peer, speaker): (TestPeer, Connection) = try hand.open(user: 7)
        try peer.send(LoopReports.frame("first"))
        hand.throttle(speaker.tenant)
        hand.turn()
        #expect(speaker.isQueued)
        let all: [(TestPeer, Connection)] = try unauthenticated(2)
        runOut([speaker] + all.map(\.1))
        hand.turn()
        #expect(dead(all) == 1 && speaker.phase == .open)
        hand.turn(2)
        #expect(dead(all) == 2 && speaker.phase == .open && loop.sweepNext == nil)
        hand.wake(speaker.tenant)
        hand.turn(2)
        #expect(hand.reported.messages[speaker.id] == ["first"])
    }

    @Test("a connection whose peer sends before the sweep reaches it is not given up")
    func speaksInTime() throws {
        let all: [(TestPeer, Connection)] = try unauthenticated(4)
        runOut(all.map(\.1))
        hand.turn()
        let (peer, last): (TestPeer, Connection) = all[3]
        try peer.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        hand.turn(6)
        #expect(try peer.readResponse().status == 200)
        #expect(last.phase == .http && dead(all) == 3)
    }

    @Test("a sweep has time of its own: the same turns write answers and read messages")
    func others() throws {
        let (speaker, connection): (TestPeer, Connection) = try hand.open(user: 7)
        #expect(try speaker.readResponse().status == 101)
        let all: [(TestPeer, Connection)] = try unauthenticated(4)
        runOut(all.map(\.1))
        for turn: Int in 1...4 {
            try speaker.send(LoopReports.frame("\(turn)"))
            loop.send(connection.id, text: Array("answer \(turn)".utf8))
            hand.turn()
            #expect(hand.reported.messages[connection.id]?.count == turn && dead(all) == turn)
            #expect(try speaker.readAnswer() == .text(Array("answer \(turn)".utf8)))
        }
    }

    @Test(
        "the time to end connections is charged to their tenant, and to no other",
        arguments: [TenantID.unauthenticated, 7])
    func account(user: TenantID) throws {
        let hand: LoopByHand = try .init { $0.percentPerTenant = 1 }
        let (first, speaker): (TestPeer, Connection) = try hand.open(user: 9)
        let others: [(TestPeer, Connection)] = try (0..<400).map { _ in
            hand.loop.tenants.values.forEach { $0.throttledUntil = .min }
            hand.loop.unauthenticated.throttledUntil = .min
            return user == 0 ? try hand.join() : try hand.open(user: user)
        }
        let ended: LoopTenant = others[0].1.tenant
        #expect(ended.id == user)
        (ended.account, ended.throttledUntil, speaker.tenant.throttledUntil) = (.init(), .min, .min)
        for (_, connection) in others {
            hand.loop.deadlines[Int(connection.id.slot)] = hand.loop.now - 1
        }
        try first.send(LoopReports.frame("somebody wants the loop"))
        hand.turn()
        hand.loop.sweepNow()
        #expect(others.allSatisfy { $0.1.phase == .dead || $0.1.phase == .closing })
        #expect(ended.throttledUntil > hand.loop.now)
        #expect(speaker.tenant.throttledUntil <= hand.loop.now)
        #expect(user == 0 || hand.loop.unauthenticated.throttledUntil <= hand.loop.now)
    }

    @Test("a tenant does not want the loop because its connections are ended: another user is still alone")
    func alone() throws {
        let (peer, speaker): (TestPeer, Connection) = try hand.open(user: 9)
        let idle: [(TestPeer, Connection)] = [try hand.open(user: 7), try hand.join()]
        loop.recentTenants = .init()
        loop.unauthenticatedWantedAt = .min / 2
        for (_, connection) in idle { loop.deadlines[Int(connection.id.slot)] = loop.now - 1 }
        loop.sweepNow()
        #expect(idle[0].1.phase == .closing && idle[1].1.phase == .dead)
        #expect(!loop.isWanted(beside: speaker.tenant, at: loop.now))
        loop.timed(idle[0].1.tenant) {}
        #expect(loop.isWanted(beside: speaker.tenant, at: loop.now))
        withExtendedLifetime(peer) {}
    }

    // MARK: Peers that have disconnected

    /// WebSockets that the delegate has paused: the loop reads nothing from them.
    private func paused(_ count: Int) throws -> [(TestPeer, Connection)] {
        let all: [(TestPeer, Connection)] = try (0..<count).map { _ in try hand.open(user: 7) }
        for (_, connection) in all { loop.pauseReading(connection.id) }
        return all
    }

    @Test("of five connections whose peers disconnected each turn drops one, each of them once")
    func broken() throws {
        let all: [(TestPeer, Connection)] = try paused(5)
        for (peer, _) in all { peer.reset() }
        for turn: Int in 1...5 {
            hand.turn()
            #expect(dead(all) == turn)
            #expect(loop.broken.count == 5 - turn)
            #expect(turn == 5 || loop.waitMilliseconds() == 0)
            // A change of the watched events makes epoll report it once more.
            #expect(turn == 1 || loop.poller.wait(milliseconds: 0) == 0, "epoll reports each once")
        }
        #expect(all.allSatisfy { hand.reported.ends[$0.1.id] == [.vanished] })
        #expect(loop.broken.isEmpty && hand.isQuiet)
    }

    @Test("a broken connection that is resumed before it is dropped delivers what its peer had sent")
    func receivedAgain() throws {
        let all: [(TestPeer, Connection)] = try paused(3)
        let (peer, last): (TestPeer, Connection) = all[2]
        for (peer, _) in all {
            try peer.send(LoopReports.frame("last words"))
            peer.reset()
        }
        hand.turn()
        #expect(last.isBroken && last.phase == .open)
        loop.resumeReading(last.id)
        hand.turn(6)
        #expect(hand.reported.messages[last.id] == ["last words"])
        #expect(hand.reported.ends[last.id] == [.vanished] && !last.isBroken)
        withExtendedLifetime(peer) {}
    }

    @Test("a broken connection that is dropped for another reason ends once")
    func droppedOtherwise() throws {
        let all: [(TestPeer, Connection)] = try paused(3)
        for (peer, _) in all { peer.reset() }
        hand.turn()
        let last: Connection = try #require(all.last { $0.1.isBroken }).1
        loop.drop(last, .slowReader)
        hand.turn(4)
        #expect(hand.reported.ends[last.id] == [.slowReader])
        #expect(loop.connectionCount == 0 && hand.isQuiet)
    }

    @Test("however many peers disconnect, connections past their deadline are ended, and the other way round")
    func bothKinds() throws {
        let gone: [(TestPeer, Connection)] = try paused(4)
        let late: [(TestPeer, Connection)] = try unauthenticated(4)
        runOut(late.map(\.1))
        for (peer, _) in gone { peer.reset() }
        for turn: Int in 1...4 {
            hand.turn()
            #expect(dead(gone) == turn && dead(late) == turn)
        }
    }

    @Test("a loop that stops neither waits for connections that are to be ended nor ends one twice")
    func stops() throws {
        let all: [(TestPeer, Connection)] = try paused(4)
        for (peer, _) in all { peer.reset() }
        hand.turn()
        #expect(!loop.broken.isEmpty)
        loop.stop(within: .zero)
        hand.turn()
        #expect(loop.isFinished)
        loop.run()
        #expect(all.allSatisfy { hand.reported.ends[$0.1.id]?.count == 1 } && loop.connectionCount == 0)
    }

    // MARK: Accepting

    @Test("of five connections that arrive at once each turn with time for one accepts one")
    func accepted() throws {
        let hand: LoopByHand = try .init { $0.acceptNanosecondsPerTurn = 1 }
        let peers: [TestPeer] = try (0..<5).map { _ in try TestPeer(path: hand.path) }
        for turn: Int in 1...5 {
            hand.turn()
            #expect(hand.loop.connectionCount == turn)
        }
        withExtendedLifetime(peers) {}
    }

    @Test("unauthenticated connections have a quarter of a user's time in a turn, and at least 1 ns")
    func parts() throws {
        let (_, connection): (TestPeer, Connection) = try hand.open(user: 7)
        #expect(loop.part(of: connection.tenant) == 1 && loop.part(of: loop.unauthenticated) == 1)
        var settings: NetSettings = loop.settings
        settings.turnNanosecondsPerTenant = 100_000
        loop.use(settings)
        #expect(loop.part(of: connection.tenant) == 100_000 && loop.part(of: loop.unauthenticated) == 25_000)
    }
}
