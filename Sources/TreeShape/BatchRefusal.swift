public import ThicketProtocol

/// Why a batch was not made: `{"error":…,"reason":…,"op":…,"ev":…}`. The status of the answer is `code`.
public struct BatchRefusal: Sendable, Hashable {
    /// The code of the refusal.
    public var code: ErrorCode
    /// The word beside it; nil for a refusal that follows from no property of trees, or a word of a later version.
    public var reason: RefusalReason?
    /// The index of the operation that was refused; nil when the batch was.
    public var operation: Int?
    /// The node's current version, for an operation on another one.
    public var current: Version?

    /// A refusal.
    public init(_ code: ErrorCode, _ reason: RefusalReason?, operation: Int? = nil, current: Version? = nil) {
        (self.code, self.reason, self.operation, self.current) = (code, reason, operation, current)
    }

    /// The refusal of a request that is not a batch.
    public init(_ fault: BatchFault) {
        self.init(fault.reason.code, fault.reason, operation: fault.operation)
    }

    init(_ value: JSONValue) throws(TreeCallFault) {
        let object = try CallObject(value, ["error", "reason", "op", "ev"])
        guard let code = ErrorCode(rawValue: Int(try object.number("error", 0...999))) else { throw .badValue("error") }
        let operations = 0...Int64(TreeLimits.batchOperationsMax - 1)
        self.init(
            code, object.contains("reason") ? RefusalReason(rawValue: try object.text("reason")) : nil,
            operation: object.contains("op") ? Int(try object.number("op", operations)) : nil,
            current: object.contains("ev") ? try object.number("ev", 1...TreeLimits.versionMax) : nil)
    }

    var object: JSONObject {
        var object: JSONObject = ["error": .count(code.rawValue)]
        if let reason { object["reason"] = .string(reason.rawValue) }
        if let operation { object["op"] = .count(operation) }
        if let current { object["ev"] = .version(current) }
        return object
    }
}
