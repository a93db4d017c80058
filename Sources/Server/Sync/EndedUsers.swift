import ThicketProtocol

/// Users whose data is being erased; changes of theirs that are still in progress are refused. Bounded: a user's tokens
/// become invalid long before the user drops out.
struct EndedUsers {
    /// Maximum number of users.
    static let namesMax = 4_096

    private struct Owner: Hashable {
        let app: AppID
        let user: UserID
    }

    private var owners = Set<Owner>()
    private var order = [Owner]()

    var isEmpty: Bool { owners.isEmpty }

    mutating func insert(_ app: AppID, _ user: UserID) {
        let owner = Owner(app: app, user: user)
        guard owners.insert(owner).inserted else { return }
        order.append(owner)
        if order.count > Self.namesMax { owners.remove(order.removeFirst()) }
    }

    func contains(_ bucket: BucketID) -> Bool { owners.contains(Owner(app: bucket.app, user: bucket.user)) }
}

extension ShardCore {
    /// Drops the user's buckets from memory before their rows are deleted from the store.
    func endUser(_ erasure: MaintenanceBatch.Erasure) {
        endedUsers.insert(erasure.app, erasure.user)
        for bucket in Array(buckets.values)
        where bucket.id.app == erasure.app && bucket.id.user == erasure.user {
            drop(bucket)
        }
    }
}
