import ThicketTree
import ThicketTreesystem

/// A file or folder that is copied to the tree, beside others of one place there.
///
/// A file system has `Readme.md` and `README.md`, the tree has one node of that name: the one would silently become a
/// newer version of the other. So only one of them is copied. No other name is made up for the rest: it would depend on
/// what else is in the folder, and a later copy of a changed folder could mistake one file for the other.
struct Sibling: Sendable {
    let source: String
    let name: NodeName
    let isFolder: Bool

    /// Separates entries that would be one node.
    ///
    /// The entry that has exactly the name of the tree's node is kept, otherwise the first one: a repeated copy finds
    /// each file again.
    ///
    /// - Parameters:
    ///   - siblings: in a fixed order.
    ///   - path: the place of all of them.
    /// - Returns: what is copied, in the given order, and the others with the one that has their name.
    static func apart(
        _ siblings: [Sibling], below path: TreePath, in tree: Treesystem
    ) async throws(Failure) -> (kept: [Sibling], leftOut: [(twin: Sibling, keeper: Sibling)]) {
        var groups = [[UInt8]: [Int]]()
        for (place, sibling) in siblings.enumerated() { groups[sibling.name.folded, default: []].append(place) }
        guard groups.count < siblings.count else { return (siblings, []) }
        var keepers = [Int: Int]()
        for group in groups.values where group.count > 1 {
            let node = try await growing("cannot read \(TreeText.named(path))") { () throws(TreeError) in
                try await tree.node(at: path.appending(siblings[group[0]].name))
            }
            let keeper = group.first { siblings[$0].name == node?.name } ?? group[0]
            for place in group where place != keeper { keepers[place] = keeper }
        }
        return (
            siblings.indices.filter { keepers[$0] == nil }.map { siblings[$0] },
            keepers.sorted { $0.key < $1.key }.map { (siblings[$0.key], siblings[$0.value]) }
        )
    }
}
