import CThicketNet
import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Peers that disconnect while their user is throttled, while their answers are written, or while they are paused. The
/// kernel keeps what they sent before, whether the connection was closed or reset, and also when a write has failed.
@Suite("Messages sent before a disconnect are delivered, and nothing else keeps the connection")
struct LoopGoneTests {
    private let hand: LoopByHand

    init() throws { hand = try LoopByHand() }

    private var loop: EventLoop { hand.loop }
    private func messages(_ connection: Connection) -> [String] { hand.reported.messages[connection.id] ?? [] }

    enum End: CaseIterable, Sendable {
        /// In order, and with everything read.
        case closes
        /// With something left unread: the kernel resets the connection.
        case closesUnread
        case breaks
    }

    private func go(_ peer: TestPeer, _ end: End) { end == .breaks ? peer.reset() : peer.end() }

    /// A WebSocket whose peer has read its answers, except with `closesUnread`.
    private func open(_ end: End, overTCP: Bool) throws -> (TestPeer, Connection) {
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7, overTCP: overTCP)
        if end != .closesUnread { #expect(try peer.readResponse().status == 101) }
        return (peer, connection)
    }

    private func checkGone(_ connection: Connection) {
        #expect(hand.reported.ends[connection.id] == [.vanished])
        #expect(loop.connectionCount == 0 && loop.pendingTotal == 0 && loop.gatheredTotal == 0)
        #expect(loop.metrics.connections.value == 0 && loop.metrics.webSockets.value == 0)
        #expect(hand.unrest == [])
    }

    @Test(
        "a connection that breaks with nothing unread is dropped at once, however long its user is throttled",
        arguments: [End.closesUnread, .breaks], [true, false])
    func nothingUnread(end: End, overTCP: Bool) throws {
        let (peer, connection): (TestPeer, Connection) = try open(end, overTCP: overTCP)
        try peer.send(LoopReports.frame("heard"))
        hand.turns { messages(connection) == ["heard"] }
        hand.throttle(connection.tenant)
        go(peer, end)
        hand.turns { connection.phase == .dead }
        checkGone(connection)
    }

    @Test(
        "messages sent before the end are delivered after the throttle; epoll reports the end once",
        arguments: End.allCases,
        [true, false])
    func afterRest(end: End, overTCP: Bool) throws {
        let (peer, connection): (TestPeer, Connection) = try open(end, overTCP: overTCP)
        hand.throttle(connection.tenant)
        try peer.send(LoopReports.frame("first") + LoopReports.frame("second"))
        hand.turns { connection.isQueued }
        go(peer, end)
        if end != .closes || !overTCP { hand.turns { connection.isGone } }
        for _: Int in 0..<4 {
            hand.turn()
            #expect(loop.poller.wait(milliseconds: 0) == 0)
        }
        #expect(connection.phase == .open && messages(connection).isEmpty)
        hand.wake(connection.tenant)
        hand.turns { connection.phase == .dead }
        #expect(messages(connection) == ["first", "second"])
        checkGone(connection)
    }

    @Test(
        "messages sent before the end are delivered although their answers cannot be written", arguments: End.allCases,
        [true, false])
    func answersFindNobody(end: End, overTCP: Bool) throws {
        for part: Int64 in [1, Int64.max / 4] {
            let hand = try LoopByHand(part: part)
            let loop: EventLoop = hand.loop
            hand.reported.onMessage = { [unowned loop] id in loop.send(id, text: Array("answer".utf8)) }
            let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7, overTCP: overTCP)
            if end != .closesUnread { #expect(try peer.readResponse().status == 101) }
            let texts: [String] = (0..<300).map { "message \($0)" }
            try peer.send(texts.flatMap { LoopReports.frame($0) })
            // All of it has arrived: a reset discards what the peer's kernel has not sent yet.
            if overTCP {
                waitFor { Self.unread(connection) == texts.reduce(0) { $0 + LoopReports.frame($1).count } ? true : nil }
            }
            go(peer, end)
            hand.turns { connection.phase == .dead }
            #expect(hand.reported.messages[connection.id] == texts)
            #expect(hand.reported.ends[connection.id] == [.vanished])
            #expect(loop.connectionCount == 0 && loop.pendingTotal == 0 && connection.outbox.isEmpty)
        }
    }

    private static func unread(_ connection: Connection) -> Int {
        var room = [UInt8](repeating: 0, count: 1 << 20)
        return thicket_peek(connection.id.slot, &room, room.count)
    }

