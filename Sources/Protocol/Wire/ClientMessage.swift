/// A message of a client (wire contract, section 3).
public enum ClientMessage: Sendable, Equatable {
    /// `h:N`, answered by `h:N+1`. The counter need not increase; one that is not a number, or has no successor, is
    /// read as 0.
    case heartbeat(Int64)
    /// `log:JSON`; an argument that is not JSON is kept as a string.
    case log(JSONValue)
    /// `CHANNEL:COMMAND[:ARGUMENT]`
    case channel(ChannelNumber, ChannelRequest)
}

/// A client's request on one channel.
public enum ChannelRequest: Sendable, Equatable {
    /// `init:JSON`
    case initialize(InitRequest)
    /// `i:DATA:MARK:SINCE:LIMIT`
    case index(IndexRequest)
    /// `e:KEY.VERSION`
    case entity(key: String, version: Version)
    /// `e:` with an argument without a version; the answer repeats it: `e:ARGUMENT`, line break, `?`.
    case unreadableEntity(argument: String)
    /// `cv:CV`
    case changesSince(String)
    /// `c:{…}`
    case change(ChangeRequest)
    /// `c:[…]`, sent by HTTP clients; may be empty.
    case changes([ChangeRequest])
    /// `index:JSON`, the answer to the server's `index`.
    case indexState(IndexState)
    /// `removed:JSON`
    case removed(RemovedRequest)
    /// Anything else, without its argument; answered by `?`.
    case unknown(command: String)

    /// Bytes of an unknown command that are kept.
    static let unknownCommandBytesMax = 32
}

extension ClientMessage {
    /// Reads one message.
    ///
    /// - Throws: `WireError` only when the channel cannot be determined.
    public init(parsing message: [UInt8]) throws(WireError) { try self.init(parsing: message[...]) }

    /// Reads one message; changes keep the array behind the slice alive.
    ///
    /// - Throws: `WireError` only when the channel cannot be determined; problems after the channel number are in the
    ///   request.
    public init(parsing message: ArraySlice<UInt8>) throws(WireError) {
        self =
            switch try UnparsedMessage(parsing: message) {
            case .heartbeat(let count): .heartbeat(count)
            case .log(let argument): .log(Self.log(reading: argument))
            case .channel(let channel, let request): .channel(channel, request.read())
            }
    }

    /// Reads the argument of `log`; one that is not JSON is taken as a string.
    public static func log(reading argument: ArraySlice<UInt8>) -> JSONValue {
        (try? JSONDocument(parsing: argument).root.value) ?? .string(WireText.text(argument))
    }

    /// The message as sent: one line, unless a name in it contains a line break.
    public func encoded() -> [UInt8] {
        var writer = JSONWriter(reservingBytes: 128)
        switch self {
        case .heartbeat(let count):
            writer.raw("h:")
            writer.write(count)
        case .log(let value):
            writer.raw("log:")
            writer.write(value)
        case .channel(let channel, let request):
            request.write(channel, to: &writer)
        }
        return writer.bytes
    }
}

extension ChannelRequest {
    func write(_ channel: ChannelNumber, to writer: inout JSONWriter) {
        switch self {
        case .initialize(let request):
            writer.head(channel, "init:")
            request.write(to: &writer)
        case .index(let request):
            writer.head(channel, "i:")
            request.write(to: &writer)
        case .entity(let key, let version):
            writer.head(channel, "e:")
            writer.plain(key)
            writer.raw(".")
            writer.write(version)
        case .unreadableEntity(let argument):
            writer.head(channel, "e:")
            writer.plain(argument)
        case .changesSince(let version):
            writer.head(channel, "cv:")
            writer.plain(version)
        case .change(let change):
            writer.head(channel, "c:")
            change.write(to: &writer)
        case .changes(let changes):
            writer.head(channel, "c:[")
            for (place, change) in changes.enumerated() {
                if place > 0 { writer.raw(",") }
                change.write(to: &writer)
            }
            writer.raw("]")
        case .indexState(let state):
            writer.head(channel, "index:")
            state.write(to: &writer)
        case .removed(let request):
            writer.head(channel, "removed:")
            request.write(to: &writer)
        case .unknown(let command):
            writer.head(channel, "")
            writer.plain(command)
        }
    }
}
