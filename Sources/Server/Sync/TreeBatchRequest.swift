import ThicketCrypto
public import ThicketTreeShape

/// A batch as it was sent, parsed.
public struct TreeBatchRequest: Sendable {
    /// The batch.
    public let batch: TreeBatch
    /// SHA-256 of the bytes.
    public let digest: [UInt8]
    /// What is known of the signatures of its copies.
    public var copies = CopyVerdict.unchecked

    /// Whether the shard can decide the batch.
    var isReady: Bool { copies != .unchecked || !hasCopies }
    /// Whether an operation looks at another tree than the caller's.
    var reachesOtherTrees: Bool { batch.operations.contains { $0.receiver != nil } }
    /// Whether an operation needs a signature.
    var hasCopies: Bool {
        batch.operations.contains { if case .copy = $0 { true } else { false } }
    }

    /// Parses the body of a request.
    public init(parsing body: [UInt8]) throws(BatchFault) {
        batch = try TreeBatch(parsing: body)
        digest = Hash.sha256(body)
    }
}
