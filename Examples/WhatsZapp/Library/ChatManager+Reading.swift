public import ThicketProtocol
public import ThicketTreesystem

/// What this account reads and removes.
extension ChatManager {
    // MARK: - Reading

    /// Most messages that one change moves.
    private static let movedMax = 100

    /// The user has seen the unread messages of a person: they move out of the inbox into the conversation, here and on
    /// all other devices.
    ///
    /// - Returns: the messages, the oldest first.
    @discardableResult
    public func read(_ person: UserID) async throws(TreeError) -> [Message] {
        let tree = try await tree
        var all = [Message]()
        while true {
            let seen = try await tree.batch { editor throws(TreeError) in try Self.moveUnread(of: person, &editor) }
            all += seen
            if seen.count < Self.movedMax { return all }
        }
    }

    /// Marks a conversation as unread, on all devices. Its messages stay where they are.
    ///
    /// - Throws: `notFound` when there is no conversation with the person; `limit`, `store`, `closed`.
    public func markUnread(_ person: UserID) async throws(TreeError) {
        try await tree.batch { editor throws(TreeError) in try Self.mark(person, isUnread: true, &editor) }
    }

    /// The pair of a conversation's node that marks it as unread.
    static let unreadTag = "unread"

    private static func mark(
        _ person: UserID, isUnread: Bool, _ editor: inout TreeEditor
    ) throws(TreeError) {
        guard var conversation = try ChatDatabase.conversation(person.text, editor) else {
            throw TreeError(.notFound, "there is no conversation with this person")
        }
        guard conversation.isMarked != isUnread else { return }
        let path = try makeNode(of: person, &editor)
        if let node = try editor.node(at: path) {
            let tag = isUnread ? NodeMetadata.AppTag(unreadTag, []) : nil
            try editor.setTags(of: node.id, [tag].compactMap { $0 })
        }
        conversation.isMarked = isUnread
        try ChatDatabase.set(conversation, &editor)
    }

    private static func moveUnread(
        of person: UserID, _ editor: inout TreeEditor
    ) throws(TreeError) -> [Message] {
        let unread = try ChatDatabase.unreadMessages(person.text, limit: movedMax, editor)
        if try ChatDatabase.conversation(person.text, editor)?.isMarked == true {
            try mark(person, isUnread: false, &editor)
        }
        if unread.isEmpty { return [] }
        let path = try makeNode(of: person, &editor)
        for message in unread {
            if let id = NodeID(text: message.id), let node = try editor.node(id) {
                try move(node, from: person, to: path, &editor)
            }
            try ChatDatabase.change(message.id, &editor) { $0.isRead = true }
        }
        return unread
    }

    private static func move(
        _ node: Node, from person: UserID, to conversation: TreePath, _ editor: inout TreeEditor
    ) throws(TreeError) {
        // The name that the author has given is not used: it could be one that is there. All devices choose this one.
        var path = conversation.appending(try self.name(node.id.text))
        var number = 2
        while try editor.node(at: path) != nil {
            path = conversation.appending(try self.name("\(node.id.text) \(number)"))
            number += 1
        }
        try editor.move(node.id, to: path)
        // Another device believes that the message is this person's before it has verified the signature itself.
        let author = NodeMetadata.AppTag(authorTag, Array(person.text.utf8))
        let name = node.origin?.name.flatMap { NodeMetadata.AppTag(nameTag, Array($0.utf8)) }
        try editor.setTags(of: node.id, [author, name].compactMap { $0 })
    }

    /// The pairs of a node that name the author of a message that was moved: the account, and the login name that the
    /// author gives.
    static let (authorTag, nameTag) = ("from", "name")

    // MARK: - Removing

    /// Removes a message from this account's devices. The other person keeps it.
    public func remove(_ message: Message) async throws(TreeError) {
        try await tree.batch { editor throws(TreeError) in
            if let id = NodeID(text: message.id), try editor.node(id) != nil { try editor.delete(id) }
            try ChatDatabase.remove(message.id, &editor)
        }
    }

    /// Removes a conversation with all of its messages from this account's devices; the unread ones too.
    public func removeConversation(with person: UserID) async throws(TreeError) {
        let tree = try await tree
        // One whose name was taken has a number.
        let nodes = try await tree.children(of: .trunk(.home)).filter { ConversationName.person($0.name) == person }
            .map(\.id.text)
        try await tree.batch { editor throws(TreeError) in
            for message in try ChatDatabase.unreadMessages(person.text, limit: .max, editor) {
                if let id = NodeID(text: message.id), try editor.node(id) != nil { try editor.delete(id) }
                try ChatDatabase.remove(message.id, &editor)
            }
            for text in nodes {
                if let id = NodeID(text: text), try editor.node(id) != nil { try editor.delete(id) }
            }
            try ChatDatabase.remove(conversation: person.text, &editor)
        }
    }
}
