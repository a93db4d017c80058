import ThicketPlatform
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
            try mark(node, &transaction)
        case (.home, 2), (.inbox, 1): try arrived(node, path, &transaction)
        case (.home, 3), (.inbox, 2): try attached(node, &transaction)
        default: break
        }
    }

    public func didDiscoverMovedNode(
        _ node: Node, from oldPath: TreePath, to newPath: TreePath, in transaction: inout TreeTransaction
    ) throws {
        guard let known = try ChatDatabase.message(node.id.text, transaction) else {
            return try didDiscoverNewNode(node, at: newPath, in: &transaction)
        }
        if newPath.trunk == .home, newPath.depth == 2,
            ConversationName.person(newPath.names[0])?.text == known.conversation
        {
            // Read on another device.
            try ChatDatabase.change(known.id, &transaction) { $0.isRead = true }
        } else {
            // Another program has moved it, perhaps to a place where it is no message.
            try show(node, newPath, insteadOf: known, &transaction)
        }
    }

    public func didDiscoverModifiedNode(
        _ node: Node, with change: NodeChange, at path: TreePath, in transaction: inout TreeTransaction
    ) throws {
        if path.trunk == .home, path.depth == 1 { return try mark(node, &transaction) }
        guard let known = try ChatDatabase.message(node.id.text, transaction) else {
            // It could not be shown before.
            if path.depth <= 2 { try didDiscoverNewNode(node, at: path, in: &transaction) }
            return
        }
        if change.contains(.tags), known.state == .draft, Self.text(node, Self.draftTag) == nil {
            try ChatDatabase.change(known.id, &transaction) { $0.state = .sent }
        }
        guard change.contains(.origin), let origin = node.origin else { return }
        // It was shown before this device has verified it.
        if known.isMine || known.counter == 0 { return try show(node, path, insteadOf: known, &transaction) }
        try ChatDatabase.change(known.id, &transaction) {
            ($0.missing, $0.isForked) = (origin.missing, origin.isForked)
        }
    }

    private func show(
        _ node: Node, _ path: TreePath, insteadOf known: Message, _ transaction: inout TreeTransaction
    ) throws {
        try ChatDatabase.remove(known.id, &transaction)
        try didDiscoverNewNode(node, at: path, in: &transaction)
        let again = try ChatDatabase.change(known.id, &transaction) {
            $0.attachments = known.attachments
            if $0.isMine { $0.state = known.state }
        }
        if again?.state == .queued { try transaction.set([], ChatDatabase.outgoing, known.id) }
    }

    public func didDiscoverDeletedNode(_ node: Node, at path: TreePath, in transaction: inout TreeTransaction) throws {
        switch (path.trunk, path.depth) {
        case (.home, 1):
            // A node that had a number belongs to a conversation whose own node is still there.
            guard let person = ConversationName.person(node.name), try ConversationName.of(person) == node.name else {
                return
            }
            try ChatDatabase.remove(conversation: person.text, &transaction)
        case (.home, 2), (.inbox, 1): try ChatDatabase.remove(node.id.text, &transaction)
        case (.home, 3), (.inbox, 2): try detached(node, &transaction)
        default: break
        }
    }

    public func didDeliver(_ node: NodeID, to receiver: UserID, in transaction: inout TreeTransaction) throws {
        try ChatDatabase.change(node.text, &transaction) { $0.state = .sent }
        try transaction.set(nil, ChatDatabase.outgoing, node.text)
    }

    /// A conversation appeared, or its mark changed.
    private func mark(_ node: Node, _ transaction: inout TreeTransaction) throws(TreeError) {
        guard let person = ConversationName.person(node.name) else { return }
        var conversation = try ChatDatabase.open(person.text, at: node.changed ?? Self.now, &transaction)
        if try ConversationName.of(person) == node.name {
            conversation.isMarked = Self.text(node, Self.unreadTag) != nil
        }
        try ChatDatabase.set(conversation, &transaction)
    }

    // MARK: - Messages

    /// A message appeared: in the inbox, or in a conversation, where another device has put it.
    private func arrived(_ node: Node, _ path: TreePath, _ transaction: inout TreeTransaction) throws(TreeError) {
        guard let (author, conversation) = author(of: node, at: path), author == me || author == conversation,
            node.origin.map(isPrivate) ?? true, (try? ConversationName.of(conversation)) != nil,
            try ChatDatabase.message(node.id.text, transaction) == nil,
            let bytes = try transaction.content(of: node.id)?.data, let content = MessageContent(bytes)
        else { return }
        let (isMine, origin) = (author == me, node.origin)
        let sent = min(max(0, origin?.sent ?? content.sent), Self.timeMax)
        let isDraft = isMine && Self.text(node, Self.draftTag) != nil
        // A clock that is wrong puts no message far into the future.
        let latest = (node.changed ?? Self.now) + Self.clockErrorMax
        _ = try ChatDatabase.insert(
            Message(
                id: node.id.text, conversation: conversation.text, isMine: isMine, text: content.text, sent: sent,
                order: min(sent, latest), counter: origin?.counter ?? 0,
                state: isDraft ? .draft : isMine ? .sent : .received,
                isRead: path.trunk == .home, missing: origin?.missing ?? 0, isForked: origin?.isForked ?? false),
            chain: origin.map { "\($0.device) \(Hex.encode($0.conversation.octets))" },
            named: origin?.name ?? Self.text(node, Self.nameTag), &transaction)
    }

    /// Milliseconds by which an author's clock may be ahead of the server's.
    private static let clockErrorMax: Int64 = 300_000
    /// The year 9999, in milliseconds since 1970.
    private static let timeMax: Int64 = 253_402_300_799_999

    /// Who wrote a message, and the person of its conversation; nil for a node that is in no conversation.
    private func author(of node: Node, at path: TreePath) -> (author: UserID, conversation: UserID)? {
        guard path.trunk == .home else {
            // In the inbox are only messages whose author the tree has verified.
            return node.origin.map { ($0.author, $0.author) }
        }
        guard let person = ConversationName.person(path.names[0]) else { return nil }
        // Without either it waits until this device has verified it.
        let named = Self.text(node, Self.authorTag).flatMap { try? UserID($0) }
        return (node.origin?.author ?? named).map { ($0, person) }
    }

    /// The text of a pair of a node.
    private static func text(_ node: Node, _ tag: String) -> String? {
        node.tags.first { $0.key == tag }.flatMap { String(validating: $0.value, as: UTF8.self) }
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
