import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// What the server answered to local changes: confirmed, impossible, or refused.
extension TreeSkeleton {
    mutating func confirm(
        _ operation: PendingOperation, _ node: NodeID, _ record: NodeRecord, _ version: Version
    ) throws(TreeError) {
        guard let row = try store.row(node), row.version < version, let parent = try keys(for: record, node),
            let opened = try? keyring.open(record, node, below: parent)
        else {
            try ContentMerges.passed(operation, record, &self)
            return try drop(operation)
        }
        try confirm(operation, opened, version: version, row: row)
    }

    /// The server has what the operation wrote.
    mutating func confirm(
        _ operation: PendingOperation, _ opened: OpenedNode, version: Version, row: NodeRow?
    ) throws(TreeError) {
        let before = try row.flatMap { row throws(TreeError) in try shown(row) }
        try drop(operation)
        if operation.fields.contains(.rekey) { try Rekeying.ended(operation.node, &self) }
        adoptions[operation.node] = nil
        guard var row else { return }
        var record = opened.record
        if record.stamps.created == nil, let old = row.record.flatMap({ try? NodeRecord(parsing: $0, from: .server) }) {
            record.stamps.created = old.stamps.created
        }
        (row.version, row.record) = (version, record.object.serialized())
        row.scan = listing ?? row.scan
        row.changed = record.stamps.changed ?? time.unix
        view(opened, in: &row)
        if row.state.isConcealed { mayBeStranded = true }
        row.state = try state(of: row)
        try write(row)
        if hasQuarantined { try store.releaseQuarantine(row.id) }
        try Branches.confirmed(opened, version, &self)
        try ContentMerges.confirmed(opened, &self)
        try store.releaseKept(row.id)
        try stopWaiting(row.id, version)
        keyring.keep(opened.childSecrets, of: row.id)
        guard row.state == .open, let (node, path) = try shown(row) else { return }
        if before == nil { try uncover(row, node, path) }
        if let before, before.node.parent != node.parent || before.node.name != node.name {
            // A later move of this device was given up meanwhile.
            try clearPlace(of: row)
            events.append(.moved(node, from: before.path, to: path))
        }
        if !queue.has(row.id) { events.append(.pushed(node, path)) }
    }

    /// The operation in flight that made this record; the nonce of the metadata is random, so equal bytes are proof.
    func sentOperation(of record: NodeRecord, _ id: NodeID) throws(TreeError) -> PendingOperation? {
        for operation in queue.operations(of: id) {
            guard case .put(_, _, let sent)? = try store.sent(operation.id)?.parsed, sent.metadata == record.metadata
            else { continue }
            return operation
        }
        return nil
    }

    mutating func removedBranch(
        _ operation: PendingOperation, _ outcome: BranchOutcome
    ) throws(TreeError) {
        if outcome.hasMore {
            // The branch is larger than one batch: the same removal again, under another id.
            var again = operation
            again.state = .waiting
            return try write(again)
        }
        // If all is removed, the operation stays until the log brings that: otherwise an earlier change of the log
        // would show the branch again. What is left is shown again at the end of the turn.
        if outcome.left == 0, try store.row(operation.node).map({ $0.version > 0 }) == true { return }
        try drop(operation)
    }

    // MARK: - Not made

    /// The name is taken by a node that this device does not show: the operation uses another one.
    mutating func evade(_ operation: PendingOperation) throws(TreeError) {
        guard let target = operation.target, let row = try store.row(operation.node) else { return }
        if row.place == target { return try rename(row) }
        // A later operation moves the node on.
        let taken = try store.names(below: target.parent).union([target.folded])
        var operation = operation
        operation.target = Place(target.parent, target.name.free { taken.contains($0) })
        try write(operation)
    }

    /// The place became impossible by moves of other devices: the node stays where the server has it.
    mutating func giveUpPlace(_ operation: PendingOperation) throws(TreeError) {
        try drop(.place, of: operation)
        guard let row = try store.row(operation.node) else { return }
        try showServers(row)
        if let row = try store.row(operation.node), let (node, _) = try shown(row) {
            events.append(.conflict(.location(node)))
        }
    }

    /// An operation cannot be sent: it waits for the app, with those that depend on it.
    mutating func fail(_ operation: PendingOperation, _ error: TreeError) throws(TreeError) {
        if try isGivenUp(operation) { return }
        var operation = operation
        operation.state = .failed(error.reason ?? error.detail)
        try write(operation)
        events.append(.operationFailed(operation.id, operation.node, error))
    }

    /// This device has the version for which operations of the node waited.
    mutating func stopWaiting(_ id: NodeID, _ version: Version) throws(TreeError) {
        for operation in queue.operations(of: id) {
            guard let wanted = operation.waitsFor, wanted <= version else { continue }
            var operation = operation
            operation.waitsFor = nil
            try write(operation)
        }
    }
}
