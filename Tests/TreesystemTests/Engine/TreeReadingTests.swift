import Testing
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Reading a tree, and what changes of others report", .timeLimit(.minutes(10)))
struct TreeReadingTests {
    private let bench: TreeBench

    init() throws { bench = try TreeBench() }

    /// Names and contents of a tree, kept beside the real one.
    private struct Model {
        struct Entry {
            var names: [String]
            let id: NodeID
            var content: String?
        }

        var entries = [Entry]()

        func children(of names: [String]) -> [Entry] {
            entries.filter { $0.names.dropLast() == names[...] }.sorted { $0.names.lexicographicallyPrecedes($1.names) }
        }

        /// What a walk meets: each node before what is below it.
        func walk(_ names: [String]) -> [[String]] {
            children(of: names).flatMap { [$0.names] + walk($0.names) }
        }

        mutating func move(_ names: [String], to target: [String]) {
            for place in entries.indices where entries[place].names.starts(with: names) {
                entries[place].names = target + entries[place].names.dropFirst(names.count)
            }
        }
    }

    private static func path(_ names: [String]) throws -> TreePath { try TreePath(.home, names) }

    @Test("after random changes every way of reading gives what a model has, contents and children together")
    func model() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        await tree.goOffline()
        var (random, model) = (SeededRandom(seed: 41), Model())
        for round in 0..<300 {
            let kind = Int.random(in: 0..<10, using: &random)
            let entry = model.entries.randomElement(using: &random)
            if kind < 6 || entry == nil {
                // Any node may have children, and any may have a content: empty, some, or none.
                let names = (entry?.names ?? []) + ["\(round)"]
                guard names.count < 8 else { continue }
                let content = [nil, "", "content \(round)"].randomElement(using: &random) ?? nil
                let sections = content.map { NodeSections.text($0) }
                let node = try await tree.createNode(at: Self.path(names), content: sections ?? NodeSections())
                model.entries.append(Model.Entry(names: names, id: node.id, content: content))
            } else if let entry, kind < 8, let target = model.entries.randomElement(using: &random),
                !target.names.starts(with: entry.names), target.names.count < 4
            {
                let names = target.names + ["moved \(round)"]
                _ = try await tree.move(entry.id, to: Self.path(names))
                model.move(entry.names, to: names)
            } else if let entry, kind == 9, entry.names.count > 3 {
                _ = try await tree.delete(entry.id)
                model.entries.removeAll { $0.names.starts(with: entry.names) }
            }
        }
        #expect(model.entries.count > 60 && model.entries.contains { $0.names.count >= 5 })
        #expect(model.entries.contains { $0.content?.isEmpty == false && !model.children(of: $0.names).isEmpty })
        try await compare(model, tree)
        let walked = try await tree.paths()
        #expect(walked == (try model.walk([]).map { try Self.path($0).description }))
        await session.close()
    }

    private func compare(_ model: Model, _ tree: Treesystem) async throws {
        for entry in model.entries {
            let (path, children) = (try Self.path(entry.names), model.children(of: entry.names))
            #expect(try await tree.node(at: path)?.id == entry.id)
            #expect(try await tree.node(entry.id)?.name.text == entry.names.last)
            #expect(try await tree.path(of: entry.id) == path)
            #expect(try await tree.hasChildren(.node(entry.id)) == !children.isEmpty)
            let content = try await tree.content(of: entry.id)
            #expect(content.map { String(decoding: $0.data, as: UTF8.self) } ?? "" == entry.content ?? "")
            let read = try await tree.children(of: .node(entry.id), order: .name)
            #expect(read.map(\.id) == children.map(\.id))
            let first = try await tree.children(of: path, order: .name, limit: 2)
            #expect(first.map(\.id) == children.prefix(2).map(\.id))
        }
        #expect(try await tree.node(at: .home("no such node")) == nil)
        #expect(try await tree.node(NodeID(1)) == nil)
    }

    // MARK: - Changes of another device

    /// A change of one device, and the events of the other, which has the node `a` with the child `a/b`, and `x`.
    enum RemoteChange: String, CaseIterable, Sendable {
        case create, content, tags, burnTime, rename, move, delete, emptyContent

        /// Without `pushed` and `caughtUp`, which report no change of the tree.
        var events: [String] {
            switch self {
            case .create: ["discovered home/new"]
            case .content, .emptyContent: ["modified home/a 1"]
            case .tags: ["modified home/a 2"]
            case .burnTime: ["modified home/a 4"]
            case .rename: ["moved home/a home/c"]
            case .move: ["moved home/a home/x/a"]
            case .delete: ["deleted home/a/b", "deleted home/a"]
            }
        }

        func make(_ tree: Treesystem, _ node: NodeID) async throws {
            switch self {
            case .create: try await tree.createNode(at: .home("new"), content: .text("new"))
            case .content: try await tree.setContent(of: node, .text("other"))
            case .emptyContent: try await tree.setContent(of: node, .text(""))
            case .tags: try await tree.setTags(of: node, [try #require(NodeMetadata.AppTag("k", Array("v".utf8)))])
            case .burnTime: try await tree.setBurnTime(of: node, 4_000_000_000_000)
            case .rename: try await tree.rename(node, NodeName("c"))
            case .move: try await tree.move(node, to: .home("x", "a"))
            case .delete: _ = try await tree.delete(node)
            }
        }
    }

    private static func text(_ event: TreeEvent) -> String? {
        switch event {
        case .discovered(_, let path): "discovered \(path)"
        case .modified(_, let change, let path): "modified \(path) \(change.rawValue)"
        case .moved(_, let from, let to): "moved \(from) \(to)"
        case .deleted(_, let path): "deleted \(path)"
        case .conflict(let conflict): "conflict \(conflict)"
        case .integrity(let fault): "integrity \(fault.kind)"
        case .operationFailed(_, _, let error): "failed \(error)"
        case .gap(let missed): "gap \(missed)"
        case .pushed, .delivered, .caughtUp: nil
        }
    }

    @Test("Q14: each change of another device is reported once, by its event alone", arguments: RemoteChange.allCases)
    func remote(change: RemoteChange) async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let (tree, copy) = (try await ann.tree(), try await other.tree())
        let node = try await tree.createNode(at: .home("a"), content: .text("first"))
        try await tree.createNode(at: .home("a", "b"), content: .text("b"))
        try await tree.createNode(at: .home("x"), content: .text("x"))
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await copy.wait { copy in try copy.node(at: .home("x")) != nil }
        let events = await copy.events
        try await change.make(tree, node.id)
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        // Changes arrive in order: this one is behind all events of the other.
        try await tree.createNode(at: .home("end"), content: .text("end"))
        var seen = [String]()
        for await event in events {
            guard let text = Self.text(event) else { continue }
            if text == "discovered home/end" { break }
            seen.append(text)
        }
        #expect(seen == change.events)
        await ann.close()
        await other.close()
    }

    @Test(
        "Q16: an app reads both contents of a conflict and merges them, in the record and in blobs",
        arguments: [9, 9_000])
    func merge(bytes: Int) async throws {
        let (ann, other) = (try await bench.session(), try await bench.session())
        let (tree, copy) = (try await ann.tree(), try await other.tree())
        func lines(_ names: String...) -> [UInt8] {
            names.flatMap { name in Array(name.utf8) + [UInt8](repeating: 0x2E, count: bytes) }
        }
        func sections(_ bytes: [UInt8]) -> NodeSections { NodeSections(data: .bytes(bytes)) }
        let node = try await tree.createNode(at: .home("list"), content: sections(lines("milk"))).id
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        try await copy.wait { copy in try copy.node(node) != nil }
        await tree.goOffline()
        try await tree.setContent(of: node, sections(lines("milk", "bread")))
        try await copy.setContent(of: node, sections(lines("milk", "tea")))
        try await copy.waitUntilSynced(timeout: TreeBench.patience)
        await tree.goOnline()
        try await tree.wait { tree in try tree.queue.contains { $0.state == .conflict } }
        let (mine, theirs) = (try await tree.data(of: node), try await tree.confirmedData(of: node))
        #expect(mine == lines("milk", "bread") && theirs == lines("milk", "tea"))
        let merged = lines("milk", "bread", "tea")
        try await tree.setContent(of: node, sections(merged))
        for operation in try await tree.operations(of: node) { try await tree.retry(operation.id) }
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        // This device's content, then the merged one: no version is lost.
        try await copy.wait { copy in try copy.node(node)?.version == 4 }
        #expect(try await copy.data(of: node) == merged)
        #expect(try await tree.confirmedData(of: node) == merged)
        await ann.close()
        await other.close()
    }

    @Test("C4: waiting contents of a node become one version, unless the app keeps each")
    func versions() async throws {
        let session = try await bench.session()
        let tree = try await session.tree()
        await tree.goOffline()
        let merged = try await tree.createNode(at: .home("merged"), content: .text("0"))
        let kept = try await tree.createNode(at: .home("kept"), content: .text("0"))
        for number in 1...5 {
            try await tree.setContent(of: merged.id, .text("\(number)"))
            try await tree.setContent(of: kept.id, .text("\(number)"), options: ChangeOptions(keepsVersion: true))
        }
        await tree.goOnline()
        try await tree.waitUntilSynced(timeout: TreeBench.patience)
        let read = (try await tree.node(merged.id), try await tree.node(kept.id))
        #expect(read.0?.version == 1 && read.1?.version == 6)
        for id in [merged.id, kept.id] {
            #expect(try await tree.content(of: id)?.data == Array("5".utf8))
        }
        await session.close()
    }
}
