/// What a client sends (wire contract, section 3).
public enum ClientMessage: Sendable, Equatable {
    /// `h:N`, answered by `h:N+1`. The counter need not rise; one that is no number, or has no successor, is read as 0.
    case heartbeat(Int64)
    /// `log:JSON`; an argument that is no JSON is kept as a string.
    case log(JSONValue)
    /// `CHANNEL:COMMAND[:ARGUMENT]`
    case channel(ChannelNumber, ChannelRequest)
}

/// What a client asks on one channel.
public enum ChannelRequest: Sendable, Equatable {
    /// `init:JSON`
    case initialize(InitRequest)
    /// `i:DATA:MARK:SINCE:LIMIT`
    case index(IndexRequest)
    /// `e:KEY.VERSION`
    case entity(key: String, version: Version)
    /// `e:` with something that names no version; the answer repeats it: `e:ARGUMENT`, line break, `?`.
    case unreadableEntity(argument: String)
    /// `cv:CV`
    case changesSince(String)
    /// `c:{…}`
    case change(ChangeRequest)
    /// `c:[…]`, which HTTP clients send; may be empty.
    case changes([ChangeRequest])
    /// `index:JSON`, the answer to the server's `index`
    case indexState(IndexState)
    /// Anything else, without its argument; answered by `?`.
    case unknown(command: String)

    /// Bytes of an unknown command that are kept.
    static let unknownCommandBytesMax: Int = 32
}

extension ClientMessage {
    /// Reads one message.
    public init(parsing message: [UInt8]) throws(WireError) { try self.init(parsing: message[...]) }

    /// Reads one message; changes keep the array behind the slice alive.
    ///
    /// - Throws: only when no channel can be made out; whatever is wrong behind the channel number is in the request.
    public init(parsing message: ArraySlice<UInt8>) throws(WireError) {
        let (head, rest) = WireText.split(message)
        if let channel: ChannelNumber = try WireText.channel(head) {
            let (command, argument) = WireText.split(rest ?? [])
            self = .channel(channel, ChannelRequest(command: command, argument: argument))
        } else if WireText.equals(head, "h") {
            let count: Int64 = rest.flatMap(WireText.integer) ?? 0
            self = .heartbeat(count < 0 ? 0 : count)
        } else if WireText.equals(head, "log") {
            let argument: ArraySlice<UInt8> = rest ?? []
            self = .log((try? JSONDocument(parsing: argument).root.value) ?? .string(WireText.text(argument)))
        } else {
            throw .notAMessage
        }
    }

    /// The message as it is sent: one line, unless a name in it holds a line break.
    public func encoded() -> [UInt8] {
        var writer: JSONWriter = .init(reservingBytes: 128)
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
    /// Reads a command and what followed its colon, if there was one.
    init(command: ArraySlice<UInt8>, argument: ArraySlice<UInt8>?) {
        let rest: ArraySlice<UInt8> = argument ?? []
        if WireText.equals(command, "c") {
            let (changes, isArray) = ChangeRequest.parse(rest)
            self = isArray ? .changes(changes) : .change(changes[0])
        } else if WireText.equals(command, "e") {
            self =
                WireText.reference(rest).map { .entity(key: $0.key, version: $0.version) }
                ?? .unreadableEntity(argument: WireText.text(rest))
        } else if WireText.equals(command, "cv") {
            self = .changesSince(WireText.text(rest))
        } else if WireText.equals(command, "i") {
            self = .index(IndexRequest(parsing: rest))
        } else if WireText.equals(command, "init") {
            self = .initialize(InitRequest(parsing: rest))
        } else if WireText.equals(command, "index") {
            self = .indexState(IndexState(parsing: rest))
        } else {
            self = .unknown(command: WireText.text(command.prefix(Self.unknownCommandBytesMax)))
        }
    }

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
        case .unknown(let command):
            writer.head(channel, "")
            writer.plain(command)
        }
    }
}
