public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

/// Changes of one batch (`Treesystem.batch`), made one after the other on the local tree. Valid during the call only.
public struct TreeEditor {
    var machine: TreeMachine
    let queueing: TreeMachine.Queueing
    let canAsk: Bool
    private(set) var promises = [OperationID: NodeSections]()

    init(_ machine: TreeMachine, _ queueing: TreeMachine.Queueing, canAsk: Bool) {
        (self.machine, self.queueing, self.canAsk) = (machine, queueing, canAsk)
    }

    /// The node at a path, earlier changes of the batch included; nil for a trunk, and when there is none.
    public func node(at path: TreePath) throws(TreeError) -> Node? {
        guard let row = try machine.row(at: path) else { return nil }
        return node(row)
    }

    /// The node with this id; nil when it is not shown.
    public func node(_ id: NodeID) throws(TreeError) -> Node? { try machine.store.row(id).flatMap(node) }

    private func node(_ row: NodeRow) -> Node? { row.node(isPending: machine.queue.has(row.id)) }

    /// Creates a node, as `Treesystem.createNode`.
    ///
    /// - Parameters:
    ///   - path: its parent exists, its name is free.
    ///   - content: must fit into a record, be a promise, or be a file without other sections.
    ///   - tags: pairs of the app.
    ///   - burnTime: as `setBurnTime`.
    /// - Throws: as `Treesystem.createNode`; `content` for other contents.
    @discardableResult
    public mutating func createNode(
        at path: TreePath, content: NodeSections? = nil, tags: [NodeMetadata.AppTag] = [], burnTime: Int64? = nil
    ) throws(TreeError) -> Node {
        let (local, promise) = try local(content)
        let row = try machine.create(
            at: path, content: local, tags: tags, burnTime: burnTime, queueing: queueing)
        keep(promise, of: row.id)
        return try shown(row)
    }

    /// Replaces the content of a node, as `Treesystem.setContent`.
    ///
    /// - Parameters:
    ///   - id: the node.
    ///   - content: as for `createNode`.
    public mutating func setContent(of id: NodeID, _ content: NodeSections) throws(TreeError) {
        let (local, promise) = try local(content)
        _ = try machine.setContent(of: id, local, queueing: queueing)
        keep(promise, of: id)
    }

    private func local(_ content: NodeSections?) throws(TreeError) -> (LocalContent, NodeSections?) {
        switch GivenContent(content, canAsk: canAsk) {
        case .local(let local): return (local, nil)
        case .promise(let sections): return (.ask, sections)
        case .spool:
            throw TreeError(.content, "in a batch, a content fits into a record, or is a file or a promise")
        }
    }

    private mutating func keep(_ promise: NodeSections?, of id: NodeID) {
        if let promise, let operation = machine.contentOperation(of: id) { promises[operation.id] = promise }
    }

    /// Moves a node, as `Treesystem.move`.
    @discardableResult
    public mutating func move(_ id: NodeID, to path: TreePath) throws(TreeError) -> Node {
        try shown(try machine.move(id, to: path, queueing: queueing))
    }

    /// Gives a node another name below the same parent.
    @discardableResult
    public mutating func rename(_ id: NodeID, _ name: NodeName) throws(TreeError) -> Node {
        try shown(try machine.rename(id, name, queueing: queueing))
    }

    /// Removes a node and everything below it, as `Treesystem.delete`.
    public mutating func delete(_ id: NodeID) throws(TreeError) {
        _ = try machine.delete(id, queueing: queueing)
    }

    /// Replaces the pairs that the app attached to a node.
    public mutating func setTags(of id: NodeID, _ tags: [NodeMetadata.AppTag]) throws(TreeError) {
        _ = try machine.setTags(of: id, tags, queueing: queueing)
    }

    /// Sets the time at which the server removes a node.
    public mutating func setBurnTime(of id: NodeID, _ time: Int64?) throws(TreeError) {
        _ = try machine.setBurnTime(of: id, time, queueing: queueing)
    }

    /// Sends a node to the inboxes of other accounts when the batch's other changes of it have reached the server, as
    /// `TreeMessages.copy`.
    ///
    /// - Parameter earlier: operations that must be confirmed first, such as those of an earlier message.
    /// - Returns: an operation for each receiver, in the order of their ids.
    @discardableResult
    public mutating func copy(
        _ id: NodeID, toInboxOf receivers: Set<UserID>, conversation: ConversationID? = nil,
        after earlier: Set<OperationID> = []
    ) throws(TreeError) -> [OperationID] {
        var queueing = TreeMachine.Queueing()
        queueing.after = earlier
        return try Outgoing.copy(id, to: receivers, conversation: conversation, queueing: queueing, &machine.skeleton)
    }

    /// The content of a node if it fits into the record, earlier changes of the batch included.
    ///
    /// - Throws: `notFound`, `contentDamaged`, `store`.
    public mutating func content(of id: NodeID) throws(TreeError) -> NodeContent? {
        try machine.skeleton.content(of: id)
    }

    /// A value of the app.
    public func value(_ collection: String, _ key: String) throws(TreeError) -> [UInt8]? {
        try machine.store.appValue(collection, key)
    }

    /// Values of the app, as `Treesystem.page(of:after:isDescending:limit:)`.
    public func page(
        of collection: String, after last: AppValue? = nil, isDescending: Bool = false, limit: Int
    ) throws(TreeError) -> [AppValue] {
        try machine.store.appPage(collection, after: last, isDescending: isDescending, limit: limit)
    }

    /// Stores or removes a value of the app in the batch's transaction, as `TreeTransaction.set`.
    public mutating func set(
        _ value: [UInt8]?, _ collection: String, _ key: String, order: Int64 = 0
    ) throws(TreeError) {
        machine.skeleton.hasWritten = true
        try machine.store.setAppValue(value, collection, key, order: order)
    }

    private func shown(_ row: NodeRow) throws(TreeError) -> Node {
        guard let node = node(row) else { throw .missing(row.id) }
        return node
    }
}

extension TreeMachine {
    /// The node that a change returns, as it is after the change.
    mutating func shown(
        _ body: (inout TreeMachine) throws(TreeError) -> NodeRow
    ) throws(TreeError) -> Node {
        let row = try body(&self)
        guard let node = row.node(isPending: queue.has(row.id)) else { throw .missing(row.id) }
        return node
    }

    /// Runs reads that fill caches.
    mutating func reading<Value>(
        _ body: (inout TreeMachine) throws(TreeError) -> Value
    ) throws(TreeError) -> Value { try body(&self) }

    /// The newest waiting operation that writes the content of a node.
    func contentOperation(of node: NodeID) -> PendingOperation? {
        queue.operations(of: node).last { $0.fields.contains(.content) }
    }

    mutating func rename(
        _ id: NodeID, _ name: NodeName, queueing: Queueing = Queueing()
    ) throws(TreeError) -> NodeRow {
        let row = try shownRow(id)
        guard let above = try store.path(of: row.parent) else { throw .missing(id) }
        return try move(id, to: above.appending(name), queueing: queueing)
    }
}
