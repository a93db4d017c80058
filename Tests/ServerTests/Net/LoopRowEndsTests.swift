import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Events on connections that wait for their tenant's part of a turn: their peers disconnect, their deadlines pass, or
/// they turn out to belong to another tenant.
@Suite("Events on connections that wait")
struct LoopRowEndsTests {
    private let hand: LoopByHand

    init() throws { hand = try LoopByHand() }

    private var loop: EventLoop { hand.loop }
    private static let get = "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"

    /// WebSockets of user 7, each of which has sent one message: the first was delivered, the others wait in this
    /// order.
    private func waiting(_ count: Int) throws -> [(TestPeer, Connection)] {
        let all: [(TestPeer, Connection)] = try (0..<count).map { _ in try hand.open(user: 7) }
        for (peer, _) in all { try peer.send(LoopReports.frame("first")) }
        hand.turn()
        #expect(all.map { $0.1.isQueued } == [false] + Array(repeating: true, count: count - 1))
        return all
    }

    private func messages(_ connection: Connection) -> [String] { hand.reported.messages[connection.id] ?? [] }

    // MARK: Peers that disconnect

    @Test(
        "messages that a WebSocket's peer sent before it went are handled in its turn; then it is dropped",
        arguments: [0, 3])
    func lastWords(turnsResting: Int) throws {
        let all: [(TestPeer, Connection)] = try waiting(4)
        let (peer, last): (TestPeer, Connection) = all[3]
        try peer.send(LoopReports.frame("second") + LoopReports.frame("third"))
        peer.reset()
        if turnsResting > 0 { hand.throttle(last.tenant) }
        hand.turn(turnsResting)
        #expect(turnsResting == 0 || loop.poller.wait(milliseconds: 0) == 0, "epoll reports it once, not in every turn")
        hand.wake(last.tenant)
        hand.turn(6)
        #expect(messages(last) == ["first", "second", "third"])
        #expect(hand.reported.ends[last.id] == [.vanished])
        #expect(loop.connectionCount == 3 && hand.isQuiet)
    }

