package import ThicketTree
package import ThicketTreeShape

/// Local changes, as `TreeSkeleton` makes them: in the store at once, and queued for the server.
extension TreeMachine {
    package typealias Queueing = OperationQueueing

    /// The place that a path names: a trunk or a node; nil when there is none.
    package func place(at path: TreePath) throws(TreeError) -> NodeParent? { try store.place(at: path) }

    package func row(at path: TreePath) throws(TreeError) -> NodeRow? { try store.row(at: path) }

    func shownRow(_ id: NodeID) throws(TreeError) -> NodeRow { try skeleton.shownRow(id) }

    /// The node as the server has it; nil when its record does not open.
    mutating func open(_ row: NodeRow) throws(TreeError) -> OpenedNode? { try skeleton.open(row) }

    package mutating func create(
        at path: TreePath, id: NodeID? = nil, content: LocalContent = .ask, tags: [NodeMetadata.AppTag] = [],
        modified: Int64? = nil, burnTime: Int64? = nil, queueing: Queueing = Queueing()
    ) throws(TreeError) -> NodeRow {
        try skeleton.create(
            at: path, id: id, content: content, tags: tags, modified: modified, burnTime: burnTime, queueing: queueing)
    }

    package mutating func move(
        _ id: NodeID, to path: TreePath, queueing: Queueing = Queueing()
    ) throws(TreeError) -> NodeRow { try skeleton.move(id, to: path, queueing: queueing) }

    package mutating func setContent(
        of id: NodeID, _ content: LocalContent, modified: Int64? = nil, queueing: Queueing = Queueing()
    ) throws(TreeError) -> NodeRow {
        try skeleton.setContent(of: id, content, modified: modified, queueing: queueing)
    }

    package mutating func setTags(
        of id: NodeID, _ tags: [NodeMetadata.AppTag], queueing: Queueing = Queueing()
    ) throws(TreeError) -> NodeRow { try skeleton.setTags(of: id, tags, queueing: queueing) }

    package mutating func setBurnTime(
        of id: NodeID, _ time: Int64?, queueing: Queueing = Queueing()
    ) throws(TreeError) -> NodeRow { try skeleton.setBurnTime(of: id, time, queueing: queueing) }

    package mutating func delete(
        _ id: NodeID, outdated: Bool = true, unknown: Bool = true, queueing: Queueing = Queueing()
    ) throws(TreeError) -> OperationID? {
        try skeleton.delete(id, outdated: outdated, unknown: unknown, queueing: queueing)
    }

    package mutating func retry(_ id: OperationID) throws(TreeError) { try skeleton.retry(id) }

    package mutating func discard(_ id: OperationID) throws(TreeError) { try skeleton.discard(id) }
}
