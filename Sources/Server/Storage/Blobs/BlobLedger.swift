import ThicketProtocol
import ThicketTreeShape

/// What a server knows of blobs and uploads: owners, lengths, quotas, references. Each call is one transaction, durable
/// on return. A ledger is used by one thread at a time.
///
/// References are written by the store's writer in the transaction of the records that make them (`WriteBatch`). A blob
/// of which the last reference has gone, or that was never referenced, is an orphan since that moment.
public protocol BlobLedger: AnyObject {
    /// Adds an upload, if the quota has room for it.
    func begin(_ upload: BlobUpload, within quota: BlobQuota) throws(StoreError) -> BlobQuota.Verdict
    /// An upload, open or completed; nil when it does not exist or has expired.
    func upload(_ id: BlobID) throws(StoreError) -> BlobUpload?
    /// Turns an open upload into a blob, which is an orphan until a record refers to it.
    /// - Parameters:
    ///   - proof: the hash that the client sent; kept with the upload.
    ///   - now: milliseconds since 1970.
    /// - Returns: false when the upload does not exist or is complete.
    func complete(_ id: BlobID, proof: [UInt8], now: Int64) throws(StoreError) -> Bool
    /// Forgets an upload. Its blob, if it is complete, stays.
    func remove(upload id: BlobID) throws(StoreError)
    /// The length of a blob if the current record of the user's node refers to it; nil otherwise.
    func length(of blob: BlobID, in node: NodeID, of app: AppID, _ user: UserID) throws(StoreError) -> Int64?
    /// Whether an account may read a node of another account's tree: the node is in the branch below a root, whose list
    /// permits the account to read.
    func mayRead(_ user: UserID, _ node: NodeID, in branch: BranchName, of app: AppID) throws(StoreError) -> Bool
    /// What a user has; nil: all users of the app together.
    func usage(of app: AppID, _ user: UserID?) throws(StoreError) -> BlobUsage

    // MARK: For the sweep

    /// What all users of all apps have.
    func total() throws(StoreError) -> BlobUsage
    /// Open uploads begun, and complete ones completed, at or before `time`; at most `limit`.
    func uploads(until time: Int64, limit: Int) throws(StoreError) -> [BlobID]
    /// Removes orphans of at least this age, at most `limit`. They are listed by `removed` until `forget`.
    /// - Parameter time: milliseconds since 1970; blobs that are orphans since then or longer are removed.
    /// - Returns: how many were removed.
    func collect(until time: Int64, limit: Int) throws(StoreError) -> Int
    /// Blobs that were removed and whose bytes may still be in the blob store; at most `limit`, above `blob`.
    func removed(after blob: BlobID?, limit: Int) throws(StoreError) -> [BlobID]
    /// The bytes of removed blobs are gone.
    func forget(_ blobs: [BlobID]) throws(StoreError)
    /// Those of the ids that are blobs, open uploads or removed blobs. A completed upload does not count: after its
    /// blob was collected, a crash may bring the file back.
    func known(among ids: [BlobID]) throws(StoreError) -> Set<BlobID>
}

/// An upload in parts.
public struct BlobUpload: Sendable, Hashable {
    /// Also the id of the blob that it becomes.
    public let id: BlobID
    /// The app of the user.
    public let app: AppID
    /// The user that owns the blob.
    public let user: UserID
    /// Bytes of the whole blob, at least 1.
    public let length: Int64
    /// Bytes of each part but the last.
    public let partBytes: Int
    /// When it was begun, milliseconds since 1970.
    public let begun: Int64
    /// The hash by which it was completed; nil while it is open.
    public var proof: [UInt8]?

    /// Number of parts.
    public var partCount: Int { Int((length + Int64(partBytes) - 1) / Int64(partBytes)) }
    /// The place of a part in the blob; `number` counts from 1.
    public func offset(of number: Int) -> Int64 { Int64(number - 1) * Int64(partBytes) }
    /// Bytes of a part.
    public func bytes(of number: Int) -> Int { Int(min(Int64(partBytes), length - offset(of: number))) }
}

/// How many bytes users may keep in blobs, open uploads included.
public struct BlobQuota: Sendable, Hashable {
    /// Bytes of one user in one app.
    public var userBytesMax: Int64
    /// Bytes of all users of one app.
    public var appBytesMax: Int64
    /// Open uploads of one user in one app.
    public var uploadsMax: Int

    /// The answer to a wish for room.
    public enum Verdict: Sendable, Hashable {
        /// The upload was added.
        case accepted
        /// The user would have too many bytes, or has too many open uploads.
        case userFull
        /// The users of the app together would have too many bytes.
        case appFull
    }

    /// - Parameters:
    ///   - user: what the user has without the new upload.
    ///   - app: the same of all users.
    func verdict(_ length: Int64, user: BlobUsage, app: BlobUsage) -> Verdict {
        if user.openCount >= uploadsMax || user.bytes + user.openBytes > userBytesMax - length { return .userFull }
        return app.bytes + app.openBytes > appBytesMax - length ? .appFull : .accepted
    }
}

/// What a user, or an app, keeps in blobs.
public struct BlobUsage: Sendable, Hashable {
    /// Number of blobs.
    public var count: Int = 0
    /// Bytes of blobs.
    public var bytes: Int64 = 0
    /// Bytes that open uploads will have.
    public var openBytes: Int64 = 0
    /// Number of open uploads.
    public var openCount: Int = 0
}
