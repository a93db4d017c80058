@testable import ThicketNet
import ThicketProtocol
@testable import ThicketScheduling
import ThicketTestSupport

@testable import ThicketServer

/// An event loop that is turned by hand on the thread of the test.
final class LoopByHand {
    let loop: EventLoop
    let reported = LoopReports()
    let path: String
    /// Peers that stay although the test does not use them.
    var kept: [TestPeer] = []
    /// Nil until a peer connects over TCP: ports are reused, and clients of other tests may still connect to this one.
    private var port: Int?
    private let folder = TemporaryFolder()

    /// - Parameter part: nanoseconds of a turn that a tenant has; 1: one connection.
    init(part: Int64 = 1, change: (inout NetSettings) -> Void = { _ in }) throws {
        var settings = NetSettings()
        (settings.turnNanosecondsPerTenant, settings.acceptNanosecondsPerTurn) = (part, .max / 4)
        // Only tenants that the test throttles are throttled.
        settings.percentPerTenant = 100
        settings.endNanosecondsPerTurn = .max / 4
        change(&settings)
        loop = try EventLoop(settings: settings)
        path = folder.path + "/socket"
        _ = try loop.listen(path: path)
        loop.delegate = reported
    }

    var connections: [Connection] { loop.connections.compactMap { $0 } }

    /// A turn that waits for nothing.
    func turn(_ count: Int = 1) {
        for _: Int in 0..<count {
            loop.handle.post { _ in }
            loop.turn()
        }
    }

    /// Accepts another connection. Wakes the unauthenticated connections: while they are throttled, the listener does
    /// not accept.
    func join(overTCP: Bool = false) throws -> (TestPeer, Connection) {
        wake(loop.unauthenticated)
        let before: UInt32 = loop.lastSerial
        let peer: TestPeer = try overTCP ? .init(port: listening(), isPlain: true) : .init(path: path)
        let connection: Connection = waitFor {
            turn()
            return connections.first { $0.id.serial > before }
        }
        // Epoll checks it once more: from now on it reports connections in the order in which their peers send.
        turn()
        return (peer, connection)
    }

    private func listening() throws -> Int {
        if let port { return port }
        let found: Int = try loop.listen(host: "127.0.0.1", port: 0).port
        port = found
        return found
    }

    /// A WebSocket of a user; 0: unauthenticated.
    func open(user: TenantID, overTCP: Bool = false) throws -> (TestPeer, Connection) {
        let (peer, connection): (TestPeer, Connection) = try join(overTCP: overTCP)
        try peer.send(LoopReports.upgrade("/ws"))
        turns { connection.phase == .open }
        reported.users[connection.id] = user
        loop.sort(connection)
        turn()
        guard connection.phase == .open, connection.tenant.id == user else {
            throw TestPeer.PeerError(what: "it was not opened")
        }
        return (peer, connection)
    }

    /// Turns until the condition holds: with TCP the kernel may be slow.
    func turns(until isDone: () -> Bool) {
        waitFor {
            turn()
            return isDone() ? true : nil
        }
    }

    func throttle(_ tenant: LoopTenant) { tenant.throttledUntil = .max }

    func wake(_ tenant: LoopTenant) {
        guard tenant.throttledUntil == .max else { return }
        tenant.throttledUntil = .min
        loop.wake(tenant)
    }

    /// The reasons why the loop would not sleep until a peer sends something, whatever its clock says; empty: none.
    var unrest: [String] {
        let lists: [(String, Bool)] = [
            ("due", loop.due.isEmpty), ("resuming", loop.resuming.isEmpty), ("dirty", loop.dirty.isEmpty),
            ("ended", loop.ended.isEmpty), ("broken", loop.broken.isEmpty), ("sweep", loop.sweepNext == nil),
        ]
        // A child process of another test that has not executed its program yet holds closed connections open: the
        // kernel still reports them, and the loop knows none of them.
        let events = (0..<loop.poller.wait(milliseconds: 0)).count { place in
            let token = loop.poller[place].token
            let (slot, serial) = (Int32(truncatingIfNeeded: token), UInt32(truncatingIfNeeded: token >> 32))
            return serial == 0 || loop.lookup(ConnectionID(slot: slot, serial: serial)) != nil
        }
        return lists.filter { !$0.1 }.map(\.0) + (events == 0 ? [] : ["\(events) events of the kernel"])
    }
    var isQuiet: Bool { unrest.isEmpty }
}

extension EventLoop {
    /// Checks all deadlines, however long that takes.
    func sweepNow() {
        (nextSweep, sweepNext) = (now, 0)
        repeat { endSome() } while sweepNext != nil
    }
}

/// Records what a loop reports, by connection, and knows the users of its connections.
final class LoopReports: LoopDelegate {
    var users: [ConnectionID: TenantID] = [:]
    /// Users that wait for an answer.
    var waiting: Set<TenantID> = []
    private(set) var paths: [ConnectionID: [String]] = [:]
    private(set) var messages: [ConnectionID: [String]] = [:]
    private(set) var ends: [ConnectionID: [ConnectionEnd]] = [:]
    var onMessage: (ConnectionID) -> Void = { _ in }
    var onRequest: (HTTPRequest, ConnectionID) -> HTTPDisposition = { request, _ in
        request.path.hasPrefix("/ws") ? .upgrade : .respond(.text(200, "hello"))
    }

    static func upgrade(_ target: String) -> [UInt8] {
        WebSocketHandshake.request(host: "localhost", target: target, nonce: Array("0123456789abcdef".utf8))
    }

    static func frame(_ text: String) -> [UInt8] {
        WebSocketWriter.frame(.text, isFinal: true, Array(text.utf8), mask: 0x1234_5678)
    }

    func answer(_ request: HTTPRequest, on id: ConnectionID, via listener: Listener) -> HTTPDisposition {
        paths[id, default: []].append(String(request.path))
        return onRequest(request, id)
    }
    func opened(_ id: ConnectionID, _ request: HTTPRequest) {}
    func received(_ id: ConnectionID, text: UnsafeRawBufferPointer) {
        messages[id, default: []].append(String(decoding: text, as: UTF8.self))
        onMessage(id)
    }
    func closed(_ id: ConnectionID, _ end: ConnectionEnd) { ends[id, default: []].append(end) }
    func tenant(behind id: ConnectionID) -> TenantID { users[id] ?? 0 }
    func othersWait(than tenant: TenantID) -> Bool { !waiting.subtracting([tenant]).isEmpty }
}
