import Testing
import ThicketClient
import ThicketServer
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Contents in blobs that the server no longer has, while this device has their sealed files.
@Suite("Large contents that the server has lost", .timeLimit(.minutes(15)))
struct LostContentTests {
    private let bench: TreeBench
    private let folder = ContentFolder()

    init() throws { bench = try TreeBench() }

    private func bytes(_ seed: UInt64) -> [UInt8] { ContentSeed(seed).bytes(100_000) }

    private func large(_ seed: UInt64) -> NodeSections { NodeSections(data: .bytes(bytes(seed))) }

    /// The operations that wait for the app, as soon as they are this many.
    private func held(_ tree: Treesystem, _ count: Int) async throws -> [QueuedOperation] {
        let isHeld = { @Sendable (operation: QueuedOperation) in
            ![.waiting, .uploading, .sending].contains(operation.state)
        }
        try await tree.wait { tree in try tree.queue.filter(isHeld).count == count }
        return try await tree.queue.filter(isHeld)
    }

    private func retryAll(_ tree: Treesystem) async throws {
        for operation in try await tree.queue { try await tree.retry(operation.id) }
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
    }

    /// Returns when no file waits for an upload: files are released behind the turn that confirms their operations.
    private func untilReleased(_ tree: Treesystem) async throws {
        while try await !tree.disk.waitingUploads.isEmpty { await pauseBetweenLooks() }
        #expect(try await tree.disk.usage.persistent == 0)
    }

    /// Returns when a content waits for no upload. A file that a transfer still reads goes at the store's next
    /// operation.
    private func untilRemoved(_ id: DataID, _ tree: Treesystem) async throws {
        while try await tree.disk.waitingUploads.contains(id) {
            try await tree.disk.trim()
            await pauseBetweenLooks()
        }
    }

    /// The contents that a new device reads from the server.
    private func download(_ nodes: [NodeID]) async throws -> [[UInt8]?] {
        let session = try await bench.session()
        let tree = try await session.tree()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        var contents = [[UInt8]?]()
        for node in nodes { contents.append(try await tree.data(of: node)) }
        await session.close()
        return contents
    }

    /// A node that the backup has with another content, and one that it lacks.
    private func makeLost(_ tree: Treesystem) async throws -> (changed: NodeID, new: NodeID, backup: MemoryStore) {
        let changed = try await tree.createNode(at: .home("changed"), content: large(1))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        let backup = bench.backup()
        try await tree.setContent(of: changed.id, large(2))
        let new = try await tree.createNode(at: .home("new"), content: large(3))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        return (changed.id, new.id, backup)
    }

    // MARK: - A server that was restored

