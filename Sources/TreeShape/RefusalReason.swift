public import ThicketProtocol

/// Why a server refuses a write to the tree, as the word beside the code of the answer (treesystem 4.2, rule 5). These
/// are the words for what can be checked without permissions.
public enum RefusalReason: String, Sendable, Hashable, CaseIterable {
    /// The record does not have the form of a record.
    case badRecord = "bad-record"
    /// A sibling has the same name.
    case nameTaken = "name-taken"
    /// The parent does not exist.
    case parentMissing = "parent-missing"
    /// The parent is the node itself, or below it.
    case cycle
    /// Only nodes without children are removed one by one.
    case leafOnly = "leaf-only"
    /// The node, or one below it, would be too deep.
    case depth
    /// A trunk cannot be written or removed.
    case trunk
    /// The node does not exist.
    case nodeMissing = "node-missing"
    /// The record refers to a blob that is not there for it.
    case blobMissing = "blob-missing"
    /// The record replaces another version than the current one.
    case stale
    /// The record has too many bytes.
    case record
    /// The request is not a batch, or one of its operations does not have the form of an operation.
    case badBatch = "bad-batch"
    /// Another batch with this id was made before.
    case batchID = "batch-id"
    /// The batch is larger than one batch may be.
    case batch

    /// The code of the answer.
    public var code: ErrorCode {
        switch self {
        case .badRecord, .nameTaken, .parentMissing, .cycle, .leafOnly, .depth, .trunk, .badBatch:
            .invalidRequest
        case .nodeMissing, .blobMissing: .notFound
        case .stale: .badVersion
        case .record, .batch: .tooLarge
        case .batchID: .duplicateChange
        }
    }
}
