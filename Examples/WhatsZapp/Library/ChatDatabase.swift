import ThicketTreesystem

/// The app's database: the two kinds of objects of the seed, with their two indexes.
///
/// - Conversations, by their last activity.
/// - Messages of each conversation, by their place in time.
///
/// Two more tables serve them: which messages are unread, and in which conversation a message is. All of them are
/// values that the tree keeps for the app (`ChatRows`); the order of each is its index.
enum ChatDatabase {
    static let conversations = "conversations"
    static let places = "places"
    private static let chains = "chains"
    /// Messages of this device whose copy the server does not have yet.
    static let outgoing = "outgoing"

    static func messages(_ conversation: String) -> String { "messages \(conversation)" }
    static func unread(_ conversation: String) -> String { "unread \(conversation)" }

    // MARK: - Reading

    static func conversation(_ id: String, _ rows: some ChatRows) throws(TreeError) -> Conversation? {
        Stored.value(try rows.value(conversations, id))
    }

    /// A message, wherever it is.
    static func message(_ id: String, _ rows: some ChatRows) throws(TreeError) -> Message? {
        guard let place: String = Stored.value(try rows.value(places, id)) else { return nil }
        return Stored.value(try rows.value(messages(place), id))
    }

    /// Unread messages of a conversation, the oldest first.
    static func unreadMessages(
        _ conversation: String, limit: Int, _ rows: some ChatRows
    ) throws(TreeError) -> [Message] {
        var found = [Message]()
        for row in try rows.page(of: unread(conversation), after: nil, isDescending: false, limit: limit) {
            if let message = try message(row.key, rows) { found.append(message) }
        }
        return found
    }

    // MARK: - Conversations

    /// The conversation with a person, which is made if there is none.
    static func open(
        _ id: String, at time: Int64, _ rows: inout some ChatRows
    ) throws(TreeError) -> Conversation {
        if let known = try conversation(id, rows) { return known }
        let new = Conversation(id, at: time)
        try set(new, &rows)
        return new
    }

    static func set(_ conversation: Conversation, _ rows: inout some ChatRows) throws(TreeError) {
        try rows.set(
            Stored.bytes(of: conversation), conversations, conversation.id, order: conversation.lastActivity)
    }

    /// Removes a conversation with its messages, but for unread ones: they are in the inbox, and keep the conversation.
    static func remove(conversation id: String, _ rows: inout some ChatRows) throws(TreeError) {
        var (last, unread): (AppValue?, Message?) = (nil, nil)
        while case let page = try rows.page(of: messages(id), after: last, isDescending: false, limit: 100),
            !page.isEmpty
        {
            for row in page {
                let message: Message? = Stored.value(row.value)
                if let message, !message.isRead { unread = message } else { try forget(row.key, in: id, &rows) }
            }
            last = page.last
        }
        guard let unread, var conversation = try conversation(id, rows) else {
            return try rows.set(nil, conversations, id, order: 0)
        }
        conversation.show(unread)
        conversation.isMarked = false
        try set(conversation, &rows)
    }

    // MARK: - Messages

    /// Stores a message that was not known, and shows it in its conversation.
    ///
    /// - Parameters:
    ///   - chain: names the device that counts its messages, and what it counts; nil: the message has no number.
    ///   - name: the login name that the author gives.
    static func insert(
        _ new: Message, chain: String? = nil, named name: String? = nil, _ rows: inout some ChatRows
    ) throws(TreeError) -> Message {
        var message = new
        if let chain { message.order = try place(of: message, in: chain, &rows) }
        try set(message, &rows)
        try rows.set(Stored.bytes(of: message.conversation), places, message.id, order: message.order)
        var conversation = try open(message.conversation, at: message.order, &rows)
        conversation.name = name ?? conversation.name
        if !message.isRead {
            conversation.unread += 1
            try rows.set([], unread(message.conversation), message.id, order: message.order)
        }
        if conversation.newest == nil || message.order >= conversation.lastActivity { conversation.show(message) }
        try set(conversation, &rows)
        return message
    }

    /// A later message of a device is behind the earlier one, whatever the device's clock says.
    private static func place(
        of message: Message, in chain: String, _ rows: inout some ChatRows
    ) throws(TreeError) -> Int64 {
        let last: Newest? = Stored.value(try rows.value(chains, chain))
        if let last, message.counter <= last.counter { return message.order }
        let order = max(message.order, (last?.order ?? .min + 1) + 1)
        let newest = Newest(counter: message.counter, order: order)
        try rows.set(Stored.bytes(of: newest), chains, chain, order: 0)
        return order
    }

    /// Number and place of a device's newest message.
    private struct Newest: Codable {
        let counter: UInt64
        let order: Int64
    }

    /// Replaces what is stored of a message.
    static func set(_ message: Message, _ rows: inout some ChatRows) throws(TreeError) {
        try rows.set(Stored.bytes(of: message), messages(message.conversation), message.id, order: message.order)
    }

    /// Changes a message if it is known.
    ///
    /// - Returns: the message as it is then.
    @discardableResult
    static func change(
        _ id: String, _ rows: inout some ChatRows, _ body: (inout Message) -> Void
    ) throws(TreeError) -> Message? {
        guard var message = try message(id, rows) else { return nil }
        let wasRead = message.isRead
        body(&message)
        try set(message, &rows)
        guard var conversation = try conversation(message.conversation, rows) else { return message }
        if !wasRead, message.isRead {
            conversation.unread = max(0, conversation.unread - 1)
            try rows.set(nil, unread(message.conversation), id, order: 0)
        }
        if conversation.newest == id { conversation.show(message) }
        try set(conversation, &rows)
        return message
    }

    /// Removes a message; the one before it is the newest then, if it was that.
    static func remove(_ id: String, _ rows: inout some ChatRows) throws(TreeError) {
        guard let message = try message(id, rows) else { return }
        try forget(id, in: message.conversation, &rows)
        guard var conversation = try conversation(message.conversation, rows) else { return }
        if !message.isRead { conversation.unread = max(0, conversation.unread - 1) }
        if conversation.newest == id {
            let left = try rows.page(of: messages(message.conversation), after: nil, isDescending: true, limit: 1)
            conversation.show(Stored.value(left.first?.value))
        }
        try set(conversation, &rows)
    }

    private static func forget(
        _ id: String, in conversation: String, _ rows: inout some ChatRows
    ) throws(TreeError) {
        try rows.set(nil, messages(conversation), id, order: 0)
        try rows.set(nil, unread(conversation), id, order: 0)
        try rows.set(nil, places, id, order: 0)
        try rows.set(nil, outgoing, id, order: 0)
    }
}
