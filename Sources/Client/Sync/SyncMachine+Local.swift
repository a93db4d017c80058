package import ThicketProtocol

/// The app's calls: reading and editing objects. None of them needs a connection.
extension SyncMachine {
    /// The object as the app sees it; nil when it does not exist.
    package mutating func object(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> JSONObject? {
        let number = try number(bucket)
        return try buckets[number].entity(try wireKey(number, key), &turn).local
    }

    /// The server's version on which the local edits are based (0: never on the server), and whether there are edits.
    package mutating func standing(
        _ bucket: BucketName, _ key: EntityKey
    ) throws(ClientError) -> (version: Version, hasEdits: Bool, refusal: Int?) {
        let number = try number(bucket)
        let record = try buckets[number].entity(try wireKey(number, key), &turn).record
        return (record.ghost.version, record.edits.hasEdits, record.edits.refusal)
    }

    /// The ghost of an object, without local edits.
    package mutating func ghost(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> Ghost {
        let number = try number(bucket)
        let entity = try buckets[number].entity(try wireKey(number, key), &turn)
        guard let sealed = entity.sealed else { return entity.record.ghost }
        return Ghost(version: entity.record.ghost.version, object: sealed.log.object)
    }

    /// The keys that the app sees, in byte order, after `after`.
    package func keys(_ bucket: BucketName, after: EntityKey?, limit: Int) throws(ClientError) -> [EntityKey] {
        guard let number = numbers[bucket], buckets[number].record.isSealed else {
            return try turn.store.liveKeys(bucket, after: after, limit: limit)
        }
        var keys = [EntityKey]()
        for name in try turn.store.liveNames(bucket, after: after?.text, limit: limit) {
            // Objects with invalid names are never accepted (`isNamed`).
            guard let key = try? EntityKey(name) else {
                throw ClientError(.store, "an object's name in the local store is damaged")
            }
            keys.append(key)
        }
        return keys
    }

    /// Makes the object equal to `object`: the difference is computed once, now.
    package mutating func set(
        _ bucket: BucketName, _ key: EntityKey, to object: JSONObject, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let number = try number(bucket)
        let name = key.text
        let key = try wireKey(number, key)
        return try runTurn(now) { machine throws(ClientError) in
            guard let edit = Edits.between(try machine.buckets[number].entity(key, &machine.turn).local, object) else {
                return
            }
            try machine.buckets[number].add(edit, key, name: name, isWhole: true, &machine.turn)
        }
    }

    /// Removes the object; does nothing when it does not exist.
    package mutating func remove(_ bucket: BucketName, _ key: EntityKey, now: Int64) throws(ClientError) -> [SyncAction]
    {
        let number = try number(bucket)
        let name = key.text
        let key = try wireKey(number, key)
        return try runTurn(now) { machine throws(ClientError) in
            guard try machine.buckets[number].entity(key, &machine.turn).local != nil else { return }
            try machine.buckets[number].add(.remove, key, name: name, isWhole: true, &machine.turn)
        }
    }

    /// Applies `diff` to the object as the app sees it (to the empty object when it does not exist).
    ///
    /// - Parameter isWhole: the app wants the resulting object as a whole, not only the diff's changes.
    /// - Throws: `misfit` when the diff does not fit; nothing is changed then.
    package mutating func edit(
        _ bucket: BucketName, _ key: EntityKey, by diff: ObjectDiff, isWhole: Bool = false, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let number = try number(bucket)
        let name = key.text
        let key = try wireKey(number, key)
        return try runTurn(now) { machine throws(ClientError) in
            let known = try machine.buckets[number].entity(key, &machine.turn).local
            let fitted = Edits.fitted(diff, to: known ?? JSONObject())
            guard !fitted.isEmpty || known == nil else { return }
            let diff = JSONDiff.keepingPairsWhole(fitted, in: known ?? JSONObject())
            try machine.buckets[number].add(.modify(diff), key, name: name, isWhole: isWhole, &machine.turn)
        }
    }

    /// Whether the server refused the object's edits: 400 and 413 for good, 401 with this token.
    package mutating func isRefused(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> Bool {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        let edits = try buckets[number].entity(key, &turn).record.edits
        guard edits.hasEdits, edits.wanted == nil, buckets[number].outbox.inFlight[key] == nil else { return false }
        if edits.refusal != nil { return true }
        return buckets[number].outbox.isReadOnly && edits.isMissingAtServer
    }

    /// Drops an object's edits, so that it equals the server's state. Permitted only for `isRefused` or `isUnsent`.
    package mutating func discard(_ bucket: BucketName, _ key: EntityKey, now: Int64) throws(ClientError)
        -> [SyncAction]
    {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        return try runTurn(now) { machine throws(ClientError) in
            try machine.buckets[number].discard(key, &machine.turn)
        }
    }

    /// Whether the bucket is caught up and every edit is confirmed or refused; `waitUntilSynced` waits for this.
    package func isSynced(_ bucket: BucketName) -> Bool {
        guard let number = numbers[bucket] else { return false }
        let channel = buckets[number]
        return channel.phase == .live && channel.keys.edited.count == channel.keys.refusedEdits
            && channel.keys.stale.isEmpty
            && !channel.scan.isNeeded
    }

    /// Whether the bucket equals the server's, local edits aside: `caughtUp` was reported, and the connection is still
    /// open.
    package func hasCaughtUp(_ bucket: BucketName) -> Bool {
        numbers[bucket].map { buckets[$0].phase == .live } ?? false
    }

    /// The numbers of objects with edits that the server has not confirmed, and of those that it refused.
    package func unconfirmed(_ bucket: BucketName) -> (edited: Int, refused: Int) {
        guard let number = numbers[bucket] else { return (0, 0) }
        return (buckets[number].keys.edited.count, buckets[number].keys.refused.count)
    }

    /// Whether the object `heads` of a sealed bucket is one of them: the machine writes it by itself when it is due.
    package func isWritingHeads(_ bucket: BucketName) -> Bool {
        guard let number = numbers[bucket], let key = buckets[number].sealing?.headsKey else {
            return false
        }
        return buckets[number].keys.edited.contains(key)
    }

    /// Why the server does not open the bucket; nil: it does, or the client is not connected.
    package func unavailability(_ bucket: BucketName) -> ClientError? {
        numbers[bucket].flatMap { buckets[$0].unavailable }
    }

    /// The token does not permit changes of this bucket, and some exist.
    package func isReadOnly(_ bucket: BucketName) -> Bool {
        numbers[bucket].map { buckets[$0].outbox.isReadOnly } ?? false
    }

    /// No change of the bucket is in flight.
    package func isAnswered(_ bucket: BucketName) -> Bool {
        numbers[bucket].map { buckets[$0].outbox.inFlight.isEmpty } ?? true
    }

    /// Requests an old version of an object by the server's key; the answer is the action `fetched`.
    ///
    /// - Throws: `offline` when the bucket is not connected.
    package mutating func fetchStored(
        _ bucket: BucketName, _ key: EntityKey, _ version: Version, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let number = try number(bucket)
        guard turn.link.isOpen, buckets[number].phase == .live else {
            throw ClientError(.offline, "only the server keeps old versions")
        }
        return try runTurn(now) { machine throws(ClientError) in
            machine.turn.send(Messages.onChannel(number, "e:\(key.text).\(version)"))
        }
    }

    /// The server's name for this user; nil until the server has reported it once.
    package func user() throws(ClientError) -> String? { try turn.store.namedValue("user") }

    /// The buckets that are synced, in byte order.
    package var bucketNames: [BucketName] { buckets.map(\.record.name).sorted() }

    /// Whether the bucket is stored as a sealed one; nil when it is not stored.
    package func isSealed(_ bucket: BucketName) -> Bool? {
        numbers[bucket].map { buckets[$0].record.isSealed }
    }

    /// Whether the server has reported the bucket as a sealed one.
    package func isServedSealed(_ bucket: BucketName) -> Bool {
        numbers[bucket].flatMap { buckets[$0].sealing?.isServed } ?? false
    }
}
