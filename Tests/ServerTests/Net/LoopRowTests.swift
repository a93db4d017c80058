import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// More connections of one tenant are ready than its part of a turn has time for. The loop is turned by hand, and a
/// tenant has time for one connection a turn.
@Suite("Connections wait for their tenant's part of a turn")
struct LoopRowTests {
    private let folder = TemporaryFolder()
    private let loop: EventLoop
    private let peers: [TestPeer]

    init() throws {
        var settings = NetSettings()
        (settings.turnNanosecondsPerTenant, settings.acceptNanosecondsPerTurn) = (1, .max / 4)
        loop = try EventLoop(settings: settings)
        let path: String = folder.path + "/socket"
        _ = try loop.listen(path: path)
        peers = try (0..<12).map { _ in try TestPeer(path: path) }
        loop.turn()
        #expect(loop.connectionCount == peers.count)
        #expect(connections.allSatisfy { $0.watchesReads && !$0.isQueued })
    }

    private var connections: [Connection] { loop.connections.compactMap { $0 } }
    private var begun: [Connection] { connections.filter { $0.exchange?.requests.isInsideRequest == true } }

    private func beginAll() throws { for peer in peers { try peer.send(Array("GET / HTTP/1.1\r\n".utf8)) } }

    @Test("each connection is examined once and then waits: epoll does not report it again until its turn")
    func lookedAtOnce() throws {
        try beginAll()
        loop.turn()
        #expect(begun.count == 1)
        let waiting: [Connection] = connections.filter(\.isQueued)
        #expect(waiting.count == peers.count - 1)
        #expect(waiting.allSatisfy { !$0.watchesReads && !$0.isTenantThrottled })
        let events: Int = loop.poller.wait(milliseconds: 0)
        #expect(events == 0)
        for turn: Int in 2...peers.count {
            loop.turn()
            #expect(begun.count == turn)
        }
        #expect(connections.allSatisfy { $0.watchesReads && !$0.isQueued })
        #expect(loop.due.isEmpty)
        #expect(loop.unauthenticated.row.isEmpty)
    }

    @Test("the loop does not sleep while a connection waits, and sleeps when none does")
    func staysAwake() throws {
        try beginAll()
        loop.turn()
        #expect(loop.waitMilliseconds() == 0)
        for _: Int in 1..<peers.count { loop.turn() }
        #expect(loop.waitMilliseconds() != 0)
    }

    @Test("a connection that sends without end is queued behind those that wait: all are served within as many turns")
    func inOrder() throws {
        let loud: TestPeer = peers[0]
        try beginAll()
        for _: Int in 0...peers.count {
            try loud.send(Array("a: b\r\n".utf8))
            loop.turn()
        }
        #expect(begun.count == peers.count)
    }

    @Test("new input is handled after connections that wait, and these are handled in the order of their arrival")
    func laterBehind() throws {
        let (first, second): (ArraySlice<TestPeer>, ArraySlice<TestPeer>) = (peers[..<4], peers[4...])
        for peer in first { try peer.send(Array("GET / HTTP/1.1\r\n".utf8)) }
        loop.turn()
        let early: [ConnectionID] = connections.filter(\.isQueued).map(\.id)
        #expect(early.count == first.count - 1)
        for peer in second { try peer.send(Array("GET / HTTP/1.1\r\n".utf8)) }
        for _: Int in 1..<first.count { loop.turn() }
        let done = Set<ConnectionID>(begun.map(\.id))
        #expect(done.count == first.count)
        #expect(done.isSuperset(of: early))
    }

    @Test("while the tenant is throttled no connection is served; afterwards each turn serves one")
    func throttled() throws {
        try beginAll()
        loop.turn()
        loop.unauthenticated.throttledUntil = .max
        for _: Int in 0..<3 {
            // Other work, without which the turn would sleep.
            loop.handle.post { _ in }
            loop.turn()
        }
        #expect(begun.count == 1)
        #expect(loop.due.isEmpty, "it does not keep the loop awake")
        loop.unauthenticated.throttledUntil = .min
        loop.wake(loop.unauthenticated)
        for turn: Int in 2...peers.count {
            loop.turn()
            #expect(begun.count == turn)
        }
    }

    @Test("input that was already read and waits is handled in its turn too")
    func backlog() throws {
        try beginAll()
        loop.turn()
        let waiting: [Connection] = connections.filter(\.isQueued)
        let connection: Connection = try #require(waiting.first)
        connection.backlog = Array("GET / HTTP/1.1\r\n".utf8)
        loop.resume(connection)
        // One more turn for what its socket holds.
        for _: Int in 0..<peers.count { loop.turn() }
        #expect(begun.count == peers.count)
        #expect(connections.allSatisfy { $0.backlog.isEmpty && !$0.isQueued })
    }

    @Test("a connection that ends while it waits is dropped and delays no other")
    func gone() throws {
        try beginAll()
        loop.turn()
        let waiting: [Connection] = connections.filter(\.isQueued)
        for connection in waiting.dropLast() { loop.drop(connection, .vanished) }
        loop.turn()
        #expect(begun.count == 2)
        #expect(loop.unauthenticated.row.isEmpty)
        #expect(loop.connectionCount == 2)
    }

    @Test("a ready queue keeps few places of ended connections, 64 at most, and its order")
    func bounded() throws {
        let row = ReadyQueue()
        let living: [Connection] = Array(connections.prefix(3))
        for connection in living { row.append(connection) }
        for number: Int in 0..<10_000 {
            let ended = Connection(
                id: ConnectionID(slot: Int32(number), serial: 1), listener: living[0].listener,
                tenant: loop.unauthenticated, settings: loop.settings)
            row.append(ended)
            row.remove(ended)
            #expect(row.count == 3 && row.placeCount <= 64)
        }
        #expect((0..<3).compactMap { _ in row.popFirst()?.id } == living.map(\.id))
        #expect(row.popFirst() == nil)
        #expect(row.isEmpty)
    }
}
