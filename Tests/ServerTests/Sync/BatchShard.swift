import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// What a batch was answered.
struct BatchReply: Equatable, CustomStringConvertible {
    /// The answer of a success, as it was sent.
    var text: String?
    var refused: RefusedOutcome?

    var reason: RefusalReason? { refused?.tree?.reason }
    var code: Int? { refused?.code.rawValue }
    var operation: Int? { refused?.operation }

    var results: [TreeOperationResult] {
        guard let text, case .made(_, let results)? = try? TreeBatchAnswer(parsing: Array(text.utf8)) else { return [] }
        return results
    }

    var branch: BranchOutcome? { if case .branch(let outcome)? = results.first { outcome } else { nil } }
    var description: String {
        text ?? refused.map { "\($0.code) \($0.tree?.word ?? "") at \($0.operation ?? -1)" } ?? ""
    }
}

/// Batches of a shard whose bucket is a tree.
extension TestShard {
    static func put(
        _ number: Int, below parent: NodeParent = .trunk(.home), _ name: String, sv: Version = 0, burns: Int64? = nil,
        blob: BlobID? = nil, length: Int64 = ModelTree.blobLength
    ) throws -> TreeOperation {
        var record = try NodeText.record(parent, name, base: sv)
        record.burnTime = burns
        record.data = blob.map { .blob(DataID(UInt128(7)), length: UInt64(length), blob: $0) }
        return .put(NodeText.id(number), source: sv, record)
    }

    static func delete(_ number: Int, sv: Version) -> TreeOperation { .delete(NodeText.id(number), source: sv) }

    static func deleteTree(
        _ number: Int, sv: Version, known: [Int: Version] = [:], outdated: Bool = false, unknown: Bool = false
    ) -> TreeOperation {
        let known = [NodeID: Version](uniqueKeysWithValues: known.map { (NodeText.id($0.key), $0.value) })
        return .deleteTree(
            BranchRemoval(
                NodeText.id(number), source: sv, known: known, includesOutdated: outdated, includesUnknown: unknown))
    }

    func batch(_ id: Int, _ operations: [TreeOperation], canWrite: Bool = true) throws -> SubmittedChange {
        let batch = TreeBatch(id: BatchID(UInt128(id)), operations)
        let request = try TreeBatchRequest(parsing: JSONValue.object(batch.object).serialized())
        return SubmittedChange(
            origin: ChangeOrigin(connection: 2, channel: 0), bucket: bucket, clientID: try ClientID("web"),
            library: .other, canWrite: canWrite,
            request: ChangeRequest(key: batch.id.text, ccid: batch.id.text, operation: .modify),
            now: 5_000 + Int64(id), batch: request)
    }

    /// Sends batches as one group; the answers are those of the batches, in order.
    @discardableResult
    func send(_ batches: SubmittedChange...) throws -> [BatchReply] {
        _ = try group(batches)
        return replies
    }

    /// Sends one batch.
    @discardableResult
    func make(_ id: Int, _ operations: TreeOperation...) throws -> BatchReply {
        try send(batch(id, operations)).first ?? BatchReply()
    }

    /// The answers to batches in the last outcome.
    var replies: [BatchReply] {
        lastOutcome.buckets.flatMap(\.events).compactMap { event in
            switch event {
            case .applied: nil
            case .batch(let batch): BatchReply(text: String(decoding: batch.answer, as: UTF8.self))
            case .refused(let refused): BatchReply(refused: refused)
            }
        }
    }

    /// The numbers of the nodes that the store has below a trunk.
    func numbers(below trunk: Trunk = .home) throws -> Set<Int> {
        let reader = try store.makeReader()
        guard let row = try reader.bucket(bucket)?.row else { return [] }
        var (found, parents) = (Set<Int>(), [NodeParent.trunk(trunk)])
        while let parent = parents.popLast() {
            for node in try reader.children(of: parent, in: row, limit: 10_000) {
                found.insert(Int(node.value))
                parents.append(.node(node))
            }
        }
        return found
    }

    func wait(until now: Int64) {
        while core.burn(now: now) { _ = core.commit() }
        _ = core.commit()
    }
}
