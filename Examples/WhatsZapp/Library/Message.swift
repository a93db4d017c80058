/// One message of a conversation.
///
/// In the tree it is a node: below the conversation's node, or below `inbox` while it is unread. Its content is a small
/// JSON object (`MessageContent`), its attachments are the nodes below it. The author is not in the content: the tree
/// has verified the signature of another person's message before it shows the node.
public struct Message: Sendable, Hashable, Codable, Identifiable {
    /// What has become of a message.
    public enum State: String, Sendable, Codable {
        /// Its files are being added. If the program has ended meanwhile, it was sent to no person, and waits to be
        /// removed.
        case draft
        /// Written here; the server does not have it yet.
        case queued
        /// The server has put it into the other person's inbox; of a message of another device: that device has sent it,
        /// or is about to.
        case sent
        /// The server refuses it for good, or its receiver does not accept messages of this account.
        case failed
        /// It is another person's.
        case received
    }

    /// The node's id.
    public let id: String
    /// The account of the conversation's other person.
    public let conversation: String
    /// Whether this account wrote it.
    public let isMine: Bool
    /// The text.
    public internal(set) var text: String
    /// When it was written, in milliseconds since 1970, by its author's clock.
    public let sent: Int64
    /// Its place in time. An author's own messages are always in their order, and a wrong clock puts none into the
    /// future.
    public internal(set) var order: Int64
    /// Its number among the messages of the author's device; 0 for a message of this account.
    public let counter: UInt64
    /// What has become of it.
    public internal(set) var state: State
    /// Whether a device of this account has shown it to its user.
    public internal(set) var isRead: Bool
    /// Messages of the same device that should be before it and have not arrived: it was held back, or is late.
    public internal(set) var missing: UInt64 = 0
    /// Whether the author's device has shown another message in its place.
    public internal(set) var isForked: Bool = false
    /// Files that belong to it, in the order of their names.
    public internal(set) var attachments: [Attachment] = []
}
