import ThicketTree
import ThicketTreeShape

/// The keys of the nodes of a tree: from the trunks down, with a cache.
struct TreeKeyring {
    let keys: TreeKeys
    let opener: NodeOpener
    let sealer: NodeSealer
    let random: TreeRandom
    /// A node keeps its key and its child salt for life, so an entry never becomes wrong.
    private var cache = [NodeID: ParentKeys]()

    /// Most nodes whose keys are kept; when it is reached, the cache starts again.
    private static let nodesMax = 16_384

    init(_ keys: TreeKeys, random: TreeRandom) {
        (self.keys, opener, sealer) = (keys, NodeOpener(keys.tree), NodeSealer(keys.tree, random: random))
        self.random = random
    }

    /// What opens and makes records below a place.
    ///
    /// - Parameters:
    ///   - keeps: whether keys that were not in the cache are put there.
    ///   - record: the record of a node as far as it is known and genuine.
    /// - Returns: nil when a record on the way up is missing or does not open.
    mutating func keys(
        of place: NodeParent, keeps: Bool = true, _ record: (NodeID) throws(TreeError) -> NodeRecord?
    ) throws(TreeError) -> ParentKeys? {
        var (missing, next) = ([(NodeID, NodeRecord)](), place)
        var found: ParentKeys?
        while found == nil {
            switch next {
            case .trunk(let trunk): found = keys.parent(trunk)
            case .node(let id):
                if let known = cache[id] {
                    found = known
                } else {
                    guard missing.count < TreeLimits.depthMax, let record = try record(id) else { return nil }
                    missing.append((id, record))
                    next = record.parent
                }
            }
        }
        guard var parent = found else { return nil }
        for (id, record) in missing.reversed() {
            guard let opened = opened(record, id, below: parent) else { return nil }
            parent = opened.childKeys
            if keeps { keep(parent, of: id) }
        }
        return parent
    }

    /// A node whose name does not give its tag is quarantined, and opens what is below it all the same.
    private func opened(_ record: NodeRecord, _ id: NodeID, below parent: ParentKeys) -> OpenedNode? {
        do throws(NodeFault) { return try opener.open(record, id, below: parent) } catch {
            if case .nameMismatch(let node) = error { return node }
            return nil
        }
    }

    mutating func keep(_ keys: ParentKeys, of id: NodeID) {
        if cache.count >= Self.nodesMax { cache.removeAll(keepingCapacity: true) }
        cache[id] = keys
    }

    mutating func forget(_ id: NodeID) { cache[id] = nil }
    mutating func forgetAll() { cache.removeAll() }
}
