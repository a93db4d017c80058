import Testing
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Lone changes, which the network loop commits itself while that is quick.
@Suite struct InlineCommitTests {
    /// Enough changes, one after the other, for the server to know how long they take.
    private func warmUp(_ client: TestClient) throws {
        for number in 0..<20 {
            #expect(try client.ask(edit("w\(number)", "w\(number)", to: "x")).ccids == ["w\(number)"])
        }
    }

    @Test(
        "the loop commits lone changes to disk before it acknowledges them, and all clients get them in order",
        arguments: StoreKind.allCases)
    func lone(_ kind: StoreKind) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store)
        let ann = try server.client("ann")
        let eve = try server.client("eve")
        _ = try eve.ask("0:i::::1")
        try warmUp(ann)
        // The shard's thread may not be asleep again each time.
        #expect(server.metrics.commitsInline.value > 0)
        #expect(server.metrics.commits.value == 20)
        #expect(server.metrics.changeSeconds.count == 20)
        #expect(try eve.drain().flatMap(\.ccids) == (0..<20).map { "w\($0)" })
        server.stop()
        try store.reopen()
        let again = try TestServer(store: store.store)
        defer { again.stop() }
        #expect(try again.client("bob").ask("0:e:w19.1").contains("\"x\""))
    }

    @Test("a failed commit of the loop is answered 503, and the server recovers by itself")
    func failure() throws {
        let fails = Flag()
        let server = try TestServer(
            store: MemoryStore.forTests(faults: { _ in
                fails.isSet ? .fail(StoreError(.full, "the disk is full")) : .none
            }))
        defer { server.stop() }
        let ann = try server.client("ann")
        try warmUp(ann)
        fails.set(true)
        #expect(
            try ann.ask(edit("k", "a1", to: "x")) == #"0:c:[{"clientid":"ann","id":"k","error":503,"ccids":["a1"]}]"#)
        #expect(try ann.ask("h:1") == "h:2")
        fails.set(false)
        #expect(waitUntil { server.health.isReady })
        #expect(try ann.ask(edit("k", "a1", to: "x")).ccids == ["a1"])
    }

    @Test("while commits are slow the loop leaves them to the shard's thread and answers heartbeats")
    func slowDisk() throws {
        let (isSlow, stuck, go): (Flag, BlockingQueue<Bool>, BlockingQueue<Bool>) = (
            .init(), .init(bound: 100), .init(bound: 1)
        )
        let server = try TestServer(
            store: MemoryStore.forTests(faults: { _ in
                guard isSlow.isSet else { return .none }
                stuck.add(true)
                _ = go.takeAll()
                return .none
            })
        ) { $0.limits.inlineCommitMicroseconds = 1 }
        let ann = try server.client("ann")
        let bob = try server.client("bob", token: "bob-token")
        try warmUp(ann)
        #expect(server.metrics.commitsInline.value == 0, "no commit takes a microsecond")
        isSlow.set(true)
        try ann.send(edit("k", "a1", to: "x"))
        _ = stuck.takeAll()
        #expect(try bob.ask("h:1") == "h:2")
        #expect(try ann.ask("h:3") == "h:4", "also for the waiting client")
        isSlow.set(false)
        bob.vanish()
        server.handle.stop()
        go.close()
        #expect(try ann.receive().ccids == ["a1"], "the stop waits for a change in progress")
        #expect(try ann.end() == .goingAway)
        server.stop()
    }
}
