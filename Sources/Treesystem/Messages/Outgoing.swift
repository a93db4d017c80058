import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Messages that this device sends: queued like every local change, and sealed when they are sent.
enum Outgoing {
    /// Sends a node, with what is directly below it, to the inboxes of other accounts: as one message, which all of
    /// them get together or not at all.
    ///
    /// - Parameters:
    ///   - id: a node that is shown.
    ///   - receivers: 1 to 256 other accounts.
    ///   - conversation: nil: that of the author and the receivers.
    /// - Returns: an operation for each receiver, in the order of their ids.
    /// - Throws: `notFound`, `receiver`, `noKeys`, `limit`, `store`.
    static func copy(
        _ id: NodeID, to receivers: Set<UserID>, conversation: ConversationID? = nil,
        queueing: TreeMachine.Queueing = TreeMachine.Queueing(), _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> [OperationID] {
        _ = try skeleton.shownRow(id)
        return try send(id, to: receivers, conversation, .none, queueing, &skeleton)
    }

    /// Sends a content to other accounts without a node in the own tree.
    ///
    /// - Parameter content: fits into a record.
    /// - Returns: the id of the message in the other trees, and its operations.
    /// - Throws: `content`, `receiver`, `noKeys`, `limit`, `store`.
    static func signal(
        _ content: NodeContent, to receivers: Set<UserID>, conversation: ConversationID? = nil,
        queueing: TreeMachine.Queueing = TreeMachine.Queueing(), _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> (node: NodeID, operations: [OperationID]) {
        guard (try? ContentSpool(content, random: skeleton.keyring.random))?.isInline == true else {
            throw TreeError(.content, "the content of a signal fits into a record")
        }
        let id = NodeID.random(skeleton.keyring.random.bytes)
        return (id, try send(id, to: receivers, conversation, .held(content), queueing, &skeleton))
    }

    /// Removes a node that was sent from the inbox of its receiver, if it is still there.
    ///
    /// - Throws: `receiver`, `noKeys`, `limit`, `store`.
    static func burn(
        _ id: NodeID, sentTo receiver: UserID, queueing: TreeMachine.Queueing = TreeMachine.Queueing(),
        _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> OperationID {
        try skeleton.checkLimit()
        try check([receiver], skeleton)
        return try skeleton.enqueue(id, .burn(receiver), queueing)
    }

    private static func check(_ receivers: Set<UserID>, _ skeleton: TreeSkeleton) throws(TreeError) {
        guard let identity = skeleton.messages.identity else {
            throw TreeError(.noKeys, "the session has no keys for messages")
        }
        guard (1...OriginStatement.recipientsMax).contains(receivers.count), !receivers.contains(identity.user) else {
            throw TreeError(
                .receiver, "a message has 1 to \(OriginStatement.recipientsMax) receivers, all other accounts")
        }
    }

    private static func send(
        _ id: NodeID, to receivers: Set<UserID>, _ conversation: ConversationID?, _ content: LocalContent,
        _ queueing: TreeMachine.Queueing, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> [OperationID] {
        try skeleton.checkLimit()
        try check(receivers, skeleton)
        let tree = skeleton.keyring.keys.tree
        let name = conversation ?? ConversationID(app: tree.app, participants: receivers.union([tree.owner]))
        var queueing = queueing
        // Numbers of operations are never used again, so that of the first one names the message.
        queueing.group = receivers.count > 1 ? try skeleton.store.nextOperation().number : nil
        var operations = [OperationID]()
        for receiver in receivers.sorted(by: { $0.text < $1.text }) {
            operations.append(try skeleton.enqueue(id, .copy(receiver, name), content: content, queueing))
        }
        return operations
    }
}
