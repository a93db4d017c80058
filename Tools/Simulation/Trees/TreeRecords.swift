import ThicketProtocol
import ThicketTreeShape

/// What devices have sent, what their users have asked for, and what the server has answered: the other half of what
/// the log is compared with.
struct TreeRecords {
    /// The options of a removal, as a user chose them.
    struct Removal: Hashable {
        let device: Int
        let node: NodeID
        let includesOutdated: Bool
        let includesUnknown: Bool
    }

    private var sent = [BatchID: TreeBatch]()
    /// The first answer to each batch that was made.
    private var answers = [BatchID: [UInt8]]()
    private var removals = Set<Removal>()
    /// Nodes that devices have created, with the number of the device.
    private(set) var created = [NodeID: Int]()
    /// Nodes that a user removed or gave up on some device, or that the log has removed.
    private(set) var gone = Set<NodeID>()
    /// Contents that devices have sealed for blobs.
    private(set) var sealed = [DataID: [UInt8]]()
    private(set) var made = 0
    private(set) var repeated = 0
    private(set) var refused = 0

    func batch(_ id: BatchID) -> TreeBatch? { sent[id] }

    mutating func create(_ node: NodeID, on device: Int) { created[node] = device }
    mutating func seal(_ content: DataID, _ bytes: [UInt8]) { sealed[content] = bytes }
    mutating func lose(_ nodes: some Sequence<NodeID>) { gone.formUnion(nodes) }
    mutating func remove(_ removal: Removal) { removals.insert(removal) }

    /// The server goes on from a backup: it may have forgotten batches.
    mutating func restore() { answers = [:] }

    /// A device sends a batch.
    /// - Returns: the violation; nil: none.
    mutating func send(_ body: [UInt8], from device: Int) -> String? {
        guard let batch = try? TreeBatch(parsing: body) else { return "device \(device) sends what is not a batch" }
        if let known = sent[batch.id], known != batch { return "device \(device) uses the id of another batch" }
        sent[batch.id] = batch
        for case .deleteTree(let branch) in batch.operations {
            let isAskedFor = removals.contains { removal in
                removal.device == device && removal.node == branch.node
                    && (removal.includesUnknown || !branch.includesUnknown)
                    && (removal.includesOutdated || !branch.includesOutdated)
            }
            if !isAskedFor { return "device \(device) removes of \(branch.node) what its user did not ask for" }
        }
        return nil
    }

    /// The server answers a batch.
    /// - Parameters:
    ///   - truth: the tree whose log has the batch if it was made.
    ///   - history: a state of a node in the log.
    mutating func answer(
        _ id: BatchID, _ body: [UInt8], _ truth: TreeTruth, _ history: (NodeID, Version) -> JSONObject?
    ) -> String? {
        guard let answer = try? TreeBatchAnswer(parsing: body), let batch = sent[id] else { return nil }
        switch answer {
        case .refused(let refusal):
            // A server that could not decide says nothing about the batch, which is sent again.
            guard ![.serverError, .unavailable].contains(refusal.code) else { return nil }
            refused += 1
            guard answers[id] == nil, !truth.batches.contains(id) else {
                return "batch \(id) was made, and is refused with \(refusal.code) when it is sent again"
            }
        case .made(_, let results):
            if let first = answers[id] {
                repeated += 1
                // Removals that removed nothing are not in the log, and are decided again (0094).
                if !truth.batches.contains(id), batch.operations.allSatisfy(\.isBranchRemoval) { return nil }
                return first == body ? nil : "batch \(id) is answered with other bytes when it is sent again"
            }
            answers[id] = body
            made += 1
            guard results.count == batch.operations.count else { return "batch \(id) has \(results.count) results" }
            let raise = truth.raises[id] ?? 0
            for case (.put(let node, _, let record), .version(let version)) in zip(batch.operations, results) {
                guard let object = history(node, version + raise), var found = try? NodeRecord(object, from: .server)
                else {
                    return "batch \(id) was answered, and \(node).\(version) is not in the log"
                }
                found.stamps = RecordStamps()
                if found != record { return "batch \(id) was answered, and the log has another \(node).\(version)" }
            }
        }
        return nil
    }
}

extension TreeOperation {
    fileprivate var isBranchRemoval: Bool { if case .deleteTree = self { true } else { false } }
}
