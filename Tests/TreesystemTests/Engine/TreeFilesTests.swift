import Testing
import ThicketClient
import ThicketCrypto
import ThicketSQLite
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// What programs that copy files use.
@Suite("A tree and files", .timeLimit(.minutes(15)))
struct TreeFilesTests {
    private let bench: TreeBench

    init() throws { bench = try TreeBench() }

    @Test("a content is replaced together with the pairs of its node: one change, one version")
    func contentWithPairs() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let old = try #require(NodeMetadata.AppTag("digest", [1]))
        let made = try await tree.createNode(at: .home("f"), content: .text("one"), tags: [old])
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await tree.pausePush()
        let large = NodeSections(data: .bytes([UInt8](repeating: 7, count: 20_000)))
        for (content, value) in [(NodeSections.text("two"), UInt8(2)), (large, 3)] {
            let new = try #require(NodeMetadata.AppTag("digest", [value]))
            try await tree.setContent(of: made.id, content, tags: [new])
            #expect(try await tree.node(made.id)?.tags == [new])
            #expect(try await tree.operations(of: made.id).count == 1)
            #expect(try await tree.operations(of: made.id).allSatisfy(\.writesContent))
        }
        try await tree.resumePush()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await tree.node(made.id)?.version == 2)
        try await tree.setContent(of: made.id, .text("three"))
        #expect(try await tree.node(made.id)?.tags.first?.value == [3], "nil leaves the pairs")
        await session.close()
    }

    @Test("a content that waits for its upload is read from its sealed file, and afterwards there is none that waits")
    func waitingFile() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        try await tree.pausePush()
        let data = [UInt8](repeating: 9, count: 50_000)
        let large = try await tree.createNode(at: .home("large"), data: .bytes(data))
        let small = try await tree.createNode(at: .home("small"), content: .text("x"))
        #expect(try await tree.waitingFile(of: large.id)?.file.read(.data) == data)
        #expect(try await tree.waitingFile(of: small.id) == nil)
        let moved = try await tree.move(small.id, to: .home("other"))
        #expect(try await tree.operations(of: moved.id).count == 1)
        try await tree.resumePush()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await tree.waitingFile(of: large.id) == nil)
        await session.close()
    }

    @Test("events and being caught up are of one moment: a tree that is not caught up reports when it is")
    func observed() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        let (events, isCaughtUp) = await tree.observe()
        if !isCaughtUp {
            var isReported = false
            for await event in events where event == .caughtUp {
                isReported = true
                break
            }
            #expect(isReported)
        }
        #expect(await tree.isCaughtUp)
        await tree.goOffline()
        #expect(await !tree.isCaughtUp)
        await session.close()
        #expect(await !tree.isCaughtUp)
    }

    @Test("looking for the node of a content searches an index, never all nodes")
    func contentIndex() throws {
        let store = try TreeStore()
        let plan = try store.sql { database throws(SQLiteError) in
            var lines = [String]()
            try database.statement(
                "EXPLAIN QUERY PLAN SELECT 1 FROM node WHERE data = ?1 AND version > 0 LIMIT 1"
            ).bind(1, [UInt8](repeating: 0, count: 16)).forEach { lines.append($0.text(3)) }
            return lines
        }
        #expect(plan.count == 1 && plan[0].contains("USING INDEX node_data"), "\(plan)")
    }
}
