import ThicketTreeShape

/// Nodes that are not in the list of their parent are gone. Nodes whose parent's list is not known cannot be
/// judged: without local changes they are forgotten, and come again with that list.
enum UnlistedNodes {
    static func remove(_ scan: TreeChannel.Scan, _ machine: inout TreeMachine) throws(TreeError) {
        let store = machine.store
        var (gone, unknown) = ([NodeID: Int](), [NodeID]())
        for id in try store.unlisted(scan: scan.id) {
            guard let row = try store.row(id) else { continue }
            // The list in which the server would have it: a waiting move of this device does not count.
            let record = row.record.flatMap { try? NodeRecord(parsing: $0, from: .server) }
            if try machine.isListed(record?.parent ?? row.parent) {
                for below in try store.branch(of: id) {
                    gone[below] = try store.ancestors(of: .node(below)).count
                }
            } else {
                let branch = try store.branch(of: id)
                if !branch.contains(where: { machine.queue.has($0) }) { unknown += branch.reversed() }
            }
        }
        for (id, _) in gone.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            // What was listed elsewhere is here below the node by a waiting move only.
            guard let row = try store.row(id), row.version > 0, row.scan != scan.id else { continue }
            try scan.isSame ? machine.removed(id, at: row.version) : machine.skeleton.keepUnlisted(row)
        }
        for id in unknown { try forget(id, &machine.skeleton) }
    }

    /// Removes what cannot be compared with the server, without a judgement about it.
    private static func forget(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard let row = try skeleton.store.row(id) else { return }
        let before = row.state == .open ? try skeleton.shown(row) : nil
        skeleton.mayBeStranded = true
        try skeleton.removeRow(id)
        if let before { skeleton.events.append(.deleted(before.node, before.path)) }
    }
}
