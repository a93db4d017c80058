import ThicketTree
import ThicketTreeShape

/// The keys of the nodes of a tree: from the trunks down, with a cache.
struct TreeKeyring {
    let keys: TreeKeys
    private(set) var opener: NodeOpener
    let sealer: NodeSealer
    let random: TreeRandom
    /// The root of the branch of another account that the tree is; nil for an own tree.
    let root: NodeID?
    /// Of records that are shown. A node keeps its key, but for those that leave an audience or are below one that did:
    /// then the entry is replaced with the row.
    private var cache = [NodeID: Entry]()

    private enum Entry {
        case secrets(ChildSecrets)
        case keys(ParentKeys)
    }

    /// What this device has of a node.
    enum KnownNode {
        case record(NodeRecord)
        /// It is created again.
        case kept(KeptNode)
    }

    /// Most nodes whose keys are kept; when it is reached, the cache starts again.
    private static let nodesMax = 16_384

    init(_ keys: TreeKeys, random: TreeRandom, identity: MessageIdentity? = nil, branch root: NodeID? = nil) {
        self.root = root
        opener = NodeOpener(keys.tree, identity: identity)
        (self.keys, sealer) = (keys, NodeSealer(keys.tree, random: random))
        self.random = random
    }

    /// What opens and makes records below a place.
    ///
    /// - Parameters:
    ///   - keeps: whether keys that were not in the cache are put there.
    ///   - fresh: nodes that may have other keys than those in the cache.
    ///   - known: a node as far as it is known and genuine.
    /// - Returns: nil when a record on the way up is missing or does not open.
    mutating func keys(
        of place: NodeParent, keeps: Bool = true, fresh: Set<NodeID> = [],
        _ known: (NodeID) throws(TreeError) -> KnownNode?
    ) throws(TreeError) -> ParentKeys? {
        var (missing, next) = ([(NodeID, NodeRecord)](), place)
        var found: ParentKeys?
        while found == nil {
            switch next {
            case .trunk(let trunk): found = keys.parent(trunk)
            case .node(let id):
                found = fresh.contains(id) ? nil : cached(id)
                guard found == nil else { break }
                guard missing.count < TreeLimits.depthMax, let known = try known(id) else { return nil }
                switch known {
                case .kept(let node): found = node.childSecrets(of: id, epoch: keys.parent(.home).epoch).keys
                case .record(let record):
                    missing.append((id, record))
                    next = id == root ? .trunk(.home) : record.parent
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

    /// Opens a record: that of the root of another account's branch by the wrap for this account.
    func open(_ record: NodeRecord, _ id: NodeID, below parent: ParentKeys) throws(NodeFault) -> OpenedNode {
        try id == root ? opener.openRoot(record, id) : opener.open(record, id, below: parent)
    }

    /// A node whose name does not give its tag is quarantined, and opens what is below it all the same.
    private func opened(_ record: NodeRecord, _ id: NodeID, below parent: ParentKeys) -> OpenedNode? {
        do throws(NodeFault) { return try open(record, id, below: parent) } catch {
            if case .nameMismatch(let node) = error { return node }
            return nil
        }
    }

    private mutating func cached(_ id: NodeID) -> ParentKeys? {
        switch cache[id] {
        case nil: return nil
        case .keys(let keys): return keys
        case .secrets(let secrets):
            let keys = secrets.keys
            cache[id] = .keys(keys)
            return keys
        }
    }

    private mutating func keep(_ keys: ParentKeys, of id: NodeID) { keep(.keys(keys), of: id) }

    mutating func keep(_ secrets: ChildSecrets, of id: NodeID) { keep(.secrets(secrets), of: id) }

    private mutating func keep(_ entry: Entry, of id: NodeID) {
        if cache.count >= Self.nodesMax { cache.removeAll(keepingCapacity: true) }
        cache[id] = entry
    }

    /// Opens with these keys of the account from now on.
    mutating func adopt(_ identity: MessageIdentity) { opener = NodeOpener(keys.tree, identity: identity) }

    mutating func forget(_ id: NodeID) { cache[id] = nil }
    mutating func forgetAll() { cache.removeAll() }
}
