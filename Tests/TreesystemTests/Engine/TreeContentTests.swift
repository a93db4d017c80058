import Glibc
import Testing
import ThicketClient
import ThicketCrypto
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Contents of a tree in blobs of a real server", .timeLimit(.minutes(10)))
struct TreeContentTests {
    private let bench: TreeBench
    private let folder = ContentFolder()

    init() throws { bench = try TreeBench() }

    private func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] { ContentSeed(seed).bytes(count) }

    private var place: StoreLocation { .file(folder.file("ann.db")) }

    /// Files of sealed content beside the store.
    private var sealedFiles: [String] {
        ((try? SystemFiles().names(in: folder.file("ann.db.files"))) ?? []).filter { !$0.hasPrefix("index") }
    }

    @Test("a file of 20 MiB is uploaded and downloaded; afterwards its source may go")
    func largeFile() async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let (tree, copy) = (try await ann.tree(), try await other.tree())
        let data = bytes(20 << 20)
        ContentFolder.put(data, to: folder.file("source"))
        let made = try await tree.createNode(at: .home("film"), data: .file(folder.file("source")))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        unlink(folder.file("source"))
        let kept = try #require(try await tree.data(of: made.id))
        #expect(Hash.sha256(kept) == Hash.sha256(data))
        try await copy.wait { tree in try tree.node(made.id)?.content?.blob != nil }
        let ticket = try #require(try await copy.downloadNodeData(made.id))
        let file = try #require(try await ticket.value())
        #expect(Hash.sha256(try file.file.read(.data)) == Hash.sha256(data))
        #expect(try await copy.downloadManager.figures.completed == 1)
        await ann.close()
        await other.close()
    }

    @Test("an upload that its program's end interrupted goes on in the next session, with the same content")
    func interrupted() async throws {
        let first = try await bench.session(nil, place)
        let tree = try await first.tree()
        let data = bytes(24 << 20)
        ContentFolder.put(data, to: folder.file("source"))
        let made = try await tree.createNode(at: .home("film"), data: .file(folder.file("source")))
        let operation = try #require(try await tree.queue.first)
        for await progress in await tree.uploadProgress(of: operation.id) where progress.bytes > 0 { break }
        await first.close()
        unlink(folder.file("source"))
        let second = try await bench.session(nil, place)
        let again = try await second.tree()
        try await again.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await again.node(made.id)?.content?.sizes.data == 24 << 20)
        let other = try await bench.session()
        let copy = try await other.tree()
        try await copy.wait { tree in try tree.node(made.id) != nil }
        let read = try #require(try await copy.data(of: made.id))
        #expect(Hash.sha256(read) == Hash.sha256(data))
        await second.close()
        await other.close()
    }

    @Test("bytes too large for the record are on disk when the call returns, and are read before their upload")
    func largeBytes() async throws {
        let first = try await bench.session(nil, place)
        let tree = try await first.tree()
        await tree.goOffline()
        let data = bytes(300_000)
        let made = try await tree.createNode(at: .home("a"), content: NodeSections(data: .bytes(data)))
        #expect(sealedFiles.count == 1)
        #expect(try await tree.data(of: made.id) == data)
        await first.close()
        let second = try await bench.session(nil, place)
        let again = try await second.tree()
        #expect(try await again.data(of: made.id) == data)
        try await again.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await again.node(made.id)?.content?.blob != nil)
        #expect(try await again.data(of: made.id) == data)
        await second.close()
    }

    @Test("a thumbnail is downloaded without the data")
    func thumbnail() async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let (tree, copy) = (try await ann.tree(), try await other.tree())
        let (small, large) = (bytes(2_000), bytes(2 << 20, seed: 2))
        let made = try await tree.createNode(
            at: .home("picture"), content: NodeSections(thumbnail: .bytes(small), data: .bytes(large)))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await copy.wait { tree in try tree.node(made.id) != nil }
        let ticket = try #require(try await copy.downloadNodeData(made.id, components: .thumbnail))
        let file = try #require(try await ticket.value())
        #expect(try file.file.read(.thumbnail) == small)
        #expect(file.file.has(.thumbnail) && !file.file.has(.data))
        #expect(try await copy.downloadManager.figures.bytes < 300_000)
        await ann.close()
        await other.close()
    }

    @Test("a discarded change leaves no sealed file, and a file without its operation goes at the next start")
    func discarded() async throws {
        let first = try await bench.session(nil, place)
        let tree = try await first.tree()
        await tree.goOffline()
        let content = NodeSections(data: .bytes(bytes(100_000)))
        let made = try await tree.createNode(at: .home("a"), content: content)
        let operation = try #require(try await tree.queue.first)
        try await tree.discard(operation.id)
        #expect(try await tree.node(made.id) == nil)
        _ = try await tree.disk.spool(content, node: made.id)
        await first.close()
        let second = try await bench.session(nil, place)
        _ = try await second.tree()
        #expect(sealedFiles.isEmpty)
        await second.close()
    }

    @Test("a newer content of a waiting change replaces the sealed file of the older one")
    func replaced() async throws {
        let session = try await bench.session(nil, place)
        let tree = try await session.tree()
        await tree.goOffline()
        let made = try await tree.createNode(at: .home("a"), content: NodeSections(data: .bytes(bytes(100_000))))
        let newer = bytes(90_000, seed: 3)
        try await tree.setContent(of: made.id, NodeSections(data: .bytes(newer)))
        #expect(try await tree.queue.count == 1)
        #expect(try await tree.data(of: made.id) == newer)
        await tree.goOnline()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await tree.node(made.id)?.version == 1)
        #expect(try await tree.data(of: made.id) == newer)
        await session.close()
    }

    @Test("after a reconnect the marked contents that the policy wants are downloaded, and their marks go")
    func drained() async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let tree = try await ann.tree()
        let copy = try await other.tree(policy: DownloadPolicy { _ in .all })
        let data = bytes(200_000)
        let made = try await tree.createNode(at: .home("a"), content: NodeSections(data: .bytes(data)))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await copy.wait { tree in try tree.node(made.id) != nil }
        try await copy.markNodeAsNeedsDownload(made.id)
        await copy.goOffline()
        var events = await copy.events.makeAsyncIterator()
        await copy.goOnline()
        while let event = await events.next(), event != .caughtUp {}
        await copy.drain?.value
        #expect(try await copy.downloadMarks.isEmpty)
        #expect(try await copy.downloadManager.figures.completed > 0)
        await copy.goOffline()
        #expect(try await copy.data(of: made.id) == data)
        await ann.close()
        await other.close()
    }

    @Test("the mark of a node that is hidden for now stays until its content is here, and that of a removed node goes")
    func hiddenMark() async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let tree = try await ann.tree()
        let copy = try await other.tree(policy: DownloadPolicy { _ in .all })
        let made = try await tree.createNode(at: .home("a"), content: NodeSections(data: .bytes(bytes(200_000))))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await copy.wait { tree in try tree.node(made.id) != nil }
        try await copy.markNodeAsNeedsDownload(made.id)
        func drain() async throws -> [DownloadMark] {
            await copy.didReconnect()
            await copy.drain?.value
            return try await copy.downloadMarks
        }
        try await copy.setState(.unopened, of: made.id)
        #expect(try await drain().map(\.components) == [.all])
        #expect(try await copy.downloadManager.figures.completed == 0)
        try await copy.setState(.open, of: made.id)
        #expect(try await drain().isEmpty)
        #expect(try await copy.downloadManager.figures.completed > 0)
        try await copy.markNodeAsNeedsDownload(made.id)
        try await tree.delete(made.id)
        try await copy.wait { tree in try tree.node(made.id) == nil }
        #expect(try await drain().isEmpty)
        await ann.close()
        await other.close()
    }

    @Test("a temporary folder of a tree in memory is removed with its session")
    func temporary() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        await tree.goOffline()
        try await tree.createNode(at: .home("a"), content: NodeSections(data: .bytes(bytes(50_000))))
        let path = try #require(await tree.temporaryFolder)
        #expect(access(path, F_OK) == 0)
        await session.close()
        #expect(access(path, F_OK) != 0)
    }
}

extension Treesystem {
    fileprivate var temporaryFolder: String? { core?.contents.temporary?.path }
}

extension Treesystem {
    fileprivate func setState(_ state: NodeRow.State, of id: NodeID) throws(TreeError) {
        try act { machine throws(TreeError) in
            guard var row = try machine.store.row(id) else { return }
            row.state = state
            try machine.store.write(row)
        }
    }
}
