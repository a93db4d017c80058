import ThicketProtocol
import ThicketSealed

/// The objects of a bucket in memory, and what the app is told of them.
extension BucketMachine {
    func address(_ key: EntityKey) -> EntityAddress { EntityAddress(bucket: record.name, key: key) }

    /// The object's record with derived values; an empty record when the store has none.
    ///
    /// `mutating`, so that the bucket is passed where it is and not copied.
    mutating func entity(_ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) -> LocalEntity {
        let address = address(key)
        if let entity = turn.entities[address] { return entity }
        let entity = try rules.entity(try turn.record(address), key, &self)
        turn.entities[address] = entity
        return entity
    }

    /// Changes an object in place, and records in the turn what `change` says that it changed.
    mutating func withEntity<Result>(
        _ key: EntityKey, _ turn: inout SyncTurn, _ change: (inout LocalEntity, inout EntityChange) -> Result
    ) throws(ClientError) -> Result {
        let address = address(key)
        var place = turn.entities.index(forKey: address)
        if place == nil {
            _ = try entity(key, &turn)
            place = turn.entities.index(forKey: address)
        }
        var done = EntityChange()
        // `entity` has read the object into memory.
        let (result, edited) = EntityChange.make(key, &turn.entities.values[place!], &done, change)
        if !done.parts.isEmpty { turn.touch(address, done) }
        if let edited { keys.update(edited) }
        return result
    }

    /// As above, for a change of these parts.
    mutating func withEntity<Result>(
        _ key: EntityKey, _ parts: EntityParts, _ turn: inout SyncTurn, _ change: (inout LocalEntity) -> Result
    ) throws(ClientError) -> Result {
        try withEntity(key, &turn) { entity, done in
            done.parts = parts
            return change(&entity)
        }
    }

    /// Appends an edit to the app's earlier edits of an object.
    mutating func add(
        _ edit: Edit, _ key: EntityKey, name: String, isWhole: Bool, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try rules.add(&self, edit, key, name: name, isWhole: isWhole, &turn)
    }

    /// Drops an object's edits, so that it equals the server's state.
    mutating func discard(_ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        try rules.discard(&self, key, &turn)
    }

    /// Sends an edit that was refused for good once more.
    mutating func retryRefused(_ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        try rules.retryRefused(&self, key, &turn)
    }

    /// Reads from the store which objects have edits, and the undelivered events.
    mutating func read(_ store: any LocalStore) throws(ClientError) {
        keys = EditedKeys()
        for object in try store.edited(record.name) { keys.update(object) }
        undelivered = UndeliveredEvents(try store.undelivered(record.name), after: undelivered)
    }

    /// Reports to the app that the object under `key` changed from `before` to `after`.
    func report(
        _ key: EntityKey, before: JSONObject?, after: JSONObject?, by change: Edit,
        _ origin: ChangeOrigin, _ turn: inout SyncTurn
    ) {
        turn.revision += 1
        let bucket = record.name
        guard turn.hasReader(bucket) else { return }
        guard let after else {
            guard before != nil else { return }
            let removal = ObjectRemoval(
                key: shownKey(key, &turn), origin: origin, revision: turn.revision)
            turn.actions.append(.event(bucket, .removed(removal)))
            return
        }
        var diff = ObjectDiff()
        if case .modify(let reported) = change, before != nil {
            diff = reported
        } else {
            diff = JSONDiff.diff(from: JSONObject(), to: after)
        }
        let reported = ObjectChange(
            key: shownKey(key, &turn), object: after, diff: diff, origin: origin, isNew: before == nil,
            revision: turn.revision)
        turn.actions.append(.event(bucket, .changed(reported)))
    }

    /// The app's key of an object.
    func shownKey(_ key: EntityKey, _ turn: inout SyncTurn) -> String {
        guard record.isSealed else { return key.text }
        return turn.entities[address(key)]?.record.name ?? key.text
    }

    /// Reports an event to the app, and stores it until it is delivered.
    mutating func reportOnce(_ event: BucketEvent, _ turn: inout SyncTurn) {
        let bucket = record.name
        turn.actions.append(.event(bucket, event))
        let (place, kept) = undelivered.add(event)
        turn.undeliveredWrites.append(UndeliveredWrite(bucket: bucket, place: place, event: kept))
    }

    mutating func forgetUndelivered(_ turn: inout SyncTurn) {
        let bucket = record.name
        turn.forgotten[number] = turn.forgotten[number] ?? undelivered
        undelivered = UndeliveredEvents()
        turn.undeliveredWrites.removeAll { $0.bucket == bucket }
        turn.deliveredBuckets.insert(bucket)
    }

    /// The app's key of an object and its edits; nil for the internal object of a sealed bucket. Reads only the record:
    /// a sealed object need not be opened.
    func unconfirmed(_ key: EntityKey, _ turn: SyncTurn) throws(ClientError) -> (name: String, edits: EditState)? {
        let address = address(key)
        var known = turn.entities[address]?.record
        if known == nil { known = try turn.store.entity(address) }
        guard let record = known else { return nil }
        let name = record.name ?? key.text
        if self.record.isSealed, SealedHeads.isReserved(name) { return nil }
        return (name, record.edits)
    }
}
