import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("The tree of two devices at a real server", .timeLimit(.minutes(10)))
struct TreesystemTests {
    private let bench: TreeBench

    init() throws { bench = try TreeBench() }

    /// Two devices of one account.
    private func devices() async throws -> [ClientSession] { [try await bench.session(), try await bench.session()] }

    @Test("the longest wait of a call counts in milliseconds, and any duration is one")
    func longestWait() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        await tree.goOffline()
        let start = monotonicMilliseconds()
        let call = Task { try await tree.waitUntilSynced(timeout: .milliseconds(3_900)) }
        var deadline: Int64?
        while deadline == nil {
            await pauseBetweenLooks()
            deadline = await tree.waiters.deadline
        }
        #expect(try #require(deadline) >= start + 3_900)
        call.cancel()
        await #expect(throws: TreeError.self) { try await call.value }
        for timeout in [Duration.seconds(-5), .zero] {
            let error = await #expect(throws: TreeError.self) { try await tree.waitUntilSynced(timeout: timeout) }
            #expect(error?.code == .deadline)
        }
        let endless = Task { try await tree.waitUntilSynced(timeout: .seconds(Int64.max)) }
        await tree.goOnline()
        try await endless.value
        await session.close()
    }

    @Test("a node that one device creates appears on another one with its name and content")
    func oneNode() async throws {
        let sessions = try await devices()
        let (one, two) = (try await sessions[0].tree(), try await sessions[1].tree())
        let made = try await one.createNode(at: .home("foo"), content: .text("hello"))
        try await one.createNode(at: .home("foo", "bar/baz"))
        #expect(made.version == 0 && made.isPending)
        try await one.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await one.node(made.id)?.version == 1)
        #expect(try await one.queue.isEmpty)
        let below = try TreePath.home("foo", "bar/baz")
        try await two.wait { tree in try tree.node(at: below) != nil }
        #expect(try await two.node(at: .home("foo"))?.id == made.id)
        #expect(try await two.data(of: made.id) == Array("hello".utf8))
        #expect(try await two.paths() == ["home/foo", #"home/foo/bar\/baz"#])
        for session in sessions { await session.close() }
    }

    @Test("moves, new names, tags, contents and removals of one device are what another one shows")
    func changes() async throws {
        let sessions = try await devices()
        let (one, two) = (try await sessions[0].tree(), try await sessions[1].tree())
        let folder = try await one.createNode(at: .home("folder"))
        let note = try await one.createNode(at: .home("note"), content: .text("first"))
        let other = try await one.createNode(at: .home("other"))
        try await one.createNode(at: .home("other", "below"))
        try await one.waitUntilSynced(timeout: TreeBench.patience)
        try await one.move(note.id, to: .home("folder", "note"))
        try await one.rename(note.id, NodeName("Note 2"))
        try await one.setTags(of: note.id, [#require(NodeMetadata.AppTag("color", [1, 2]))])
        try await one.setContent(of: note.id, .text("second"))
        try await one.delete(other.id)
        #expect(try await one.node(at: .home("other", "below")) == nil)
        try await one.waitUntilSynced(timeout: TreeBench.patience)
        try await two.wait { tree in
            try tree.node(at: .home("folder", "Note 2"))?.tags.isEmpty == false && tree.node(other.id) == nil
        }
        #expect(try await two.paths() == ["home/folder", "home/folder/Note 2"])
        #expect(try await two.path(of: note.id) == .home("folder", "Note 2"))
        #expect(try await two.node(note.id)?.tags.first?.value == [1, 2])
        #expect(try await two.data(of: note.id) == Array("second".utf8))
        #expect(try await two.hasChildren(.node(folder.id)))
        #expect(try await two.children(of: .home("folder")).count == 1)
        for session in sessions { await session.close() }
    }

    @Test("what is made offline is local at once, and reaches the server with the connection")
    func offline() async throws {
        let sessions = try await devices()
        let (one, two) = (try await sessions[0].tree(), try await sessions[1].tree())
        await one.goOffline()
        let path = try TreePath(.home, (1...20).map { "level \($0)" })
        let deepest = try await one.createAll(at: path)
        #expect(try await one.path(of: deepest.id) == path)
        #expect(try await one.queue.count == 20)
        #expect(try await one.createAll(at: path).id == deepest.id)
        #expect(await one.currentStatus == .offline(.requested))
        await one.goOnline()
        try await one.waitUntilSynced(timeout: TreeBench.patience)
        try await two.wait { tree in try tree.node(at: path) != nil }
        for session in sessions { await session.close() }
    }

    @Test("a batch is made whole or not at all, here and at the server")
    func batches() async throws {
        let sessions = try await devices()
        let (one, two) = (try await sessions[0].tree(), try await sessions[1].tree())
        await one.goOffline()
        let failure = await #expect(throws: TreeError.self) {
            try await one.batch { tree throws(TreeError) in
                try tree.createNode(at: Self.path("a"))
                try tree.createNode(at: Self.path("missing", "b"))
            }
        }
        #expect(failure?.code == .parentMissing)
        #expect(try await one.node(at: .home("a")) == nil)
        #expect(try await one.queue.isEmpty)
        try await one.batch { tree throws(TreeError) in
            let folder = try tree.createNode(at: Self.path("a"))
            try tree.createNode(at: Self.path("a", "b"), content: .text("b"))
            try tree.set([7], "index", folder.id.text)
            #expect(try tree.node(at: Self.path("a", "b")) != nil)
        }
        let folder = try #require(try await one.node(at: .home("a")))
        #expect(try await one.value("index", folder.id.text) == [7])
        // Another device has the name first: the server refuses the group, and it is sent again with a free name.
        try await two.createNode(at: .home("A"))
        try await two.waitUntilSynced(timeout: TreeBench.patience)
        await one.goOnline()
        try await one.waitUntilSynced(timeout: TreeBench.patience)
        try await two.wait { tree in try tree.node(folder.id) != nil && tree.hasChildren(.node(folder.id)) }
        #expect(try await two.paths() == ["home/A", "home/a 2", "home/a 2/b"])
        for session in sessions { await session.close() }
    }

    private static func path(_ names: String...) throws(TreeError) -> TreePath {
        do { return try TreePath(.home, names) } catch { throw TreeError(.invalidName, error.description) }
    }

    @Test("the errors of local changes name their reason, and nothing is queued")
    func refusals() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let folder = try await tree.createNode(at: .home("a"))
        try await tree.createNode(at: .home("a", "b"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        func code(_ body: () async throws -> Void) async -> TreeError.Code? {
            do { try await body() } catch { return (error as? TreeError)?.code }
            return nil
        }
        #expect(await code { try await tree.createNode(at: .home("A")) } == .nameTaken)
        #expect(await code { try await tree.createNode(at: .home("x", "y")) } == .parentMissing)
        #expect(await code { try await tree.createNode(at: TreePath(.home)) } == .trunk)
        #expect(await code { try await tree.move(folder.id, to: .home("a", "b", "c")) } == .cycle)
        #expect(await code { try await tree.delete(NodeID(1)) } == .notFound)
        #expect(await code { try await tree.setNeedsUpload(folder.id) } == .content)
        #expect(try await tree.queue.isEmpty)
        #expect(try await tree.freeName(NodeName("A"), under: .trunk(.home)) == NodeName("A 2"))
        await session.close()
        #expect(await code { try await tree.createNode(at: .home("late")) } == .closed)
        #expect(await code { _ = try await session.tree() } == .closed)
    }

    @Test("the tree of an account whose login name is not its id is at the server under the id")
    func loginName() async throws {
        let app = try bench.app()
        let account = try bench.permitAccount("id-7", name: "Carl", token: "carl-token")
        let session = try await app.resume(account, accessToken: "carl-token")
        let tree = try await session.tree()
        let made = try await tree.createNode(at: .home("carl's"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await tree.node(made.id)?.version == 1)
        await session.close()
    }

    @Test("a session without keys has no tree, and repeated calls return the same one")
    func sameTree() async throws {
        let app = try bench.app()
        let locked = try await app.resumeSession(
            accessToken: "ann-token", username: "ann", userId: "ann@example.com")
        let error = await #expect(throws: TreeError.self) { try await locked.tree() }
        #expect(error?.code == .noKeys)
        await locked.close()
        let session = try await bench.session()
        async let first = session.tree()
        async let second = session.tree()
        let (one, other) = try await (first, second)
        #expect(one === other)
        await session.close()
    }

    @Test("a queue survives its session: the next one sends it, with the content")
    func restart() async throws {
        let folder = ContentFolder()
        let place = StoreLocation.file(folder.file("ann.db"))
        let first = try await bench.session(nil, place)
        let tree = try await first.tree()
        await tree.goOffline()
        let made = try await tree.createNode(at: .home("kept"), content: .text("words"))
        let busy = await #expect(throws: ClientError.self) { try await bench.session(nil, place) }
        #expect(busy?.code == .storeInUse)
        await first.close()
        let second = try await bench.session(nil, place)
        let again = try await second.tree()
        #expect(try await again.node(at: .home("kept"))?.id == made.id)
        try await again.waitUntilSynced(timeout: TreeBench.patience)
        let other = try await bench.session()
        let copy = try await other.tree()
        try await copy.wait { tree in try tree.node(made.id) != nil }
        #expect(try await copy.data(of: made.id) == Array("words".utf8))
        await second.close()
        await other.close()
    }

    @Test("two accounts in one process share nothing, and a store of one is refused to the other")
    func twoAccounts() async throws {
        let folder = ContentFolder()
        let place = StoreLocation.file(folder.file("ann.db"))
        let (ann, bob) = (try await bench.session(nil, place), try await bench.session(bench.bob))
        let (trees, others) = (try await ann.tree(), try await bob.tree())
        try await trees.createNode(at: .home("ann's"))
        try await others.createNode(at: .home("bob's"))
        try await trees.waitUntilSynced(timeout: TreeBench.patience)
        try await others.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await trees.paths() == ["home/ann's"])
        #expect(try await others.paths() == ["home/bob's"])
        await ann.close()
        await bob.close()
        let wrong = try await bench.session(bench.bob, place)
        let error = await #expect(throws: TreeError.self) { try await wrong.tree() }
        #expect(error?.code == .store)
        await wrong.close()
    }

    @Test("records under other keys are quarantined and reported, and nothing of them is shown")
    func wrongKeys() async throws {
        let one = try await bench.session()
        let tree = try await one.tree()
        let made = try await tree.createNode(at: .home("secret"), content: .text("secret"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        let other = try await bench.session(TreeBench.account("ann@example.com"))
        let copy = try await other.tree()
        try await copy.wait { tree in try !tree.quarantined.isEmpty }
        #expect(try await copy.quarantined.map(\.node) == [made.id])
        #expect(try await copy.node(made.id) == nil)
        #expect(try await copy.paths().isEmpty)
        await one.close()
        await other.close()
    }

    @Test("the stores of a tree contain neither names nor content, while open and afterwards")
    func canary() async throws {
        let folder = ContentFolder()
        let session = try await bench.session(nil, .file(folder.file("ann.db")))
        let tree = try await session.tree()
        let canary = "canary-7f3a9c"
        try await tree.createNode(at: .home(canary), content: .text(canary))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        await tree.goOffline()
        try await tree.createNode(at: .home(canary, canary), content: .text(canary))
        func found() -> [String] {
            folder.allFiles.filter { path in
                ContentFolder.bytes(path).contains(Array(canary.utf8)) || path.contains(canary)
            }
        }
        #expect(folder.allFiles.count > 3 && found().isEmpty)
        await session.close()
        #expect(found().isEmpty)
    }

    @Test("a server that dies and comes back gets what was made meanwhile, once")
    func serverRestart() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        try await tree.createNode(at: .home("before"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try bench.restartServer()
        let made = try await tree.createNode(at: .home("meanwhile"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await tree.node(made.id)?.version == 1)
        #expect(try await tree.paths() == ["home/before", "home/meanwhile"])
        await session.close()
    }
}

extension ContentFolder {
    /// Paths of all files, also in folders.
    var allFiles: [String] {
        names.flatMap { name -> [String] in
            let inner = (try? SystemFiles().names(in: file(name))) ?? []
            return inner.isEmpty ? [file(name)] : inner.map { file("\(name)/\($0)") }
        }
    }
}
