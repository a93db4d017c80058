import ThicketProtocol
import ThicketTreeShape

/// The bounds of guests, which the shard checks before a batch, and the writer once more in its transaction.
struct GuestCheck {
    let shard: ShardCore

    /// What a batch of a guest writes.
    ///
    /// - Returns: nil for a batch of any other account.
    func spending(_ request: TreeBatchRequest, in bucket: ActiveBucket, now: Int64) throws(OperationRejection)
        -> GuestUse?
    {
        guard let member = request.member, member.user.isGuest else { return nil }
        let use = try Self.sum(of: request.batch, by: member, in: bucket.id.app)
        do throws(ChangeRejection) {
            try check(use, of: member, in: bucket, now: now)
        } catch { throw OperationRejection(error, at: nil) }
        return use
    }

    /// A guest makes nodes, and neither changes nor removes any.
    private static func sum(
        of batch: TreeBatch, by member: TreeBatchRequest.Member, in app: AppID
    ) throws(OperationRejection) -> GuestUse {
        var use = GuestUse(app: app, user: member.user)
        // Attachments come with their deposit, so that deposits bound all nodes.
        let nodes = Set(batch.operations.map(\.node))
        for (index, operation) in batch.operations.enumerated() {
            guard case .put(_, 0, let record) = operation, record.shareList == nil else {
                throw OperationRejection(ChangeRejection(TreeRefusal.notPermitted(.noWrite)), at: index)
            }
            guard case .node(let parent) = record.parent, parent == member.root || nodes.contains(parent) else {
                throw OperationRejection(ChangeRejection(TreeRefusal.notPermitted(.noWrite)), at: index)
            }
            if parent == member.root { use.deposits += 1 }
            use.bytes += Int64(record.object.serializedSize)
            guard case .blob(_, let length, _)? = record.data else { continue }
            use.bytes = use.bytes.addingClamped(Int64(clamping: length))
        }
        return use
    }

    private func check(
        _ use: GuestUse, of member: TreeBatchRequest.Member, in bucket: ActiveBucket, now: Int64
    ) throws(ChangeRejection) {
        let (store, app, user) = (shard.store, bucket.id.app, member.user)
        let bounds = try shard.reading { () throws(StoreError) in try store.guest(user, in: app) }
        guard let bounds, bounds.owner == bucket.id.user, bounds.root == member.root, now < bounds.expires else {
            throw ChangeRejection(TreeRefusal.notPermitted(.noRead))
        }
        var (deposits, bytes) = (use.deposits, use.bytes)
        for decided in shard.group.batch.guests where decided.user == user && decided.app == app {
            deposits += decided.deposits
            bytes = bytes.addingClamped(decided.bytes)
        }
        guard deposits <= bounds.depositsLeft, bytes <= bounds.bytesLeft else {
            throw ChangeRejection(TreeRefusal.guestLimit)
        }
    }
}

extension Int64 {
    /// The sum, or the largest number.
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? .max : sum
    }
}
