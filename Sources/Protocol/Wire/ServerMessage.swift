/// A message of the server (wire contract, section 3).
public enum ServerMessage: Sendable, Equatable {
    /// `h:N`, the answer to a heartbeat.
    case heartbeat(Int64)
    /// `log:LEVEL`: 0 off, 1 normal, 2 verbose.
    case log(Int)
    /// `CHANNEL:COMMAND[:ARGUMENT]`
    case channel(ChannelNumber, ServerReply)
}

/// The server's message on one channel.
public enum ServerReply: Sendable, Equatable {
    /// `auth:NAME`: the channel is authorised.
    case authorized(user: String)
    /// `auth:{"msg":…,"code":…}`: the channel is refused.
    case authFailed(code: Int, message: String)
    /// `auth:expired`, for clients before API 1.1.
    case authExpired
    /// `i:JSON`: a page of the index.
    case index(IndexPage)
    /// `e:KEY.VERSION`, line break, `{"data":…}` or `?`
    case entity(EntityReply)
    /// `c:[…]`: changes of the log, and refusals.
    case changes([ChangeEvent])
    /// `cv:?`: the cv is unknown; before API 1.1 it was `c:?`.
    case changeVersionUnknown
    /// `index`: a request for the client's state.
    case indexRequest
    /// `?`: the answer to an unknown command.
    case notUnderstood
    /// `o:JSON`, the bucket's options.
    case options(JSONValue)
    /// `removed:JSON`: a page of removals.
    case removed(RemovedPage)
    /// A message of a newer server.
    case unknown(command: String)
}

/// One version of one object.
public struct EntityReply: Sendable, Equatable {
    /// The key, as asked for.
    public var key: String
    /// The version, as asked for.
    public var version: Version
    /// The object; nil when the server does not have this version.
    public var data: JSONFragment?

    /// Makes an answer.
    public init(key: String, version: Version, data: JSONFragment?) {
        self.key = key
        self.version = version
        self.data = data
    }
}

extension ServerMessage {
    /// The message as sent.
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
    /// A user name in a form that no client mistakes for something else.
    ///
    /// One client takes everything that parses as JSON for a failure, two look for a leading `{`, and one for the word
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
