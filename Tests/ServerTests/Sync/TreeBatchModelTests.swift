import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

extension ModelTree {
    /// The removal of a branch by brute force: visits the branch from its leaves.
    mutating func removeBranch(_ branch: BranchRemoval) -> (removed: Int, left: Set<Int>)? {
        guard live[Int(branch.node.value)] != nil else { return nil }
        var (removed, left) = (0, Set<Int>())
        for number in below(Int(branch.node.value)).reversed() {
            let version = nodes[number]?.version ?? 0
            let hasChild = live.values.contains { $0.parent == .child(number) }
            if !hasChild, branch.removes(NodeText.id(number), at: version) {
                nodes[number] = Node(place: nil, version: version + 1)
                removed += 1
            } else {
                left.insert(number)
            }
        }
        return (removed, left)
    }

    /// The node and everything below it, parents first.
    func below(_ number: Int) -> [Int] {
        var found = [number]
        var next = 0
        while next < found.count {
            found += live.filter { $0.value.parent == .child(found[next]) }.map(\.key).sorted()
            next += 1
        }
        return found
    }
}

@Suite("Random batches of a tree")
struct TreeBatchModelTests {
    private struct Wanted {
        var reasons: Set<RefusalReason> = []
        var operation: Int?
        var results = [TreeOperationResult]()
    }

