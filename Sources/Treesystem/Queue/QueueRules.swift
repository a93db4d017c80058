import ThicketTreeShape

/// The rules by which a new operation depends on an earlier one (treesystem 4.7). Pure.
///
/// An operation may be sent before another one only if the server's result is the same: each rule names a case in
/// which the order matters. The specification's table has fewer cases for moves: a move also depends on earlier moves
/// and creations of all nodes above its new parent, not of the new parent alone, because they decide whether it makes a
/// cycle.
enum QueueRules {
    /// - Parameters:
    ///   - new: the new operation.
    ///   - earlier: an operation that was queued before and is not confirmed.
    ///   - isBelow: whether the first place is the second node or below it, before `new` is applied.
    /// - Returns: whether `earlier` must reach the server first.
    static func depends(
        _ new: PendingOperation, on earlier: PendingOperation, isBelow: (NodeParent, NodeID) throws(TreeError) -> Bool
    ) throws(TreeError) -> Bool {
        if let receiver = new.receiver ?? earlier.receiver, new.isBurn || earlier.isBurn {
            return new.node == earlier.node && new.receiver == receiver && earlier.receiver == receiver
        }
        // Messages have no order, unless the app asks for one.
        if new.isCopy, earlier.isCopy { return false }
        if new.node == earlier.node || shareAPlace(new, earlier) { return true }
        if new.isDelete || new.isCopy { return try touches(earlier, branchOf: new.node, isBelow) }
        guard let target = new.target, !earlier.isDelete, earlier.target != nil else { return false }
        return try isBelow(target.parent, earlier.node)
    }

    private static func shareAPlace(_ new: PendingOperation, _ earlier: PendingOperation) -> Bool {
        new.places.contains { place in earlier.places.contains(place) }
    }

    /// A deletion, or a copy, comes after everything that puts nodes into its branch, takes them out of it, or changes
    /// them in it.
    private static func touches(
        _ earlier: PendingOperation, branchOf node: NodeID, _ isBelow: (NodeParent, NodeID) throws(TreeError) -> Bool
    ) throws(TreeError) -> Bool {
        if try isBelow(.node(earlier.node), node) { return true }
        for place in earlier.places where try isBelow(place.parent, node) { return true }
        return false
    }
}
