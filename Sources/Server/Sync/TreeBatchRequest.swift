import ThicketCrypto
public import ThicketTreeShape

/// A batch as it was sent, parsed.
public struct TreeBatchRequest: Sendable {
    /// The batch.
    public let batch: TreeBatch
    /// SHA-256 of the bytes.
    public let digest: [UInt8]

    /// Parses the body of a request.
    public init(parsing body: [UInt8]) throws(BatchFault) {
        batch = try TreeBatch(parsing: body)
        digest = Hash.sha256(body)
    }
}
