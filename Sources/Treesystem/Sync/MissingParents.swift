import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Records whose parent does not exist: only a server that forges or withholds records has them. While nodes are read
/// and while this device catches up, a parent may still arrive; afterwards such a record is quarantined. A lazy
/// skeleton does not know which nodes exist, and judges nothing.
enum MissingParents {
    /// Quarantines a record that moves a shown node below one that does not exist: the last good record stays shown.
    ///
    /// - Returns: false when the parent exists, or may exist.
    static func quarantine(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        guard skeleton.hasAllParents, case .node(let parent) = record.parent,
            try skeleton.store.state(of: parent) == nil, try skeleton.store.state(of: id) == .open
        else { return false }
        try skeleton.quarantine(IntegrityFault(id, .parentMissing, missing), version, text)
        add(id, record, &skeleton.strayed)
        return true
    }

    private static let missing = "no node of the tree is its parent"

    /// Reports the nodes that are not shown because their parent does not exist, once each. They are shown when it
    /// arrives, or with another record. Runs at the end of each turn.
    static func report(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard skeleton.hasAllParents, skeleton.mayLackParents else { return }
        skeleton.mayLackParents = false
        var records = [NodeID: (parent: NodeID, text: [UInt8])]()
        for (id, text) in try skeleton.store.unopened() {
            guard case .node(let parent)? = (try? NodeRecord(parsing: text, from: .server))?.parent else { continue }
            records[id] = (parent, text)
        }
        let circles = circles(records.mapValues(\.parent))
        for (id, (parent, text)) in records.sorted(by: { $0.key < $1.key }) {
            let isCircle = circles.contains(id)
            let isKnown = try skeleton.store.state(of: parent) != nil
            guard isCircle || !isKnown, try skeleton.store.quarantined(id) != text,
                let row = try skeleton.store.row(id)
            else { continue }
            let detail = isCircle ? "the node would be below itself" : missing
            let fault = IntegrityFault(id, .parentMissing, detail)
            // The node goes on waiting, so that it is shown when its parent arrives.
            (skeleton.hasWritten, skeleton.hasQuarantined) = (true, true)
            try skeleton.store.quarantine(fault, row.version, text)
            try skeleton.stopWaiting(id, row.version)
            try skeleton.reportFault(fault)
        }
    }

    /// The nodes that are above themselves.
    private static func circles(_ parents: [NodeID: NodeID]) -> Set<NodeID> {
        var (circles, seen) = (Set<NodeID>(), Set<NodeID>())
        for start in parents.keys where !seen.contains(start) {
            var (way, next) = ([NodeID](), start)
            while let parent = parents[next], seen.insert(next).inserted {
                way.append(next)
                next = parent
            }
            // A way that ends at a node of an earlier one has no circle of its own.
            if let first = way.firstIndex(of: next) { circles.formUnion(way[first...]) }
        }
        return circles
    }

    // MARK: - Nodes that are elsewhere on this device

    /// The record of a node waits for its parent, and the node is shown or put elsewhere meanwhile.
    static func add(_ id: NodeID, _ record: NodeRecord, _ strayed: inout [NodeID: Set<NodeID>]) {
        if case .node(let parent) = record.parent { strayed[parent, default: []].insert(id) }
    }

    /// Those of a store: nodes that a change of this device moves, and those whose newest record was quarantined
    /// because its parent did not exist.
    static func strayed(in store: TreeStore) throws(TreeError) -> [NodeID: Set<NodeID>] {
        var strayed = [NodeID: Set<NodeID>]()
        for (id, text) in try store.strayed() + store.quarantined(.parentMissing) {
            if let record = try? NodeRecord(parsing: text, from: .server) { add(id, record, &strayed) }
        }
        return strayed
    }

    /// A node is known now: the newest records of nodes elsewhere that name it as parent.
    static func records(
        below id: NodeID, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> [(NodeID, NodeRecord, [UInt8], Version)] {
        var found = [(NodeID, NodeRecord, [UInt8], Version)]()
        for child in skeleton.strayed.removeValue(forKey: id)?.sorted() ?? [] {
            guard let row = try skeleton.store.row(child) else { continue }
            let text: [UInt8]? =
                switch row.state {
                case .open: try skeleton.store.quarantined(child)
                // Below its parent it is found by that.
                case .unopened: row.parent == .node(id) ? nil : row.record
                case .quarantined, .leaving, .covered:
                    skeleton.branches.early.contains(child) ? try skeleton.store.quarantined(child) : nil
                case .awaiting: nil
                }
            guard let text, let record = try? NodeRecord(parsing: text, from: .server), record.parent == .node(id)
            else { continue }
            found.append((child, record, text, row.version))
        }
        return found
    }
}
