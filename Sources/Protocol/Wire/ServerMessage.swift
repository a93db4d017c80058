/// What the server sends (wire contract, section 3).
public enum ServerMessage: Sendable, Equatable {
    /// `h:N`
    case heartbeat(Int64)
    /// `log:LEVEL`: 0 off, 1 normal, 2 verbose.
    case log(Int)
    /// `CHANNEL:COMMAND[:ARGUMENT]`
    case channel(ChannelNumber, ServerReply)
}

/// What the server says on one channel.
public enum ServerReply: Sendable, Equatable {
    /// `auth:NAME`
    case authorized(user: String)
    /// `auth:{"msg":…,"code":…}`
    case authFailed(code: Int, message: String)
    /// `auth:expired`, for clients before API 1.1
    case authExpired
    /// `i:JSON`
    case index(IndexPage)
    /// `e:KEY.VERSION`, line break, `{"data":…}` or `?`
    case entity(EntityReply)
    /// `c:[…]`
    case changes([ChangeEvent])
    /// `cv:?`; before API 1.1 it was `c:?`.
    case changeVersionUnknown
    /// `index`: a request for the client's state
    case indexRequest
    /// `?`
    case notUnderstood
    /// `o:JSON`, the bucket's options
    case options(JSONValue)
    /// `removed:JSON`
    case removed(RemovedPage)
    /// Anything that a newer server may say.
    case unknown(command: String)
}

/// One version of one object.
public struct EntityReply: Sendable, Equatable {
    /// As asked for.
    public var key: String
    public var version: Version
    /// The object; nil when the server has no such version.
    public var data: JSONFragment?

    public init(key: String, version: Version, data: JSONFragment?) {
        self.key = key
        self.version = version
        self.data = data
    }
}

extension ServerMessage {
    /// The message as it is sent.
    public func encoded() -> [UInt8] {
        var writer = JSONWriter(reservingBytes: 256)
        switch self {
        case .heartbeat(let count):
            writer.raw("h:")
            writer.write(count)
        case .log(let level):
            writer.raw("log:")
            writer.write(Int64(level))
        case .channel(let channel, let reply):
            reply.write(channel, to: &writer)
        }
        return writer.bytes
    }

    /// `CHANNEL:c:[…]` of elements that are JSON already.
    public static func changes(_ channel: ChannelNumber, elements: [[UInt8]]) -> [UInt8] {
        var writer = JSONWriter(reservingBytes: elements.reduce(16) { $0 + $1.count + 1 })
        writer.head(channel, "c:[")
        for (place, element) in elements.enumerated() {
            if place > 0 { writer.raw(",") }
            writer.raw(element)
        }
        writer.raw("]")
        return writer.bytes
    }
}

extension ServerReply {
    /// A user name that no client takes for something else.
    ///
    /// One client holds everything that parses as JSON for a failure, two look for a leading `{`, one for the word
    /// `expired` (wire contract, section 4).
    public static func spokenName(of user: String) -> String {
        let isMisleading =
            user.hasSameBytes(as: "expired") || user.utf8.first == UInt8(ascii: "{")
            || (try? JSONDocument(parsing: Array(user.utf8))) != nil
        return isMisleading ? "user:" + user : user
    }

    func write(_ channel: ChannelNumber, to writer: inout JSONWriter) {
        switch self {
        case .authorized(let user):
            writer.head(channel, "auth:")
            writer.plain(Self.spokenName(of: user))
        case .authFailed(let code, let message):
            writer.head(channel, "auth:{\"msg\":")
            writer.write(string: message)
            writer.raw(",\"code\":")
            writer.write(Int64(code))
            writer.raw("}")
        case .authExpired:
            writer.head(channel, "auth:expired")
        case .index(let page):
            writer.head(channel, "i:")
            page.write(to: &writer)
        case .entity(let reply):
            writer.head(channel, "e:")
            reply.write(to: &writer)
        case .changes(let events):
            writer.head(channel, "c:[")
            for (place, event) in events.enumerated() {
                if place > 0 { writer.raw(",") }
                event.write(to: &writer)
            }
            writer.raw("]")
        case .changeVersionUnknown: writer.head(channel, "cv:?")
        case .indexRequest: writer.head(channel, "index")
        case .notUnderstood: writer.head(channel, "?")
        case .options(let value):
            writer.head(channel, "o:")
            writer.write(value)
        case .removed(let page):
            writer.head(channel, "removed:")
            page.write(to: &writer)
        case .unknown(let command):
            writer.head(channel, "")
            writer.plain(command)
        }
    }
}

extension EntityReply {
    func write(to writer: inout JSONWriter) {
        writer.plain(key)
        writer.raw(".")
        writer.write(version)
        writer.raw("\n")
        guard let data else {
            writer.raw("?")
            return
        }
        writer.raw("{\"data\":")
        data.write(to: &writer)
        writer.raw("}")
    }
}
