package import ThicketProtocol
import ThicketSealed

/// The app's calls: reading and editing objects. None of them needs a connection.
extension SyncMachine {
    /// The object as the app sees it; nil when it does not exist.
    package mutating func object(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> JSONObject? {
        let number = try number(bucket)
        return try entity(number, try wireKey(number, key)).local
    }

    /// The server's version on which the local edits are based (0: never on the server), and whether there are edits.
    package mutating func standing(
        _ bucket: BucketName, _ key: EntityKey
    ) throws(ClientError) -> (version: Version, hasEdits: Bool, refusal: Int?) {
        let number = try number(bucket)
        let record = try entity(number, try wireKey(number, key)).record
        return (record.ghost.version, record.edits.hasEdits, record.edits.refusal)
    }

    /// The ghost of an object, without local edits.
    package mutating func ghost(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> Ghost {
        let number = try number(bucket)
        let entity = try entity(number, try wireKey(number, key))
        guard let sealed = entity.sealed else { return entity.record.ghost }
        return Ghost(version: entity.record.ghost.version, object: sealed.log.object)
    }

    /// The keys that the app sees, in byte order, after `after`.
    package func keys(_ bucket: BucketName, after: EntityKey?, limit: Int) throws(ClientError) -> [EntityKey] {
        guard let number = channelNumbers[bucket], channels[number].record.isSealed else {
            return try store.liveKeys(bucket, after: after, limit: limit)
        }
        var keys = [EntityKey]()
        for name in try store.liveNames(bucket, after: after?.text, limit: limit) {
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
        return try turn(now) { machine throws(ClientError) in
            guard let edit = Edits.between(try machine.entity(number, key).local, object) else { return }
            try machine.add(edit, to: number, key, name, isWhole: true)
        }
    }

    /// Removes the object; does nothing when it does not exist.
    package mutating func remove(_ bucket: BucketName, _ key: EntityKey, now: Int64) throws(ClientError) -> [SyncAction]
    {
        let number = try number(bucket)
        let name = key.text
        let key = try wireKey(number, key)
        return try turn(now) { machine throws(ClientError) in
            guard try machine.entity(number, key).local != nil else { return }
            try machine.add(.remove, to: number, key, name, isWhole: true)
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
        return try turn(now) { machine throws(ClientError) in
            let known = try machine.entity(number, key).local
            let fitted = Edits.fitted(diff, to: known ?? JSONObject())
            guard !fitted.isEmpty || known == nil else { return }
            let diff = JSONDiff.keepingPairsWhole(fitted, in: known ?? JSONObject())
            try machine.add(.modify(diff), to: number, key, name, isWhole: isWhole)
        }
    }

    /// Whether the server refused the object's edits: 400 and 413 for good, 401 with this token.
    package mutating func isRefused(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> Bool {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        let edits = try entity(number, key).record.edits
        guard edits.hasEdits, edits.wanted == nil, channels[number].inFlight[key] == nil else { return false }
        if edits.refusal != nil { return true }
        return channels[number].isReadOnly && Self.isMissingAtServer(edits)
    }

    /// Drops an object's edits, so that it equals the server's state. Permitted only for `isRefused` or `isUnsent`.
    package mutating func discard(_ bucket: BucketName, _ key: EntityKey, now: Int64) throws(ClientError)
        -> [SyncAction]
    {
        let number = try number(bucket)
        let key = try wireKey(number, key)
        return try turn(now) { machine throws(ClientError) in
            if machine.channels[number].sealing != nil { return try machine.discardSealed(number, key) }
            var entity = try machine.entity(number, key)
            let before = entity.local
            entity.record.ghost = entity.record.edits.held ?? entity.record.ghost
            entity.record.edits = EditState()
            entity.base = entity.record.ghost.object
            entity.local = entity.record.ghost.object
            machine.put(number, key, entity, [.ghost, .edits])
            guard let change = Edits.between(before, entity.local) else { return }
            machine.tell(number, key, before: before, after: entity.local, by: change, .local)
        }
    }

    /// Whether the bucket is caught up and every edit is confirmed or refused; `waitUntilSynced` waits for this.
    package func isSynced(_ bucket: BucketName) -> Bool {
        guard let number = channelNumbers[bucket] else { return false }
        let channel = channels[number]
        return channel.phase == .live && channel.edited.count == channel.refusedEdits && channel.stale.isEmpty
            && !channel.needsWalk
    }

    /// Whether the bucket equals the server's, local edits aside: `caughtUp` was reported, and the connection is still
    /// open.
    package func hasCaughtUp(_ bucket: BucketName) -> Bool {
        channelNumbers[bucket].map { channels[$0].phase == .live } ?? false
    }

    /// The numbers of objects with edits that the server has not confirmed, and of those that it refused.
    package func unconfirmed(_ bucket: BucketName) -> (edited: Int, refused: Int) {
        guard let number = channelNumbers[bucket] else { return (0, 0) }
        return (channels[number].edited.count, channels[number].refused.count)
    }

    /// Whether the object `heads` of a sealed bucket is one of them: the machine writes it by itself when it is due.
    package func isWritingHeads(_ bucket: BucketName) -> Bool {
        guard let number = channelNumbers[bucket], let key = channels[number].sealing?.headsKey else {
            return false
        }
        return channels[number].edited.contains(key)
    }

    /// Why the server does not open the bucket; nil: it does, or the client is not connected.
    package func unavailability(_ bucket: BucketName) -> ClientError? {
        channelNumbers[bucket].flatMap { channels[$0].unavailable }
    }

    /// The token does not permit changes of this bucket, and some exist.
    package func isReadOnly(_ bucket: BucketName) -> Bool {
        channelNumbers[bucket].map { channels[$0].isReadOnly } ?? false
    }

    /// No change of the bucket is in flight.
    package func isAnswered(_ bucket: BucketName) -> Bool {
        channelNumbers[bucket].map { channels[$0].inFlight.isEmpty } ?? true
    }

    /// Requests an old version of an object by the server's key; the answer is the action `fetched`.
    ///
    /// - Throws: `offline` when the bucket is not connected.
    package mutating func fetchStored(
        _ bucket: BucketName, _ key: EntityKey, _ version: Version, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        let number = try number(bucket)
        guard link == .open, channels[number].phase == .live else {
            throw ClientError(.offline, "only the server keeps old versions")
        }
        return try turn(now) { machine throws(ClientError) in
            machine.send(Messages.onChannel(number, "e:\(key.text).\(version)"))
        }
    }

    /// The server's name for this user; nil until the server has reported it once.
    package func user() throws(ClientError) -> String? { try store.note("user") }

    /// The buckets that are synced, in byte order.
    package var bucketNames: [BucketName] { channels.map(\.record.name).sorted() }

    /// Whether the bucket is stored as a sealed one; nil when it is not stored.
    package func isSealed(_ bucket: BucketName) -> Bool? {
        channelNumbers[bucket].map { channels[$0].record.isSealed }
    }

    /// Whether the server has reported the bucket as a sealed one.
    package func isServedSealed(_ bucket: BucketName) -> Bool {
        channelNumbers[bucket].flatMap { channels[$0].sealing?.isServed } ?? false
    }

    func number(_ bucket: BucketName) throws(ClientError) -> Int {
        guard let number = channelNumbers[bucket] else { throw ClientError(.notFound, "the bucket is not open") }
        return number
    }

    /// Appends an edit to the app's earlier edits.
    private mutating func add(
        _ edit: Edit, to number: Int, _ key: EntityKey, _ name: String, isWhole: Bool
    ) throws(ClientError) {
        if channels[number].sealing != nil {
            guard !SealedHeads.isReserved(name) else {
                throw ClientError(
                    .invalidName, "'\(name)' is reserved for an internal object of sealed buckets")
            }
            return try addSealed(edit, to: number, key, name: name, isWhole: isWhole)
        }
        try checkOpen(number, key)
        var entity = try entity(number, key)
        let before = entity.local
        var edits = entity.record.edits
        do {
            entity.local = try Edits.apply(edit, to: before)
            let isAllWhole = isWhole && (edits.later == nil || edits.isWhole)
            edits.later = try Edits.compose(edits.later, edit, base: entity.base)
            edits.isWhole = isAllWhole && edits.later != nil
            entity.wanted.later = nil
        } catch {
            throw ClientError(.misfit, "the edit does not fit the object: \(error)")
        }
        if edits.refusal != nil {
            edits.refusal = nil
            edits.forgetRefusals()
        }
        let step = Self.step(edit, from: entity.record.edits, to: edits)
        entity.record.edits = edits
        put(number, key, entity, .edits, laterStep: step)
        queue(number, key, edits)
        tell(number, key, before: before, after: entity.local, by: edit, .local)
    }

    /// The edit, if nothing else happened than composing it with the earlier edits.
    private static func step(_ edit: Edit, from before: EditState, to after: EditState) -> ObjectDiff? {
        guard case .modify(let diff) = edit, case .modify? = after.later, before.hasEdits, before.later != .remove,
            before.refusal == nil, before.isWhole == after.isWhole
        else { return nil }
        return diff
    }
}
