/// Why a request is not a batch. Contains nothing of what was sent.
public struct BatchFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kinds of faults.
    public enum Kind: Error, Sendable, Hashable {
        /// The batch, or the operation, has another form.
        case form(TreeCallFault)
        /// The `record` of the operation is not a record.
        case record(RecordFault)
        /// The `id` of the operation is not that of a node.
        case refusal(TreeRefusal)
        /// More operations than `TreeLimits.batchOperationsMax`.
        case tooManyOperations
        /// More nodes in `known` than `TreeLimits.knownNodesMax`.
        case tooManyKnown
    }

    /// What is wrong.
    public let kind: Kind
    /// The index of the operation; nil for a fault of the batch.
    public let operation: Int?

    init(_ kind: Kind, at operation: Int? = nil) { (self.kind, self.operation) = (kind, operation) }

    /// The word for the answer of a server.
    public var reason: RefusalReason {
        switch kind {
        case .form(.tooLarge), .tooManyOperations, .tooManyKnown: .batch
        case .form: .badBatch
        case .record(let fault): fault.reason
        case .refusal(let refusal): refusal.reason
        }
    }

    /// A sentence without content of the batch.
    public var description: String {
        switch kind {
        case .form(let fault): fault.description
        case .record(let fault): fault.description
        case .refusal(let refusal): refusal.description
        case .tooManyOperations: "a batch has at most \(TreeLimits.batchOperationsMax) operations"
        case .tooManyKnown: "a batch lists at most \(TreeLimits.knownNodesMax) nodes in known"
        }
    }
}
