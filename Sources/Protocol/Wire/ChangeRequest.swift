/// The argument of a client's `c`, before its names are checked (wire contract, 6.1).
public struct ChangeRequest: Sendable {
    /// What a change asks for.
    public enum Operation: Sendable, Equatable {
        case modify, remove, empty, drop
        case other(String)
    }
    /// `id` as sent.
    public var key: String
    /// `ccid` as sent; empty when there was none.
    public var ccid: String
    /// `o`.
    public var operation: Operation
    /// `sv`; nil when absent.
    public var sv: Version?
    /// `v` as sent.
    public var diff: JSONValue?
    /// `d` as sent.
    public var object: JSONValue?
    /// What was wrong with single fields; the change is then answered 400.
    public var problems: [String]

    public init(
        key: String, ccid: String, operation: Operation, sv: Version? = nil, diff: JSONValue? = nil,
        object: JSONValue? = nil, problems: [String] = []
    ) {
        self.key = key
        self.ccid = ccid
        self.operation = operation
        self.sv = sv
        self.diff = diff
        self.object = object
        self.problems = problems
    }
}
