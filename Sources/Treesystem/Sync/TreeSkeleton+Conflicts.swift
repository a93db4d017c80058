import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Local changes that meet those of other devices (treesystem 4.7, "Rebase").
extension TreeSkeleton {
    /// - Parameters:
    ///   - theirs: what the other device changed.
    ///   - mine: what waiting operations of this device write.
    mutating func meet(
        _ theirs: WriteFields, _ mine: WriteFields, _ opened: OpenedNode, _ row: NodeRow
    ) throws(TreeError) {
        let both = theirs.intersection(mine)
        if both.contains(.place) { try meetPlace(opened, row) }
        if both.contains(.content) { try ContentMerges.meet(opened, row, &self) }
    }

    /// Both moved the node. If the places are the same, nothing is left to do; otherwise this device's is sent again.
    private mutating func meetPlace(_ opened: OpenedNode, _ row: NodeRow) throws(TreeError) {
        let theirs = Place(opened.parent, opened.name)
        if row.place == theirs, row.name == opened.name {
            for operation in queue.operations(of: row.id) where !operation.isSending {
                try drop(.place, of: operation)
            }
        } else if let (node, _) = try shown(row) {
            events.append(.conflict(.location(node)))
        }
    }

    /// Takes a field out of what an operation writes; an operation that writes nothing more is dropped.
    mutating func drop(_ field: WriteFields, of operation: PendingOperation) throws(TreeError) {
        var operation = operation
        let fields = operation.fields.subtracting(field)
        if fields.isEmpty { return try drop(operation) }
        operation.kind = .write(fields)
        if field.contains(.place) { (operation.origin, operation.target) = (nil, nil) }
        try write(operation)
    }

    /// Another device's move and a waiting one of this device would make a cycle (T9): this device's is given up.
    ///
    /// - Returns: whether there was a cycle; then the row is written.
    mutating func breakCycle(through row: NodeRow) throws(TreeError) -> Bool {
        let above = try store.ancestors(of: row.parent)
        guard let end = above.firstIndex(of: row.id) else { return false }
        let moved = above[...end].filter { queue.fields(of: $0).contains(.place) }
        if moved.isEmpty { return false }
        try write(row)
        for id in moved {
            guard var other = try store.row(id), other.version > 0, let opened = try open(other) else { continue }
            // One that is being sent will be refused.
            for operation in queue.operations(of: id) where operation.fields.contains(.place) && !operation.isSending {
                try drop(.place, of: operation)
            }
            try putBack(&other, opened)
        }
        return true
    }

    /// Puts a node where the server has it, which may be inside or outside of a branch that is removed here.
    private mutating func putBack(_ row: inout NodeRow, _ opened: OpenedNode) throws(TreeError) {
        let before = row.state == .open ? try shown(row) : nil
        (row.parent, row.name) = (opened.parent, opened.name)
        if row.state != .quarantined { row.state = try state(of: row) }
        try write(row)
        guard row.state == .open else { return try hide(row, before) }
        try clearPlace(of: row)
        guard let (node, path) = try shown(row) else { return }
        if before == nil { try uncover(row, node, path) }
        events.append(.conflict(.location(node)))
    }

    /// A node that was kept here after its removal exists at the server again: only contents are still in conflict.
    mutating func createdElsewhere(_ id: NodeID) throws(TreeError) {
        for operation in queue.operations(of: id) where operation.isCreation {
            var operation = operation
            operation.kind = .write(operation.fields.subtracting(.creation))
            if operation.fields.contains(.content) {
                operation.state = .held(.data)
                if let row = try store.row(id), let (node, _) = try shown(row) {
                    events.append(.conflict(.data(node)))
                }
            } else if operation.state == .held(.removed) {
                operation.state = .waiting
            }
            try write(operation)
        }
    }

    // MARK: - Names

    /// Another device's node has its place at the server; local nodes with the same name that are not there yet give
    /// way.
    mutating func clearPlace(of row: NodeRow) throws(TreeError) {
        guard !queue.isEmpty, let place = row.place else { return }
        for other in try store.rows(at: place) where other.id != row.id {
            // A node that is at this place at the server too has moved; its change will arrive.
            guard queue.fields(of: other.id).contains(.place) else { continue }
            if try AdoptedContainers.meet(other, row, &self) { continue }
            try rename(other)
        }
    }

    /// Gives a local node a free name.
    mutating func rename(_ row: NodeRow) throws(TreeError) {
        guard let name = row.name, let from = try store.path(of: .node(row.id)) else { return }
        // A node that is not shown may have the name too.
        let taken = try store.names(below: row.parent).union([name.folded])
        var row = row
        row.name = name.free { taken.contains($0) }
        try write(row)
        try retarget(row)
        if let (node, to) = try shown(row) { events.append(.conflict(.name(node, from: from, to: to))) }
    }

    /// Operations that put the node at its old place put it at its new one.
    mutating func retarget(_ row: NodeRow) throws(TreeError) {
        guard let last = queue.operations(of: row.id).last(where: { $0.target != nil }) else { return }
        var operation = last
        operation.target = row.place
        try write(operation)
    }
}