    @Test(
        "2,000 random batches are made or refused as by brute force, over restarts and reopened files",
        arguments: [(StoreKind.memory, 1), (.sqlite, 2)] as [(StoreKind, UInt64)])
    func model(kind: StoreKind, seed: UInt64) throws {
        let folder = StoreFolder()
        var random = SeededRandom(seed: seed)
        var model = ModelTree()
        var shard = try TestShard.tree(seed == 2 ? .cold : .warm, store: kind.make(folder))
        var met = [RefusalReason?: Int]()
        var count = 0
        var ledger = try shard.store.makeBlobLedger()
        while count < 2_000 {
            var (batches, wanted) = ([SubmittedChange](), [Wanted]())
            if Bool.random(using: &random) { try upload(to: ledger, &model) }
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                count += 1
                let (operations, outcome) = batch(&model, &random)
                batches.append(try shard.batch(count, operations))
                wanted.append(outcome)
            }
            _ = try shard.group(batches)
            for (reply, wanted) in zip(shard.replies, wanted) {
                try check(reply, wanted, "seed \(seed), batch \(count)")
                met[reply.reason, default: 0] += 1
            }
            if count % 40 < 3 {
                try compare(shard, model)
                try collect(ledger, &model)
            }
            guard count % 100 < 3 else { continue }
            if kind == .sqlite {
                shard = try TestShard(.cold, store: kind.make(folder), name: BucketMode.treeName)
            } else {
                try shard.restart()
            }
            ledger = try shard.store.makeBlobLedger()
            // A batch of before the restart.
            let again = try #require(batches.last)
            _ = try shard.group([again])
            if wanted.last?.operation == nil, wanted.last?.results.contains(where: Self.changes) == true {
                #expect(shard.replies.first?.results == wanted.last?.results && shard.lastOutcome.appliedCount == 0)
            } else if wanted.last?.operation != nil {
                #expect(shard.replies.first?.refused != nil)
            }
        }
        try compare(shard, model)
        let reasons: [RefusalReason?] = [
            nil, .stale, .parentMissing, .cycle, .nameTaken, .leafOnly, .nodeMissing, .blobMissing,
        ]
        for reason in reasons {
            #expect(met[reason, default: 0] > 0, "\(String(describing: reason)): \(met)")
        }
        guard kind == .sqlite else { return }
        #expect(try StoreCheck.run(folder.path("thicket.db"), settings: .testing).findings == [])
    }

    private static func changes(_ result: TreeOperationResult) -> Bool {
        if case .branch(let outcome) = result { outcome.removed > 0 } else { true }
    }

    private func check(_ reply: BatchReply, _ wanted: Wanted, _ place: String) throws {
        guard let operation = wanted.operation else {
            try #require(reply.results.count == wanted.results.count, "\(place): \(reply)")
            for (found, wanted) in zip(reply.results, wanted.results) {
                guard case .branch(let branch) = found, case .branch(let other) = wanted else {
                    try #require(found == wanted, "\(place): \(reply)")
                    continue
                }
                try #require(branch.removed == other.removed && branch.left == other.left, "\(place): \(reply)")
                try #require(Set(branch.kept) == Set(other.kept), "\(place): \(reply)")
            }
            return
        }
        try #require(reply.operation == operation, "\(place): \(reply), \(wanted)")
        let isAsWanted =
            reply.code == 412 ? wanted.reasons == [.nodeMissing] : reply.reason.map(wanted.reasons.contains)
        try #require(isAsWanted == true, "\(place): \(reply), \(wanted)")
    }

    private func batch(
        _ model: inout ModelTree, _ random: inout SeededRandom
    ) -> ([TreeOperation], Wanted) {
        let before = model
        var (operations, wanted) = ([TreeOperation](), Wanted())
        for index in 0..<Int.random(in: 1...5, using: &random) {
            let operation = operation(model, &random)
            operations.append(operation)
            // What follows a refusal is sent too, and makes no difference.
            guard wanted.operation == nil else { continue }
            let reasons = apply(operation, to: &model, &wanted)
            if !reasons.isEmpty { (wanted.reasons, wanted.operation) = (reasons, index) }
        }
        if wanted.operation != nil { model = before }
        return (operations, wanted)
    }

    private func apply(
        _ operation: TreeOperation, to model: inout ModelTree, _ wanted: inout Wanted
    ) -> Set<RefusalReason> {
        let number = Int(operation.node.value)
        switch operation {
        case .put(_, let sv, let record):
            let reasons = model.write(
                number, at: NodePlace(parent: record.parent, tag: record.tag), sv: sv,
                content: BlobReference(of: record.object))
            wanted.results.append(.version(model.nodes[number]?.version ?? 0))
            return reasons
        case .delete(_, let sv):
            let reasons = model.remove(number, sv: sv)
            wanted.results.append(.version(model.nodes[number]?.version ?? 0))
            return reasons
        case .deleteTree(let branch):
            guard let (removed, left) = model.removeBranch(branch) else { return [.nodeMissing] }
            wanted.results.append(
                .branch(
                    BranchOutcome(
                        removed: removed, left: left.count, kept: left.map { NodeText.id($0) }, hasMore: false)))
            return []
        // Random batches have one tree.
        case .copy, .burn: return [.blocked]
        }
    }

    private func operation(_ model: ModelTree, _ random: inout SeededRandom) -> TreeOperation {
        let live = model.live.keys.sorted()
        let isNew = live.isEmpty || (live.count < 40 && Int.random(in: 0..<3, using: &random) > 0)
        let number = isNew ? Int.random(in: 1...90, using: &random) : live.randomElement(using: &random) ?? 1
        let node = model.nodes[number]
        let current = node?.place == nil ? 0 : node?.version ?? 0
        let sv = Int.random(in: 0..<24, using: &random) == 0 ? Version(1 + random.next() % 4) : current
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1: return TestShard.delete(number, sv: max(1, sv))
        case 2:
            var branch = BranchRemoval(
                NodeText.id(number), source: max(1, sv), includesOutdated: Bool.random(using: &random),
                includesUnknown: Bool.random(using: &random))
            for other in model.below(number).dropFirst() where Int.random(in: 0..<8, using: &random) > 0 {
                let isOld = Int.random(in: 0..<8, using: &random) == 0
                branch.known[NodeText.id(other)] = max(1, (model.nodes[other]?.version ?? 1) - (isOld ? 1 : 0))
            }
            return .deleteTree(branch)
        default:
            let parents: [NodeParent] = [
                .trunk(.home), .trunk(.prefs), .child(Int.random(in: 1...95, using: &random)),
                live.randomElement(using: &random).map { .child($0) } ?? .trunk(.home),
                live.randomElement(using: &random).map { .child($0) } ?? .trunk(.outbox),
            ]
            let parent = parents.randomElement(using: &random) ?? .trunk(.home)
            let name = "n\(random.next() % 6)"
            let length = ModelTree.blobLength + (Int.random(in: 0..<60, using: &random) == 0 ? 1 : 0)
            guard
                let operation = try? TestShard.put(
                    number, below: parent, name, sv: sv, blob: blob(model, &random), length: length)
            else { return TestShard.delete(number, sv: 1) }
            return operation
        }
    }

    // MARK: Blobs

    /// Half of the records have none, and most name one that several records name.
    private func blob(_ model: ModelTree, _ random: inout SeededRandom) -> BlobID? {
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<20: nil
        case 20: blobID(Int.random(in: 1...2_000, using: &random))
        default: model.blobs.sorted().suffix(6).randomElement(using: &random)
        }
    }

    private func upload(to ledger: any BlobLedger, _ model: inout ModelTree) throws {
        model.uploads += 1
        let next = model.uploads
        try ledger.blob(blobID(next), ModelTree.blobLength, now: 0)
        try ledger.remove(upload: blobID(next))
        model.blobs.insert(blobID(next))
    }

    /// Removes all blobs without a reference: those that are left are those of a recount.
    private func collect(_ ledger: any BlobLedger, _ model: inout ModelTree) throws {
        while try ledger.collect(until: 1 << 42, limit: 7) > 0 {}
        try ledger.forget(ledger.removed(after: nil, limit: 2_000))
        model.blobs = model.referenced
        #expect(try ledger.known(among: (1...max(1, model.uploads)).map(blobID)) == model.blobs)
        #expect(try ledger.total().count == model.blobs.count)
    }

    private func compare(_ shard: TestShard, _ model: ModelTree) throws {
        let reader = try shard.store.makeReader()
        guard let row = try reader.bucket(shard.bucket)?.row else { return }
        var bytes: Int64 = 0
        for (number, node) in model.nodes {
            #expect(try reader.place(of: NodeText.id(number), in: row) == node.place)
            #expect(try reader.entity(EntityKey(NodeText.key(number)), in: row)?.version == node.version)
            guard node.place != nil else { continue }
            bytes += Int64(try reader.head(of: EntityKey(NodeText.key(number)), in: row)?.body?.count ?? 0)
            let read = ChildRead(
                [.child(number)], limit: 100, cursor: .newest(before: .max), wantsStats: true, bytesMax: 1 << 20)
            let list = try #require(try reader.children(read, in: row).first)
            let children = model.live.filter { $0.value.parent == .child(number) }.map(\.key)
            #expect(Set(list.nodes.map { Int($0.node.value) }) == Set(children))
            #expect(list.nodes.map(\.gid) == list.nodes.map(\.gid).sorted(by: >))
            for child in list.nodes {
                let below = model.live.values.count { $0.parent == .node(child.node) }
                #expect(child.stats?.count == below)
            }
        }
        let blobs = BlobUsage(count: model.blobs.count, bytes: Int64(model.blobs.count) * ModelTree.blobLength)
        let wanted = TreeUsage(nodes: model.live.count, bytes: bytes, blobs: blobs)
        #expect(try reader.usage(of: shard.bucket, in: row) == wanted)
    }
}
