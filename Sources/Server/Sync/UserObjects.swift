import ThicketProtocol

/// The objects of one user that are in the shard's memory, in order of last use: nobody takes more than a share of it.
final class UserObjects: RecencyNode {
    struct Name: Hashable {
        let app: AppID
        let user: UserID
    }

    let name: Name
    let recency = RecencyList<ActiveEntity>()
    /// The user's buckets in memory; without any it is forgotten.
    fileprivate(set) var buckets = 0
    /// It has more than its share, and is on the list of those who have.
    fileprivate var isCrowded = false

    init(_ name: Name) { self.name = name }
}

/// What the shard keeps of all users' objects.
struct ObjectCache {
    /// Objects in memory.
    private(set) var count = 0
    /// Objects that were forgotten because of their user's share, since the start.
    private(set) var shareEvictions = 0

    private var users = [UserObjects.Name: UserObjects]()
    /// Users with objects in memory.
    private let recency = RecencyList<UserObjects>()
    private var crowded = [UserObjects]()
    private var garbage = [any Sendable]()

    /// Bytes held for all objects, roughly.
    var bytes: Int { recency.bytes }

    /// The objects of a bucket's user; the bucket is coming into memory.
    mutating func join(_ bucket: BucketID) -> UserObjects {
        let name = UserObjects.Name(app: bucket.app, user: bucket.user)
        let user = users[name] ?? UserObjects(name)
        user.buckets += 1
        users[name] = user
        return user
    }

    /// The bucket has left the memory; its objects were removed before.
    mutating func part(_ bucket: ActiveBucket) {
        bucket.owner.buckets -= 1
        if bucket.owner.buckets == 0 { users[bucket.owner.name] = nil }
    }

    /// The object is in use, and takes as much memory as it says.
    /// - Parameter share: bytes that its user may have; what is above it goes with `evict`.
    mutating func use(_ entity: ActiveEntity, share: Int) {
        let user = entity.bucket.owner
        if !entity.isListed { count += 1 }
        user.recency.use(entity, bytes: entity.memory)
        recency.use(user, bytes: user.recency.bytes)
        guard user.recency.bytes > share, !user.isCrowded else { return }
        user.isCrowded = true
        crowded.append(user)
    }

    /// The object leaves the memory; nothing happens when it is not in.
    mutating func remove(_ entity: ActiveEntity) {
        guard entity.isListed else { return }
        let user = entity.bucket.owner
        count -= 1
        user.recency.remove(entity)
        if user.recency.count == 0 { recency.remove(user) } else { recency.count(user, bytes: user.recency.bytes) }
    }

    /// Forgets what the object's user has not used for longest, until the share holds: before the tree of a change is
    /// made beside it. What the open group changes stays, as does the object.
    mutating func makeRoom(for entity: ActiveEntity, share: Int) {
        let user = entity.bucket.owner
        while user.recency.bytes > share, let oldest = user.recency.oldest, oldest !== entity,
            !oldest.isInGroup
        {
            forget(oldest)
            shareEvictions += 1
        }
    }

    /// Forgets what was not used for longest, of each user above the share, then of the users who did nothing for
    /// longest, until the bounds hold. Only between groups: everything is durable then.
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

    /// What was forgotten and takes long to let go of.
    mutating func takeGarbage() -> [any Sendable] {
        guard !garbage.isEmpty else { return [] }
        defer { garbage = [] }
        return garbage
    }
}
