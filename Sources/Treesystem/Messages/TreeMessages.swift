public import ThicketProtocol
public import ThicketTree
public import ThicketTreeShape

/// Messages of a tree: nodes that are sent to other accounts, and what came of them (decision 0067).
///
/// What others have sent appears below `inbox` as nodes with a `sender`, once it is verified; until then it is kept and
/// counted. Everything that is sent is durable when the call returns, and reaches the server from the tree's queue.
///
/// ```swift
/// let messages = await tree.messages
/// try await messages.send(to: [bob], content: NodeSections(data: .bytes(text)))
/// ```
public struct TreeMessages: Sendable {
    let tree: Treesystem

    init(_ tree: Treesystem) { self.tree = tree }

    /// What was sent: the node, which has the same id in all trees, and an operation for each receiver, in the order of
    /// their ids.
    public struct Sent: Sendable, Hashable {
        /// The node.
        public let node: NodeID
        /// The operations.
        public let operations: [OperationID]
    }

    /// A receiver of a node, and whether it has it.
    public struct Delivery: Sendable, Hashable {
        /// The receiver.
        public let receiver: UserID
        /// Milliseconds since 1970 at which the server confirmed it, by this device's clock; nil: it waits.
        public let delivered: Int64?
        /// The operation that waits; nil once it was delivered.
        public let operation: OperationID?
    }

    /// What has arrived and is not shown.
    public struct Counts: Sendable, Hashable {
        /// Messages that are not verified yet, because keys of their authors are not known.
        public let awaitingKeys: Int
        /// Messages that were delivered again after their removal, and dropped.
        public let repetitions: Int
    }

