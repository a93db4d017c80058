import ThicketProtocol
import ThicketTreeShape

/// The blob that a record refers to, and the account that may refer to it.
struct BlobClaim {
    let shard: ShardCore

    /// Refuses a record whose blob is not there for it (treesystem 4.8, rule 7). Blobs are removed only while no node
    /// refers to them; the writer checks once more in its transaction.
    func check(_ decision: Decision, in bucket: ActiveBucket) throws(ChangeRejection) {
        try check(decision, by: bucket.id.user, in: bucket)
    }

    /// - Parameter user: the account that has uploaded it; a record of its own tree may also refer to a blob that the
    ///   tree has.
    func check(_ decision: Decision, by user: UserID, in bucket: ActiveBucket) throws(ChangeRejection) {
        guard !decision.isRemoval, let reference = BlobReference(of: decision.state.value) else { return }
        var length = try length(of: reference.blob, by: user, for: bucket)
        if length == nil {
            // The group may read a state from before the upload was completed.
            shard.store.refreshReads()
            length = try self.length(of: reference.blob, by: user, for: bucket)
        }
        guard length == reference.length else { throw ChangeRejection(TreeRefusal.blobMissing) }
    }

    private func length(
        of blob: BlobID, by user: UserID, for bucket: ActiveBucket
    ) throws(ChangeRejection) -> Int64? {
        let isOwner = user == bucket.id.user
        let uploader = isOwner ? bucket.id : BucketID(app: bucket.id.app, user: user, name: bucket.id.name)
        return try shard.reading { () throws(StoreError) in
            try shard.store.length(of: blob, by: uploader, in: isOwner ? bucket.record?.row : nil)
        }
    }
}
