package import ThicketProtocol
import ThicketSealed

/// Sealed buckets: the server stores `{z,s,d}` and orders operations; the client decrypts and merges
/// (docs/decisions/0044).
///
/// The ghost is the server's state, as far as this device has read and verified it; the object's log is derived from
/// it. The record also holds the bytes of the change in flight, and `EditState.sealed`.
extension SyncMachine {
    // MARK: - Opening

    mutating func makeSealing(_ keys: SealedBucketKeys) throws(ClientError) -> Sealing {
        if let kept = try store.note("author") {
            guard let author = UInt64(kept, radix: 16) else {
                throw ClientError(.store, "this device's id in the local store is damaged")
            }
            return Sealing(keys: keys, author: AuthorID(rawValue: author))
        }
        let author = random.next()
        try store.setNote("author", to: hexText(author))
        return Sealing(keys: keys, author: AuthorID(rawValue: author))
    }

    /// Handles another call to open a bucket that is already in the store.
    mutating func reopen(
        _ number: Int, _ keys: SealedBucketKeys?, now: Int64
    ) throws(ClientError) -> [SyncAction] {
        if let keys, !channels[number].record.isSealed, let drafts = try drafts(number) {
            return try seal(number, keys, drafts, now: now)
        }
        guard channels[number].record.isSealed == (keys != nil) else {
            throw ClientError(
                .sealed,
                keys == nil
                    ? "the bucket is sealed in this store: open it with its secret"
                    : "the bucket is open in this store: a sealed bucket needs another name")
        }
        guard let keys, channels[number].isLocked else { return [] }
        let sealing = try makeSealing(keys)
        return try turn(now) { machine throws(ClientError) in
            machine.channels[number].sealing = sealing
            if machine.link == .open { try machine.openChannel(number) }
        }
    }

    /// `Sealing.isNamed` for an object of the channel.
    func isNamed(_ log: SealedLog, _ key: EntityKey, on number: Int) -> Bool {
        guard let sealing = channels[number].sealing else { return false }
        return Sealing.isNamed(log, key.text, by: sealing.keys)
    }

    /// Handles the mode of the bucket as reported by the server. It is not trusted: the store holds the mode in which
    /// the app opened the bucket. A difference is reported to the app, and nothing is sent unencrypted into a sealed
    /// bucket.
    mutating func heardMode(_ mode: String?, on number: Int) {
        guard let mode else { return }
        let isSealed = mode.utf8.elementsEqual("sealed".utf8)
        guard isSealed != channels[number].record.isSealed else {
            channels[number].sealing?.isModeTold = false
            channels[number].sealing?.isServed = isSealed
            return
        }
        if let sealing = channels[number].sealing {
            guard !sealing.isModeTold else { return }
            channels[number].sealing?.isModeTold = true
            channels[number].sealing?.isServed = false
            let detail = "the server no longer reports the bucket as sealed; this device continues to seal it"
            tellOnce(number, .integrity(IntegrityReport(modeChanged: detail)))
        } else if isSealed {
            let error = ClientError(
                .sealed, "the bucket is sealed: open it with its secret; nothing is sent into it unencrypted")
            let isTold = channels[number].unavailable == error
            channels[number].phase = .refused
            channels[number].unavailable = error
            channels[number].answerDue = nil
            channels[number].resumeAt = now + SyncLimits.reopenMilliseconds
            if !isTold { actions.append(.event(channels[number].record.name, .unavailable(error))) }
        }
    }

