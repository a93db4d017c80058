import ThicketProtocol
import ThicketTreeShape

/// Removing branches, and giving up or repeating operations.
extension TreeSkeleton {
    /// Removes a node and everything below it, here at once and then at the server.
    ///
    /// - Parameters:
    ///   - outdated: whether nodes that changed at the server since this device saw them are removed too.
    ///   - unknown: whether nodes that this device has not seen are removed too.
    /// - Returns: the operation; nil when the server had nothing of it.
    /// - Throws: `notFound`, `limit`, `store`.
    mutating func delete(
        _ id: NodeID, outdated: Bool = true, unknown: Bool = true,
        queueing: TreeMachine.Queueing = TreeMachine.Queueing()
    ) throws(TreeError) -> OperationID? {
        try checkLimit()
        let root = try shownRow(id)
        try Branches.checkMovable(id, branches)
        hasWritten = true
        for node in try store.branch(of: id).reversed() { try dropOperations(ofLeaving: node) }
        guard try store.row(id) != nil else { return nil }
        var known = [UInt8]()
        let operation = try enqueue(id, .delete, origin: root.place, queueing)
        for node in try store.branch(of: id) {
            guard var row = try store.row(node) else { continue }
            row.state = .leaving
            try write(row)
            guard row.version > 0 else { continue }
            known += node.octets
            withUnsafeBytes(of: row.version.bigEndian) { known += $0 }
        }
        let isSelective = !outdated || !unknown
        try store.setDeletion(
            operation, known: isSelective ? known : [], options: (outdated ? 1 : 0) | (unknown ? 2 : 0))
        return operation
    }

    /// Drops what need not be sent of a node that is removed; a node that the server never had is gone then.
    ///
    /// A move stays: without it the server would have the node outside of the branch. So does the creation of a node on
    /// which operations of others depend, and of those above it.
    private mutating func dropOperations(ofLeaving node: NodeID) throws(TreeError) {
        let operations = queue.operations(of: node)
        guard let row = try store.row(node) else { return }
        let isLocal = row.version == 0 && !operations.contains(where: \.isSending)
        let isLeaf = try store.allChildren(of: .node(node)).isEmpty
        let stays = !isLocal || !isLeaf || queue.isNeeded(node) || operations.contains(where: \.isCopy)
        for operation in operations.reversed() where !operation.isSending && operation.isWrite {
            if !stays || !operation.fields.contains(.place) { try drop(operation) }
        }
        guard isLocal, !queue.has(node) else { return }
        try removeRow(node)
    }

    /// Gives up an operation that cannot be made, if its node is removed here: the node stays where the server has it.
    ///
    /// - Returns: whether it was given up.
    mutating func isGivenUp(_ operation: PendingOperation) throws(TreeError) -> Bool {
        guard operation.isWrite, let row = try store.row(operation.node), row.state == .leaving else { return false }
        try drop(operation)
        if row.version > 0 { try showServers(row, reports: true) } else { try forgetUnsent(row) }
        return true
    }

    /// A node is gone at the server: nodes that were put below it here, before the branch was removed here, stay where
    /// the server has them.
    mutating func release(below id: NodeID) throws(TreeError) {
        let children = try store.allChildren(of: .node(id))
        if !children.isEmpty { mayBeStranded = true }
        for row in children where row.state == .leaving {
            if row.version == 0 { try release(below: row.id) }
            for operation in queue.operations(of: row.id).reversed() where !operation.isSending && !operation.isCopy {
                // There is nothing to remove of a node that the server never had.
                if !operation.isDelete || row.version == 0 { try drop(operation) }
            }
            if row.version > 0 { try showServers(row, reports: true) } else { try forgetUnsent(row) }
        }
    }

    /// Removes a node that is removed here and that the server never had, once nothing waits for it.
    mutating func forgetUnsent(_ row: NodeRow) throws(TreeError) {
        guard row.version == 0, !queue.has(row.id) else { return }
        mayBeStranded = true
        try removeRow(row.id)
    }

