public import ThicketProtocol

/// Why a server refuses a write to the tree, as the word beside the code of the answer (treesystem 4.2, rule 5).
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
    /// The receiver does not accept nodes of the caller, or does not exist: the answer is the same.
    case blocked
    /// The record's author is not the caller, or its signature does not verify with the caller's newest keys.
    case signature
    /// A node of this id was in the receiver's tree before.
    case repeated
    /// The receiver's inbox has as many nodes as it may have, or as many of the caller.
    case inboxFull = "inbox-full"
    /// The caller has sent as many messages to the receiver in this minute as it may.
    case rate
    /// The caller's letters in the shared branch do not permit the operation.
    case permission
    /// The list of a shared branch is not signed as it must be, or does not follow the one before it.
    case shareList = "share-list"
    /// A list above or below another one, or outside of `home`.
    case nestedList = "nested-list"
    /// The record's key is not of the epoch of the branch: its list was changed after the record was sealed.
    case epoch
    /// The guest of a link has made as many deposits, or written as many bytes, as it may.
    case guestLimit = "guest-limit"

    /// The code of the answer.
    public var code: ErrorCode {
        switch self {
        case .badRecord, .nameTaken, .parentMissing, .cycle, .leafOnly, .depth, .trunk, .badBatch, .shareList,
            .nestedList:
            .invalidRequest
        case .nodeMissing, .blobMissing: .notFound
        case .stale, .epoch: .badVersion
        // The codes have none for rates: the reason says that the batch may be sent again.
        case .record, .batch, .inboxFull, .rate, .guestLimit: .tooLarge
        case .batchID, .repeated: .duplicateChange
        case .blocked, .signature, .permission: .unauthorized
        }
    }
}
