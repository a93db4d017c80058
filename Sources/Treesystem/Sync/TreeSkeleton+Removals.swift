import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Nodes that the server no longer has.
extension TreeSkeleton {
    // MARK: - Removal

    /// The server has removed a node.
    mutating func removed(_ id: NodeID, at version: Version) throws(TreeError) {
        guard let row = try store.row(id), row.version > 0, row.version <= version else { return }
        // A removal of this device has nothing left to remove.
        for operation in queue.operations(of: id) where operation.isDelete { try drop(operation) }
        if try isWanted(row) { return try keepRemoved(row) }
        let before = row.state == .open ? try shown(row) : nil
        for operation in queue.operations(of: id).reversed() { try drop(operation) }
        hasWritten = true
        try removeRow(id)
        try release(below: id)
        if let before { events.append(.deleted(before.node, before.path)) }
    }

    /// Whether local changes would be lost with the node: its new content, or nodes that were put below it here.
    private func isWanted(_ row: NodeRow) throws(TreeError) -> Bool {
        let contents = queue.operations(of: row.id).filter { $0.fields.contains(.content) }
        if contents.contains(where: { row.state != .leaving || !$0.isSending }) { return true }
        if queue.operations(of: row.id).contains(where: \.isCopy) { return true }
        for child in try store.allChildren(of: .node(row.id)) where child.state != .leaving {
            if child.version == 0 || queue.fields(of: child.id).contains(.place) { return true }
        }
        return false
    }

    /// The server is another one, or an older copy of it: a node that it does not list exists here only. It is created
    /// again rather than lost.
    mutating func keepUnlisted(_ row: NodeRow) throws(TreeError) {
        guard row.state == .open else { return try removed(row.id, at: row.version) }
        try keepRemoved(row, blobsAreLost: true)
    }

    /// Keeps a removed node here, until the app decides whether it is created again.
    ///
    /// - Parameter blobsAreLost: whether the server is another one, or an older copy: it has no blob of the node.
    mutating func keepRemoved(_ row: NodeRow, blobsAreLost: Bool = false) throws(TreeError) {
        var row = row
        let wasShown = row.state == .open
        if row.state.isConcealed { mayBeStranded = true }
        let opened = try open(row)
        let content = opened.flatMap { (try? $0.inlineContent()) ?? nil }
        (row.version, row.record, row.state) = (0, nil, .open)
        if row.name == nil, let name = opened?.name ?? (try? NodeName(row.id.text)) {
            // It was moved to a place that is not known here.
            let taken = try store.names(below: .trunk(.home))
            (row.parent, row.name) = (.trunk(.home), name.free { taken.contains($0) })
        }
        try write(row)
        // Versions of the new node are not known before its answer: a second operation cannot be in the same request.
        for operation in queue.divideGroups(of: row.id) { try write(operation) }
        try ContentMerges.forget(row.id, &self)
        try store.keep(row.id, opened?.kept.octets.withUnsafeBytes { Array($0) } ?? [])
        if opened == nil { keyring.forget(row.id) }
        var operation: PendingOperation
        if let first = queue.operations(of: row.id).first(where: \.isWrite) {
            operation = first
        } else {
            let id = try enqueue(row.id, .write([]))
            guard let made = queue[id] else { return }
            operation = made
        }
        let hadContent = operation.fields.contains(.content)
        operation.kind = .write(operation.fields.union([.creation, .place, .tags, .burnTime]))
        (operation.origin, operation.target, operation.state) = (nil, row.place, .held(.removed))
        if !hadContent, row.content != nil {
            operation.kind = .write(operation.fields.union(.content))
            // A content that is nowhere is asked for: a node never becomes an empty one.
            operation.content = content == nil ? .ask : .held
            if let content {
                try store.setHeldContent(operation.id, HeldContent.octets(content))
            } else if let opened {
                try LostContents.send(opened, &operation, blobIsLost: blobsAreLost, &self)
            }
        }
        try write(operation)
        // Versions of the removed node mean nothing for the new one.
        try stopWaiting(row.id, .max)
        try leaveOutPlaces(below: row.id)
        for operation in queue.follow(queue[operation.id] ?? operation) { try write(operation) }
        guard let (node, path) = try shown(row) else { return }
        if !wasShown { try uncover(row, node, path) }
        events.append(.conflict(.removed(node)))
    }

    /// The node as the server has it; nil when its record does not open.
    mutating func open(_ row: NodeRow) throws(TreeError) -> OpenedNode? {
        guard let text = row.record, let record = try? NodeRecord(parsing: text, from: .server),
            let parent = try keys(for: record, row.id)
        else { return nil }
        return try? keyring.open(record, row.id, below: parent)
    }
}
