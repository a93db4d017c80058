import FoundationEssentials
import Glibc
public import ThicketClient
public import ThicketProtocol
public import ThicketTreesystem

/// Everything that WhatsZapp does with the tree: this class puts conversations and messages into it, and reacts to what
/// other devices and other people have put there. Nothing else of the app knows the tree.
///
/// ```
///                (alice's tree)
///                 /          \
///              (home)      (inbox)       what she has not read
///             /      \         \
///          (bob)   (carol)    (msg3)
///         /     \        \
///     (msg1)  (msg2)    (msg4)
///                           \
///                         (imgA)
/// ```
///
/// A message to Bob becomes a node below the conversation with him, and the server copies it into his inbox. There it
/// stays until he reads it on one of his devices, which moves it into his conversation.
///
/// Everything works without a connection. Changes are on this device's disk when their call returns, and are sent when
/// the server can be reached.
public final class ChatManager: TreeDelegate {
    /// The account's id.
    public let me: UserID
    private let session: ClientSession

    /// - Throws: `noKeys` for a session without the account's keys.
    public init(_ session: ClientSession) throws(TreeError) {
        guard let account = session.account, let me = try? UserID(account.user) else {
            throw TreeError(.noKeys, "the session has no keys of its account")
        }
        (self.session, self.me) = (session, me)
    }

    /// The tree of the account. A device reads all nodes of it, but contents only up to the size that fits into a record:
    /// texts, no files.
    public var tree: Treesystem {
        get async throws(TreeError) {
            try await session.tree(delegate: self, nameConflicts: .adopt)
        }
    }

    // MARK: - People

    /// The account of a login name, once the key log has proved its keys.
    ///
    /// - Throws: `absent`; `needsConfirmation` and `alarm` when the keys are not those that were known.
    public func person(named name: String) async throws(PeopleError) -> UserID {
        let people = try await session.people()
        let keys = try await people.addContact(named: name)
        guard let person = try? UserID(keys.user) else { throw .absent }
        return person
    }

    // MARK: - Reading what is here

    /// Conversations, the one with the newest message first.
    ///
    /// - Parameter last: the page begins behind it.
    public func conversations(after last: Conversation? = nil, limit: Int = 50) async throws(TreeError)
        -> [Conversation]
    {
        let row = last.map { AppValue(key: $0.id, order: $0.lastActivity) }
        return try await tree.page(of: ChatDatabase.conversations, after: row, isDescending: true, limit: limit)
            .compactMap { Stored.value($0.value) }
    }

    /// The conversation with a person; nil when there is none.
    public func conversation(with person: UserID) async throws(TreeError) -> Conversation? {
        Stored.value(try await tree.value(ChatDatabase.conversations, person.text))
    }

    /// Messages of a conversation that are on this device, the newest first.
    ///
    /// - Parameter last: the page begins before it.
    public func messages(
        with person: UserID, before last: Message? = nil, limit: Int = 50
    ) async throws(TreeError) -> [Message] {
        let row = last.map { AppValue(key: $0.id, order: $0.order) }
        let collection = ChatDatabase.messages(person.text)
        return try await tree.page(of: collection, after: row, isDescending: true, limit: limit)
            .compactMap { Stored.value($0.value) }
    }

    /// A message; nil when none with this id is on this device.
    public func message(_ id: String) async throws(TreeError) -> Message? {
        let tree = try await tree
        guard let place: String = Stored.value(try await tree.value(ChatDatabase.places, id)) else { return nil }
        return Stored.value(try await tree.value(ChatDatabase.messages(place), id))
    }

    // MARK: - Conversations

    /// Begins the conversation with a person, unless there is one.
    ///
    /// - Throws: `invalidName`, `limit`, `store`, `closed`.
    @discardableResult
    public func openConversation(with person: UserID) async throws(TreeError) -> Conversation {
        let time = Self.now
        return try await tree.batch { editor throws(TreeError) in
            try Self.makeNode(of: person, &editor)
            return try ChatDatabase.open(person.text, at: time, &editor)
        }
    }

    /// Two devices may do this at once: the tree makes one node of two that have one name and nothing else.
    @discardableResult
    static func makeNode(of person: UserID, _ editor: inout TreeEditor) throws(TreeError) -> TreePath {
        let path = TreePath(.home, names: [try ConversationName.of(person)])
        if try editor.node(at: path) == nil { try editor.createNode(at: path, content: NodeSections()) }
        return path
    }

    // MARK: - Sending

    /// A file that goes with a message.
    public struct File: Sendable {
        /// The name that the other person sees.
        public let name: NodeName
        /// The path of the file. It is sealed when `send` returns: what happens to it later changes nothing.
        public let path: String
        /// A small picture of it, made by the app; nil: none.
        public let thumbnail: [UInt8]?

        /// Describes a file.
        public init(name: NodeName, path: String, thumbnail: [UInt8]? = nil) {
            (self.name, self.path, self.thumbnail) = (name, path, thumbnail)
        }
    }

