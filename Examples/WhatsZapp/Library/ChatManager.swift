import FoundationEssentials
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
    let session: ClientSession
    private let app: AppID

    /// - Throws: `noKeys` for a session without the account's keys.
    public init(_ session: ClientSession) throws(TreeError) {
        guard let account = session.account, let me = try? UserID(account.user), let app = try? AppID(account.app)
        else { throw TreeError(.noKeys, "the session has no keys of its account") }
        (self.session, self.me, self.app) = (session, me, app)
    }

    /// Whether a message belongs to the conversation of this account and its author, and of no further account.
    func isPrivate(_ origin: MessageOrigin) -> Bool {
        origin.conversation == ConversationID(app: app, participants: [me, origin.author])
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
        let name = try ConversationName.of(person)
        let path = TreePath(.home, names: [name])
        // A node of another program may have the name in other letters: then this one cannot be made.
        if try editor.node(at: path)?.name != name { try editor.createNode(at: path, content: NodeSections()) }
        return path
    }

    // MARK: - Helpers

    /// Milliseconds since 1970.
    static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

    static func name(_ text: String) throws(TreeError) -> NodeName {
        do throws(NodeName.Fault) { return try NodeName(text) } catch {
            throw TreeError(.invalidName, error.description)
        }
    }
}
