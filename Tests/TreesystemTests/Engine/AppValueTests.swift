import Synchronization
import Testing
import ThicketClient
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// What an app keeps beside the tree, read and written in the tree's transactions.
@Suite("Trees: values of the app", .timeLimit(.minutes(5)))
struct AppValueTests {
    @Test("random values come in pages in both directions, behind any value, as a model has them")
    func pages() async throws {
        let bench = try TreeBench()
        let session = try await bench.session()
        let tree = try await session.tree()
        var random = SeededRandom(seed: 7)
        var model = [String: AppValue]()
        for step in 0..<400 {
            let key = "k\(random.next() % 60)"
            let value = AppValue(key: key, value: [UInt8(step & 255)], order: Int64(random.next() % 9) - 4)
            let isRemoval = random.next() % 4 == 0
            try await tree.batch { editor throws(TreeError) in
                try editor.set(isRemoval ? nil : value.value, "list", key, order: value.order)
                let kept = try editor.value("list", key)
                #expect(kept == (isRemoval ? nil : value.value))
                try editor.set([1], "other", key, order: value.order)
            }
            model[key] = isRemoval ? nil : value
            guard step % 20 == 0 else { continue }
            for isDescending in [false, true] {
                let sorted = model.values.sorted { ($0.order, $0.key) < ($1.order, $1.key) }
                let wanted = isDescending ? sorted.reversed() : sorted
                var (found, last) = ([AppValue](), AppValue?.none)
                while true {
                    let page = try await tree.page(of: "list", after: last, isDescending: isDescending, limit: 7)
                    found += page
                    last = page.last
                    guard page.count == 7 else { break }
                }
                #expect(found == wanted)
            }
        }
        #expect(!model.isEmpty)
        // A page goes on behind a value that was removed meanwhile.
        let first = try await tree.page(of: "list", limit: 2)
        try await tree.batch { editor throws(TreeError) in try editor.set(nil, "list", first[1].key) }
        let next = try await tree.page(of: "list", after: first[1], limit: 1)
        #expect(next.first.map { ($0.order, $0.key) > (first[1].order, first[1].key) } == true)
        await session.close()
    }

    /// Keeps the content of each node that appears.
    private struct Reader: TreeDelegate {
        func didDiscoverNewNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
            let data = try transaction.content(of: node.id)?.data
            try transaction.set(data ?? [0], "contents", node.name.text, order: data == nil ? -1 : 1)
            let known = try transaction.page(of: "contents", isDescending: true, limit: 10)
            #expect(
                known.contains { $0.key == node.name.text } && known.map(\.order) == known.map(\.order).sorted(by: >))
        }
    }

    @Test("a delegate reads the content of a node in the transaction that shows it, if it is in the record")
    func contents() async throws {
        let bench = try TreeBench()
        let (one, two) = (try await bench.session(), try await bench.session())
        let tree = try await one.tree()
        try await tree.createNode(at: .home("text"), content: .text("in the record"))
        try await tree.createNode(
            at: .home("blob"), content: NodeSections(data: .bytes([UInt8](repeating: 3, count: 20_000))))
        try await tree.createNode(at: .home("none"), content: NodeSections())
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        let reader = try await two.tree(delegate: Reader())
        try await reader.waitUntilSynced(timeout: TreeBench.patience)
        let kept = try await reader.page(of: "contents", limit: 10)
        #expect(kept.map(\.key) == ["blob", "none", "text"] && kept.map(\.order) == [-1, -1, 1])
        #expect(kept.last?.value == Array("in the record".utf8))
        for session in [one, two] { await session.close() }
    }

    @Test("a node that came and went while the device was away is no content for its delegate, and the tree goes on")
    func gone() async throws {
        let bench = try TreeBench()
        let (one, two) = (try await bench.session(), try await bench.session())
        let tree = try await one.tree()
        let reader = try await two.tree(delegate: Reader())
        try await reader.waitUntilSynced(timeout: TreeBench.patience)
        await reader.goOffline()
        for name in ["a", "b"] {
            let node = try await tree.createNode(at: .home(name), content: .text(name))
            try await tree.waitUntilSynced(timeout: TreeBench.patience)
            if name == "a" { try await tree.delete(node.id) }
        }
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        await reader.goOnline()
        try await reader.wait { tree in try tree.node(at: .home("b")) != nil }
        #expect(try await reader.paths() == ["home/b"])
        #expect(try await reader.value("contents", "b") == Array("b".utf8))
        for session in [one, two] { await session.close() }
    }

    @Test("a batch makes a node and its copy for another account, with the app's value, or none of them")
    func copies() async throws {
        let bench = try PeopleBench()
        let (ann, bob) = (try await bench.person("ann"), try await bench.person("bob"))
        let lost = try TreePath.home("lost")
        let failure = await #expect(throws: TreeError.self) {
            try await ann.tree.batch { editor throws(TreeError) in
                let node = try editor.createNode(at: lost, content: .text("not sent"))
                try editor.set([1], "sent", node.name.text)
                try editor.copy(node.id, toInboxOf: [ann.user])
            }
        }
        #expect(failure?.code == .receiver)
        #expect(try await ann.tree.queue.isEmpty)
        #expect(try await ann.tree.value("sent", "lost") == nil)
        var earlier: OperationID?
        for number in 1...3 {
            let path = try TreePath.home("m\(number)")
            earlier = try await ann.tree.batch { [earlier] editor throws(TreeError) in
                let node = try editor.createNode(at: path, content: .text("text \(number)"))
                try editor.set([UInt8(number)], "sent", node.name.text)
                let content = try editor.content(of: node.id)
                #expect(content?.data == Array("text \(number)".utf8))
                return try editor.copy(node.id, toInboxOf: [bob.user], after: earlier.map { [$0] } ?? []).first
            }
        }
        #expect(try await ann.tree.page(of: "sent", limit: 9).map(\.key) == ["m1", "m2", "m3"])
        try await bob.tree.wait { tree in try tree.children(of: .trunk(.inbox)).count == 3 }
        let counters = try await bob.tree.children(of: .trunk(.inbox)).compactMap(\.origin).map(\.counter).sorted()
        #expect(counters == [1, 2, 3])
        try await ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        for person in [ann, bob] { await person.session.close() }
    }
}