    @Test("a message in progress stays intact when its answer cannot be written, and messages after it are handled")
    func atHand() throws {
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7)
        let long = String(repeating: "x", count: 30_000)
        hand.reported.onMessage = { [unowned loop = hand.loop] id in
            loop.send(id, text: Array("answer".utf8))
            loop.lookup(id).map { loop.flush($0) }
            #expect(connection.isGone && connection.outbox.isEmpty)
        }
        try peer.send(LoopReports.frame(long) + LoopReports.frame("second") + LoopReports.frame("third"))
        peer.end()
        hand.turns { connection.phase == .dead }
        #expect(messages(connection) == [long, "second", "third"])
        checkGone(connection)
    }

    @Test("a paused connection whose peer has gone stays for what it sent; nothing is written to it")
    func paused() throws {
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7)
        loop.pauseReading(connection.id)
        try peer.send(LoopReports.frame("first"))
        peer.end()
        hand.turn(2)
        #expect(connection.phase == .open && connection.isGone)
        loop.send(connection.id, text: Array("news".utf8))
        #expect(connection.outbox.isEmpty && loop.pendingTotal == 0)
        hand.turn()
        #expect(loop.poller.wait(milliseconds: 0) == 0, "epoll reports it once")
        loop.resumeReading(connection.id)
        hand.turn(4)
        #expect(messages(connection) == ["first"])
        checkGone(connection)
    }

    @Test("a connection that stays paused after its peer has gone lasts for the idle timeout at most")
    func pausedForEver() throws {
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7)
        loop.pauseReading(connection.id)
        try peer.send(LoopReports.frame("first"))
        peer.end()
        hand.turn(2)
        #expect(connection.isGone)
        loop.sweepNow()
        #expect(connection.phase == .open)
        loop.deadlines[Int(connection.id.slot)] = loop.now - 1
        loop.sweepNow()
        hand.turn(4)
        #expect(connection.phase == .dead && messages(connection).isEmpty)
        #expect(loop.connectionCount == 0 && hand.isQuiet)
    }

    @Test("the delegate may close a connection whose peer has gone, and the peer's last message may be a close")
    func closed() throws {
        for isOurs: Bool in [true, false] {
            let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7)
            loop.pauseReading(connection.id)
            try peer.send(isOurs ? LoopReports.frame("first") : WebSocketWriter.close(.normal, mask: 0x1234_5678))
            peer.end()
            hand.turn(2)
            #expect(connection.isGone)
            if isOurs { loop.close(connection.id) } else { loop.resumeReading(connection.id) }
            hand.turn(4)
            #expect(connection.phase == .dead && messages(connection).isEmpty)
            #expect(hand.reported.ends[connection.id] == [isOurs ? .closed(.normal) : .peer(.normal)])
        }
        #expect(loop.connectionCount == 0 && hand.isQuiet)
    }

    @Test("a user's waiting request is handled although its peer has gone; without a request the connection is dropped")
    func requests() throws {
        let (peer, connection): (TestPeer, Connection) = try hand.join()
        let (idlePeer, idle): (TestPeer, Connection) = try hand.join()
        for each: Connection in [connection, idle] { loop.count(each.id, to: 7) }
        hand.throttle(connection.tenant)
        try peer.send("GET /mine HTTP/1.1\r\nHost: x\r\n\r\n")
        hand.turn()
        #expect(connection.isQueued)
        peer.end()
        idlePeer.end()
        hand.turn(3)
        #expect(connection.phase == .http && idle.phase == .dead)
        hand.wake(connection.tenant)
        hand.turn(4)
        #expect(hand.reported.paths[connection.id] == ["/mine"])
        #expect(connection.phase == .dead && loop.connectionCount == 0 && hand.isQuiet)
    }

    @Test("a server on its own thread delivers messages sent before a reset, although it cannot write its answers")
    func overTheNet() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        try server.onLoop { $0.unauthenticated.throttledUntil = .max }
        // Over TLS these are two records; the second is read after a write has failed.
        for _: Int in 0..<2 { try peer.send((0..<50).flatMap { LoopReports.frame("message \($0)") }) }
        peer.reset()
        waitFor { (try? server.onLoop { $0.lookup(id)?.isGone }) == true ? true : nil }
        #expect(diary.received.value == 0)
        try server.onLoop { loop in
            loop.unauthenticated.throttledUntil = .min
            loop.wake(loop.unauthenticated)
        }
        waitFor { diary.ends.isEmpty ? nil : true }
        #expect(diary.received.value == 100)
        #expect(diary.ends == [.vanished])
        try server.stop()
    }
}
