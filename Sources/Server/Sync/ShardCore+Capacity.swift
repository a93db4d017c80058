import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The shard's state for a bucket whose options bound the number of its objects.
struct BucketCapacity {
    /// Maximum number of objects.
    let objectsMax: Int
    /// Number of objects, including the changes of the open group.
    var count: Int
    /// The least recently changed objects at the latest read of the store, in that order. An object that was changed
    /// since has another `gid` and is more recent than all of these.
    var oldest = ArraySlice<LiveEntity>()

    /// Objects per read.
    static let oldestMax = 256
    /// Maximum number of objects that one new object may evict. More than one is evicted only after the capacity was
    /// reduced; per group these are bounded by the number of objects that an `EMPTY` removes.
    static let removalsMax = 16

    /// Approximate bytes in memory.
    var memory: Int { oldest.isEmpty ? 0 : 100 * Self.oldestMax }
}

/// The option `capacity`: when a new object exceeds it, the least recently changed objects are removed, by ordinary
/// removals that all clients receive.
extension ShardCore {
    /// The capacity of a bucket being loaded; nil: unlimited.
    func capacity(of id: BucketID, _ record: BucketRecord?) throws(ChangeRejection) -> BucketCapacity? {
        guard !BucketOptions.isBucket(id.name), let place = BucketOptions.bucket(of: id.app),
            let key = try? EntityKey(id.name.text)
        else { return nil }
        // Most apps have no options, so their options bucket is not loaded.
        if buckets[place] == nil {
            guard try reading({ () throws(StoreError) in try store.bucket(place) }) != nil else { return nil }
        }
        let options = try activeEntity(key, in: try activeBucket(place))
        guard let state = options?.state, !state.isDeleted,
            let objectsMax = BucketOptions.capacity(state.value)
        else { return nil }
        let count = try reading { () throws(StoreError) in
            try record.map { (record) throws(StoreError) in try store.liveCount(in: record.row) } ?? 0
        }
        return BucketCapacity(objectsMax: objectsMax, count: count)
    }

    /// Records changed options: the buckets they apply to are loaded again with the next group.
    func recordOptions(_ key: EntityKey, of app: AppID) { changedOptions.append((app, key)) }

    /// Drops the buckets whose options were changed.
    func forgetWhoseOptionsChanged() {
        guard !changedOptions.isEmpty else { return }
        for bucket in Array(buckets.values) {
            let isMeant = changedOptions.contains { app, key in
                bucket.id.app == app && bucket.id.name.text.utf8.elementsEqual(key.text.utf8)
            }
            if isMeant { drop(bucket) }
        }
        changedOptions.removeAll()
    }

    /// Removes objects above the capacity after a creation. If the store cannot be read, the next creation does it.
    func evict(in bucket: ActiveBucket, now: Int64) {
        for step in 0..<BucketCapacity.removalsMax {
            guard let capacity = bucket.capacity, capacity.count > capacity.objectsMax,
                step == 0 || group.extraRemovals < settings.clearedObjectsPerGroup,
                let entity = (try? leastRecent(in: bucket)) ?? nil, remove(entity, now: now)
            else { return }
            if step > 0 { group.extraRemovals += 1 }
        }
    }

    private func leastRecent(in bucket: ActiveBucket) throws(ChangeRejection) -> ActiveEntity? {
        guard let row = bucket.record?.row else { return nil }
        if let entity = try nextOldest(of: bucket) { return entity }
        let found = try reading { () throws(StoreError) in
            try store.leastRecent(in: row, limit: BucketCapacity.oldestMax)
        }
        bucket.capacity?.oldest = found[...]
        if let entity = try nextOldest(of: bucket) { return entity }
        // All objects on disk were changed in this group, so the group's own changes are the oldest.
        guard found.count < BucketCapacity.oldestMax else { return nil }
        return group.entities.filter { $0.bucket === bucket && !$0.state.isDeleted }.min { $0.gid < $1.gid }
    }

    private func nextOldest(of bucket: ActiveBucket) throws(ChangeRejection) -> ActiveEntity? {
        while let oldest = bucket.capacity?.oldest.popFirst() {
            if let entity = try activeEntity(oldest.key, in: bucket), !entity.state.isDeleted,
                entity.gid == oldest.gid
            {
                return entity
            }
        }
        return nil
    }

    /// - Returns: false if the next position of the log is unknown.
    private func remove(_ entity: ActiveEntity, now: Int64) -> Bool {
        guard let next = nextGlobalID, let changeID = Self.changeID(of: entity.key, next),
            let author = Self.author(of: changeID, entity, now: now)
        else { return false }
        write(
            .removal(of: entity.state), to: entity, author: author, changeID: changeID,
            hash: identity.hash(of: changeID), isStep: true)
        return true
    }

    /// `clientid` of these removals. No client library uses this name.
    static let capacityClientID = "capacity"

    /// A synthetic author without a channel: no channel has generation 0.
    private static func author(of changeID: ChangeID, _ entity: ActiveEntity, now: Int64) -> SubmittedChange? {
        guard let clientID = try? ClientID(capacityClientID) else { return nil }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 0, channel: 0), bucket: entity.bucket.id, clientID: clientID,
            library: .other, canWrite: true,
            request: ChangeRequest(key: entity.key.text, ccid: changeID.text, operation: .remove), now: now)
    }

    private static func changeID(of key: EntityKey, _ gid: GlobalID) -> ChangeID? {
        let text = "\(capacityClientID)\0\(key.text)\0\(gid)"
        return try? ChangeID(Hex.encode(Array(Hash.sha256(Array(text.utf8)).prefix(16))))
    }
}
