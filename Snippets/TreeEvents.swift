import ThicketClient
import ThicketTreesystem

/// Keeps a list of titles beside the tree, in the tree's own transactions: after a crash the two still agree.
struct TitleIndex: TreeDelegate {
    func didDiscoverNewNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
        try transaction.set(Array(node.name.text.utf8), "titles", node.id.text, order: node.changed ?? 0)
        // To be downloaded as soon as there is a network; the mark is kept until then.
        try transaction.markNodeAsNeedsDownload(node.id)
    }

    func didDiscoverModifiedNode(
        _ node: Node, with change: NodeChange, at path: TreePath, in transaction: inout TreeTransaction
    ) throws {
        if change.contains(.data) { try transaction.markNodeAsNeedsDownload(node.id) }
    }

    func didDiscoverMovedNode(
        _ node: Node, from oldPath: TreePath, to newPath: TreePath, in transaction: inout TreeTransaction
    ) throws {
        try transaction.set(Array(node.name.text.utf8), "titles", node.id.text, order: node.changed ?? 0)
    }

    func didDiscoverDeletedNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
        try transaction.set(nil, "titles", node.id.text)
    }

    func didDiscoverConflict(_ conflict: TreeConflict, in transaction: inout TreeTransaction) throws {
        // Both contents exist until the app decides: `tree.retry` keeps this device's, `tree.discard` the other one.
        if case .data(let node) = conflict { try transaction.set([], "conflicts", node.id.text) }
    }
}

/// Shows the tree on a screen, after the transactions.
func show(_ session: ClientSession) async throws {
    // Marked nodes are downloaded whenever the tree has caught up: here previews only, the rest when it is opened.
    let tree = try await session.tree(delegate: TitleIndex(), policy: .previews)
    for await event in await tree.events {
        switch event {
        case .discovered(let node, let path): print("new: \(path), \(node.content?.sizes.data ?? 0) bytes")
        case .moved(_, let from, let to): print("\(from) is now \(to)")
        case .integrity(let fault): print("not shown as genuine: \(fault.node)")
        default: break
        }
    }
}
