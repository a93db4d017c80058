public import ThicketProtocol
public import ThicketTreesystem

/// What other devices and other people have done to the tree, as it arrives. The depth of a path tells what a node is:
///
/// | trunk | 1 | 2 | 3 |
/// | --- | --- | --- | --- |
/// | `home` | conversation | message | attachment |
/// | `inbox` | unread message | attachment | |
///
/// Each call is inside of the transaction that changes the tree.
extension ChatManager {
    public func didDiscoverNewNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
        switch (path.trunk, path.depth) {
        case (.home, 1):
            guard let person = ConversationName.person(node.name) else { return }
            _ = try ChatDatabase.open(person.text, at: node.changed ?? Self.now, &transaction)
        case (.home, 2), (.inbox, 1): try arrived(node, path, &transaction)
        case (.home, 3), (.inbox, 2): try attached(node, &transaction)
        default: break
        }
    }

    public func didDiscoverMovedNode(
        _ node: Node, from oldPath: TreePath, to newPath: TreePath, in transaction: inout TreeTransaction
    ) throws {
        // Read on another device.
        guard newPath.trunk == .home, newPath.depth == 2 else { return }
        let known = try ChatDatabase.change(node.id.text, &transaction) { $0.isRead = true }
        if known == nil { try arrived(node, newPath, &transaction) }
    }

    public func didDiscoverModifiedNode(
        _ node: Node, with change: NodeChange, at path: TreePath, in transaction: inout TreeTransaction
    ) throws {
        guard change.contains(.origin), let origin = node.origin else { return }
        try ChatDatabase.change(node.id.text, &transaction) {
            ($0.missing, $0.isForked) = (origin.missing, origin.isForked)
        }
    }

    public func didDiscoverDeletedNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
        switch (path.trunk, path.depth) {
        case (.home, 1):
            guard let person = ConversationName.person(node.name) else { return }
            try ChatDatabase.remove(conversation: person.text, &transaction)
        case (.home, 2), (.inbox, 1): try ChatDatabase.remove(node.id.text, &transaction)
        case (.home, 3), (.inbox, 2): try detached(node, &transaction)
        default: break
        }
    }

    public func didDeliver(_ node: NodeID, to receiver: UserID, in transaction: inout TreeTransaction) throws {
        try ChatDatabase.change(node.text, &transaction) { $0.state = .sent }
    }

    // MARK: - Messages

    /// A message appeared: in the inbox, or in a conversation, where another device has put it.
    private func arrived(_ node: Node, _ path: TreePath, _ transaction: inout TreeTransaction) throws(TreeError) {
        guard let (author, conversation) = author(of: node, at: path), author != me || path.trunk == .home,
            try ChatDatabase.message(node.id.text, transaction) == nil,
            let bytes = try transaction.content(of: node.id)?.data, let content = MessageContent(bytes)
        else { return }
        let (isMine, origin) = (author == me, node.origin)
        let sent = origin?.sent ?? content.sent
        // A clock that is wrong puts no message far into the future.
        let latest = (node.changed ?? Self.now) + Self.clockErrorMax
        _ = try ChatDatabase.insert(
            Message(
                id: node.id.text, conversation: conversation.text, isMine: isMine, text: content.text, sent: sent,
                order: min(sent, latest), counter: origin?.counter ?? 0, state: isMine ? .sent : .received,
                isRead: path.trunk == .home, missing: origin?.missing ?? 0, isForked: origin?.isForked ?? false),
            named: origin?.name, &transaction)
    }

    /// Milliseconds by which an author's clock may be ahead of the server's.
    private static let clockErrorMax: Int64 = 300_000

    /// Who wrote a message, and the person of its conversation; nil for a node that is in no conversation.
    private func author(of node: Node, at path: TreePath) -> (author: UserID, conversation: UserID)? {
        guard path.trunk == .home else {
            // In the inbox are only messages whose author the tree has verified.
            return node.origin.map { ($0.author, $0.author) }
        }
        guard let person = ConversationName.person(path.names[0]) else { return nil }
        let tag = node.tags.first { $0.key == Self.authorTag }
        let named = tag.flatMap { String(validating: $0.value, as: UTF8.self) }.flatMap { try? UserID($0) }
        return (node.origin?.author ?? named ?? me, person)
    }

    // MARK: - Attachments

    private func attached(_ node: Node, _ transaction: inout TreeTransaction) throws(TreeError) {
        guard case .node(let message) = node.parent else { return }
        let sizes = node.content?.sizes
        let new = Attachment(
            id: node.id.text, name: node.name.text, bytes: Int64(clamping: sizes?.data ?? 0),
            hasThumbnail: (sizes?.thumbnail ?? 0) > 0)
        try ChatDatabase.change(message.text, &transaction) { $0.attach(new) }
    }

    private func detached(_ node: Node, _ transaction: inout TreeTransaction) throws(TreeError) {
        guard case .node(let message) = node.parent else { return }
        try ChatDatabase.change(message.text, &transaction) { $0.attachments.removeAll { $0.id == node.id.text } }
    }
}

extension Message {
    mutating func attach(_ new: Attachment) {
        attachments.removeAll { $0.id == new.id }
        attachments.append(new)
        attachments.sort { ($0.name, $0.id) < ($1.name, $1.id) }
    }
}
