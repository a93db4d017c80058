import Glibc
import Synchronization
import Testing
import ThicketClient
import ThicketProtocol

/// What a program that closes its session and ends may rely on.
@Suite("The end of a session", .timeLimit(.minutes(15)))
struct CloseTests {
    /// A transport that connects to nothing and reports its deinitialization.
    private final class Watched: Transport {
        private let onEnd: @Sendable () -> Void
        init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
        deinit { onEnd() }
        func connect() {}
        func send(_ text: [UInt8]) {}
        func flush() {}
        func close() {}
        func events(limit: Int) -> [TransportEvent] { [] }
        func wait(wake: Int32, milliseconds: Int32) {
            var watched = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
            _ = poll(&watched, 1, milliseconds)
        }
    }

    private final class Count: Sendable {
        let value = Atomic<Int>(0)
    }

    @Test(
        "close() returns after the transport and its libraries' state are freed; a closed session still answers")
    func transportIsGone() async throws {
        let gone = Count()
        let engine = SyncEngine(loop: try EngineLoop())
        try await engine.start(
            options: SyncOptions(app: AppID("app"), token: "token"), makeStore: { MemoryLocalStore() },
            makeTransport: { Watched { gone.value.add(1, ordering: .sequentiallyConsistent) } })
        let session = Session(engine: engine)
        let notes = try await session.bucket("notes")
        try await notes.set("a", to: ["n": 1])
        #expect(gone.value.load(ordering: .sequentiallyConsistent) == 0)
        await session.close()
        #expect(gone.value.load(ordering: .sequentiallyConsistent) == 1)
        await #expect(throws: ClientError.self) { try await notes.get("a") }
        await session.close()
        #expect(await session.currentStatus == .offline(.closed))
    }

    @Test("a session that is no longer referenced ends its transport, too")
    func dropped() async throws {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        do {
            let engine = SyncEngine(loop: try EngineLoop())
            try await engine.start(
                options: SyncOptions(app: AppID("app"), token: "token"), makeStore: { MemoryLocalStore() },
                makeTransport: { Watched { continuation.finish() } })
        }
        for await _ in stream {}
    }
}
