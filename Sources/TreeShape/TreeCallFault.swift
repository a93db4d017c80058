/// Why JSON does not have the form of a call to a tree, or of its answer. Contains nothing of what was sent.
public enum TreeCallFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are not JSON, or nested too deep.
    case notJSON
    /// More bytes than the call may have.
    case tooLarge
    /// Something else where an object must be.
    case notObject
    /// A member that this version does not know.
    case unknownMember
    /// A required member, whose name is given, is missing.
    case missing(String)
    /// The member with this name has another type, is out of bounds, or is not in its one form.
    case badValue(String)

    /// A sentence without content of the call.
    public var description: String {
        switch self {
        case .notJSON: "not JSON, or nested too deep"
        case .tooLarge: "too many bytes"
        case .notObject: "not an object"
        case .unknownMember: "a member that this version does not know"
        case .missing(let name): "\(name) is missing"
        case .badValue(let name): "\(name) does not have a valid value"
        }
    }
}
