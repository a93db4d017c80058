import ThicketSQLite
import ThicketTree
import ThicketTreeShape

/// What of a row its path needs.
struct NodeLink {
    let parent: NodeParent
    let name: NodeName?
    let state: NodeRow.State

    init(parent: NodeParent, name: NodeName?, state: NodeRow.State) {
        (self.parent, self.name, self.state) = (parent, name, state)
    }

    /// - Parameter row: with the columns `parent`, `name` and `state`.
    /// - Returns: nil for a row that is not valid.
    init?(_ row: Statement) {
        guard let parent = NodeParent(stored: row.bytes(0)), let state = NodeRow.State(rawValue: row.integer(2)) else {
            return nil
        }
        self.init(parent: parent, name: row.isNull(1) ? nil : try? NodeName(row.text(1)), state: state)
    }
}

/// Links of nodes in memory: every node that arrives asks for its path, and siblings have most of it in common.
struct NodeLinks {
    private var links = [NodeID: NodeLink]()

    /// Most links; when there are more, all are forgotten.
    private static let linksMax = 16_384

    subscript(id: NodeID) -> NodeLink? {
        get { links[id] }
        set {
            if links.count >= Self.linksMax { links.removeAll(keepingCapacity: true) }
            links[id] = newValue
        }
    }

    mutating func remove(_ id: NodeID) { links[id] = nil }
    mutating func removeAll() { links.removeAll() }
}
