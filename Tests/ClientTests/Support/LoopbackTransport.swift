import Glibc
import Synchronization
import ThicketClient

/// A model server to which several sessions of one process connect. Safe to use from any thread.
final class LoopbackServer: Sendable {
    private struct State {
        var server = ModelServer()
        var inboxes = [Int: [TransportEvent]]()
        var connections = 0
        var isDown = false
    }

    private let state = Mutex(State())

    /// Reads or changes the server.
    func with<Value: Sendable>(_ body: (inout ModelServer) -> Value) -> Value { state.withLock { body(&$0.server) } }

    /// Ends all connections; no new ones are made while it is down.
    func setDown(_ isDown: Bool) {
        state.withLock { state in
            state.isDown = isDown
            guard isDown else { return }
            for connection in state.inboxes.keys {
                state.server.disconnect(connection)
                state.inboxes[connection] = [.closed(LinkClosure(detail: "the server is down"))]
            }
        }
    }

    func connect() -> Int {
        state.withLock { state in
            state.connections += 1
            let refusal = TransportEvent.closed(LinkClosure(detail: "the server is down"))
            state.inboxes[state.connections] = [state.isDown ? refusal : .opened]
            return state.connections
        }
    }

    func disconnect(_ connection: Int) {
        state.withLock { state in
            state.server.disconnect(connection)
            state.inboxes[connection] = nil
        }
    }

    func send(_ text: [UInt8], from connection: Int) {
        state.withLock { state in
            guard !state.isDown else { return }
            for (target, answer) in state.server.receive(text, from: connection) {
                state.inboxes[target]?.append(.text(answer))
            }
        }
    }

    func take(_ connection: Int) -> [TransportEvent] {
        state.withLock { state in
            let events = state.inboxes[connection] ?? []
            if !events.isEmpty { state.inboxes[connection] = [] }
            return events
        }
    }
}

/// One session's connection to the model server.
final class LoopbackTransport: Transport {
    private let server: LoopbackServer
    private var connection: Int?

    init(_ server: LoopbackServer) { self.server = server }

    func connect() {
        close()
        connection = server.connect()
    }
    func send(_ text: [UInt8]) { if let connection { server.send(text, from: connection) } }
    func flush() {}
    func close() {
        if let connection { server.disconnect(connection) }
        connection = nil
    }
    func events(limit: Int) -> [TransportEvent] { connection.map { server.take($0) } ?? [] }

    func wait(wake: Int32, milliseconds: Int32) {
        var watched = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
        // Another session's thread fills our inbox: look again soon.
        _ = poll(&watched, 1, connection == nil ? milliseconds : milliseconds < 0 ? 1 : min(milliseconds, 1))
    }
}

extension LoopbackServer {
    /// A session over this server.
    func session(
        store: @escaping @Sendable () throws(ClientError) -> any LocalStore = { MemoryLocalStore() },
        app: String = "app",
        token: String = "token", startsOnline: Bool = true
    ) async throws -> Session {
        let engine = SyncEngine(loop: try EngineLoop())
        var options = SyncOptions(app: try .init(app), token: token)
        options.startsOnline = startsOnline
        try await engine.start(options: options, makeStore: store, makeTransport: { LoopbackTransport(self) })
        return Session(engine: engine)
    }
}
