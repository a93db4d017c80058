import ThicketProtocol
import ThicketTreeShape

/// The trees of other accounts that a batch writes into, and the policies of their inboxes (decision 0067).
struct Receivers {
    let shard: ShardCore

    /// `clientid` of changes that another account has made in a tree. No client library uses this name.
    private static let clientID = "copy"

    /// The bucket of an account's tree, which may have no row yet.
    ///
    /// - Returns: nil for an account whose data is being erased, and if the bucket of this name is no tree.
    func tree(of user: UserID, in app: AppID) throws(ChangeRejection) -> ActiveBucket? {
        guard let name = try? BucketName(BucketMode.treeName) else { return nil }
        let id = BucketID(app: app, user: user, name: name)
        guard shard.endedUsers.isEmpty || !shard.endedUsers.contains(id) else { return nil }
        let bucket = try shard.activeBucket(id)
        let mayBecomeTree = bucket.record == nil && bucket.mode == .open
        return bucket.mode == .tree || mayBecomeTree ? bucket : nil
    }

    /// The policy of the bucket's owner; read once, and kept with the bucket.
    func policy(of bucket: ActiveBucket) throws(ChangeRejection) -> InboxPolicy {
        if let policy = bucket.policy { return policy }
        let (store, id) = (shard.store, bucket.id)
        let policy = try shard.reading { () throws(StoreError) in
            // An account that was closed accepts nothing, though some of its data still exists.
            try store.hasEnded(id.user, in: id.app) ? InboxPolicy(.nobody) : try store.inboxPolicy(of: id)
        }
        bucket.policy = policy
        return policy
    }

    /// Replaces the policy of the author's inbox. Batches that are decided later see it.
    func set(_ policy: InboxPolicy, _ submitted: SubmittedChange) throws(ChangeRejection) {
        guard submitted.canWrite else { throw ChangeRejection(.unauthorized, "the token is read-only") }
        let bucket = try shard.activeBucket(submitted.bucket)
        bucket.policy = policy
        let answer = JSONValue.object(policy.object).serialized()
        shard.group.add(
            WriteBatch.PolicyWrite(app: bucket.id.app, user: bucket.id.user, policy: policy),
            BatchOutcome(origin: submitted.origin, answer: answer), of: bucket)
    }

    /// A synthetic author of changes in a receiver's tree: no channel has generation 0.
    func author(in bucket: BucketID, now: Int64) throws(ChangeRejection) -> SubmittedChange {
        guard let clientID = try? ClientID(Self.clientID) else {
            throw ChangeRejection(.serverError, "the client id of copies is not valid")
        }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 0, channel: 0), bucket: bucket, clientID: clientID, library: .other,
            canWrite: true, request: ChangeRequest(key: "", ccid: "", operation: .modify), now: now)
    }
}
