import ThicketProtocol
import ThicketServer
import ThicketTreeShape

/// An independent copy of one tree, made from the rows of its log: after each row it must be a tree, and each batch
/// that a device has sent must be in the log whole, as it was sent, or not at all.
struct TreeTruth {
    struct Node {
        let record: NodeRecord
        let version: Version
    }

    private struct Place: Hashable {
        let parent: NodeParent
        let tag: NodeTag
    }

    /// The batch whose rows are being read.
    private struct OpenBatch {
        let mark: BatchMark
        var operation = 0
    }

    private(set) var nodes = [NodeID: Node]()
    private var places = [Place: NodeID]()
    private var open: OpenBatch?
    /// Batches whose rows are in the log.
    private(set) var batches = Set<BatchID>()
    /// By how much the versions that a stored answer names were raised since, by restores.
    private(set) var raises = [BatchID: Version]()

    /// Whether the log ends within a batch.
    var isHalf: Bool { open != nil }

    /// The same tree after a restore, which raises all versions.
    func raised(by versions: Version) -> TreeTruth {
        var raised = self
        for batch in batches { raised.raises[batch, default: 0] += versions }
        raised.nodes = nodes.mapValues { Node(record: $0.record, version: $0.version + versions) }
        return raised
    }

    /// - Parameters:
    ///   - object: the object after the row; nil: removed.
    ///   - sent: a batch as a device has sent it.
    /// - Returns: the violation; nil: none.
    mutating func replay(
        _ row: ChangeRecord, _ object: JSONObject?, _ sent: (BatchID) -> TreeBatch?
    ) -> String? {
        guard let node = NodeID(text: row.key.text) else { return "\(row.key.text) is not the id of a node" }
        guard let mark = BatchMark(ccid: row.changeID.text) else { return "a node was changed outside of a batch" }
        guard let batch = sent(mark.batch) else { return "batch \(mark.batch) was never sent" }
        var record: NodeRecord?
        if let object {
            guard let read = try? NodeRecord(object, from: .server) else { return "\(node) has no record" }
            record = read
        }
        if let flaw = follow(mark, node, record, batch) { return flaw }
        return write(node, record, row.endVersion)
    }

    // MARK: - The tree

    private mutating func write(_ node: NodeID, _ record: NodeRecord?, _ version: Version) -> String? {
        if let old = nodes[node] { places[Place(parent: old.record.parent, tag: old.record.tag)] = nil }
        guard let record else {
            nodes[node] = nil
            let below = nodes.first { $0.value.record.parent == .node(node) }?.key
            return below.map { "\(node) was removed, and \($0) is below it" }
        }
        let place = Place(parent: record.parent, tag: record.tag)
        if let other = places[place] { return "\(node) has the name of \(other) below one parent" }
        places[place] = node
        nodes[node] = Node(record: record, version: version)
        var (above, depth) = (record.parent, 1)
        while case .node(let id) = above {
            if id == node { return "\(node) was moved below itself" }
            guard depth <= TreeLimits.depthMax else { return "\(node) is too deep" }
            guard let next = nodes[id]?.record.parent else { return "\(node) is below \(id), which does not exist" }
            (above, depth) = (next, depth + 1)
        }
        return nil
    }

    private func isBelow(_ node: NodeID, _ root: NodeID) -> Bool {
        var next = NodeParent.node(node)
        while case .node(let id) = next {
            if id == root { return true }
            guard let parent = nodes[id]?.record.parent else { return false }
            next = parent
        }
        return false
    }

    // MARK: - Batches

    /// The row must be the next one of its batch, and what one of its operations does.
    private mutating func follow(
        _ mark: BatchMark, _ node: NodeID, _ record: NodeRecord?, _ batch: TreeBatch
    ) -> String? {
        if mark.index == 0 {
            if let open { return "batch \(open.mark.batch) ends after row \(open.mark.index) of \(open.mark.count)" }
            guard batches.insert(mark.batch).inserted else { return "batch \(mark.batch) was made twice" }
        } else {
            guard let open, open.mark.batch == mark.batch, open.mark.count == mark.count,
                open.mark.index == mark.index - 1
            else { return "row \(mark.index) of batch \(mark.batch) does not follow the one before" }
        }
        var place = open?.operation ?? 0
        open = nil
        while place < batch.operations.count {
            let operation = batch.operations[place]
            if case .deleteTree(let branch) = operation, record != nil || !isRemoved(node, by: branch) {
                // All of the branch that it removes is removed.
                place += 1
                continue
            }
            guard let flaw = flaw(operation, node, record) else { break }
            return "batch \(mark.batch), operation \(place): \(flaw)"
        }
        guard place < batch.operations.count else { return "batch \(mark.batch) has no operation for \(node)" }
        if case .deleteTree(let branch) = batch.operations[place], branch.node != node {} else { place += 1 }
        guard mark.isLast else {
            open = OpenBatch(mark: mark, operation: place)
            return nil
        }
        let missing = batch.operations.dropFirst(place).contains { if case .deleteTree = $0 { false } else { true } }
        return missing ? "batch \(mark.batch) is in the log without its last operations" : nil
    }

    private func isRemoved(_ node: NodeID, by branch: BranchRemoval) -> Bool {
        guard let version = nodes[node]?.version, isBelow(node, branch.node) else { return false }
        return branch.removes(node, at: version)
    }

    private func flaw(_ operation: TreeOperation, _ node: NodeID, _ record: NodeRecord?) -> String? {
        guard operation.node == node || record == nil else { return "the row is of \(node)" }
        switch operation {
        case .put(_, _, let sent):
            guard var found = record else { return "the row removes \(node)" }
            found.stamps = RecordStamps()
            return found == sent ? nil : "the record in the log is another one than was sent"
        case .delete(let id, let source):
            return record == nil && id == node && nodes[node]?.version == source ? nil : "the row is of \(node)"
        case .deleteTree: return nil
        // Persons of the simulation have no receivers yet: no row of a batch is of one.
        case .copy, .burn: return "the row is of another tree"
        }
    }
}
