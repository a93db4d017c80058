/// Why a diff cannot be read, does not fit the object, or cannot be transformed. On the wire all of these are code 440.
public struct DiffError: Error, Equatable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The problem.
    public enum Kind: Equatable, Sendable {
        /// A diff, or one of its operations, is not a JSON object of the right form.
        case malformed
        /// `o` is not one of the eight operations.
        case unknownOperation
        /// The operation needs a `v` and has none.
        case missingValue
        /// `v` has a type that this operation cannot use.
        case wrongValue
        /// A text delta cannot be read or does not fit.
        case delta(DeltaError)
        /// The value in the object has a type that this operation cannot edit.
        case wrongType
        /// An edit of a key that the object does not have.
        case missingKey
        /// A list index that is not a number, is repeated or is beyond the end.
        case badIndex
        /// After a `dL` the lines are not JSON.
        case badLine
        /// A sum with more digits than `Limits.numberDigitsMax`.
        case numberTooLong
        /// Nested deeper than `Limits.jsonDepthMax`.
        case tooDeep
    }

    /// The problem.
    public let kind: Kind
    /// Keys and list indexes from the outermost object to the place of the error. User content: not for logs.
    public let path: [String]

    /// Makes an error.
    public init(_ kind: Kind, path: [String] = []) {
        self.kind = kind
        self.path = path
    }

    /// The code on the wire.
    public var code: ErrorCode { .invalidDiff }

    /// The problem and its depth; safe to log.
    public var description: String {
        let what =
            switch kind {
            case .malformed: "malformed diff"
            case .unknownOperation: "unknown operation"
            case .missingValue: "operation without value"
            case .wrongValue: "value of the wrong type in the diff"
            case .delta(let error): error.description
            case .wrongType: "operation on a value of another type"
            case .missingKey: "edit of a key that is not there"
            case .badIndex: "bad list index"
            case .badLine: "a list line is not JSON"
            case .numberTooLong: "number too long"
            case .tooDeep: "nested too deep"
            }
        return "diff: \(what), at depth \(path.count)"
    }

    /// The description with the path; not for logs.
    public var debugDescription: String { "\(description): \(path.joined(separator: "/"))" }

    func inside(_ key: String) -> DiffError { DiffError(kind, path: [key] + path) }
}
