/// A client's message split at its colons (wire contract, section 3), with its argument not parsed yet. For a server
/// that must know the channel before it spends time on the argument. Keeps the whole message alive.
public enum UnparsedMessage: Sendable {
    /// `h:N`, as in `ClientMessage.heartbeat`.
    case heartbeat(Int64)
    /// `log:` and its argument; see `ClientMessage.log(reading:)`.
    case log(ArraySlice<UInt8>)
    /// `CHANNEL:COMMAND[:ARGUMENT]`
    case channel(ChannelNumber, UnreadRequest)

    /// Splits a message.
    ///
    /// - Throws: `WireError` only when the channel cannot be determined.
    public init(parsing message: ArraySlice<UInt8>) throws(WireError) {
        let (head, rest) = WireText.split(message)
        if let channel = try WireText.channel(head) {
            let (name, argument) = WireText.split(rest ?? [])
            self = .channel(channel, UnreadRequest(name: name, argument: argument ?? []))
        } else if WireText.equals(head, "h") {
            let count = rest.flatMap(WireText.integer) ?? 0
            self = .heartbeat(count < 0 ? 0 : count)
        } else if WireText.equals(head, "log") {
            self = .log(rest ?? [])
        } else {
            throw .notAMessage
        }
    }
}

/// A command and the bytes of its argument.
public struct UnreadRequest: Sendable {
    /// What is asked for.
    public enum Command: Sendable, Hashable {
        /// The commands of `ChannelRequest`.
        case initialize, index, entity, changesSince, change, indexState, removed, unknown
    }

    /// What is asked for.
    public let command: Command
    /// The command as sent.
    private let name: ArraySlice<UInt8>
    private let argument: ArraySlice<UInt8>

    init(name: ArraySlice<UInt8>, argument: ArraySlice<UInt8>) {
        self.name = name
        self.argument = argument
        command =
            if WireText.equals(name, "c") {
                .change
            } else if WireText.equals(name, "e") {
                .entity
            } else if WireText.equals(name, "cv") {
                .changesSince
            } else if WireText.equals(name, "i") {
                .index
            } else if WireText.equals(name, "init") {
                .initialize
            } else if WireText.equals(name, "index") {
                .indexState
            } else if WireText.equals(name, "removed") {
                .removed
            } else {
                .unknown
            }
    }

    /// A command that is answered as an unknown one.
    init(unknown name: ArraySlice<UInt8>) {
        command = .unknown
        self.name = name
        argument = []
    }

    /// Parses the argument of a `c`, as `read` does.
    public func readChanges() -> ChangeRequest.Sent { ChangeRequest.parse(argument) }

    /// Parses the argument. Never fails: problems are in the request.
    public func read() -> ChannelRequest {
        switch command {
        case .change:
            switch readChanges() {
            case .one(let change): return .change(change)
            case .many(let changes): return .changes(changes)
            }
        case .entity:
            return WireText.reference(argument).map { .entity(key: $0.key, version: $0.version) }
                ?? .unreadableEntity(argument: WireText.text(argument))
        case .changesSince: return .changesSince(WireText.text(argument))
        case .index: return .index(IndexRequest(parsing: argument))
        case .initialize: return .initialize(InitRequest(parsing: argument))
        case .indexState: return .indexState(IndexState(parsing: argument))
        case .removed: return .removed(RemovedRequest(parsing: argument))
        case .unknown: return .unknown(command: WireText.text(name.prefix(ChannelRequest.unknownCommandBytesMax)))
        }
    }
}
