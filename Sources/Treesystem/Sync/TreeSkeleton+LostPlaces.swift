import ThicketTree
import ThicketTreeShape

/// Operations that put a node below one that is gone: another device removed it, or it was given up here. Such an
/// operation can never be sent as it is.
extension TreeSkeleton {
    /// Gives an operation whose new parent is gone another place.
    ///
    /// A node that the server has stays where it is; a new node is created where later operations move it, and
    /// otherwise at the top of `home`: an edit is not lost with a parent.
    ///
    /// - Returns: whether the parent is gone, so that the operation was changed.
    mutating func replaceLostPlace(of operation: PendingOperation) throws(TreeError) -> Bool {
        guard case .node(let parent)? = operation.target?.parent, try store.row(parent) == nil else { return false }
        let next = queue.nextMove(after: operation)
        switch (operation.isCreation, next) {
        case (false, nil): try giveUpPlace(operation)
        case (false, let next?): try skipPlace(operation, next)
        case (true, let next?) where try createAtOnce(operation, next): break
        case (true, _): try createAtTop(operation)
        }
        return true
    }

    /// A node is created again, where it is now. Nodes that were put below it on their way to another place are not put
    /// there: that other place may be above the node, and then neither could be sent first.
    mutating func leaveOutPlaces(below id: NodeID) throws(TreeError) {
        for operation in queue.placing(below: id) where !operation.isSending {
            guard let next = queue.nextMove(after: operation) else { continue }
            if operation.isCreation { _ = try createAtOnce(operation, next) } else { try skipPlace(operation, next) }
        }
    }

    /// The node moves on: the place between is left out.
    private mutating func skipPlace(_ operation: PendingOperation, _ next: PendingOperation) throws(TreeError) {
        var next = next
        next.origin = operation.origin
        try write(next)
        try drop(.place, of: operation)
    }

    /// The node is created where it moves to.
    ///
    /// - Returns: false if the move waits for something that needs the node.
    private mutating func createAtOnce(
        _ operation: PendingOperation, _ next: PendingOperation
    ) throws(TreeError) -> Bool {
        let needed = next.dependencies.subtracting([operation.id])
        guard !queue.depends(needed, on: operation.id) else { return false }
        var creation = operation
        creation.target = next.target
        creation.dependencies.formUnion(needed)
        try write(creation)
        try drop(.place, of: next)
        return true
    }

    /// The node is created at the top of `home`, under a free name.
    private mutating func createAtTop(_ operation: PendingOperation) throws(TreeError) {
        guard let target = operation.target, var row = try store.row(operation.node) else { return }
        let taken = try store.names(below: .trunk(.home))
        var operation = operation
        operation.target = Place(.trunk(.home), target.name.free { taken.contains($0) })
        try write(operation)
        // A later operation moves the node on; otherwise its parent is gone, so that it is not shown.
        guard row.place == target, let place = operation.target else { return }
        (row.parent, row.name) = (place.parent, place.name)
        if row.state == .unopened { row.state = .open }
        try write(row)
        if let (node, path) = try shown(row) {
            try uncover(row, node, path)
            events.append(.conflict(.location(node)))
        }
    }
}