    /// Sends a text, with files. It is in the conversation when the call returns; `state` of the message says when the
    /// other person has it. Messages of one conversation arrive in their order, and a message with its files at once.
    ///
    /// - Parameter files: with names that differ; at most 63.
    /// - Throws: `content` for a text of more than 7,000 bytes, and for a file that cannot be read; `nameTaken` for two
    ///   files of one name; `receiver` for the own account; `limit`, `store`, `closed`.
    @discardableResult
    public func send(_ text: String, to person: UserID, files: [File] = []) async throws(TreeError) -> Message {
        guard text.utf8.count <= MessageContent.textBytesMax else {
            throw TreeError(.content, "a message has at most \(MessageContent.textBytesMax) bytes of text")
        }
        guard person != me else { throw TreeError(.receiver, "a message goes to another account") }
        let time = Self.now
        let name = try Self.name(NodeID.random().text)
        let tree = try await tree
        let (draft, path) = try await tree.batch { editor throws(TreeError) in
            let path = try Self.makeNode(of: person, &editor).appending(name)
            let content = MessageContent(text: text, sent: time)
            let node = try editor.createNode(at: path, content: NodeSections(data: .bytes(content.bytes)))
            let message = try ChatDatabase.insert(
                Message(
                    id: node.id.text, conversation: person.text, isMine: true, text: text, sent: time, order: time,
                    counter: 0, state: .draft, isRead: true), &editor)
            return files.isEmpty ? (try Self.copy(message, to: person, [], &editor), path) : (message, path)
        }
        if files.isEmpty { return draft }
        do throws(TreeError) {
            var attachments = [Attachment]()
            for file in files { attachments.append(try await Self.attach(file, below: path, tree)) }
            let all = attachments
            return try await tree.batch { editor throws(TreeError) in
                try Self.copy(draft, to: person, all, &editor)
            }
        } catch {
            // Nothing of it was sent.
            try await remove(draft)
            throw error
        }
    }

    private static func attach(
        _ file: File, below message: TreePath, _ tree: Treesystem
    ) async throws(TreeError) -> Attachment {
        let sections = NodeSections(
            metadata: .bytes([]), thumbnail: .bytes(file.thumbnail ?? []), data: .file(file.path))
        let node = try await tree.createNode(at: message.appending(file.name), content: sections)
        var bytes = stat()
        let size = stat(file.path, &bytes) == 0 ? Int64(bytes.st_size) : 0
        return Attachment(
            id: node.id.text, name: file.name.text, bytes: size, hasThumbnail: file.thumbnail?.isEmpty == false)
    }

    /// The server makes the copy: text and files are uploaded once, for this account and for the other person.
    private static func copy(
        _ draft: Message, to person: UserID, _ attachments: [Attachment], _ editor: inout TreeEditor
    ) throws(TreeError) -> Message {
        guard let id = NodeID(text: draft.id), var conversation = try ChatDatabase.conversation(person.text, editor)
        else { throw TreeError(.notFound, "the message was removed") }
        let earlier = conversation.lastSent.map { OperationID($0) }
        let copies = try editor.copy(id, toInboxOf: [person], after: earlier.map { [$0] } ?? [])
        conversation.lastSent = copies.first?.number
        try ChatDatabase.set(conversation, &editor)
        let sent = try ChatDatabase.change(draft.id, &editor) {
            $0.state = .queued
            for attachment in attachments { $0.attach(attachment) }
        }
        guard let sent else { throw TreeError(.notFound, "the message was removed") }
        return sent
    }

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

    private static func moveUnread(
        of person: UserID, _ editor: inout TreeEditor
    ) throws(TreeError) -> [Message] {
        let unread = try ChatDatabase.unreadMessages(person.text, limit: movedMax, editor)
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
        // The author has chosen the name, and may have chosen one that is there. Every device finds the same other one.
        let isFree = try editor.node(at: conversation.appending(node.name)) == nil
        let name = isFree ? node.name : try name(node.id.text)
        try editor.move(node.id, to: conversation.appending(name))
        // Another device believes that the message is this person's before it has verified the signature itself.
        guard let tag = NodeMetadata.AppTag(authorTag, Array(person.text.utf8)) else { return }
        try editor.setTags(of: node.id, [tag])
    }

    /// The pair of a node that names the author of a message that was moved.
    static let authorTag = "from"

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
        try await tree.batch { editor throws(TreeError) in
            for message in try ChatDatabase.unreadMessages(person.text, limit: .max, editor) {
                if let id = NodeID(text: message.id), try editor.node(id) != nil { try editor.delete(id) }
                try ChatDatabase.remove(message.id, &editor)
            }
            let path = TreePath(.home, names: [try ConversationName.of(person)])
            if let node = try editor.node(at: path) { try editor.delete(node.id) }
            try ChatDatabase.remove(conversation: person.text, &editor)
        }
    }

    // MARK: - Helpers

    /// Milliseconds since 1970.
    static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    private static func name(_ text: String) throws(TreeError) -> NodeName {
        do throws(NodeName.Fault) { return try NodeName(text) } catch {
            throw TreeError(.invalidName, error.description)
        }
    }
}
