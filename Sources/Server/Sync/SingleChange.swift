import ThicketProtocol
import ThicketTreeShape

/// A change of one node that is not in a batch, and shared branches.
enum SingleChange {
    /// A single change is not verified before it is decided: it writes nothing into a shared branch, and nothing that
    /// was in one. Its owner may remove a node from it.
    static func check(
        _ decision: Decision, of node: NodeID, in view: ShardTree
    ) throws(ChangeRejection) {
        guard !decision.isRemoval else { return }
        let hasList = decision.state.value.contains(RecordKey.shareList.rawValue)
        guard hasList || !view.listRoots.isEmpty else { return }
        var isInside = try BranchCheck.audience(of: node, in: view) != nil
        if case .node(let parent)? = NodePlace(of: decision.state.value)?.parent, !isInside {
            isInside = try BranchCheck.audience(of: parent, in: view) != nil
        }
        guard !hasList, !isInside else { throw ChangeRejection(TreeRefusal.badSignature) }
    }

    /// The branch of a node that a single change has removed.
    static func audience(
        of decision: Decision, _ shape: ChangeShape, in bucket: ActiveBucket, of shard: ShardCore
    ) throws(ChangeRejection) -> ChangeAudience? {
        guard case .tree(let tree) = shape, decision.isRemoval, !bucket.tree.shared.isEmpty else { return nil }
        let before = try BranchCheck.audience(of: tree.node, in: ShardTree(shard: shard, bucket: bucket))
        return ChangeAudience(BranchChange(before: before), isRemoval: true, isNew: false)
    }
}
