import FoundationEssentials
import ThicketCommandLine
import WhatsZapp

/// Conversations and messages as lines, for people or for programs.
struct ChatText: Sendable {
    private let names: PersonNames
    private let isJSON: Bool

    init(_ names: PersonNames, isJSON: Bool) { (self.names, self.isJSON) = (names, isJSON) }

    func line(_ conversation: Conversation) -> String {
        if isJSON { return Self.json(ConversationLine(conversation, names.name(of: conversation))) }
        let mark = conversation.isMarked ? "(unread) " : ""
        let unread = conversation.unread > 0 ? "(\(conversation.unread)) " : mark
        let time = conversation.newest == nil ? "" : "\(Self.time(conversation.lastActivity))  "
        return "\(Screen.safe(names.name(of: conversation)))  \(time)\(unread)"
            + "\(Screen.safe(Self.oneLine(conversation.preview)))\n"
    }

    /// - Parameter name: of the other person.
    func line(_ message: Message, with name: String) -> String {
        if isJSON { return Self.json(MessageLine(message)) }
        let author = message.isMine ? "me" : name
        let mark =
            switch message.state {
            case .draft: " (not sent)"
            case .queued: " …"
            case .sent: " ✓"
            case .failed: " !"
            case .received: message.isRead ? "" : " *"
            }
        var line = "\(Self.time(message.order))  \(Screen.safe(author)):\(mark) \(Screen.safe(message.text))\n"
        for file in message.attachments { line += "    \(Screen.safe(file.name)) (\(file.bytes) bytes)\n" }
        if message.missing > 0 { line += "    ! \(message.missing) messages before this one have not arrived\n" }
        if message.isForked { line += "    ! the author's device has shown another message in its place\n" }
        return line
    }

    private static func oneLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    private static func time(_ milliseconds: Int64) -> String {
        let date = Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
        return date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: false))
    }

    static func json(_ value: some Encodable) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = (try? encoder.encode(value)) ?? Data()
        return String(decoding: bytes, as: UTF8.self) + "\n"
    }
}

/// A conversation for programs.
private struct ConversationLine: Encodable {
    let person: String
    let name: String
    let lastActivity: Int64
    let unread: Int
    let isMarked: Bool
    let preview: String

    init(_ conversation: Conversation, _ name: String) {
        (person, lastActivity, unread) = (conversation.id, conversation.lastActivity, conversation.unread)
        (preview, isMarked, self.name) = (conversation.preview, conversation.isMarked, name)
    }
}

/// What `status` prints.
struct StatusLine: Encodable {
    let account: String
    var conversations = 0
    /// Unread messages.
    var unread = 0
    /// Changes that the server has not confirmed.
    var waiting = 0

    init(account: String) { self.account = account }

    var text: String {
        "account \(Screen.safe(account))\n\(conversations) conversations, \(unread) unread messages\n"
            + "\(waiting) changes wait here for the server\n"
    }
}

/// A message for programs.
struct MessageLine: Encodable {
    let event = "message"
    let id: String
    let person: String
    let isMine: Bool
    let text: String
    let sent: Int64
    let order: Int64
    let state: String
    let isRead: Bool
    let missing: UInt64
    let attachments: [String]

    init(_ message: Message) {
        (id, person, isMine, text) = (message.id, message.conversation, message.isMine, message.text)
        (sent, order, state, isRead) = (message.sent, message.order, message.state.rawValue, message.isRead)
        (missing, attachments) = (message.missing, message.attachments.map(\.name))
    }
}
