import FoundationEssentials

/// What a message's node contains: `{"text":"…","sent":1700000000000}`. Members of newer versions are ignored.
struct MessageContent: Codable {
    /// Bytes of a content at most: with them it fits into the node's record, so that the text arrives with the list of
    /// messages.
    static let bytesMax = 7_900

    let text: String
    /// Milliseconds since 1970, by the author's clock. Of another person's message the signed statement counts.
    let sent: Int64

    init(text: String, sent: Int64) { (self.text, self.sent) = (text, sent) }

    /// - Returns: nil for a content of another form, which is no message.
    init?(_ bytes: [UInt8]) {
        guard let content = try? JSONDecoder().decode(MessageContent.self, from: Data(bytes)) else { return nil }
        self = content
    }

    var bytes: [UInt8] { Stored.bytes(of: self) }
}

/// Values as the app keeps them beside the tree.
enum Stored {
    static func bytes(of value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Numbers, texts and flags of this module always have a JSON form.
        return Array((try? encoder.encode(value)) ?? Data())
    }

    /// - Returns: nil for what another version of the app has written and this one does not read.
    static func value<Value: Decodable>(_ bytes: [UInt8]?) -> Value? {
        bytes.flatMap { try? JSONDecoder().decode(Value.self, from: Data($0)) }
    }
}
