import ThicketProtocol

/// What the shard keeps in memory, and how it gets there and leaves again.
extension ShardCore {
    /// The bucket in memory, loaded when it is not there.
    func activeBucket(_ id: BucketID) throws(ChangeRejection) -> ActiveBucket {
        let bucket: ActiveBucket
        if let known: ActiveBucket = buckets[id] {
            bucket = known
        } else {
            let (record, changeIDs): (BucketRecord?, ChangeIDTail?) = try reading { () throws(StoreError) in
                let record: BucketRecord? = try store.bucket(id)
                return (
                    record, try record.map { (record) throws(StoreError) in try store.changeIDTail(of: record.row) }
                )
            }
            let room: BucketRoom? = try room(of: id, record)
            bucket = ActiveBucket(
                id: id, owner: objects.join(id), tag: codec.tag(of: id), record: record, changeIDs: changeIDs)
            bucket.room = room
            buckets[id] = bucket
        }
        bucketRecency.use(bucket, bytes: bucket.memory)
        return bucket
    }

    /// The object in memory, loaded when it is not there; nil when the key never existed.
    func activeEntity(_ key: EntityKey, in bucket: ActiveBucket) throws(ChangeRejection) -> ActiveEntity? {
        if let known: ActiveEntity = bucket.entities[key] {
            known.makeValue()
            use(known)
            return known
        }
        guard !bucket.hasAllEntities, let row: BucketRow = bucket.record?.row else { return nil }
        let stored: EntityHead? = try reading { () throws(StoreError) in try store.head(of: key, in: row) }
        guard let stored: EntityHead else { return nil }
        let state: ObjectState = try objectState(stored)
        let entity = ActiveEntity(key: key, bucket: bucket, state: state, head: stored)
        bucket.add(entity)
        use(entity)
        return entity
    }

    private func use(_ entity: ActiveEntity) {
        objects.use(entity, share: settings.entityCacheBytesPerUser)
        objects.makeRoom(for: entity, share: settings.entityCacheBytesPerUser)
    }

    func newEntity(_ key: EntityKey, in bucket: ActiveBucket) -> ActiveEntity {
        let entity = ActiveEntity(newKey: key, bucket: bucket, versionBase: identity.versionBase)
        bucket.add(entity)
        objects.use(entity, share: settings.entityCacheBytesPerUser)
        return entity
    }

    private func objectState(_ head: EntityHead) throws(ChangeRejection) -> ObjectState {
        guard let body: [UInt8] = head.body else { return .nothing(version: head.record.version) }
        let value: JSONObject = try object(body)
        return ObjectState(
            version: head.record.version, isDeleted: false, value: value, size: value.serializedSize)
    }

    // MARK: History

    /// Everything done to an object after a version; nil when it is not all kept, or too much of it.
    func laterChanges(of entity: ActiveEntity, after version: Version) throws(ChangeRejection) -> LaterChanges? {
        let work: Int = settings.rebaseBytesMax / max(entity.state.size, 1)
        let limit: Int = min(settings.rebaseChangesMax, max(work, settings.recentChangesMax))
        guard entity.state.version - version <= Version(limit) else { return nil }
        if let recent: LaterChanges = entity.recent.changes(after: version) { return recent }
        guard version < entity.durableVersion, let row: BucketRow = entity.bucket.record?.row else { return nil }
        let stored: EntityHistory? = try reading { () throws(StoreError) in
            try store.history(of: entity.key, after: version, in: row, limit: limit)
        }
        guard let stored: EntityHistory, isWhole(stored, after: version, upTo: entity.durableVersion) else {
            return nil
        }
        var later = LaterChanges(base: try stored.base.map(object) ?? JSONObject(), changes: [])
        for record: ChangeRecord in stored.changes {
            later.changes.append(LaterChange(action: try action(record), before: nil))
        }
        if entity.isTentative {
            guard let tentative: LaterChanges = entity.recent.changes(after: entity.durableVersion) else { return nil }
            later.changes.append(contentsOf: tentative.changes)
        }
        return later
    }

    /// Versions without gaps: a restore raises them, and what came before it is another past.
    private func isWhole(_ history: EntityHistory, after version: Version, upTo newest: Version) -> Bool {
        var expected: Version = version
        for record: ChangeRecord in history.changes {
            expected += 1
            guard record.endVersion == expected else { return false }
        }
        return expected == newest
    }

    private func action(_ record: ChangeRecord) throws(ChangeRejection) -> LaterChange.Action {
        guard record.kind == .modify else { return .remove }
        do {
            return .modify(try ObjectDiff(JSONDocument(parsing: record.diff).root))
        } catch {
            throw ChangeRejection(.serverError, "the diff of change \(record.gid) cannot be read")
        }
    }

    private func object(_ body: [UInt8]) throws(ChangeRejection) -> JSONObject {
        guard case .object(let object)? = try? JSONValue(parsing: body) else {
            throw ChangeRejection(.serverError, "a stored body cannot be read")
        }
        return object
    }

    /// Reads from the store; a failure refuses the one change that needed it.
    func reading<Value>(_ body: () throws(StoreError) -> Value) throws(ChangeRejection) -> Value {
        do {
            return try body()
        } catch {
            throw ChangeRejection(error.kind == .corrupt ? .serverError : .unavailable, error.description)
        }
    }

    // MARK: Forgetting

    /// Drops what was not used for longest until the bounds hold. Only between groups: everything is durable then.
    func evict() {
        objects.evict(bytesMax: settings.entityCacheBytes, share: settings.entityCacheBytesPerUser)
        while bucketRecency.bytes > settings.bucketCacheBytes, let bucket: ActiveBucket = bucketRecency.oldest {
            drop(bucket)
        }
    }

    func drop(_ bucket: ActiveBucket) {
        dropEntities(of: bucket)
        bucketRecency.remove(bucket)
        if buckets.removeValue(forKey: bucket.id) != nil { objects.part(bucket) }
    }

    func dropEntities(of bucket: ActiveBucket) {
        for entity: ActiveEntity in bucket.entities.values { objects.remove(entity) }
        bucket.dropEntities()
    }

    func dropEntities(of bucket: ActiveBucket, _ keys: Set<EntityKey>) {
        for key: EntityKey in keys {
            guard let entity: ActiveEntity = bucket.entities[key] else { continue }
            objects.remove(entity)
            bucket.drop(key)
        }
    }

    func forgetWhatWasAsked() {
        for id: BucketID in forgotten {
            if let bucket: ActiveBucket = buckets[id] { drop(bucket) }
        }
        forgotten.removeAll()
        forgetWhoseOptionsChanged()
    }
}
