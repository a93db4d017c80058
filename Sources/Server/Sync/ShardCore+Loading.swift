import ThicketProtocol

/// Loading buckets and objects into the shard's memory, and evicting them.
extension ShardCore {
    /// The bucket in memory; loaded if necessary.
    func activeBucket(_ id: BucketID) throws(ChangeRejection) -> ActiveBucket {
        let bucket: ActiveBucket
        if let known = buckets[id] {
            bucket = known
        } else {
            let (record, changeIDs) = try reading { () throws(StoreError) in
                let record = try store.bucket(id)
                return (
                    record, try record.map { (record) throws(StoreError) in try store.changeIDTail(of: record.row) }
                )
            }
            let mode = try mode(of: id, record)
            let shared = try mode == .tree ? ShardTree.listRoots(of: record, in: self) : []
            let bound = mode.mayHaveCapacity ? try capacity(of: id, record) : nil
            bucket = ActiveBucket(
                id: id, owner: objects.join(id), tag: codec.tag(of: id), record: record, mode: mode,
                changeIDs: changeIDs, shared: shared)
            bucket.capacity = bound
            if bucket.mayHoldNotes { bucket.noteCount = try noteCount(of: id, record) }
            buckets[id] = bucket
        }
        bucketRecency.touch(bucket, bytes: bucket.memory)
        return bucket
    }

    /// The object in memory, parsed; loaded if necessary. nil when the key never existed.
    func activeEntity(_ key: EntityKey, in bucket: ActiveBucket) throws(ChangeRejection) -> ActiveEntity? {
        let entity = try foundEntity(key, in: bucket)
        if let entity { make(entity) }
        return entity
    }

    /// Parses the object if it is held as text.
    func make(_ entity: ActiveEntity) {
        guard !entity.state.isMade else { return }
        entity.makeValue()
        touch(entity)
    }

    /// As `activeEntity`, but not parsed: the object may be held as text.
    func foundEntity(_ key: EntityKey, in bucket: ActiveBucket) throws(ChangeRejection) -> ActiveEntity? {
        if let known = bucket.entities[key] {
            touch(known)
            return known
        }
        guard !bucket.hasAllEntities, let row = bucket.record?.row else { return nil }
        let stored = try reading { () throws(StoreError) in try store.head(of: key, in: row) }
        guard let stored else { return nil }
        let state = try Self.objectState(stored)
        let entity = ActiveEntity(key: key, bucket: bucket, state: state, head: stored, serial: nextSerial())
        bucket.add(entity)
        touch(entity)
        return entity
    }

    private func touch(_ entity: ActiveEntity) {
        objects.touch(entity, share: settings.entityCacheBytesPerUser)
        objects.evict(for: entity, share: settings.entityCacheBytesPerUser)
    }

    func newEntity(_ key: EntityKey, in bucket: ActiveBucket) -> ActiveEntity {
        let entity = ActiveEntity(
            newKey: key, bucket: bucket, versionBase: identity.versionBase, serial: nextSerial())
        bucket.add(entity)
        objects.touch(entity, share: settings.entityCacheBytesPerUser)
        return entity
    }

    static func objectState(_ head: EntityHead) throws(ChangeRejection) -> ObjectState {
        guard let body = head.body else { return .nothing(version: head.record.version) }
        let value = try object(body)
        return ObjectState(
            version: head.record.version, isDeleted: false, value: value, size: value.serializedSize)
    }

    // MARK: History

    /// Access to the changes made to an object.
    func history(of entity: ActiveEntity) -> LateHistory {
        LateHistory(
            key: entity.key, row: entity.bucket.record?.row, recent: entity.recent, newest: entity.state.version,
            durable: entity.durableVersion, changesMax: historyBounds.changesMax(size: entity.state.size))
    }

    /// All changes made to an object after a version; nil when the history is incomplete or exceeds the bounds.
    func laterChanges(of entity: ActiveEntity, after version: Version) throws(ChangeRejection) -> LaterChanges? {
        try history(of: entity).changes(after: version, reading: store)
    }

    var historyBounds: LateHistory.Bounds {
        LateHistory.Bounds(
            changes: settings.rebaseChangesMax, bytes: settings.rebaseBytesMax,
            changesAlways: settings.recentChangesMax)
    }

    /// Adopts into memory an object that another thread has read, if it has not changed since.
    func adopt(_ result: DeferredChange.Result, in bucket: ActiveBucket) throws(ChangeRejection) {
        guard let head = result.head, let state = result.state,
            let row = bucket.record?.row, bucket.entities[head.record.key] == nil
        else { return }
        let newest = try reading { () throws(StoreError) in
            try store.entity(head.record.key, in: row)
        }
        guard newest == head.record else { return }
        let entity = ActiveEntity(
            key: head.record.key, bucket: bucket, state: state, head: head, serial: nextSerial())
        bucket.add(entity)
        touch(entity)
    }

    static func object(_ body: [UInt8]) throws(ChangeRejection) -> JSONObject {
        guard case .object(let object)? = try? JSONValue(parsing: body) else {
            throw ChangeRejection(.serverError, "a stored body cannot be read")
        }
        return object
    }

    /// Reads from the store; a failure refuses only the change that needed the data.
    func reading<Value>(_ body: () throws(StoreError) -> Value) throws(ChangeRejection) -> Value {
        try Self.reading(body)
    }

    static func reading<Value>(_ body: () throws(StoreError) -> Value) throws(ChangeRejection) -> Value {
        do {
            return try body()
        } catch {
            throw ChangeRejection(error.kind == .corrupt ? .serverError : .unavailable, error.description)
        }
    }

    // MARK: Forgetting

    /// Evicts the least recently used data until the bounds hold. Only between groups, when everything is durable.
    func evict() {
        objects.evict(bytesMax: settings.entityCacheBytes, share: settings.entityCacheBytesPerUser)
        while bucketRecency.bytes > settings.bucketCacheBytes, let bucket = bucketRecency.oldest {
            drop(bucket)
        }
    }

    func drop(_ bucket: ActiveBucket) {
        dropEntities(of: bucket)
        bucketRecency.remove(bucket)
        if buckets.removeValue(forKey: bucket.id) != nil { objects.part(bucket) }
    }

    func dropEntities(of bucket: ActiveBucket) {
        for entity in bucket.entities.values { objects.remove(entity) }
        bucket.dropEntities()
    }

    func dropEntities(of bucket: ActiveBucket, _ keys: Set<EntityKey>) {
        for key in keys {
            guard let entity = bucket.entities[key] else { continue }
            objects.remove(entity)
            bucket.drop(key)
        }
    }

    func forgetWhatWasAsked() {
        for id in forgotten {
            if let bucket = buckets[id] { drop(bucket) }
        }
        forgotten.removeAll()
        forgetWhoseOptionsChanged()
    }
}
