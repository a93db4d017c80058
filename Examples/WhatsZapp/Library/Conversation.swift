/// A conversation with one other person, as the list of conversations shows it.
///
/// In the tree it is a node below `home` whose name is the person's account (`ConversationName`): two devices that start
/// the same conversation at once give their nodes one name, and the tree makes one of them. The node has no content:
/// everything here is computed from the messages, and is kept in the same transaction as they are.
public struct Conversation: Sendable, Hashable, Codable, Identifiable {
    /// The id of the other person's account.
    public let id: String
    /// The login name that the person's messages give; nil before the first one. Not verified: the key log has to give
    /// the account for it.
    public internal(set) var name: String?
    /// Where the conversation is in the list: the place in time of its newest message, in milliseconds since 1970; of a
    /// conversation without messages, when it was started or last changed.
    public internal(set) var lastActivity: Int64
    /// Messages of the person that wait in the inbox.
    public internal(set) var unread: Int = 0
    /// Whether the user has marked it as unread; reading it clears the mark, on all devices.
    public internal(set) var isMarked: Bool = false
    /// The beginning of the newest message.
    public internal(set) var preview: String = ""
    /// The newest message; nil: none is known.
    public internal(set) var newest: String?
    /// The queue's number of the last message that was sent from this device: the next one waits for it.
    var lastSent: Int64?

    /// Characters of a preview.
    static let previewMax = 80

    init(_ id: String, at time: Int64) { (self.id, lastActivity) = (id, time) }

    /// Shows another newest message; nil: none is left, and the conversation stays where it is in the list.
    mutating func show(_ message: Message?) {
        newest = message?.id
        preview = String((message?.text ?? "").prefix(Self.previewMax))
        if let message { lastActivity = message.order }
    }
}
