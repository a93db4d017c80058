public import ThicketProtocol

/// The checks of a write that need the tree but no permissions, keys or blobs (treesystem 4.8, rules 2, 3, 4 and 9).
/// The server runs them inside its transaction.
public enum TreeCheck {
    /// The node that a key of the bucket names.
    ///
    /// - Throws: `trunkIsFixed` for the name of a trunk, `badKey` for anything else that is not an id.
    public static func node(of key: String) throws(TreeRefusal) -> NodeID {
        if let node = NodeID(text: key) { return node }
        throw Trunk(rawValue: key) == nil ? .badKey : .trunkIsFixed
    }

    /// Checks a record against the tree in which it would be written.
    ///
    /// - Parameters:
    ///   - record: the record.
    ///   - node: the node's id.
    ///   - source: the version that the change replaces, `sv`; 0 for a new node.
    ///   - view: the tree before the write.
    /// - Returns: nil if the record can be written. Of several refusals the first in the order of `TreeRefusal`.
    /// - Throws: what `view` throws.
    public static func refusal<View: TreeView>(
        of record: NodeRecord, at node: NodeID, replacing source: Version, in view: View
    ) throws(View.Failure) -> TreeRefusal? {
        guard record.base == source else { return .otherBase }
        if let refusal = try refusal(ofReplacing: source, at: node, in: view) { return refusal }
        if let refusal = try refusal(ofPlacing: node, below: record.parent, isNew: source == 0, in: view) {
            return refusal
        }
        if record.parent == .trunk(.inbox), record.tag != NodeTag(inInbox: node) { return .inboxName }
        guard let other = try view.child(of: record.parent, tagged: record.tag), other != node else { return nil }
        return .nameTaken(by: other)
    }

    /// Checks the removal of a node (treesystem 4.2, rule 5): only a node without children is removed.
    ///
    /// - Parameters:
    ///   - node: the node's id.
    ///   - source: the version that is removed, `sv`.
    ///   - view: the tree before the removal.
    /// - Returns: nil if the node can be removed, otherwise `nodeMissing`, `stale` or `hasChildren`.
    /// - Throws: what `view` throws.
    public static func refusal<View: TreeView>(
        ofRemoving node: NodeID, at source: Version, in view: View
    ) throws(View.Failure) -> TreeRefusal? {
        let current = try view.version(of: node)
        if current == 0 { return .nodeMissing }
        guard current == source else { return .stale(current: current) }
        return try view.height(of: node, upTo: 0) > 0 ? .hasChildren : nil
    }

    /// Whether a change is made on the current version (treesystem 4.2, rule 1): `nodeMissing` or `stale` if not.
    ///
    /// - Throws: what `view` throws.
    public static func refusal<View: TreeView>(
        ofReplacing source: Version, at node: NodeID, in view: View
    ) throws(View.Failure) -> TreeRefusal? {
        let current = try view.version(of: node)
        if current == source { return nil }
        return current == 0 ? .nodeMissing : .stale(current: current)
    }

    /// Whether the place below a parent would break the tree: `parentMissing`, `cycle` or `tooDeep`.
    private static func refusal<View: TreeView>(
        ofPlacing node: NodeID, below parent: NodeParent, isNew: Bool, in view: View
    ) throws(View.Failure) -> TreeRefusal? {
        var (place, depth) = (parent, 1)
        while case .node(let ancestor) = place {
            if ancestor == node { return .cycle }
            // Also ends the loop in a tree that is damaged.
            guard depth < TreeLimits.depthMax else { return .tooDeep }
            guard let next = try view.parent(of: ancestor) else { return .parentMissing }
            (place, depth) = (next, depth + 1)
        }
        // Where the node stays, nothing below it becomes deeper.
        if isNew { return nil }
        if try view.parent(of: node) == parent { return nil }
        let room = TreeLimits.depthMax - depth
        return try view.height(of: node, upTo: room) > room ? .tooDeep : nil
    }
}