    /// Sends a node, with what is directly below it, to the inboxes of other accounts: as one message, which all of
    /// them get together or not at all. Waiting changes of the node, and of what is below it, are sent before.
    ///
    /// - Parameters:
    ///   - id: a node of any trunk.
    ///   - receivers: 1 to 256 other accounts.
    ///   - conversation: nil: that of the author and the receivers.
    ///   - options: `after` puts it behind earlier messages; otherwise messages have no order.
    /// - Throws: `notFound`, `receiver`, `noKeys`, `limit`, `store`, `closed`.
    @discardableResult
    public func copy(
        _ id: NodeID, toInboxOf receivers: Set<UserID>, conversation: ConversationID? = nil,
        options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> Sent {
        try await act { skeleton throws(TreeError) in
            Sent(
                node: id,
                operations: try Outgoing.copy(
                    id, to: receivers, conversation: conversation, queueing: options.queueing, &skeleton))
        }
    }

    /// Makes a node below `outbox`, with a random name, and its attachments below it, and sends it.
    ///
    /// - Parameters:
    ///   - receivers: 1 to 256 other accounts.
    ///   - content: of the message.
    ///   - attachments: names, which differ, and contents; at most 63.
    ///   - conversation: nil: that of the author and the receivers.
    ///   - options: how it is queued.
    /// - Throws: as `copy`; `content`, `nameTaken`, `invalidName`. What was made before stays below `outbox`.
    @discardableResult
    public func send(
        to receivers: Set<UserID>, content: NodeSections, attachments: [(name: NodeName, content: NodeSections)] = [],
        conversation: ConversationID? = nil, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> Sent {
        guard attachments.count < OriginStatement.nodesMax else {
            throw TreeError(.limit, "a message has at most \(OriginStatement.nodesMax - 1) attachments")
        }
        let draft = NodeID.random(TreeRandom.system.bytes)
        let path: TreePath
        do throws(NodeName.Fault) { path = TreePath(.outbox, names: [try NodeName(draft.text)]) } catch {
            throw TreeError(.invalidName, error.description)
        }
        let node = try await tree.createNode(at: path, content: content, options: options)
        for attachment in attachments {
            try await tree.createNode(
                at: path.appending(attachment.name), content: attachment.content, options: options)
        }
        return try await copy(node.id, toInboxOf: receivers, conversation: conversation, options: options)
    }

    /// Sends a content that fits into a record, without a node in the own tree.
    ///
    /// - Throws: `content`, `receiver`, `noKeys`, `limit`, `store`, `closed`.
    @discardableResult
    public func signal(
        to receivers: Set<UserID>, content: NodeContent, conversation: ConversationID? = nil,
        options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> Sent {
        try await act { skeleton throws(TreeError) in
            let (node, operations) = try Outgoing.signal(
                content, to: receivers, conversation: conversation, queueing: options.queueing, &skeleton)
            return Sent(node: node, operations: operations)
        }
    }

    /// Removes a node that was sent from the inbox of its receiver, if it is still there.
    ///
    /// - Throws: `receiver`, `noKeys`, `limit`, `store`, `closed`.
    @discardableResult
    public func burn(
        _ id: NodeID, sentTo receiver: UserID, options: ChangeOptions = ChangeOptions()
    ) async throws(TreeError) -> OperationID {
        try await act { skeleton throws(TreeError) in
            try Outgoing.burn(id, sentTo: receiver, queueing: options.queueing, &skeleton)
        }
    }

    /// The receivers of a node to which this device has sent it, in the order of their ids.
    ///
    /// - Throws: `store`, `closed`.
    public func deliveries(of id: NodeID) async throws(TreeError) -> [Delivery] {
        try await act { skeleton throws(TreeError) in
            var found = try skeleton.store.delivered(id).map {
                Delivery(receiver: $0.receiver, delivered: $0.time, operation: nil)
            }
            for operation in skeleton.queue.operations(of: id) where operation.isCopy {
                guard let receiver = operation.receiver else { continue }
                found.removeAll { $0.receiver == receiver }
                found.append(Delivery(receiver: receiver, delivered: nil, operation: operation.id))
            }
            return found.sorted { $0.receiver.text < $1.receiver.text }
        }
    }

    /// Waits until all receivers have what was sent. After an error the operations that are left stay in the queue.
    ///
    /// - Throws: as `Treesystem.wait(for:)`, for the first receiver that cannot get it: the others of one message do
    ///   not get it either.
    public func wait(for sent: Sent, timeout: Duration = .seconds(60)) async throws(TreeError) {
        let tree = tree
        let result = await withTaskGroup(of: Result<Void, TreeError>.self) { group in
            for id in sent.operations {
                group.addTask {
                    do throws(TreeError) { return .success(try await tree.wait(for: id, timeout: timeout)) } catch {
                        return .failure(error)
                    }
                }
            }
            var first: TreeError?
            for await result in group {
                guard case .failure(let error) = result, first == nil else { continue }
                first = error
                group.cancelAll()
            }
            return first
        }
        if let result { throw result }
    }

    /// Gives up what waits of a message, for all receivers at once. `Treesystem.discard` gives up that of one receiver,
    /// and the others get the message then. The node below `outbox` stays.
    ///
    /// - Throws: `limit` while it is being sent; `store`, `closed`.
    public func discard(_ sent: Sent) async throws(TreeError) { try await Self.discard(sent.operations, tree) }

    private static func discard(_ ids: [OperationID], _ tree: isolated Treesystem) throws(TreeError) {
        try tree.act { machine throws(TreeError) in
            let waiting = ids.filter { machine.queue[$0] != nil }
            guard !waiting.contains(where: { machine.queue[$0]?.isSending == true }) else {
                throw TreeError(.limit, "the message is being sent")
            }
            for id in waiting { try machine.discard(id) }
        }
        for id in ids { tree.waiters.end(TreeError(.cancelled, "the operation was discarded"), of: id) }
    }

    /// What has arrived and is not shown.
    ///
    /// - Throws: `store`, `closed`.
    public var counts: Counts {
        get async throws(TreeError) {
            try await act { skeleton throws(TreeError) in
                Counts(
                    awaitingKeys: try skeleton.store.awaitingCount(), repetitions: try skeleton.store.repetitions())
            }
        }
    }

    func act<Value: Sendable>(
        _ body: @Sendable (inout TreeSkeleton) throws(TreeError) -> Value
    ) async throws(TreeError) -> Value { try await Self.act(tree, body) }

    private static func act<Value: Sendable>(
        _ tree: isolated Treesystem, _ body: @Sendable (inout TreeSkeleton) throws(TreeError) -> Value
    ) throws(TreeError) -> Value { try tree.act { machine throws(TreeError) in try body(&machine.skeleton) } }
}

extension Treesystem {
    /// Messages to and from other accounts.
    public nonisolated var messages: TreeMessages { TreeMessages(self) }
}
