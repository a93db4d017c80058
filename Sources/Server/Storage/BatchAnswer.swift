import ThicketProtocol
import ThicketTreeShape

/// The answer of a batch of a tree, stored with its changes: a batch that is sent again is answered with it.
public struct BatchAnswer: Hashable, Sendable {
    /// Row of the bucket.
    public let bucket: BucketRow
    /// The batch.
    public let batch: BatchID
    /// SHA-256 of the batch as it was sent: another batch must not have its id.
    public let digest: [UInt8]
    /// The answer, byte for byte.
    public let answer: [UInt8]
    /// The last change of the batch.
    public let gid: GlobalID
    /// Time of the batch, milliseconds since 1970.
    public let time: Int64

    /// An answer.
    public init(
        bucket: BucketRow, batch: BatchID, digest: [UInt8], answer: [UInt8], gid: GlobalID, time: Int64
    ) {
        (self.bucket, self.batch, self.digest) = (bucket, batch, digest)
        (self.answer, self.gid, self.time) = (answer, gid, time)
    }

    /// How long an answer is kept, milliseconds: 7 days (treesystem 4.2).
    static let ageMax: Int64 = 7 * 24 * 3_600_000
    /// Newest answers that are kept of one tree. A batch whose answer is gone is refused by its base versions.
    static let perTreeMax = 1_024
}

/// Names one stored answer.
public struct BatchPlace: Hashable, Sendable {
    /// Row of the bucket.
    public let bucket: BucketRow
    /// The batch.
    public let batch: BatchID
    /// Bytes of the answer.
    public let bytes: Int

    /// A place.
    public init(bucket: BucketRow, batch: BatchID, bytes: Int) {
        (self.bucket, self.batch, self.bytes) = (bucket, batch, bytes)
    }
}
