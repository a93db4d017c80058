import ThicketProtocol
import ThicketTreeShape

/// The nodes of one tree in a `MemoryStore`, by id and by place.
struct NodeTable: Sendable {
    private(set) var rows = [NodeID: NodeRow]()
    private var taken = [NodePlace: NodeID]()

    func node(at place: NodePlace) -> NodeID? { taken[place] }

    func children(of parent: NodeParent, limit: Int) -> [NodeID] {
        sorted(of: parent, .tag(after: nil)).prefix(limit).map(\.node)
    }

    /// Children in the order of the cursor, from where it begins.
    func sorted(of parent: NodeParent, _ cursor: ChildCursor) -> [ChildRow] {
        let children = rows.lazy.filter { $0.value.place.parent == parent }.map {
            ChildRow(node: $0.key, gid: $0.value.gid, tag: $0.value.place.tag)
        }
        switch cursor {
        case .newest(let before): return children.filter { $0.gid < before }.sorted { $0.gid > $1.gid }
        case .tag(let after):
            return children.filter { after?.precedes($0.tag) ?? true }.sorted { $0.tag.precedes($1.tag) }
        }
    }

    func stats(of node: NodeID) -> ChildStats {
        let children = rows.values.filter { $0.place.parent == .node(node) }
        return ChildStats(count: children.count, newest: children.max { $0.gid < $1.gid }?.changed)
    }

    /// Whether a node's record refers to the blob.
    func refers(to blob: BlobID) -> Bool { rows.values.contains { $0.blob == blob } }

    mutating func remove(_ node: NodeID) {
        if let row = rows.removeValue(forKey: node) { taken[row.place] = nil }
    }

    /// - Returns: false when another node has the place.
    mutating func insert(_ node: NodeID, _ row: NodeRow) -> Bool {
        guard taken[row.place] == nil else { return false }
        (rows[node], taken[row.place]) = (row, node)
        return true
    }
}

extension NodeTag {
    /// SQLite's order: byte by byte. Texts sort otherwise: base32's digits have higher values than its letters.
    fileprivate func precedes(_ other: NodeTag) -> Bool { stored.lexicographicallyPrecedes(other.stored) }
}
