import ThicketProtocol
import ThicketTreeShape

/// The blobs and uploads of a `MemoryStore`.
struct MemoryBlobs: Sendable {
    struct Blob: Hashable, Sendable {
        let app: AppID
        /// nil: the owner was erased, and the blob counts for the app only.
        var user: UserID?
        let length: Int64
        /// Milliseconds since 1970; nil while a node refers to it.
        var orphaned: Int64?
    }

    var uploads = [BlobID: BlobUpload]()
    /// When uploads were completed, milliseconds since 1970.
    var completed = [BlobID: Int64]()
    var blobs = [BlobID: Blob]()
    /// Removed, with bytes that may still exist.
    var removed = Set<BlobID>()

    /// What the owners of a kind have.
    func usage(of isOwner: (AppID, UserID?) -> Bool) -> BlobUsage {
        var usage = BlobUsage()
        for blob in blobs.values where isOwner(blob.app, blob.user) {
            usage.count += 1
            usage.bytes += blob.length
        }
        for upload in uploads.values where upload.proof == nil && isOwner(upload.app, upload.user) {
            usage.openCount += 1
            usage.openBytes += upload.length
        }
        return usage
    }

    mutating func remove(_ blob: BlobID) {
        blobs[blob] = nil
        removed.insert(blob)
    }

    /// The references after a group.
    /// - Returns: false when a node of the group refers to a blob that does not exist.
    mutating func refer(
        _ nodes: [WriteBatch.NodeWrite], left: Set<BlobID>, tables: [BucketRow: NodeTable], at time: Int64
    ) -> Bool {
        for case let blob? in nodes.map({ $0.row?.blob }) {
            guard blobs[blob] != nil else { return false }
            blobs[blob]?.orphaned = nil
        }
        for blob in left where !tables.values.contains(where: { $0.refers(to: blob) }) {
            if blobs[blob]?.orphaned == nil { blobs[blob]?.orphaned = time }
        }
        return true
    }

    /// Removes everything of a user that no other tree refers to.
    mutating func erase(_ app: AppID, _ user: UserID, tables: [BucketRow: NodeTable]) {
        for (id, blob) in blobs where blob.app == app && blob.user == user {
            if tables.values.contains(where: { $0.refers(to: id) }) { blobs[id]?.user = nil } else { remove(id) }
        }
        for (id, upload) in uploads where upload.app == app && upload.user == user { uploads[id] = nil }
    }
}
