import ThicketProtocol
import ThicketTreeShape

/// The tree on which a shard decides: the rows of the store, and over them what the open group has changed, and what a
/// plan would change.
struct ShardTree: BranchView {
    let shard: ShardCore
    let bucket: ActiveBucket
    /// The places that the group and the plan have changed.
    private(set) var tree: ActiveTree
    /// The states that the plan makes.
    private(set) var planned = [NodeID: ObjectState]()

    /// Places that were read from the store, which does not change before the group is committed: the nodes of a batch
    /// have most of the nodes above them in common.
    private let known: KnownPlaces?

    private final class KnownPlaces {
        var places = [NodeID: NodePlace?]()
    }

    /// - Parameter isPlan: whether more than one change is decided.
    init(shard: ShardCore, bucket: ActiveBucket, isPlan: Bool = false) {
        (self.shard, self.bucket, tree) = (shard, bucket, bucket.tree)
        known = isPlan ? KnownPlaces() : nil
    }

    /// Adds a decided change, which the group does not have yet.
    mutating func plan(_ state: ObjectState, of node: NodeID) {
        planned[node] = state
        let place = state.isDeleted ? nil : NodePlace(of: state.value)
        tree.write(node, at: place, isShared: place != nil && state.value.contains(RecordKey.shareList.rawValue))
    }

    func version(of node: NodeID) throws(ChangeRejection) -> Version {
        if let state = planned[node] { return state.isDeleted ? 0 : state.version }
        guard let key = try? EntityKey(node.text), let state = try shard.foundEntity(key, in: bucket)?.state,
            !state.isDeleted
        else { return 0 }
        return state.version
    }

    var listRoots: Set<NodeID> { tree.shared }

    /// What a check of branches needs is rare: the record is read from the object, not from the table of nodes.
    func record(of node: NodeID) throws(ChangeRejection) -> NodeRecord? {
        var state = planned[node]
        if state == nil, let key = try? EntityKey(node.text) { state = try shard.activeEntity(key, in: bucket)?.state }
        guard let state, !state.isDeleted else { return nil }
        do throws(RecordFault) { return try NodeRecord(state.value, from: .server) } catch {
            throw ChangeRejection(.serverError, "a stored record cannot be read: \(error)")
        }
    }

    func hasChild(of parent: NodeID, by user: UserID) throws(ChangeRejection) -> Bool {
        for child in tree.children(of: .node(parent)) where try record(of: child)?.stamps.sender == user { return true }
        guard let row = bucket.record?.row else { return false }
        let limit = 1 + tree.changed.count
        let stored = try shard.reading { () throws(StoreError) in
            try shard.store.children(of: parent, by: user, in: row, limit: limit)
        }
        return stored.contains { !tree.changed.keys.contains($0) }
    }

    func parent(of node: NodeID) throws(ChangeRejection) -> NodeParent? { try place(of: node)?.parent }

    private func place(of node: NodeID) throws(ChangeRejection) -> NodePlace? {
        if let changed = tree.changed[node] { return changed }
        guard let row = bucket.record?.row else { return nil }
        if let place = known?.places[node] { return place }
        let place = try shard.reading { () throws(StoreError) in try shard.store.place(of: node, in: row) }
        known?.places.updateValue(place, forKey: node)
        return place
    }

    func child(of parent: NodeParent, tagged tag: NodeTag) throws(ChangeRejection) -> NodeID? {
        let place = NodePlace(parent: parent, tag: tag)
        if let node = tree.node(at: place) { return node }
        guard let row = bucket.record?.row,
            let stored = try shard.reading({ () throws(StoreError) in try shard.store.node(at: place, in: row) })
        else { return nil }
        // The group has moved or removed it.
        return tree.changed.keys.contains(stored) ? nil : stored
    }

    func height(of node: NodeID, upTo bound: Int) throws(ChangeRejection) -> Int {
        // Nothing below a node is deeper than the tree: a node that does not go deeper needs no visits.
        if bound > 0, let room = try room(below: node), room <= bound { return room }
        var (level, height, visits) = ([node], 0, 0)
        let visitsMax = shard.settings.nodeVisitsMax
        while height <= bound {
            var below = [NodeID]()
            for parent in level {
                let wanted = height == bound ? 1 : visitsMax - visits
                let found = try children(of: .node(parent), limit: wanted)
                visits += found.count
                if !found.isEmpty, height == bound || visits >= visitsMax { return bound + 1 }
                below += found
            }
            if below.isEmpty { return height }
            (level, height) = (below, height + 1)
        }
        return height
    }

    /// Levels that a node may have below it at its place; nil when its place is unknown or the tree is damaged.
    private func room(below node: NodeID) throws(ChangeRejection) -> Int? {
        var (place, depth) = (NodeParent.node(node), 0)
        while case .node(let ancestor) = place {
            guard depth < TreeLimits.depthMax, let next = try parent(of: ancestor) else { return nil }
            (place, depth) = (next, depth + 1)
        }
        return TreeLimits.depthMax - depth
    }

    /// Nodes directly below a parent.
    ///
    /// - Parameter limit: above 0.
    func children(of parent: NodeParent, limit: Int) throws(ChangeRejection) -> [NodeID] {
        let changed = tree.children(of: parent)
        guard let row = bucket.record?.row, changed.count < limit else { return Array(changed.prefix(limit)) }
        let count = limit + tree.changed.count
        let stored = try shard.reading { () throws(StoreError) in
            try shard.store.children(of: parent, in: row, limit: count)
        }
        let others = stored.lazy.filter { !tree.changed.keys.contains($0) }
        return changed + others.prefix(limit - changed.count)
    }

    /// The roots of a tree's lists, from the store.
    static func listRoots(of record: BucketRecord?, in shard: ShardCore) throws(ChangeRejection) -> Set<NodeID> {
        guard let row = record?.row else { return [] }
        return try shard.reading { () throws(StoreError) in try shard.store.listRoots(in: row) }
    }
}
