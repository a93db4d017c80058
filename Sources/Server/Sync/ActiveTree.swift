import ThicketProtocol
import ThicketTreeShape

/// What the open group has changed in a tree: nodes that are not, or not there, in the store yet. Later changes of the
/// group are decided on it. It is emptied when the group is durable, and dropped with its bucket when the group fails.
struct ActiveTree {
    /// The new place of each changed node; nil: removed.
    private(set) var changed = [NodeID: NodePlace?]()
    private var taken = [NodePlace: NodeID]()
    private var children = [NodeParent: Set<NodeID>]()
    /// Nodes that the open group has put into the inbox, by sender.
    private(set) var delivered = [UserID: Int]()
    /// Roots of the tree's shared branches: those of the store, and what the group has changed of them.
    private(set) var shared = Set<NodeID>()

    var isEmpty: Bool { changed.isEmpty }

    /// A tree without changes.
    init(shared: Set<NodeID> = []) { self.shared = shared }

    /// A change was decided.
    ///
    /// - Parameters:
    ///   - place: free, or the node's own; nil for a removal.
    ///   - isShared: whether the record has a list.
    mutating func write(_ node: NodeID, at place: NodePlace?, isShared: Bool) {
        if isShared { shared.insert(node) } else if !shared.isEmpty { shared.remove(node) }
        if let old = changed[node] ?? nil {
            taken[old] = nil
            children[old.parent]?.remove(node)
        }
        changed.updateValue(place, forKey: node)
        guard let place else { return }
        taken[place] = node
        children[place.parent, default: []].insert(node)
    }

    /// Nodes were put into the inbox.
    mutating func deliver(_ count: Int, from sender: UserID) { delivered[sender, default: 0] += count }

    /// The changed node at a place.
    func node(at place: NodePlace) -> NodeID? { taken[place] }

    /// Changed nodes below a parent, in the order of their ids.
    func children(of parent: NodeParent) -> [NodeID] { children[parent]?.sorted() ?? [] }

    /// The group is durable, and its lists are those of the store.
    mutating func removeAll() { self = ActiveTree(shared: shared) }
}
