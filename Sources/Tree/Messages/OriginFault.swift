/// Why a message is not from the account that it names, or a statement cannot be made. Contains nothing of the message.
public enum OriginFault: String, Error, Sendable, Hashable, CustomStringConvertible {
    /// The record has no signature.
    case unsigned
    /// The server names another sender than the record.
    case otherSender = "other-sender"
    /// The metadata has no statement.
    case noStatement = "no-statement"
    /// The statement is not one that a version writes.
    case malformed
    /// The statement is of another author, or of another key of the author, than the record.
    case otherAuthor = "other-author"
    /// The statement is of another app.
    case otherApp = "other-app"
    /// This account is not among the recipients.
    case notRecipient = "not-recipient"
    /// The statement is of another message, or does not list the attachment.
    case otherNode = "other-node"
    /// The statement is of another content.
    case otherContent = "other-content"
    /// The keys of the author do not verify the record's signature.
    case badSignature = "bad-signature"
    /// The keys of the author do not verify the statement's signature.
    case badStatement = "bad-statement"
    /// Another message with another statement was accepted under this id.
    case replaced
    /// A field is outside its bounds: recipients, nodes, counter or time.
    case outOfBounds = "out-of-bounds"
    /// The statement has more than `OriginStatement.bytesMax` bytes.
    case tooLarge = "too-large"

    /// A sentence without content of the message.
    public var description: String {
        switch self {
        case .unsigned: "the record of the message is not signed"
        case .otherSender: "the server names another sender than the record"
        case .noStatement: "the message has no statement of its origin"
        case .malformed: "the statement of the origin is damaged"
        case .otherAuthor: "the statement is of another author than the record"
        case .otherApp: "the statement is of another app"
        case .notRecipient: "the message was not sent to this account"
        case .otherNode: "the statement does not list the node"
        case .otherContent: "the content is not the one of the statement"
        case .badSignature: "the record is not signed by its author"
        case .badStatement: "the statement is not signed by its author"
        case .replaced: "another message was received under this id"
        case .outOfBounds: "a message has 1 to 256 recipients without the author, and at most 63 attachments"
        case .tooLarge: "a message has too many recipients and attachments together"
        }
    }
}