    /// The server's key of the app's object.
    package func wireKey(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> EntityKey {
        try wireKey(try number(bucket), key)
    }

    func wireKey(_ number: Int, _ key: EntityKey) throws(ClientError) -> EntityKey {
        guard channels[number].record.isSealed else { return key }
        guard let sealing = channels[number].sealing else {
            throw ClientError(.sealed, "the bucket is sealed: open it with its secret")
        }
        guard let made = try? EntityKey(sealing.keys.serverKey(of: key.text)) else {
            throw ClientError(.sealed, "an object's name could not be derived")
        }
        return made
    }

    // MARK: - Records

    /// Restores an object from its record.
    func sealedEntity(
        _ record: EntityRecord, _ key: EntityKey, _ sealing: Sealing
    ) throws(ClientError) -> Entity {
        let sealer = try sealing.sealer(key)
        let kept = record.edits.sealed
        let change = record.edits.pending.map { SealedChange($0.bytes) }
        var log = SealedObject.absent(
            author: sealing.author, place: sealing.place(key), appKey: record.name ?? ""
        ).log
        if !kept.isReplacing, let entity = try Self.keptEntity(record, change) {
            guard
                let opened = try? SealedObject.open(
                    entity, author: sealing.author, place: sealing.place(key), with: sealer)
            else { throw ClientError(.store, Self.doesNotOpen) }
            log = opened.object.log
        }
        guard
            let sealed = SealedObject.restored(
                author: sealing.author, log: log, pending: change?.operation, kept: kept, with: sealer)
        else { throw ClientError(.store, "the stored edits of a sealed object do not fit it") }
        return Entity(record: record, base: nil, local: shownObject(sealed), sealed: sealed)
    }

    private static let doesNotOpen =
        "a sealed object in the local copy cannot be opened: it is damaged, or sealed for the keys of another account"

    /// The server's state of the object, or its state once the creation in flight has arrived.
    private static func keptEntity(
        _ record: EntityRecord, _ change: SealedChange?
    ) throws(ClientError) -> SealedEntity? {
        guard let ghost = record.ghost.object else {
            return change?.snapshot.map { SealedEntity(snapshots: [0: $0]) }
        }
        do { return try SealedEntity(ghost) } catch {
            throw ClientError(.store, "a sealed object in the local store is damaged: \(error)")
        }
    }

    /// The object as the app sees it; nil for the internal object of a sealed bucket.
    func shownObject(_ sealed: SealedObject) -> JSONObject? {
        sealed.log.appKey.utf8.elementsEqual(SealedHeads.appKey.utf8) ? nil : sealed.object
    }

    /// The sealer of an object, held for the next use.
    mutating func sealer(_ number: Int, _ key: EntityKey) throws(ClientError) -> ObjectSealer {
        guard let sealer = try channels[number].sealing?.keptSealer(key) else {
            throw ClientError(.sealed, "the bucket is sealed: open it with its secret")
        }
        return sealer
    }

    /// Records the object's new state in the turn.
    ///
    /// - Parameters:
    ///   - isGhostNew: the ghost has changed; `step` is then the only change, if that is known.
    ///   - laterStep: the only change of the edits, if that is known.
    mutating func putSealed(
        _ number: Int, _ key: EntityKey, _ changed: Entity, isGhostNew: Bool = false, step: GhostStep? = nil,
        laterStep: ObjectDiff? = nil
    ) {
        var entity = changed
        let known: EntityRecord? = cache[address(number, key)]?.record
        if let sealed = entity.sealed {
            entity.record.edits.sealed = sealed.kept
            entity.local = shownObject(sealed)
            if !sealed.log.appKey.isEmpty { entity.record.name = sealed.log.appKey }
        }
        var parts: EntityParts = isGhostNew ? .ghost : []
        if known?.edits != entity.record.edits { parts.insert(.edits) }
        if known?.name != entity.record.name || known?.walk != entity.record.walk { parts.insert(.marks) }
        if parts.isEmpty, known?.isLive == (entity.local != nil) {
            cache[address(number, key)] = entity
            return
        }
        put(number, key, entity, parts, ghostStep: step, laterStep: laterStep)
    }

    // MARK: - Reporting

    /// Reports the changes of an object to the app, in the order of the events. Conflicts and integrity reports are
    /// produced even without a reader, because they come only once.
    mutating func tellSealed(
        _ number: Int, _ key: EntityKey, before: JSONObject?, _ events: [SealedEvent],
        _ origin: ChangeOrigin = .remote
    ) throws(ClientError) {
        let after = try entity(number, key).local
        if before != after, let change = told(events, before, after) {
            tell(number, key, before: before, after: after, by: change, origin)
        }
        for event in events {
            switch event {
            case .conflict(let conflict):
                let name = shownKey(number, key)
                // The internal object is of no interest to the app.
                guard !SealedHeads.isReserved(name) else { continue }
                tellOnce(number, .conflict(ConflictReport(key: name, conflict)))
            case .integrity(let integrity):
                tellOnce(number, .integrity(IntegrityReport(key: shownKey(number, key), integrity)))
            case .stopped(let after):
                tellOnce(number, .integrity(IntegrityReport(key: shownKey(number, key), stoppedAfter: after)))
            case .changed, .acknowledged, .rebased, .recreated: break
            }
        }
    }

    /// The single reported edit, if it leads exactly from `before` to `after`; otherwise their difference.
    private func told(_ events: [SealedEvent], _ before: JSONObject?, _ after: JSONObject?) -> Edit? {
        var edits = [ThicketSealed.Edit?]()
        for event in events { if case .changed(let edit) = event { edits.append(edit) } }
        if edits.count == 1, case .object(let diff)? = edits[0]?.operation, before != nil, after != nil,
            (try? Edits.apply(.modify(diff), to: before)) == .some(after)
        {
            return .modify(diff)
        }
        return Edits.between(before, after)
    }

    /// An old version as the app sees objects; its object is nil when it cannot be opened.
    mutating func clearVersion(
        of value: JSONObject?, _ key: EntityKey, on number: Int
    ) throws(ClientError) -> FetchedVersion {
        guard let sealing = channels[number].sealing, let value else {
            return FetchedVersion(object: value, stored: value)
        }
        guard let entity = try? SealedEntity(value) else { return FetchedVersion(object: nil, stored: value) }
        let opened = try? SealedObject.open(
            entity, author: sealing.author, place: sealing.place(key), with: try sealer(number, key))
        let log = opened?.object.log
        return FetchedVersion(object: log?.object, stored: value, name: log?.appKey)
    }
}
