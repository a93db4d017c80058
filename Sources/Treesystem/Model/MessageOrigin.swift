import ThicketCrypto
public import ThicketProtocol
public import ThicketTree

/// What is proved of a message: who wrote it, and what is known of the messages before it (decision 0067). An
/// attachment has the origin of its message.
public struct MessageOrigin: Sendable, Hashable {
    /// The account that wrote the message; its signature was verified.
    public let author: UserID
    /// The login name that the author says it has. Not verified: the key log has to give the author's keys for it.
    public let name: String?
    /// The author's device, a random number: each device counts its messages in a conversation.
    public let device: UInt64
    /// The conversation.
    public let conversation: ConversationID
    /// The message's number among those of the device in the conversation, from 1.
    public let counter: UInt64
    /// Milliseconds since 1970 at which the author made the message, by its own clock.
    public let sent: Int64
    /// Messages of the device that should be before this one and have not arrived.
    public internal(set) var missing: UInt64 = 0
    /// Whether the author's device has shown another message with the number of this one, or of the one before it.
    public internal(set) var isForked = false
    /// The hash of the statement.
    let statement: Digest256
    /// Whether keys of the author have verified it on this device; the app sees no other.
    var isVerified = false

    init(_ statement: OriginStatement) {
        let fields = statement.fields
        (author, name, device, conversation) = (fields.author, fields.name, fields.device, fields.conversation)
        (counter, sent, self.statement) = (fields.counter, fields.sent, statement.hash)
    }

    /// The origin of a node that was opened, where this device knows it from before.
    ///
    /// - Parameter known: of the same node; it stays while the statement is the same.
    /// - Returns: nil for a node that is not a message.
    static func kept(by opened: OpenedNode, after known: MessageOrigin?) -> MessageOrigin? {
        // A message in the inbox, or an attachment, gets its origin when it is verified.
        if opened.isFromOthers { return known }
        guard let statement = (try? MessageCheck.keptStatement(of: opened)) ?? nil else { return nil }
        if let known, known.statement == statement.hash { return known }
        return MessageOrigin(statement)
    }

    // MARK: - In the store

    /// Version (2) ‖ verified, forked (1 each) ‖ device ‖ counter ‖ sent ‖ missing (8 each) ‖ conversation ‖ hash ‖
    /// bytes of the author (2) ‖ author ‖ name. Version 1 has neither the number nor the name.
    var octets: [UInt8] {
        let user = Array(author.text.utf8)
        return [2, isVerified ? 1 : 0, isForked ? 1 : 0] + device.bigEndianBytes + counter.bigEndianBytes
            + UInt64(sent).bigEndianBytes + missing.bigEndianBytes + conversation.octets + statement.bytes
            + [UInt8(user.count >> 8), UInt8(user.count & 255)] + user + Array((name ?? "").utf8)
    }

    private static let prefixBytes = 3 + 4 * 8 + 2 * Digest256.byteCount

    init?(octets: [UInt8]) {
        let (end, isNamed) = (Self.prefixBytes, octets.first == 2)
        guard octets.count > end + (isNamed ? 2 : 0), isNamed || octets[0] == 1 else { return nil }
        let count = isNamed ? Int(octets[end]) << 8 | Int(octets[end + 1]) : octets.count - end
        let user = end + (isNamed ? 2 : 0)
        guard user + count <= octets.count,
            let conversation = ConversationID(octets: octets[35..<67]), let statement = Digest256(octets[67..<99]),
            let text = String(validating: octets[user..<user + count], as: UTF8.self),
            let login = String(validating: octets[(user + count)...], as: UTF8.self), let author = try? UserID(text)
        else { return nil }
        name = login.isEmpty ? nil : login
        func number(_ place: Int) -> UInt64 { octets[place..<place + 8].reduce(0) { $0 << 8 | UInt64($1) } }
        guard let sent = Int64(exactly: number(19)) else { return nil }
        (self.author, self.conversation, self.statement, self.sent) = (author, conversation, statement, sent)
        (device, counter, missing) = (number(3), number(11), number(27))
        (isVerified, isForked) = (octets[1] == 1, octets[2] == 1)
    }
}

extension UInt64 {
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
