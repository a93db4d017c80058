/// A client's message cut at its colons (wire contract, section 3), its argument not looked at yet: for who must know
/// the channel before it spends anything on what was sent. Keeps the whole message alive.
public enum UnreadMessage: Sendable {
    /// As `ClientMessage.heartbeat`.
    case heartbeat(Int64)
    /// `log:` and what followed; see `ClientMessage.log(reading:)`.
    case log(ArraySlice<UInt8>)
    /// `CHANNEL:COMMAND[:ARGUMENT]`
    case channel(ChannelNumber, UnreadRequest)

    /// - Throws: only when no channel can be made out.
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
        case initialize, index, entity, changesSince, change, indexState, removed, unknown
    }

    public let command: Command
    /// The command as it was sent.
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

    /// A command that is answered as one that nobody knows.
    init(unknown name: ArraySlice<UInt8>) {
        command = .unknown
        self.name = name
        argument = []
    }

    /// Reads the argument of a `c`, as `read` does.
    public func readChanges() -> ChangeRequest.Sent { ChangeRequest.parse(argument) }

    /// Reads the argument. Never fails: whatever is wrong is in the request.
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