    @Test("messages that were already read are handled although their peer has gone", arguments: [1, Int64.max / 4])
    func readBefore(part: Int64) throws {
        let hand = try LoopByHand(part: part)
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7)
        let texts: [String] = (0..<200).map { "message \($0)" }
        try peer.send(texts.flatMap { LoopReports.frame($0) })
        peer.reset()
        hand.turn(12)
        #expect(hand.reported.messages[connection.id] == texts)
        #expect(hand.reported.ends[connection.id] == [.vanished])
        #expect(hand.loop.connectionCount == 0 && hand.isQuiet)
    }

    @Test(
        "a WebSocket that the delegate has paused is dropped when its peer has gone, although others of its user wait")
    func paused() throws {
        let all: [(TestPeer, Connection)] = try waiting(3)
        let (peer, first): (TestPeer, Connection) = all[0]
        loop.pauseReading(first.id)
        peer.reset()
        hand.turn(2)
        #expect(hand.reported.ends[first.id] == [.vanished])
        #expect(messages(first) == ["first"])
    }

    @Test("an unauthenticated connection with a waiting request is dropped unread, at once, when its peer goes")
    func goneUnauthenticated() throws {
        let all: [(TestPeer, Connection)] = try (0..<4).map { _ in try hand.join() }
        for (peer, _) in all { try peer.send(Self.get) }
        hand.turn()
        hand.throttle(loop.unauthenticated)
        all[3].0.reset()
        hand.turn()
        #expect(all[3].1.phase == .dead)
        hand.wake(loop.unauthenticated)
        hand.turn(4)
        #expect(all.map { hand.reported.paths[$0.1.id]?.count } == [1, 1, 1, nil])
    }

    @Test("half a message of a connection that is dropped while it waits is freed at once, not in its turn")
    func freed() throws {
        let all: [(TestPeer, Connection)] = try waiting(2)
        let (peer, last): (TestPeer, Connection) = all[1]
        hand.turn(2)
        try peer.send(Array(LoopReports.frame(String(repeating: "x", count: 100_000)).prefix(50_000)))
        hand.turn()
        #expect(last.reader.gatheredBytes > 0 && last.tenant.gathered == last.reader.gatheredBytes)
        hand.throttle(last.tenant)
        try peer.send("more")
        hand.turn()
        #expect(last.isQueued)
        loop.drop(last, .vanished)
        #expect(last.reader.gatheredBytes == 0 && last.exchange == nil)
    }

    @Test("a ready queue does not hold a connection that it handed out")
    func nothingHeld() throws {
        let row = ReadyQueue()
        let (_, model): (TestPeer, Connection) = try hand.join()
        func make() -> Connection {
            .init(id: model.id, listener: model.listener, tenant: loop.unauthenticated, settings: loop.settings)
        }
        weak var first: Connection? = nil
        do {
            let connection: Connection = make()
            first = connection
            row.append(connection)
        }
        row.append(make())
        #expect(row.popFirst() === first)
        #expect(first == nil)
        #expect(!row.isEmpty)
    }

    // MARK: Answers

    @Test("what is sent to a user's connections leaves when the throttle ends, however many wait to be read")
    func answersFirst() throws {
        let all: [(TestPeer, Connection)] = try waiting(8)
        let (peer, last): (TestPeer, Connection) = all[7]
        _ = try peer.readResponse()
        hand.throttle(last.tenant)
        loop.send(last.id, text: Array("news".utf8))
        hand.turn(2)
        #expect(!last.outbox.isEmpty)
        hand.wake(last.tenant)
        hand.turn()
        #expect(last.outbox.isEmpty)
        #expect(try peer.readAnswer() == .text(Array("news".utf8)))
        #expect(messages(last).isEmpty, "it is read in its turn, as always")
        hand.turn(8)
        #expect(messages(last) == ["first"])
        #expect(hand.isQuiet)
    }

    // MARK: Connections that change their tenant

    private func unauthenticated(_ count: Int) throws -> [(TestPeer, Connection)] {
        try (0..<count).map { _ in try hand.join() }
    }

    @Test("a connection known to be a user's does not wait with the unauthenticated ones")
    func known() throws {
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 0)
        let others: [(TestPeer, Connection)] = try unauthenticated(8)
        hand.reported.users[connection.id] = 7
        for (other, _) in others { try other.send("GET /hello HTTP/1.1\r\n") }
        try peer.send(LoopReports.frame("change"))
        hand.turn()
        #expect(messages(connection) == ["change"])
        #expect(others.count { $0.1.isQueued } == 7)
    }

    @Test(
        "a connection that turns out to be a user's while it waits leaves the unauthenticated queue, and is read once")
    func moves() throws {
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 0)
        let others: [(TestPeer, Connection)] = try unauthenticated(8)
        for (other, _) in others { try other.send("GET /hello HTTP/1.1\r\n") }
        try peer.send(LoopReports.frame("change"))
        hand.turn()
        #expect(connection.isQueued && connection.tenant === loop.unauthenticated)
        hand.reported.users[connection.id] = 7
        loop.send(connection.id, text: Array("welcome".utf8))
        hand.turn(2)
        #expect(messages(connection) == ["change"])
        #expect(!connection.isQueued && connection.watchesReads)
        try peer.send(LoopReports.frame("another"))
        hand.turn(10)
        #expect(messages(connection) == ["change", "another"])
        #expect(others.allSatisfy { $0.1.exchange?.requests.isInsideRequest == true })
        #expect(hand.isQuiet)
    }

    // MARK: Deadlines

    /// Unauthenticated connections that have sent `before` before their throttle, and `text` during it: all of them
    /// wait, and longer than they may.
    private func overdue(_ before: String, _ text: String) throws -> [(TestPeer, Connection)] {
        let all: [(TestPeer, Connection)] = try unauthenticated(5)
        for (peer, _) in all where !before.isEmpty { try peer.send(before) }
        hand.turn(5)
        hand.throttle(loop.unauthenticated)
        for (peer, _) in all { try peer.send(text) }
        hand.turn()
        #expect(all.allSatisfy { $0.1.isQueued })
        for (_, connection) in all { runOut(connection) }
        loop.sweepNow()
        #expect(all.allSatisfy { $0.1.isQueued && $0.1.phase == .http })
        hand.wake(loop.unauthenticated)
        return all
    }

    private func runOut(_ connection: Connection) { loop.deadlines[Int(connection.id.slot)] = loop.now - 1 }

    @Test("a request that is incomplete in its turn after its deadline is given up then, with 408")
    func tooLate() throws {
        let all: [(TestPeer, Connection)] = try overdue("GET /hello HTTP/1.1\r\n", "a: b\r\n")
        for turn: Int in 1...5 {
            hand.turn()
            #expect(all.count { $0.1.phase == .draining } == turn)
            #expect(all.count { $0.1.isQueued } == 5 - turn)
        }
        hand.turn(5)
        for (peer, _) in all { #expect(try peer.readResponse().status == 408) }
    }

    @Test("a request that came in time, but waited too long, is answered")
    func waitedTooLong() throws {
        let all: [(TestPeer, Connection)] = try overdue("", Self.get)
        hand.turn(10)
        for (peer, _) in all { #expect(try peer.readResponse().status == 200) }
    }

    @Test("a connection with unread data in the kernel is not given up at its deadline; one without is")
    func unreadInTheKernel() throws {
        let (peer, connection): (TestPeer, Connection) = try hand.open(user: 7)
        let (other, silent): (TestPeer, Connection) = try hand.open(user: 7)
        try peer.send(LoopReports.frame("in time"))
        runOut(connection)
        runOut(silent)
        loop.sweepNow()
        #expect(connection.phase == .open)
        #expect(silent.phase == .closing)
        hand.turn(2)
        #expect(messages(connection) == ["in time"])
        loop.sweepNow()
        #expect(connection.phase == .open, "it has shown that it lives")
        runOut(connection)
        loop.sweepNow()
        #expect(connection.phase == .closing)
        withExtendedLifetime((peer, other)) {}
    }

    @Test("a connection is not given up for the time that it waited: its request is read first")
    func inTime() throws {
        let all: [(TestPeer, Connection)] = try unauthenticated(6)
        for (peer, _) in all { try peer.send(Self.get) }
        hand.turn()
        loop.now += 11_000_000_000
        loop.sweepNow()
        hand.turn(6)
        #expect(all.allSatisfy { hand.reported.paths[$0.1.id] == ["/hello"] })
        for (peer, _) in all { #expect(try peer.readResponse().status == 200) }
    }
}
