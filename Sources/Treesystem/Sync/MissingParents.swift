import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Records whose parent does not exist: only a server that forges or withholds records has them. While nodes are read
/// and while this device catches up, a parent may still arrive; afterwards such a record is quarantined. A lazy
/// skeleton does not know which nodes exist, and judges nothing.
enum MissingParents {
    /// The fault of a record that moves a shown node below one that does not exist: the last good record stays shown.
    ///
    /// - Returns: nil when the parent exists, or may exist.
    static func fault(
        of record: NodeRecord, _ id: NodeID, _ skeleton: TreeSkeleton
    ) throws(TreeError) -> IntegrityFault? {
        guard skeleton.hasAllParents, case .node(let parent) = record.parent,
            try skeleton.store.state(of: parent) == nil, try skeleton.store.state(of: id) == .open
        else { return nil }
        return IntegrityFault(id, .parentMissing, "no node of the tree is its parent")
    }

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
            let detail = isCircle ? "the node would be below itself" : "no node of the tree is its parent"
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

    /// Records that name a node as parent, of nodes that are elsewhere on this device: those that a change of this
    /// device moves, and those that were quarantined because the parent did not exist.
    static func records(
        below id: NodeID, _ skeleton: TreeSkeleton
    ) throws(TreeError) -> [(NodeID, NodeRecord, [UInt8], Version)] {
        var found = [(NodeID, NodeRecord, [UInt8], Version)]()
        func add(_ child: NodeID, _ text: [UInt8]?, _ version: Version, _ state: NodeRow.State) throws(TreeError) {
            guard let text, let record = try? NodeRecord(parsing: text, from: .server), record.parent == .node(id),
                try skeleton.store.state(of: child) == state
            else { return }
            found.append((child, record, text, version))
        }
        for child in skeleton.strayed.sorted() {
            guard let row = try skeleton.store.row(child), row.parent != .node(id) else { continue }
            try add(child, row.record, row.version, .unopened)
        }
        guard skeleton.hasQuarantined else { return found }
        for (child, version, text) in try skeleton.store.quarantined(.parentMissing) {
            try add(child, text, version, .open)
        }
        return found
    }
}
