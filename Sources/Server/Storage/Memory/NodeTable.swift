import ThicketTreeShape

/// The nodes of one tree in a `MemoryStore`, by id and by place.
struct NodeTable: Sendable {
    private(set) var places = [NodeID: NodePlace]()
    private var taken = [NodePlace: NodeID]()

    func node(at place: NodePlace) -> NodeID? { taken[place] }

    func children(of parent: NodeParent, limit: Int) -> [NodeID] {
        let children = places.filter { $0.value.parent == parent }.sorted { left, right in
            left.value.tag.stored.lexicographicallyPrecedes(right.value.tag.stored)
        }
        return children.prefix(limit).map(\.key)
    }

    mutating func remove(_ node: NodeID) {
        if let place = places.removeValue(forKey: node) { taken[place] = nil }
    }

    /// - Returns: false when another node has the place.
    mutating func insert(_ node: NodeID, at place: NodePlace) -> Bool {
        guard taken[place] == nil else { return false }
        (places[node], taken[place]) = (place, node)
        return true
    }
}
