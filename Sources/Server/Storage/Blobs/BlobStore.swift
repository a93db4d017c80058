import ThicketPlatform
import ThicketTreeShape

/// Where the bytes of blobs are kept. What a blob is, which user it belongs to and whether it is needed is in a
/// `BlobLedger`; a store has no knowledge of that.
///
/// An upload becomes the blob with the same id. The calls fit a folder as well as an object store with multipart
/// uploads. Any thread may call them; of one part of one upload at most one is written at a time, which the caller
/// ensures.
public protocol BlobStore: AnyObject, Sendable {
    /// Prepares an upload of `length` bytes. May be repeated.
    func begin(_ upload: BlobID, length: Int64) throws(StoreError)
    /// Begins to write a part.
    /// - Parameters:
    ///   - part: its number, and the SHA-256 that it must have.
    ///   - offset: its place in the blob.
    func write(_ part: BlobPart, of upload: BlobID, at offset: Int64) throws(StoreError) -> any BlobPartWriter
    /// The received parts by number, also after a restart; empty for an unknown upload.
    func parts(of upload: BlobID) throws(StoreError) -> [BlobPart]
    /// Makes a blob of the parts, which the caller has found complete. Durable on return. May be repeated.
    func complete(_ upload: BlobID, length: Int64) throws(StoreError)
    /// Removes what is left of an upload, complete or not. The blob stays.
    func abort(_ upload: BlobID) throws(StoreError)
    /// Opens a blob for reading; nil when it does not exist.
    func open(_ blob: BlobID) throws(StoreError) -> (any BlobReader)?
    /// Removes a blob if it exists.
    /// - Returns: false when the blob must stay for now, because it is being copied.
    func delete(_ blob: BlobID) throws(StoreError) -> Bool
    /// Calls `visit` for each blob, in no order.
    func list(_ visit: (StoredBlob) throws(StoreError) -> Void) throws(StoreError)
    /// All uploads of which something is kept, in no order.
    func uploads() throws(StoreError) -> [BlobID]
    /// Whether blobs that the ledger does not know must be kept.
    var keepsUnknown: Bool { get }
}

/// A part of an upload.
public struct BlobPart: Sendable, Hashable {
    /// From 1.
    public let number: Int
    /// SHA-256 of its bytes.
    public let sha256: [UInt8]

    /// A part.
    public init(number: Int, sha256: [UInt8]) { (self.number, self.sha256) = (number, sha256) }
}

/// A blob as its store holds it.
public struct StoredBlob: Sendable, Hashable {
    /// The blob.
    public let id: BlobID
    /// Bytes.
    public let length: Int64

    /// A blob.
    public init(id: BlobID, length: Int64) { (self.id, self.length) = (id, length) }
}

/// Receives the bytes of one part. Used by one thread at a time.
public protocol BlobPartWriter: AnyObject {
    /// Appends bytes.
    func write(_ bytes: [UInt8]) throws(StoreError)
    /// Makes the part durable and lists it from now on. Without this call the part is not listed.
    func finish() throws(StoreError)
}

/// An open blob. Its bytes never change, and can be read although the blob is deleted meanwhile.
public protocol BlobReader: AnyObject {
    /// Bytes of the blob.
    var length: Int64 { get }
    /// The file with the bytes, for stores that have one.
    var file: OpenFile? { get }
    /// Brings bytes of `file` into the system's page cache.
    func load(at offset: Int64, count: Int) throws(StoreError)
    /// Reads up to `count` bytes.
    /// - Returns: fewer only at the end of the blob.
    func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8]
}
