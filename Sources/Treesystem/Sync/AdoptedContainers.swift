import ThicketTree
import ThicketTreeShape

/// Local containers that are given up for another device's of the same name (`NameConflictPolicy.adopt`).
enum AdoptedContainers {
    /// Another device's node has the place of a local one.
    ///
    /// - Returns: whether the local one is given up.
    static func meet(
        _ mine: NodeRow, _ theirs: NodeRow, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        guard skeleton.nameConflicts == .adopt, try canAdopt(mine, into: theirs, skeleton) else { return false }
        guard skeleton.queue.operations(of: mine.id).contains(where: \.isSending) else {
            try adopt(mine, into: theirs, &skeleton)
            return true
        }
        // The server may have made it before the other device's node took the name: only a refusal shows that it does
        // not exist.
        skeleton.adoptions[mine.id] = theirs.id
        return false
    }

    /// The server has refused a request: containers in it whose names other devices' have are given up.
    static func endRefused(_ operations: [OperationID], _ skeleton: inout TreeSkeleton) throws(TreeError) {
        for operation in operations.compactMap({ skeleton.queue[$0] }) {
            guard let other = skeleton.adoptions.removeValue(forKey: operation.node),
                let mine = try skeleton.store.row(operation.node), let theirs = try skeleton.store.row(other),
                mine.parent == theirs.parent, theirs.version > 0, try canAdopt(mine, into: theirs, skeleton)
            else { continue }
            try adopt(mine, into: theirs, &skeleton)
        }
    }

    /// Whether nothing is lost when a local container is given up for another device's: it was created here, was only
    /// created, and is a container without properties; the other one is shown and is a container too.
    ///
    /// An operation that puts a node into it must be the last one of that node: an earlier one would keep the place.
    private static func canAdopt(
        _ mine: NodeRow, into theirs: NodeRow, _ skeleton: TreeSkeleton
    ) throws(TreeError) -> Bool {
        let queue = skeleton.queue
        let operations = queue.operations(of: mine.id)
        guard mine.version == 0, mine.state == .open, theirs.state == .open, theirs.content == nil,
            mine.content == nil, mine.tags.isEmpty, mine.burnTime == nil, operations.count == 1,
            let creation = operations.first, creation.isCreation, !creation.fields.contains(.content)
        else { return false }
        return queue.placing(below: mine.id).allSatisfy { queue.nextMove(after: $0) == nil }
    }

    /// What is below the local container goes below the other device's.
    private static func adopt(
        _ mine: NodeRow, into theirs: NodeRow, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        let store = skeleton.store
        guard let from = try store.path(of: .node(mine.id)), let to = try store.path(of: .node(theirs.id)) else {
            return
        }
        for child in try store.allChildren(of: .node(mine.id)) {
            var child = child
            child.parent = .node(theirs.id)
            let others = try child.place.map { place throws(TreeError) in try store.rows(at: place) } ?? []
            try skeleton.write(child)
            try skeleton.retarget(child)
            guard child.state == .open, let other = others.first(where: { $0.id != child.id }) else { continue }
            if try canAdopt(child, into: other, skeleton) {
                try adopt(child, into: other, &skeleton)
            } else {
                try skeleton.rename(child)
            }
        }
        for operation in skeleton.queue.operations(of: mine.id).reversed() { try skeleton.drop(operation) }
        try skeleton.removeRow(mine.id)
        if let node = theirs.node(isPending: skeleton.queue.has(theirs.id)) {
            skeleton.events.append(.conflict(.adopted(mine.id, by: node, from: from, to: to)))
        }
    }
}
