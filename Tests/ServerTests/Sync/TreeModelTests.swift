import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

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
