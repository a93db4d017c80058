public import ThicketTree
public import ThicketTreeShape

/// Local changes. Each is in the store when its call returns, and waits in the queue for the server.
extension Treesystem {
    /// Creates a node.
    ///
    /// - Parameters:
    ///   - path: its parent exists, its name is free.
    ///   - content: bytes that fit into the record are kept with the change, other content is sealed into a file at
    ///     once; a file without other sections is sealed when the change is ready, and a promise is asked then. A
    ///     promise does not survive the program. nil: the delegate is asked when the change is ready; without a
    ///     delegate, the node has no content.
    ///   - tags: pairs of the app.
    ///   - modified: milliseconds since 1970 at which the content was last changed, for other devices.
    ///   - burnTime: milliseconds since 1970 at which the server removes the node; nil: never.
    ///   - options: how the change is queued.
    /// - Throws: `nameTaken`, `parentMissing`, `depth`, `trunk`, `content`, `limit`, `store`, `closed`.
    @discardableResult
    public func createNode(
        at path: TreePath, content: NodeSections? = nil, tags: [NodeMetadata.AppTag] = [], modified: Int64? = nil,
        burnTime: Int64? = nil, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> Node {
        let id = NodeID.random(TreeRandom.system.bytes)
        return try await make(
            ContentChange(id, content) { machine, content throws(TreeError) in
                try machine.create(
                    at: path, id: id, content: content, tags: tags, modified: modified, burnTime: burnTime,
                    queueing: options.queueing)
            })
    }

    /// Creates a node whose content has a data section only.
    @discardableResult
    public func createNode(at path: TreePath, data: NodeData) async throws(TreeError) -> Node {
        try await createNode(at: path, content: NodeSections(data: data))
    }

    /// Creates a node, and those above it that do not exist, in one group. Nodes above have no content.
    ///
    /// - Returns: the node; also one that existed.
    /// - Throws: as `createNode`, but for `nameTaken` and `parentMissing`.
    @discardableResult
    public func createAll(at path: TreePath) throws(TreeError) -> Node {
        guard !path.isTrunk else { throw TreeError(.trunk, "a trunk cannot be written, moved or removed") }
        let node = try batch { tree throws(TreeError) -> Node? in
            var node: Node?
            for depth in 1...path.depth {
                let above = TreePath(path.trunk, names: Array(path.names.prefix(depth)))
                let known = try tree.node(at: above)
                if let known { node = known } else { node = try tree.createNode(at: above, content: NodeSections()) }
            }
            return node
        }
        guard let node else { throw TreeError(.store, "the node was not made") }
        return node
    }

    /// Replaces the content of a node.
    ///
    /// - Parameters:
    ///   - id: the node.
    ///   - content: as for `createNode`.
    ///   - modified: milliseconds since 1970; nil: now.
    ///   - tags: replace the pairs of the app in the same transaction; nil: the pairs stay.
    ///   - options: how the change is queued.
    /// - Throws: `notFound`, `content`, `limit`, `store`, `closed`.
    @discardableResult
    public func setContent(
        of id: NodeID, _ content: NodeSections, modified: Int64? = nil, tags: [NodeMetadata.AppTag]? = nil,
        options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> Node {
        try await make(
            ContentChange(id, content) { machine, content throws(TreeError) in
                // The pairs first: the content may only be given to an operation into which nothing more is merged.
                if let tags { _ = try machine.setTags(of: id, tags, queueing: options.queueing) }
                return try machine.setContent(of: id, content, modified: modified, queueing: options.queueing)
            })
    }

    /// Notes that the app has another content for a node: the delegate is asked for it when the change is ready.
    ///
    /// - Throws: as `setContent`; `content` without a delegate.
    @discardableResult
    public func setNeedsUpload(_ id: NodeID, options: ChangeOptions = ChangeOptions()) throws(TreeError) -> Node {
        guard delegate != nil else { throw TreeError(.content, "there is no delegate that can be asked") }
        return try make(of: id, nil) { machine throws(TreeError) in
            try machine.setContent(of: id, .ask, queueing: options.queueing)
        }
    }

    private func make(_ body: (inout TreeMachine) throws(TreeError) -> NodeRow) throws(TreeError) -> Node {
        try act { machine throws(TreeError) in try machine.shown(body) }
    }

    /// Makes a local change of a content.
    ///
    /// - Parameter promise: what is asked when the change is ready; nil: the content is not a promise.
    private func make(
        of node: NodeID, _ promise: NodeSections?, _ body: (inout TreeMachine) throws(TreeError) -> NodeRow
    ) throws(TreeError) -> Node {
        try act { machine throws(TreeError) in
            let made = try machine.shown(body)
            return (made, machine.contentOperation(of: node)?.id)
        } then: { _, operation in
            // The transaction's actions may ask for the content already.
            if let operation { promises[operation] = promise }
        }.0
    }

    /// Makes a local change with a content that may have to be sealed first.
    private func make(_ change: ContentChange) async throws(TreeError) -> Node {
        switch GivenContent(change.content, canAsk: delegate != nil) {
        case .local(let local):
            return try make(of: change.node, nil) { machine throws(TreeError) in try change.body(&machine, local) }
        case .promise(let sections):
            return try make(of: change.node, sections) { machine throws(TreeError) in try change.body(&machine, .ask) }
        case .spool(let sections): return try await spool(sections, change)
        }
    }

    private func spool(_ sections: NodeSections, _ change: ContentChange) async throws(TreeError) -> Node {
        guard let disk = core?.contents.disk else { throw .closed }
        let content: SpooledContent
        do throws(ContentError) { content = try await disk.spool(sections, node: change.node) } catch {
            throw TreeError(error)
        }
        do throws(TreeError) {
            switch content {
            case .none: return try make { machine throws(TreeError) in try change.body(&machine, .none) }
            case .inline(let content):
                return try make { machine throws(TreeError) in try change.body(&machine, .held(content)) }
            case .blob(let blob): return try keep(blob, change)
            }
        } catch {
            // A file that stays is found at the next start.
            if case .blob(let blob) = content { try? await disk.remove(blob.plan.id) }
            throw error
        }
    }

    private func keep(_ blob: SpooledBlob, _ change: ContentChange) throws(TreeError) -> Node {
        let record = SpoolRecord(blob.plan)
        let (made, operation) = try act { machine throws(TreeError) in try machine.make(change, record) }
        if let operation { spools[operation] = record }
        return made
    }

    /// Moves a node, or gives it another name. What is below comes along.
    ///
    /// - Throws: `notFound`, `nameTaken`, `parentMissing`, `cycle`, `depth`, `trunk`, `limit`, `store`, `closed`.
    @discardableResult
    public func move(
        _ id: NodeID, to path: TreePath, options: ChangeOptions = ChangeOptions()
    ) throws(TreeError) -> Node {
        try make { machine throws(TreeError) in try machine.move(id, to: path, queueing: options.queueing) }
    }

    /// Gives a node another name below the same parent.
    ///
    /// - Throws: as `move`.
    @discardableResult
    public func rename(
        _ id: NodeID, _ name: NodeName, options: ChangeOptions = ChangeOptions()
    ) throws(TreeError) -> Node {
        try make { machine throws(TreeError) in try machine.rename(id, name, queueing: options.queueing) }
    }

    /// Removes a node and everything below it, here at once and then at the server.
    ///
    /// - Parameters:
    ///   - id: the node.
    ///   - outdated: whether nodes that changed at the server since this device saw them are removed too.
    ///   - unknown: whether nodes that this device has not seen are removed too.
    ///   - options: how the change is queued.
    /// - Returns: the operation; nil when the server had nothing of it.
    /// - Throws: `notFound`, `limit`, `store`, `closed`.
    @discardableResult
    public func delete(
        _ id: NodeID, outdated: Bool = true, unknown: Bool = true, options: ChangeOptions = ChangeOptions()
    ) throws(TreeError) -> OperationID? {
        try act { machine throws(TreeError) in
            try machine.delete(id, outdated: outdated, unknown: unknown, queueing: options.queueing)
        }
    }

    /// Replaces the pairs that the app attached to a node: at most `NodeMetadata.AppTag.countMax`, each key once.
    ///
    /// - Throws: `notFound`, `limit`, `store`, `closed`.
    @discardableResult
    public func setTags(
        of id: NodeID, _ tags: [NodeMetadata.AppTag], options: ChangeOptions = ChangeOptions()
    ) throws(TreeError) -> Node {
        try make { machine throws(TreeError) in try machine.setTags(of: id, tags, queueing: options.queueing) }
    }

    /// Sets the time, in milliseconds since 1970, at which the server removes the node and its branch; nil: never.
    ///
    /// - Throws: `notFound`, `limit`, `store`, `closed`.
    @discardableResult
    public func setBurnTime(
        of id: NodeID, _ time: Int64?, options: ChangeOptions = ChangeOptions()
    ) throws(TreeError) -> Node {
        try make { machine throws(TreeError) in try machine.setBurnTime(of: id, time, queueing: options.queueing) }
    }

    /// Makes several changes in one transaction. If `body` throws, none is made here; the server makes all or none.
    ///
    /// The queue is copied for the call, which costs time with very many waiting operations.
    ///
    /// - Throws: what `body` throws; `limit`, `store`, `closed`.
    @discardableResult
    public func batch<Value: Sendable>(
        _ body: (inout TreeEditor) throws(TreeError) -> Value
    ) throws(TreeError) -> Value {
        let canAsk = delegate != nil
        let (value, _) = try act { machine throws(TreeError) in
            var queueing = TreeMachine.Queueing()
            // Numbers of operations are never used again, so that of the first one names the group.
            queueing.group = try machine.store.nextOperation().number
            machine.skeleton.hasWritten = true
            var editor = TreeEditor(machine, queueing, canAsk: canAsk)
            let value = try body(&editor)
            machine = editor.machine
            return (value, editor.promises)
        } then: { _, promised in
            for (operation, sections) in promised { promises[operation] = sections }
        }
        return value
    }
}

/// A local change of a content.
///
/// A class, so that it is one word: the release build of Swift 6.3 for x86-64 leaves the machine's stack unbalanced
/// after asynchronous functions with an odd number of words in memory, and specializes a closure that is passed to one
/// into as many parameters as it captures.
private final class ContentChange: Sendable {
    typealias Body = @Sendable (inout TreeMachine, LocalContent) throws(TreeError) -> NodeRow

    let node: NodeID
    /// What the app gave; nil: the delegate is asked.
    let content: NodeSections?
    let body: Body

    init(_ node: NodeID, _ content: NodeSections?, _ body: @escaping Body) {
        (self.node, self.content, self.body) = (node, content, body)
    }
}

extension TreeMachine {
    /// Makes a change whose content is in a spool file.
    fileprivate mutating func make(
        _ change: ContentChange, _ record: SpoolRecord
    ) throws(TreeError) -> (node: Node, operation: OperationID?) {
        let made = try shown { machine throws(TreeError) in try change.body(&machine, .ask) }
        let operation = contentOperation(of: change.node)?.id
        if let operation { try provided(operation, .spooled(record.octets)) }
        return (made, operation)
    }
}