    /// Shows nodes again whose branch is no longer removed here, whatever was the reason. Runs at the end of each turn.
    mutating func revealStranded() throws(TreeError) {
        var seen = Set<NodeID>()
        while mayBeStranded {
            mayBeStranded = false
            let ids = try store.stranded().filter { seen.insert($0).inserted && !isDeleted($0) }
            for id in ids { try reveal(id) }
        }
    }

    private mutating func reveal(_ id: NodeID) throws(TreeError) {
        guard let row = try store.row(id), row.state.isConcealed else { return }
        if row.version == 0, !queue.has(id) { return try forgetUnsent(row) }
        try showServers(row, reports: true)
        guard row.version == 0, let now = try store.row(id), let (node, path) = try shown(now) else { return }
        try uncover(now, node, path)
    }

    // MARK: - By the app

    /// Sends an operation again that was held or has failed.
    ///
    /// - Throws: `notFound`.
    mutating func retry(_ id: OperationID) throws(TreeError) {
        guard var operation = queue[id] else { throw TreeError(.notFound, "no operation \(id)") }
        switch operation.state {
        case .waiting, .sending: return
        case .held, .failed: break
        }
        (operation.state, operation.attempts) = (.waiting, 0)
        // Its file may have been downloaded meanwhile.
        if operation.content == .ask, try store.spool(id) != nil { operation.content = .spooled }
        queue.pauses[id] = nil
        if let receiver = operation.receiver { messages.pauses[KeyQuestion(receiver)] = nil }
        try write(operation)
        // A node below one that was removed elsewhere needs it.
        for dependency in operation.dependencies {
            if case .held(.removed)? = queue[dependency]?.state { try retry(dependency) }
        }
    }

    /// Gives up an operation: the node is again as the server has it; a node that the server never had is removed.
    ///
    /// - Throws: `notFound`; `limit` for an operation that is being sent.
    mutating func discard(_ id: OperationID) throws(TreeError) {
        guard let operation = queue[id] else { throw TreeError(.notFound, "no operation \(id)") }
        guard !operation.isSending else { throw TreeError(.limit, "the operation is being sent") }
        if operation.isDelete { return try restore(operation) }
        guard operation.isWrite else { return try drop(operation) }
        guard let row = try store.row(operation.node) else { return try drop(operation) }
        if row.version == 0 { return try discardBranch(of: operation.node) }
        try drop(operation)
        var before = row
        if operation.fields.contains(.place),
            let place = queue.operations(of: row.id).last(where: { $0.target != nil })?.target
        {
            // An earlier move still waits.
            (before.parent, before.name) = (place.parent, place.name)
        }
        try showServers(before)
    }

    private mutating func restore(_ operation: PendingOperation) throws(TreeError) {
        try drop(operation)
        for node in try store.branch(of: operation.node) {
            guard let row = try store.row(node), row.state.isConcealed else { continue }
            try showServers(row)
        }
    }

    /// Shows a node as the server has it, apart from what other operations write.
    ///
    /// - Parameter reports: whether the app is told: it does not know that the node is concealed no longer.
    mutating func showServers(_ row: NodeRow, reports: Bool = false) throws(TreeError) {
        var row = row
        if row.state == .open || row.state.isConcealed { try Branches.keepAccepted(row, &self) }
        row.state = row.version == 0 ? .open : .unopened
        mayBeStranded = true
        try write(row)
        guard let text = row.record, let record = try? NodeRecord(parsing: text, from: .server) else { return }
        try show(row.id, record, text, row.version, reports: reports)
    }

    /// Removes a node that the server never had, and what is below it; nodes that the server has go back to their
    /// places.
    private mutating func discardBranch(of root: NodeID) throws(TreeError) {
        let nodes = try store.branch(of: root)
        guard !nodes.contains(where: { queue.operations(of: $0).contains(where: \.isSending) }) else {
            throw TreeError(.limit, "something in the branch is being sent: try again when it is answered")
        }
        var returning = [NodeRow]()
        for node in nodes.reversed() {
            for operation in queue.operations(of: node).reversed() { try drop(operation) }
            guard let row = try store.row(node) else { continue }
            if row.version > 0 {
                returning.append(row)
            } else if !queue.has(node) {
                try removeRow(node)
            }
        }
        for row in returning.reversed() { try showServers(row) }
    }
}