    @Test("a restored server gets the large contents that it lacks from the sealed files of a device")
    func restored() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let (changed, new, backup) = try await makeLost(tree)
        let sealed = try await [tree.node(changed)?.content?.id, tree.node(new)?.content?.id]
        try bench.restartServer(backup)
        #expect(Set(try await held(tree, 2).map(\.state)) == [.conflict, .removedElsewhere])
        await tree.goOffline()
        #expect(try await [tree.data(of: changed), tree.data(of: new)] == [bytes(2), bytes(3)])
        await tree.goOnline()
        try await retryAll(tree)
        try await untilReleased(tree)
        #expect(
            try await [tree.node(changed)?.content?.id, tree.node(new)?.content?.id] == sealed, "nothing is sealed")
        #expect(try await download([changed, new]) == [bytes(2), bytes(3)])
        await session.close()
    }

    @Test("lost contents wait with their files through a restart of the program, and no file of theirs is evicted")
    func restarted() async throws {
        let place = StoreLocation.file(folder.file("ann.db"))
        let first = try await bench.session(nil, place)
        let tree = try await first.tree()
        let (changed, new, backup) = try await makeLost(tree)
        try bench.restartServer(backup)
        _ = try await held(tree, 2)
        await first.close()
        let second = try await bench.session(nil, place)
        let again = try await second.tree()
        await again.opening?.value
        #expect(try await again.disk.waitingUploads.count == 2)
        #expect(try await again.disk.usage.persistent > 200_000)
        await again.goOffline()
        #expect(try await [again.data(of: changed), again.data(of: new)] == [bytes(2), bytes(3)])
        await again.goOnline()
        try await retryAll(again)
        try await untilReleased(again)
        #expect(try await download([changed, new]) == [bytes(2), bytes(3)])
        await second.close()
    }

    @Test("two devices hold the same lost contents: when one has sent them, the other has nothing to decide")
    func twoDevices() async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let (tree, copy) = (try await ann.tree(), try await other.tree())
        let (changed, new, backup) = try await makeLost(tree)
        try await copy.waitUntilSynced(timeout: TreeBench.patience)
        for node in [changed, new] { _ = try await copy.downloadNodeData(node)?.value() }
        try bench.restartServer(backup)
        _ = try await held(tree, 2)
        _ = try await held(copy, 2)
        try await retryAll(tree)
        try await copy.wait { tree in try tree.queue.isEmpty }
        try await copy.waitUntilSynced(timeout: TreeBench.patience)
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await untilReleased(copy)
        #expect(try await copy.paths() == ["home/changed", "home/new"])
        await copy.goOffline()
        #expect(try await [copy.data(of: changed), copy.data(of: new)] == [bytes(2), bytes(3)])
        await ann.close()
        await other.close()
    }

    @Test("discarding lost contents shows what the restored server has, and leaves no file of theirs")
    func discarded() async throws {
        let place = StoreLocation.file(folder.file("ann.db"))
        let session = try await bench.session(nil, place)
        let tree = try await session.tree()
        let (changed, new, backup) = try await makeLost(tree)
        let sealed = try #require(try await tree.node(new)?.content?.id)
        try bench.restartServer(backup)
        for operation in try await held(tree, 2) {
            await tree.jobs[operation.id]?.task.value
            try await tree.discard(operation.id)
        }
        #expect(try await tree.node(new) == nil)
        #expect(try await tree.data(of: changed) == bytes(1))
        await session.close()
        // What the end of the program interrupted, the next start goes on with.
        let second = try await bench.session(nil, place)
        await (try await second.tree()).opening?.value
        #expect(!folder.files("ann.db.files").contains { $0.hasPrefix(sealed.text) })
        await second.close()
    }

    @Test("a damaged sealed file is not sent, and an app that gives no content does not make the node empty")
    func damaged() async throws {
        let session = try await bench.session(nil, .file(folder.file("ann.db")))
        let tree = try await session.tree(delegate: SilentApp())
        let (changed, _, backup) = try await makeLost(tree)
        let sealed = try #require(try await tree.node(changed)?.content?.id)
        let path = folder.file("ann.db.files/\(DiskKey(sealed, .all).fileName)")
        var octets = ContentFolder.bytes(path)
        octets[70_000] ^= 1
        ContentFolder.put(octets, to: path)
        try bench.restartServer(backup)
        let waiting = try await held(tree, 2)
        for operation in waiting { try await tree.retry(operation.id) }
        let missing = try #require(waiting.first { $0.state == .conflict })
        let error = await #expect(throws: TreeError.self) {
            try await tree.wait(for: missing.id, timeout: TreeBench.patience)
        }
        #expect(error?.code == .content && error?.detail.contains("no whole file") == true, "\(error.debugDescription)")
        #expect(try await tree.node(changed)?.content?.id == sealed, "the node is not empty")
        #expect(try await download([changed]) == [bytes(1)], "nothing was sent")
        await session.close()
    }

    @Test("of two waiting changes with one sealed content, the first that ends leaves the file to the other one")
    func twoHolders() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        try await tree.pausePush()
        let nodes = [
            try await tree.createNode(at: .home("a"), content: large(1)),
            try await tree.createNode(at: .home("b"), content: large(2)),
            try await tree.createNode(at: .home("c"), content: large(3)),
        ]
        let operations = try await tree.queue.map(\.id)
        let sealed = try #require(await tree.share(operations[0], with: operations[1]))
        let last = try #require(await tree.spools[operations[2]]?.plan.id)
        try await tree.discard(operations[0])
        try await tree.discard(operations[2])
        // Files are removed behind the turn, in this order.
        try await untilRemoved(last, tree)
        #expect(try await tree.disk.waitingUploads.contains(sealed))
        #expect(try await tree.data(of: nodes[1].id) == bytes(1))
        try await tree.resumePush()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await download([nodes[1].id]) == [bytes(1)])
        // The last one that ends releases it.
        try await untilRemoved(sealed, tree)
        await session.close()
    }

    // MARK: - Removed by another device

    /// `a` was removed elsewhere, while a node waits below it.
    private func makeRemoved(
        _ tree: Treesystem, hasFile: Bool, isSwept: Bool, below content: NodeSections = .text("x")
    ) async throws -> Node {
        let other = try await bench.session()
        let copy = try await other.tree()
        let made = try await tree.createNode(at: .home("a"), content: large(1))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        let node = try #require(try await tree.node(made.id))
        if !hasFile { try await tree.disk.remove(try #require(node.content?.id)) }
        try await tree.pausePush()
        try await tree.createNode(at: .home("a", "below"), content: content)
        try await copy.wait { tree in try tree.node(made.id) != nil }
        try await copy.delete(made.id)
        try await copy.waitUntilSynced(timeout: TreeBench.patience)
        await other.close()
        #expect(try await held(tree, 1).map(\.state) == [.removedElsewhere])
        if isSwept { bench.removeOrphans() }
        try await tree.resumePush()
        return node
    }

    @Test(
        "a node that another device removed comes back with its large content within a day, without another upload",
        arguments: [true, false])
    func removed(hasFile: Bool) async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let node = try await makeRemoved(tree, hasFile: hasFile, isSwept: false)
        try await retryAll(tree)
        #expect(try await tree.node(node.id)?.content == node.content)
        #expect(try await download([node.id]) == [bytes(1)])
        await session.close()
    }

    @Test("a node that another device removed comes back with its large content later, from the sealed file")
    func removedLongAgo() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let node = try await makeRemoved(tree, hasFile: true, isSwept: true)
        try await retryAll(tree)
        let content = try #require(try await tree.node(node.id)?.content)
        #expect(content.id == node.content?.id && content.blob != node.content?.blob)
        #expect(try await download([node.id]) == [bytes(1)])
        await session.close()
    }

    @Test("a blob that the server removed before its node was sent is uploaded again")
    func expired() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let node = try await makeRemoved(tree, hasFile: true, isSwept: false, below: large(2))
        let operation = try #require(try await tree.queue.first { $0.node != node.id })
        await tree.jobs[operation.id]?.task.value
        #expect(await tree.isUploaded(operation.id))
        bench.removeOrphans()
        try await retryAll(tree)
        #expect(try await download([node.id, operation.node]) == [bytes(1), bytes(2)])
        await session.close()
    }

    @Test("a content that neither device nor server has waits for the app, and is sent when the app has it")
    func nowhere() async throws {
        let app = TreeDelegateTests.App()
        let session = try await bench.session()
        let tree = try await session.tree(delegate: app)
        let node = try await makeRemoved(tree, hasFile: false, isSwept: true)
        let operation = try #require(try await held(tree, 1).first)
        try await tree.retry(operation.id)
        await #expect(throws: TreeError.self) { try await tree.wait(for: operation.id, timeout: TreeBench.patience) }
        #expect(try await held(tree, 1).map(\.state) == [.contentUnavailable])
        #expect(app.askedCount == 1)
        #expect(try await tree.node(node.id)?.content == node.content, "its size is still known")
        app.content.withLock { $0 = bytes(7) }
        try await retryAll(tree)
        #expect(app.askedCount == 2)
        #expect(try await download([node.id]) == [bytes(7)])
        await session.close()
    }
}

/// An app that has no contents and does not say so: the standard answers.
private final class SilentApp: TreeDelegate {}

extension Treesystem {
    /// Another operation gets the sealed content of one.
    fileprivate func share(_ first: OperationID, with second: OperationID) async throws -> DataID? {
        guard let record = spools[first] else { return nil }
        try act { machine throws(TreeError) in try machine.store.setSpool(second, record.octets) }
        spools[second] = record
        return record.plan.id
    }

    fileprivate func isUploaded(_ id: OperationID) -> Bool { core?.machine.queue[id]?.content == .uploaded }
}

extension ContentFolder {
    fileprivate func files(_ name: String) -> [String] { (try? SystemFiles().names(in: file(name))) ?? [] }
}
