/// Why a message could not be read. Never a reason to end the connection by itself (wire contract, section 3).
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Neither a heartbeat, nor a log message, nor `CHANNEL:COMMAND`.
    case notAMessage
    /// The channel number is larger than `Limits.channelNumberMax`.
    case channelNumber
    /// The JSON of this command does not parse.
    case json(command: String, JSONError)
    /// The argument of this command lacks something, or has it in a wrong form.
    case shape(command: String, problem: String)

    /// Safe to log: holds nothing that a user wrote.
    public var description: String {
        switch self {
        case .notAMessage: "not a message"
        case .channelNumber: "channel number out of range"
        case .json(let command, let error): "\(command): \(error)"
        case .shape(let command, let problem): "\(command): \(problem)"
        }
    }
}
