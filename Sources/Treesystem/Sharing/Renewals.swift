import ThicketTree
import ThicketTreeShape

/// Nodes above a change that hang on an earlier key of their parent: their records are written with the change, below
/// the newest key (decision 0067). Such a *renewal* is no change of the user. One that cannot be made ends, and what
/// needs it waits for the user with the reason: it would be refused again with each attempt.
enum Renewals {
    /// The waiting renewal of a node, which is queued if there is none.
    static func operation(
        of id: NodeID, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> PendingOperation? {
        if let waiting = skeleton.queue.operations(of: id).first(where: { $0.isRenewal && $0.state == .waiting }) {
            return waiting
        }
        var queueing = TreeMachine.Queueing()
        queueing.isKept = true
        let renewal = try skeleton.enqueue(id, .write([]), queueing)
        return skeleton.queue[renewal]
    }

    /// Whether a node above a write, or above the place to which it moves its node, has a renewal that is not sent now:
    /// it pauses after a refusal, or waits for a newer record.
    static func pause(_ operation: PendingOperation, _ skeleton: TreeSkeleton) throws(TreeError) -> Bool {
        let paused = skeleton.queue.renewals.filter { id in
            skeleton.queue.pauses[id] != nil || skeleton.queue[id]?.waitsFor != nil
        }
        guard !paused.isEmpty, operation.isWrite, let row = try skeleton.store.row(operation.node) else { return false }
        let nodes = Set(paused.compactMap { skeleton.queue[$0]?.node })
        let above = try skeleton.store.ancestors(of: operation.target?.parent ?? row.parent)
        return !nodes.isDisjoint(with: above)
    }

    /// An operation cannot be made.
    ///
    /// - Returns: whether it is a renewal, which is over then.
    static func end(
        _ operation: PendingOperation, _ error: TreeError, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        guard operation.isRenewal else { return false }
        try skeleton.drop(operation)
        let branch = Set(try skeleton.store.branch(of: operation.node))
        for id in skeleton.queue.ids {
            guard let each = skeleton.queue[id], each.isWrite, each.state == .waiting else { continue }
            guard try needs(each, branch, skeleton) else { continue }
            if try !end(each, error, &skeleton) { try skeleton.fail(each, error) }
        }
        return true
    }

    /// Whether an operation writes below the root of a branch.
    private static func needs(
        _ operation: PendingOperation, _ branch: Set<NodeID>, _ skeleton: TreeSkeleton
    ) throws(TreeError) -> Bool {
        var place = operation.target?.parent
        if place == nil { place = try skeleton.store.row(operation.node)?.parent }
        guard case .node(let parent)? = place else { return false }
        return branch.contains(parent)
    }
}

extension PendingOperation {
    /// Whether it writes a node for its key only, because of changes below (`Renewals`).
    var isRenewal: Bool { kind == .write([]) && isKept }
}
