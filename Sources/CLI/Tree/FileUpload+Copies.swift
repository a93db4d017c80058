import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

extension FileUpload {
    /// Removes a node that a put has just made under a free name, if another machine has put the same file at the place
    /// meanwhile: machines that copy one folder at a time leave each file once.
    ///
    /// Only a node that is a copy in everything is removed: the same bytes by size and digest, the same pairs, no other
    /// sections, no burn time that would end the other one, nothing below it, and no change since it was made.
    ///
    /// - Returns: the node that stays; nil when both stay.
    func dropCopy(_ id: NodeID, of path: TreePath) async throws(Failure) -> Node? {
        let (tree, what) = (open.tree, "cannot remove a copy of \(TreeText.named(path))")
        let found = try await growing(what) { () throws(TreeError) -> (OperationID?, Node)? in
            guard let mine = try await tree.node(id), let other = try await tree.node(at: path),
                Self.isCopy(mine, of: other), !(try await tree.hasChildren(.node(id)))
            else { return nil }
            return (try await tree.delete(id, outdated: false, unknown: false), other)
        }
        guard let (operation, other) = found else { return nil }
        if let operation { try await open.confirm([operation], "remove a copy of \(TreeText.named(path))") }
        return other
    }

    private static func isCopy(_ mine: Node, of other: Node) -> Bool {
        guard mine.id != other.id, mine.version == 1, !mine.isPending, !other.isPending,
            let (own, sizes) = mine.content.map({ ($0.id, $0.sizes) }), other.content?.sizes == sizes,
            own != other.content?.id, sizes.metadata == 0, sizes.thumbnail == 0,
            let tag = FileTag.valid(of: mine), FileTag.valid(of: other)?.hasSameContent(as: tag) == true
        else { return false }
        let others = { (node: Node) in Set(node.tags.filter { !same($0.key, FileTag.key) }) }
        return mine.burnTime == nil && other.burnTime == nil && others(mine) == others(other)
    }
}
