import Synchronization
import Testing
import ThicketClient
import ThicketPlatform
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Delegate, events and queue of a tree", .timeLimit(.minutes(10)))
struct TreeDelegateTests {
    private let bench: TreeBench

    init() throws { bench = try TreeBench() }

    /// An app that keeps an index of names in the tree's transactions, and gives contents when it is asked.
    final class App: TreeDelegate {
        struct Refusal: Error {}
        let asked = Mutex([NodeID]())
        let content = Mutex([UInt8]?.none)

        var askedCount: Int { asked.withLock(\.count) }

        func didDiscoverNewNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
            try transaction.set(Array(path.description.utf8), "paths", node.id.text)
            try transaction.markNodeAsNeedsDownload(node.id)
        }
        func didDiscoverDeletedNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
            try transaction.set(nil, "paths", node.id.text)
        }
        func data(for node: Node, at path: TreePath) async throws -> NodeData {
            asked.withLock { $0.append(node.id) }
            guard let bytes = content.withLock({ $0 }) else { throw Refusal() }
            return .bytes(bytes)
        }
    }

    @Test("the delegate's values are in the transaction that shows the node, and events follow it")
    func insideAndAfter() async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let (tree, copy) = (try await ann.tree(delegate: App()), try await other.tree(delegate: App()))
        var events = await copy.events.makeAsyncIterator()
        let made = try await tree.createNode(at: .home("a"), content: .text("x"))
        var found: TreeEvent?
        while found == nil, let event = await events.next() {
            if case .discovered = event { found = event }
        }
        guard case .discovered(let node, let path)? = found else { return #expect(Bool(false)) }
        #expect(node.id == made.id && path.description == "home/a")
        #expect(try await copy.value("paths", made.id.text) == Array("home/a".utf8))
        #expect(try await copy.page(of: "paths", limit: 10).map(\.key) == [made.id.text])
        // Own changes are not discovered, also not when the log brings them back.
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await tree.page(of: "paths", limit: 10).isEmpty)
        #expect(try await tree.downloadMarks.isEmpty)
        try await tree.delete(made.id)
        try await copy.wait { tree in try tree.page(of: "paths", limit: 10).isEmpty }
        #expect(try await copy.node(made.id) == nil)
        await ann.close()
        await other.close()
    }

    @Test("a reader that falls behind gets the first events, and then the number of those that it missed")
    func gap() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let events = await tree.events
        await tree.feed { machine throws(TreeError) in
            machine.skeleton.events += [TreeEvent](repeating: .caughtUp, count: StreamLimits.eventsMax + 7)
        }
        var (read, missed) = (0, 0)
        for await event in events {
            read += 1
            guard case .gap(let count) = event else { continue }
            missed += count
            if read - 1 + missed >= StreamLimits.eventsMax + 7 { break }
        }
        #expect(missed >= 7 && read > StreamLimits.eventsMax)
        await session.close()
    }

    @Test("a token that may only read: a change fails with this reason, the token is kept, and reading goes on")
    func readOnly() async throws {
        let writing = try await bench.session()
        let writer = try await writing.tree()
        try await writer.createNode(at: .home("first"), content: .text("x"))
        try await writer.waitUntilSynced(timeout: TreeBench.patience)
        try bench.permit("reading-token", isReadOnly: true)
        let session = try await bench.app(.memory).resume(bench.ann, accessToken: "reading-token")
        let tree = try await session.tree()
        try await tree.createNode(at: .home("mine"), content: .text("x"))
        try await tree.wait { tree in try tree.queue.first?.state == .failed(reason: "read-only") }
        try await writer.createNode(at: .home("theirs"), content: .text("y"))
        try await tree.wait { tree in try tree.node(at: .home("theirs")) != nil }
        #expect(await session.signOutReason == nil)
        await session.close()
        await writing.close()
    }

    @Test("content is asked for when the change is ready; an error holds the change until retry asks again")
    func askedLate() async throws {
        let session = try await bench.session()
        let app = App()
        let tree = try await session.tree(delegate: app)
        await tree.goOffline()
        let made = try await tree.createNode(at: .home("late"))
        #expect(app.askedCount == 0)
        await tree.goOnline()
        try await tree.wait { tree in try tree.queue.first?.state == .contentUnavailable }
        let operation = try #require(try await tree.queue.first)
        #expect(operation.node == made.id && operation.kind == .create && operation.needsApp)
        let error = await #expect(throws: TreeError.self) { try await tree.wait(for: operation.id) }
        #expect(error?.code == .content)
        app.content.withLock { $0 = Array("now".utf8) }
        try await tree.retry(operation.id)
        try await tree.wait(for: operation.id, timeout: TreeBench.patience)
        #expect(app.askedCount == 2)
        #expect(try await tree.data(of: made.id) == Array("now".utf8))
        await session.close()
    }

    @Test("a promise is made when the change is ready, and one that throws never becomes an empty content")
    func promises() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let good = try await tree.createNode(at: .home("good"), data: .promise { .bytes([1, 2, 3]) })
        let bad = try await tree.createNode(at: .home("bad"), data: .promise { throw App.Refusal() })
        try await tree.wait { tree in
            try tree.node(good.id)?.isPending == false && tree.queue.first?.state == .contentUnavailable
        }
        #expect(try await tree.data(of: good.id) == [1, 2, 3])
        let held = try #require(try await tree.operations(of: bad.id).first)
        try await tree.discard(held.id)
        #expect(try await tree.node(bad.id) == nil)
        #expect(try await tree.queue.isEmpty)
        await session.close()
    }

    @Test("a paused queue sends nothing, and goes on where it was")
    func pause() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await tree.pausePush()
        let made = try await tree.createNode(at: .home("paused"))
        let operation = try #require(try await tree.queue.first)
        #expect(operation.state == .waiting && operation.progress == nil)
        let error = await #expect(throws: TreeError.self) {
            try await tree.wait(for: operation.id, timeout: .seconds(1))
        }
        #expect(error?.code == .deadline)
        #expect(try await tree.node(made.id)?.version == 0)
        #expect(await tree.isPushPaused)
        try await tree.resumePush()
        try await tree.wait(for: operation.id, timeout: TreeBench.patience)
        #expect(try await tree.node(made.id)?.version == 1)
        await session.close()
    }

    @Test("marks are stored with the version, and removed if the version is the marked one")
    func marks() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let made = try await tree.createNode(at: .home("a"), content: .text("x"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await tree.markNodeAsNeedsDownload(made.id, components: [.thumbnail, .data])
        #expect(try await tree.downloadMarks.map(\.version) == [1])
        #expect(try await !tree.unmark(made.id, ifVersion: 2))
        #expect(try await tree.unmark(made.id, components: .data, ifVersion: 1))
        #expect(try await tree.downloadMarks.map(\.components) == [.thumbnail])
        #expect(try await tree.unmark(made.id, ifVersion: 1))
        #expect(try await tree.downloadMarks.isEmpty)
        await session.close()
    }

    @Test("an expired token is renewed once for the buckets, the tree and its requests")
    func renewal() async throws {
        let source = RenewingSource()
        let now = SystemClock.unixMilliseconds()
        try bench.permit("first", until: now + 1_500)
        try bench.permit("second")
        let session = try await bench.app().createSession(
            accessToken: "first", entityId: "ann@example.com", partnerId: "1", tokens: source)
        try await session.useKeys(of: bench.ann)
        let notes = try await session.bucket("notes")
        let tree = try await session.tree()
        try await tree.createNode(at: .home("before"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        await source.wasAsked()
        let made = try await tree.createNode(at: .home("after"))
        try await notes.set("a", to: ["n": 1])
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await notes.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await tree.node(made.id)?.version == 1)
        #expect(source.count == 1)
        #expect(await session.signOutReason == nil)
        #expect(await session.accessToken == "second")
        await session.close()
    }

    @Test("three edits that were made offline ask for the content once, and are one upload")
    func coalesced() async throws {
        let session = try await bench.session()
        let app = App()
        app.content.withLock { $0 = [1] }
        let tree = try await session.tree(delegate: app)
        await tree.goOffline()
        let made = try await tree.createNode(at: .home("a"))
        for _ in 1...3 { try await tree.setNeedsUpload(made.id) }
        #expect(try await tree.queue.count == 1)
        await tree.goOnline()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(app.askedCount == 1)
        #expect(try await tree.node(made.id)?.version == 1)
        await session.close()
    }

    @Test("a sign-out ends the tree's connection, and the next sign-in sends what was made meanwhile")
    func signOut() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        await session.signOut()
        for await status in await tree.status { if case .offline(.unauthorized) = status { break } }
        let made = try await tree.createNode(at: .home("meanwhile"))
        try await session.signIn(accessToken: "ann-token")
        for await status in await tree.status where status == .upToDate { break }
        #expect(try await tree.node(made.id)?.version == 1)
        await session.close()
    }

    @Test("a tree that is kept alone keeps its session, and goes with its last reference")
    func lifetime() async throws {
        weak var seen: Treesystem?
        do {
            let tree = try await bench.session().tree()
            seen = tree
            let made = try await tree.createNode(at: .home("a"))
            try await tree.waitUntilSynced(timeout: TreeBench.patience)
            #expect(try await tree.node(made.id)?.version == 1)
        }
        // Tasks of the last turn may still have a reference.
        while seen != nil { await pauseBetweenLooks() }
        #expect(seen == nil)
    }
}

/// A token source that gives `second`, and counts.
final class RenewingSource: TokenSource {
    private struct State {
        var count = 0
        var waiters = [CheckedContinuation<Void, Never>]()
    }
    private let state = Mutex(State())

    var count: Int { state.withLock(\.count) }

    /// Returns once a token was asked for.
    func wasAsked() async {
        await withCheckedContinuation { continuation in
            let isAsked = state.withLock { state in
                if state.count == 0 { state.waiters.append(continuation) }
                return state.count > 0
            }
            if isAsked { continuation.resume() }
        }
    }

    func token(for request: TokenRequest) async throws -> String {
        let waiters = state.withLock { state in
            state.count += 1
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
        return "second"
    }
}
