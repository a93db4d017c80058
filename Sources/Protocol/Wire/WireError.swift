/// Why a message could not be read. Never by itself a reason to close the connection (wire contract, section 3).
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The message is not a heartbeat, a log message or `CHANNEL:COMMAND`.
    case notAMessage
    /// The channel number is larger than `Limits.channelNumberMax`.
    case channelNumber
    /// The JSON of this command does not parse.
    case json(command: String, JSONError)
    /// The argument of this command lacks a part, or has it in a wrong form.
    case shape(command: String, problem: String)

    /// The problem. Safe to log: contains nothing that a user wrote.
    public var description: String {
        switch self {
        case .notAMessage: "not a message"
        case .channelNumber: "channel number out of range"
        case .json(let command, let error): "\(command): \(error)"
        case .shape(let command, let problem): "\(command): \(problem)"
        }
    }
}
