import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Records of a shared branch that arrive before the newest record of a node above them: a device that reads the
/// branch meets a node under a key that its parent got meanwhile. Until the device has caught up, such a record waits;
/// what does not open then is reported.
enum EarlyRecords {
    private static let fault = "the parent's newest record has not arrived yet"

    /// - Returns: whether a record that does not open waits for its parent's newest record.
    static func waits(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, for fault: NodeFault,
        _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        switch fault {
        case .otherEpoch, .wrapDamaged: break
        default: return false
        }
        guard !skeleton.branches.isCaughtUp || !skeleton.isChannelWhole,
            try Branches.root(of: record.parent, skeleton) != nil
        else { return false }
        // The last good record stays shown.
        let fault = IntegrityFault(id, .awaitingKeys, Self.fault)
        try skeleton.quarantine(fault, version, text, reports: false)
        keep(id, record, &skeleton)
        return true
    }

    private static func keep(_ id: NodeID, _ record: NodeRecord, _ skeleton: inout TreeSkeleton) {
        skeleton.branches.early.insert(id)
        MissingParents.add(id, record, &skeleton.strayed)
    }

    /// The device has caught up: what still waits is judged by what is known now.
    static func judge(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        let early = skeleton.branches.early
        if early.isEmpty { return }
        skeleton.branches.early = []
        var found = [(depth: Int, id: NodeID)]()
        for id in early { found.append((try skeleton.store.ancestors(of: .node(id)).count, id)) }
        for (_, id) in found.sorted(by: { ($0.depth, $0.id) < ($1.depth, $1.id) }) {
            guard let text = try skeleton.store.quarantined(id), let row = try skeleton.store.row(id), row.version > 0,
                let record = try? NodeRecord(parsing: text, from: .server)
            else { continue }
            try skeleton.show(id, record, text, row.version, reports: true)
        }
    }

    /// Reads from the store what is kept in memory; behind the records that wait for keys of their authors.
    static func read(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        for (id, text) in try skeleton.store.quarantined(.awaitingKeys)
        where !skeleton.branches.waitingNodes.contains(id) {
            guard let record = try? NodeRecord(parsing: text, from: .server), !record.isDeposit(id) else { continue }
            keep(id, record, &skeleton)
        }
    }
}
