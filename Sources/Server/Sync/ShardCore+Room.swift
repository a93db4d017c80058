import ThicketCrypto
import ThicketProtocol

/// What the shard knows of a bucket whose options bound the number of its objects.
struct BucketRoom {
    /// Objects that there may be.
    let capacity: Int
    /// Objects that there are, with what the open group has made and removed.
    var count: Int
    /// The objects changed least recently when the store was last asked, in that order. One that was changed since has
    /// another `gid`, and is more recent than all of these.
    var oldest: ArraySlice<LiveEntity> = []

    /// Objects asked for at once.
    static let oldestMax = 256
    /// Objects that one new object may push out: more than one only where the capacity was made smaller, and of those
    /// no more in a group than an `EMPTY` removes.
    static let removalsMax = 16

    /// Bytes held, roughly.
    var memory: Int { oldest.isEmpty ? 0 : 100 * Self.oldestMax }
}

/// `capacity` of a bucket's options: when a new object is one too many, those changed least recently go, by removals
/// like any other, told to everybody.
extension ShardCore {
    /// What a bucket that comes into memory may hold; nil: as much as comes.
    func room(of id: BucketID, _ record: BucketRecord?) throws(ChangeRejection) -> BucketRoom? {
        guard !BucketOptions.isBucket(id.name), let place = BucketOptions.bucket(of: id.app),
            let key = try? EntityKey(id.name.text)
        else { return nil }
        // Most apps have no options: nothing of theirs is kept in memory then.
        if buckets[place] == nil {
            guard try reading({ () throws(StoreError) in try store.bucket(place) }) != nil else { return nil }
        }
        let options = try activeEntity(key, in: try activeBucket(place))
        guard let state = options?.state, !state.isDeleted,
            let capacity = BucketOptions.capacity(state.value)
        else { return nil }
        let count = try reading { () throws(StoreError) in
            try record.map { (record) throws(StoreError) in try store.liveCount(in: record.row) } ?? 0
        }
        return BucketRoom(capacity: capacity, count: count)
    }

    /// Options were changed: the buckets that they are for are looked up anew with the next group.
    func noteOptions(_ key: EntityKey, of app: AppID) { changedOptions.append((app, key)) }

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

    /// Removes what a new object was one too many for. Where the store cannot be read the next new object does it.
    func makeRoom(in bucket: ActiveBucket, now: Int64) {
        for step in 0..<BucketRoom.removalsMax {
            guard let room = bucket.room, room.count > room.capacity,
                step == 0 || group.extraRemovals < settings.emptyObjectsPerGroup,
                let entity = (try? leastRecent(in: bucket)) ?? nil, remove(entity, now: now)
            else { return }
            if step > 0 { group.extraRemovals += 1 }
        }
    }

    private func leastRecent(in bucket: ActiveBucket) throws(ChangeRejection) -> ActiveEntity? {
        guard let row = bucket.record?.row else { return nil }
        if let entity = try nextOldest(of: bucket) { return entity }
        let found = try reading { () throws(StoreError) in
            try store.leastRecent(in: row, limit: BucketRoom.oldestMax)
        }
        bucket.room?.oldest = found[...]
        if let entity = try nextOldest(of: bucket) { return entity }
        // All that is on disk was changed in this group; so its own changes are the oldest there are.
        guard found.count < BucketRoom.oldestMax else { return nil }
        return group.entities.filter { $0.bucket === bucket && !$0.state.isDeleted }.min { $0.gid < $1.gid }
    }

    private func nextOldest(of bucket: ActiveBucket) throws(ChangeRejection) -> ActiveEntity? {
        while let oldest = bucket.room?.oldest.popFirst() {
            if let entity = try activeEntity(oldest.key, in: bucket), !entity.state.isDeleted,
                entity.gid == oldest.gid
            {
                return entity
            }
        }
        return nil
    }

    /// - Returns: false if there is no position for it.
    private func remove(_ entity: ActiveEntity, now: Int64) -> Bool {
        guard let next = nextGlobalID, let changeID = Self.changeID(of: entity.key, next),
            let author = Self.author(of: changeID, entity, now: now)
        else { return false }
        write(
            .removal(of: entity.state), to: entity, author: author, changeID: changeID,
            hash: identity.hash(of: changeID), isStep: true)
        return true
    }

    /// `clientid` of these removals. No library calls itself so.
    static let roomClientID = "capacity"

    /// Nobody: no channel ever has life 0.
    private static func author(of changeID: ChangeID, _ entity: ActiveEntity, now: Int64) -> SubmittedChange? {
        guard let clientID = try? ClientID(roomClientID) else { return nil }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 0, channel: 0), bucket: entity.bucket.id, clientID: clientID,
            library: .other, canWrite: true,
            request: ChangeRequest(key: entity.key.text, ccid: changeID.text, operation: .remove), now: now)
    }

    private static func changeID(of key: EntityKey, _ gid: GlobalID) -> ChangeID? {
        let text = "\(roomClientID)\0\(key.text)\0\(gid)"
        return try? ChangeID(Hex.encode(Array(Hash.sha256(Array(text.utf8)).prefix(16))))
    }
}
