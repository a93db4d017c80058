import ThicketProtocol

/// The objects of one user in the shard's memory, in order of last use; bounds the user to a share of the cache.
final class UserObjects: RecencyNode {
    struct Name: Hashable {
        let app: AppID
        let user: UserID
    }

    let name: Name
    let recency = RecencyList<ActiveEntity>()
    /// Number of the user's buckets in memory; at 0 this object is released.
    fileprivate(set) var buckets = 0
    /// Whether the user exceeds its share and is listed in `ObjectCache.crowded`.
    fileprivate var isCrowded = false

    init(_ name: Name) { self.name = name }
}

/// The cache of all users' objects.
struct ObjectCache {
    /// Number of objects in memory.
    private(set) var count = 0
    /// Number of objects evicted since the start because of their user's share.
    private(set) var shareEvictions = 0

    private var users = [UserObjects.Name: UserObjects]()
    /// Users with objects in memory.
    private let recency = RecencyList<UserObjects>()
    private var crowded = [UserObjects]()
    private var garbage = [any Sendable]()

    /// Approximate bytes of all objects.
    var bytes: Int { recency.bytes }

    /// The object cache of a bucket's user; called when the bucket is loaded.
    mutating func join(_ bucket: BucketID) -> UserObjects {
        let name = UserObjects.Name(app: bucket.app, user: bucket.user)
        let user = users[name] ?? UserObjects(name)
        user.buckets += 1
        users[name] = user
        return user
    }

    /// Called when the bucket has left memory; its objects must be removed before.
    mutating func part(_ bucket: ActiveBucket) {
        bucket.owner.buckets -= 1
        if bucket.owner.buckets == 0 { users[bucket.owner.name] = nil }
    }

    /// Marks the object as used and updates its bytes.
    /// - Parameter share: maximum bytes of its user; `evict` drops what exceeds it.
    mutating func touch(_ entity: ActiveEntity, share: Int) {
        let user = entity.bucket.owner
        if !entity.isListed { count += 1 }
        user.recency.touch(entity, bytes: entity.memory)
        recency.touch(user, bytes: user.recency.bytes)
        guard user.recency.bytes > share, !user.isCrowded else { return }
        user.isCrowded = true
        crowded.append(user)
    }

    /// Removes an object from the cache; no effect if it is not in it.
    mutating func remove(_ entity: ActiveEntity) {
        guard entity.isListed else { return }
        let user = entity.bucket.owner
        count -= 1
        user.recency.remove(entity)
        if user.recency.count == 0 { recency.remove(user) } else { recency.count(user, bytes: user.recency.bytes) }
    }

    /// Evicts the least recently used objects of the object's user until the share holds, before the tree of a change
    /// is built beside them. Objects that the open group changes stay, as does the object itself.
    mutating func evict(for entity: ActiveEntity, share: Int) {
        let user = entity.bucket.owner
        while user.recency.bytes > share, let oldest = user.recency.oldest, oldest !== entity,
            !oldest.isInGroup
        {
            forget(oldest)
            shareEvictions += 1
        }
    }

    /// Evicts the least recently used objects of each user above the share, then those of the least recently active
    /// users, until the bounds hold. Only between groups, when everything is durable.
    mutating func evict(bytesMax: Int, share: Int) {
        for user in crowded {
            user.isCrowded = false
            while user.recency.bytes > share, let entity = user.recency.oldest {
                forget(entity)
                shareEvictions += 1
            }
        }
        crowded.removeAll(keepingCapacity: true)
        while bytes > bytesMax, let entity = recency.oldest?.recency.oldest { forget(entity) }
    }

    private mutating func forget(_ entity: ActiveEntity) {
        remove(entity)
        guard entity.memory >= DocumentMeasure.largeBytes else { return entity.bucket.drop(entity.key) }
        entity.bucket.dropLarge(entity.key)
        garbage.append((entity.state, entity.recent))
    }

    /// Evicted values that take long to deallocate.
    mutating func takeGarbage() -> [any Sendable] {
        guard !garbage.isEmpty else { return [] }
        defer { garbage = [] }
        return garbage
    }
}
