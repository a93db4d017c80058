import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

/// A tree in memory, checked by brute force: a change is made, and the whole tree is looked at.
private struct ModelTree {
    struct Node: Hashable {
        var place: NodePlace?
        var version: Version
    }

    var nodes: [Int: Node] = [:]

    var live: [Int: NodePlace] { nodes.compactMapValues(\.place) }

    /// The words by which the change may be refused; empty if it is made.
    mutating func write(_ number: Int, at place: NodePlace, sv: Version) -> Set<RefusalReason> {
        let current: Version = nodes[number]?.place == nil ? 0 : nodes[number]?.version ?? 0
        if current != sv { return current == 0 ? [.nodeMissing] : [.stale] }
        let before: ModelTree = self
        nodes[number] = Node(place: place, version: (nodes[number]?.version ?? 0) + 1)
        let harms: Set<RefusalReason> = harms
        if !harms.isEmpty { self = before }
        return harms
    }

    mutating func remove(_ number: Int, sv: Version) -> Set<RefusalReason> {
        guard let node: Node = nodes[number], node.place != nil else { return [.nodeMissing] }
        if node.version != sv { return [.stale] }
        if live.values.contains(where: { $0.parent == .child(number) }) { return [.leafOnly] }
        nodes[number] = Node(place: nil, version: node.version + 1)
        return []
    }

    private var harms: Set<RefusalReason> {
        let live = [NodeID: NodePlace](uniqueKeysWithValues: live.map { (NodeText.id($0.key), $0.value) })
        var harms: Set<RefusalReason> = []
        for id in live.keys {
            var (place, depth, seen): (NodeParent, Int, Set<NodeID>) = (.node(id), 0, [])
            while case .node(let node) = place {
                guard seen.insert(node).inserted else {
                    harms.insert(.cycle)
                    break
                }
                guard let next: NodeParent = live[node]?.parent else {
                    harms.insert(.parentMissing)
                    break
                }
                (place, depth) = (next, depth + 1)
            }
            if case .trunk = place, depth > TreeLimits.depthMax { harms.insert(.depth) }
        }
        if Set(live.values).count < live.count { harms.insert(.nameTaken) }
        return harms
    }
}

@Suite("Random changes of a tree")
struct TreeModelTests {
    @Test(
        "2,000 random changes in random groups are decided as by brute force, over restarts and reopened files",
        arguments: [(StoreKind.memory, 1), (.sqlite, 2), (.sqlite, 3)] as [(StoreKind, UInt64)])
    func model(kind: StoreKind, seed: UInt64) throws {
        let folder = StoreFolder()
        var random = SeededRandom(seed: seed)
        var model = ModelTree()
        var shard: TestShard = try .tree(seed == 3 ? .cold : .warm, store: kind.make(folder))
        var met: [RefusalReason?: Int] = [:]
        var count = 0
        while count < 2_000 {
            let size: Int = Int.random(in: 1...6, using: &random)
            var (changes, wanted): ([SubmittedChange], [Set<RefusalReason>]) = ([], [])
            for _ in 0..<size {
                count += 1
                let (change, reasons): (SubmittedChange, Set<RefusalReason>) = try step(
                    count, shard, &model, &random)
                changes.append(change)
                wanted.append(reasons)
            }
            for (answer, reasons) in zip(try shard.group(changes), wanted) {
                let reason: RefusalReason? = answer.reason.flatMap { RefusalReason(rawValue: $0) }
                let isAsWanted: Bool =
                    answer.code == 412 ? reasons == [.nodeMissing] : reason.map(reasons.contains) ?? reasons.isEmpty
                try #require(isAsWanted, "seed \(seed), change \(count): \(answer), \(reasons)")
                met[reason, default: 0] += 1
            }
            if count % 10 == 0 { try compare(shard, model) }
            if count % 50 == 0 {
                if kind == .sqlite {
                    shard = try .init(store: kind.make(folder), name: BucketMode.treeName)
                } else {
                    try shard.restart()
                }
            }
        }
        try compare(shard, model)
        for reason: RefusalReason? in [nil, .stale, .parentMissing, .cycle, .nameTaken, .leafOnly, .nodeMissing] {
            #expect(met[reason, default: 0] > 0, "\(String(describing: reason)): \(met)")
        }
        guard kind == .sqlite else { return }
        #expect(try StoreCheck.run(folder.path("thicket.db"), settings: .testing).findings == [])
    }

    private func step(
        _ count: Int, _ shard: TestShard, _ model: inout ModelTree, _ random: inout SeededRandom
    ) throws -> (SubmittedChange, Set<RefusalReason>) {
        let known: [Int] = model.nodes.keys.sorted()
        let isNew: Bool = known.count < 80 && Int.random(in: 0..<3, using: &random) == 0
        let number: Int = isNew ? Int.random(in: 1...120, using: &random) : known.randomElement(using: &random) ?? 1
        let node: ModelTree.Node? = model.nodes[number]
        let current: Version = node?.place == nil ? 0 : node?.version ?? 0
        let sv: Version = Int.random(in: 0..<16, using: &random) == 0 ? Version(random.next() % 4) : current
        if Int.random(in: 0..<5, using: &random) == 0 {
            let change: SubmittedChange = try shard.removing(number, sv: sv == 0 ? nil : sv, ccid: "m-\(count)")
            return (change, model.remove(number, sv: sv))
        }
        let (parent, name): (NodeParent, String) = (parent(model, &random), "n\(random.next() % 4)")
        let place = NodePlace(parent: parent, tag: try NodeText.record(parent, name).tag)
        let change: SubmittedChange = try shard.writing(number, below: parent, name, sv: sv, ccid: "m-\(count)")
        return (change, model.write(number, at: place, sv: sv))
    }

    private func parent(_ model: ModelTree, _ random: inout SeededRandom) -> NodeParent {
        let live: [Int] = model.live.keys.sorted()
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1: return .trunk([Trunk.home, .prefs, .outbox].randomElement(using: &random) ?? .home)
        case 2: return .child(Int.random(in: 1...130, using: &random))
        default: return live.randomElement(using: &random).map { .child($0) } ?? .trunk(.home)
        }
    }

    private func compare(_ shard: TestShard, _ model: ModelTree) throws {
        let reader: any StoreReader = try shard.store.makeReader()
        guard let row: BucketRow = try reader.bucket(shard.bucket)?.row else { return }
        for (number, node) in model.nodes {
            #expect(try reader.place(of: NodeText.id(number), in: row) == node.place)
            #expect(try reader.entity(EntityKey(NodeText.key(number)), in: row)?.version == node.version)
            guard let place: NodePlace = node.place else { continue }
            #expect(try reader.node(at: place, in: row) == NodeText.id(number))
        }
        for trunk in Trunk.allCases {
            let wanted: [Int] = model.live.filter { $0.value.parent == .trunk(trunk) }.map(\.key)
            let found: [NodeID] = try reader.children(of: .trunk(trunk), in: row, limit: 1_000)
            #expect(Set(found) == Set(wanted.map { NodeText.id($0) }))
        }
    }
}
