public import ThicketProtocol
public import ThicketTreeShape

/// Why a request about a blob had no success.
public enum BlobFailure: Error, Sendable, Hashable {
    /// There was no answer: the request may have been carried out or not.
    case lost
    /// The server does not serve the request now; milliseconds after which it asks for it again, where it names them.
    case busy(after: Int64?)
    /// The server has no space for it now; milliseconds after which it asks for it again, where it names them.
    case full(after: Int64?)
    /// The server knows no such upload or blob.
    case gone
    /// The node refers to the blob, and the server has lost its bytes.
    case bytesLost
    /// The server has another part of this number.
    case otherPart
    /// Parts of the upload are missing.
    case partsMissing
    /// The server refused the request for good; its HTTP status.
    case refused(Int)
    /// The answer is none of the protocol, or too long.
    case badAnswer
}

/// An upload that has begun.
public struct BlobUpload: Sendable, Hashable {
    /// The server's id for it.
    public let id: String
    /// Bytes of each part but the last.
    public let partBytes: Int
    /// An upload.
    public init(id: String, partBytes: Int) { (self.id, self.partBytes) = (id, partBytes) }
}

/// What a server has of an upload.
public struct BlobUploadStatus: Sendable, Hashable {
    /// SHA-256 of the received parts by their numbers, from 0.
    public let parts: [Int: [UInt8]]
    /// The blob, once the upload is complete; the parts are not listed any more then.
    public let blob: BlobID?
    /// A status.
    public init(parts: [Int: [UInt8]], blob: BlobID? = nil) { (self.parts, self.blob) = (parts, blob) }
}

/// Some bytes of a blob.
public struct BlobPiece: Sendable, Hashable {
    /// The bytes from the first that was asked for; a cut answer has fewer than were asked for.
    public let bytes: [UInt8]
    /// Bytes of the whole blob, as the server states them.
    public let total: UInt64
    /// A piece.
    public init(bytes: [UInt8], total: UInt64) { (self.bytes, self.total) = (bytes, total) }
}

/// Requests about blobs to a server. Each may be repeated after a lost answer.
public protocol BlobTransport: Sendable {
    /// Begins an upload.
    func begin(length: UInt64, partBytes: Int) async throws(BlobFailure) -> BlobUpload
    /// Sends a part with its SHA-256. Parts may arrive in any order.
    func send(_ bytes: [UInt8], part: Int, of upload: String, sha256: [UInt8]) async throws(BlobFailure)
    /// Asks which parts were received.
    func status(of upload: String) async throws(BlobFailure) -> BlobUploadStatus
    /// Makes a blob of the parts.
    ///
    /// - Parameters:
    ///   - upload: what `begin` returned.
    ///   - sha256: SHA-256 of the parts' hashes in order.
    func complete(_ upload: String, sha256: [UInt8]) async throws(BlobFailure) -> BlobID
    /// Gives an upload up.
    func abort(_ upload: String) async throws(BlobFailure)
    /// Sends a small blob at once.
    func send(whole bytes: [UInt8], sha256: [UInt8]) async throws(BlobFailure) -> BlobID
    /// Reads a range of a blob through a node that refers to it.
    func read(
        _ blob: BlobID, owner: UserID, node: NodeID, range: Range<UInt64>
    ) async throws(BlobFailure) -> BlobPiece
}
