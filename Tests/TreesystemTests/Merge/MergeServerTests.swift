import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Contents that two devices change: a real server", .timeLimit(.minutes(10)))
struct MergeServerTests {
    private let bench: TreeBench
    private let folder = ContentFolder()

    init() throws { bench = try TreeBench() }

    /// An object of some 100 KB, and more.
    private func large(_ members: JSONObject = JSONObject()) -> [UInt8] {
        var object = JSONObject()
        for number in 0..<2_000 { object["key \(number)"] = .string("value \(number) of a larger object") }
        return JSONValue.object(object.setting(members)).serialized()
    }

    private struct Pair {
        let sessions: [ClientSession]
        let (one, two): (Treesystem, Treesystem)
        let id: NodeID

        func close() async { for session in sessions { await session.close() } }

        /// The first device changes the content while the second one is offline and changes it too.
        func change(_ mine: [UInt8], _ theirs: [UInt8]) async throws {
            await two.goOffline()
            try await two.setContent(of: id, NodeSections(data: .bytes(mine)))
            try await one.setContent(of: id, NodeSections(data: .bytes(theirs)))
            try await one.waitUntilSynced(timeout: TreeBench.patience)
            await two.goOnline()
        }
    }

    private func pair(_ base: [UInt8], delegate: (any TreeDelegate)? = nil) async throws -> Pair {
        let sessions = [try await bench.session(), try await bench.session()]
        let (one, two) = (try await sessions[0].tree(), try await sessions[1].tree(delegate: delegate))
        let node = try await one.createNode(at: .home("a"), data: .bytes(base))
        try await one.waitUntilSynced(timeout: TreeBench.patience)
        try await two.wait { tree in try tree.node(node.id)?.content != nil }
        return Pair(sessions: sessions, one: one, two: two, id: node.id)
    }

    private func json(_ bytes: [UInt8]?) throws -> JSONValue { try JSONValue(parsing: try #require(bytes)) }

    @Test("Q17: contents in blobs are merged and uploaded, and both devices have both changes")
    func blobs() async throws {
        let pair = try await pair(large())
        // A device that has read the content has its base.
        #expect(try await pair.two.data(of: pair.id) == large())
        try await pair.change(large(["mine": 1, "key 1": "mine"]), large(["theirs": 1, "key 2": "theirs"]))
        try await pair.two.waitUntilSynced(timeout: TreeBench.patience)
        let wanted = try json(large(["mine": 1, "key 1": "mine", "theirs": 1, "key 2": "theirs"]))
        #expect(try await json(pair.two.data(of: pair.id)) == wanted)
        let version = try await pair.two.node(pair.id)?.version
        try await pair.one.wait { tree in try tree.node(pair.id)?.version == version }
        #expect(try await json(pair.one.data(of: pair.id)) == wanted)
        #expect(try await pair.two.queue.isEmpty)
        let disk = try await pair.two.disk
        #expect(await disk.waitingUploads.isEmpty)
        await pair.close()
    }

    @Test("Q17: a device that never had the base of a large content merges nothing, and loses nothing")
    func withoutBase() async throws {
        let pair = try await pair(large())
        try await pair.change(large(["mine": 1]), large(["theirs": 1]))
        try await pair.two.wait { tree in try tree.queue.contains { $0.state == .conflict } }
        #expect(try await pair.two.data(of: pair.id) == large(["mine": 1]))
        #expect(try await pair.two.confirmedData(of: pair.id) == large(["theirs": 1]))
        for operation in try await pair.two.queue { try await pair.two.retry(operation.id) }
        try await pair.two.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await pair.two.data(of: pair.id) == large(["mine": 1]))
        await pair.close()
    }

    @Test("Q17: a small content that grows beyond the record by a merge goes into a blob")
    func growing() async throws {
        let text = String(repeating: "x", count: 5_000)
        let pair = try await pair(Array("{}".utf8))
        try await pair.change(
            JSONValue.object(["mine": .string(text)]).serialized(),
            JSONValue.object(["theirs": .string(text)]).serialized())
        try await pair.two.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await json(pair.two.data(of: pair.id)) == ["mine": .string(text), "theirs": .string(text)])
        #expect(try await pair.two.node(pair.id)?.content?.blob != nil)
        await pair.close()
    }

    /// Merges no content of nodes of this name, and another app's kind of all others.
    private struct Lines: TreeDelegate {
        struct Text: Mergeable {
            var lines: [String]

            init(_ lines: [String]) { self.lines = lines }
            init(merging content: NodeContent) {
                self.init(String(decoding: content.data, as: UTF8.self).split(separator: "\n").map(String.init))
            }

            var mergedContent: NodeContent { NodeContent(data: Array(lines.joined(separator: "\n").utf8)) }

            static func merged(base: Text, local: Text, remote: Text) -> Text {
                Text(ThreeWay.set(base.lines, local.lines, remote.lines))
            }
        }

        let unmerged: String

        func mergeRule(for node: Node, at path: TreePath) -> MergeRule {
            path.name?.text == unmerged ? .none : MergeRule(Text.self)
        }
    }

    @Test("Q17: the delegate gives a rule of its own, or none, for each node")
    func delegates() async throws {
        let other = try await pair(Array("one\ntwo".utf8), delegate: Lines(unmerged: "b"))
        try await other.change(Array("one\ntwo\nmine".utf8), Array("zero\none".utf8))
        try await other.two.waitUntilSynced(timeout: TreeBench.patience)
        #expect(try await other.two.data(of: other.id) == Array("zero\none\nmine".utf8))
        try await other.one.rename(other.id, NodeName("b"))
        try await other.one.waitUntilSynced(timeout: TreeBench.patience)
        try await other.two.wait { tree in try tree.node(at: .home("b")) != nil }
        try await other.change(Array("mine".utf8), Array("theirs".utf8))
        try await other.two.wait { tree in try tree.queue.contains { $0.state == .conflict } }
        await other.close()
    }
}
