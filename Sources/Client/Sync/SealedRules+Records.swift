import ThicketProtocol
import ThicketSealed

/// Records of sealed objects, and what the app is told of them.
extension SealedRules {
    /// `Sealing.isNamed` for an object of the channel.
    static func isNamed(_ bucket: inout BucketMachine, _ log: SealedLog, _ key: EntityKey) -> Bool {
        guard let sealing = bucket.sealing else { return false }
        return Sealing.isNamed(log, key.text, by: sealing.keys)
    }

    static func entity(
        _ record: EntityRecord, _ key: EntityKey, _ bucket: inout BucketMachine
    ) throws(ClientError) -> LocalEntity {
        guard let sealing = bucket.sealing else { throw ClientError(.sealed, locked) }
        let sealer = try sealing.sealer(key)
        let kept = record.edits.sealed
        let change = record.edits.pending.map { SealedChange($0.bytes) }
        var log = SealedObject.absent(
            author: sealing.author, place: sealing.place(key), appKey: record.name ?? ""
        ).log
        if !kept.isReplacing, let entity = try keptEntity(record, change) {
            guard
                let opened = try? SealedObject.open(
                    entity, author: sealing.author, place: sealing.place(key), with: sealer)
            else { throw ClientError(.store, doesNotOpen) }
            log = opened.object.log
        }
        guard
            let sealed = SealedObject.restored(
                author: sealing.author, log: log, pending: change?.operation, kept: kept, with: sealer)
        else { throw ClientError(.store, "the stored edits of a sealed object do not fit it") }
        return LocalEntity(record: record, base: nil, local: shownObject(sealed), sealed: sealed)
    }

    private static let locked = "the bucket is sealed: open it with its secret"
    private static let doesNotOpen =
        "a sealed object in the local copy cannot be opened: it is damaged, or sealed for the keys of another account"

    /// The server's state of the object, or its state once the creation in flight has arrived.
    private static func keptEntity(_ record: EntityRecord, _ change: SealedChange?) throws(ClientError) -> SealedEntity?
    {
        guard let ghost = record.ghost.object else {
            return change?.snapshot.map { SealedEntity(snapshots: [0: $0]) }
        }
        do { return try SealedEntity(ghost) } catch {
            throw ClientError(.store, "a sealed object in the local store is damaged: \(error)")
        }
    }

    /// The object as the app sees it; nil for the internal object of a sealed bucket.
    static func shownObject(_ sealed: SealedObject) -> JSONObject? {
        sealed.log.appKey.utf8.elementsEqual(SealedHeads.appKey.utf8) ? nil : sealed.object
    }

    /// The sealer of an object, held for the next use.
    static func sealer(_ bucket: inout BucketMachine, _ key: EntityKey) throws(ClientError) -> ObjectSealer {
        guard let sealer = try bucket.sealing?.keptSealer(key) else {
            throw ClientError(.sealed, locked)
        }
        return sealer
    }

    /// Changes an object in place, with its new sealed state, and records in the turn what has changed.
    ///
    /// - Parameter change: changes the record; the sealed state is replaced after that. It says whether the ghost has
    ///   changed, and which steps did all of it.
    static func keep<Result>(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ sealed: SealedObject?, _ turn: inout SyncTurn,
        _ change: (inout LocalEntity, inout EntityChange) -> Result
    ) throws(ClientError) -> Result {
        try bucket.withEntity(key, &turn) { entity, done in
            let (edits, name, scanID) = (entity.record.edits, entity.record.name, entity.record.scanID)
            let result = change(&entity, &done)
            entity.sealed = sealed
            if let sealed {
                entity.record.edits.sealed = sealed.kept
                entity.local = shownObject(sealed)
                if !sealed.log.appKey.isEmpty { entity.record.name = sealed.log.appKey }
            }
            if entity.record.edits != edits { done.parts.insert(.edits) }
            if entity.record.name != name || entity.record.scanID != scanID { done.parts.insert(.marks) }
            return result
        }
    }

    /// As above.
    ///
    /// - Parameter isGhostNew: the ghost has changed.
    static func keep(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ sealed: SealedObject?, isGhostNew: Bool = false,
        _ turn: inout SyncTurn, _ change: (inout EntityRecord) -> Void = { _ in }
    ) throws(ClientError) {
        try keep(&bucket, key, sealed, &turn) { entity, done in
            if isGhostNew { done.parts = .ghost }
            change(&entity.record)
        }
    }

    /// Reports the changes of an object to the app, in the order of the events. Conflicts and integrity reports are
    /// produced even without a reader, because they come only once.
    static func report(
        _ bucket: inout BucketMachine, _ key: EntityKey, before: JSONObject?, _ events: [SealedEvent],
        origin: ChangeOrigin = .remote, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let after = try bucket.entity(key, &turn).local
        if before != after, let change = reportedEdit(events, before, after) {
            bucket.report(key, before: before, after: after, by: change, origin, &turn)
        }
        for event in events {
            switch event {
            case .conflict(let conflict):
                let name = bucket.shownKey(key, &turn)
                // The internal object is of no interest to the app.
                guard !SealedHeads.isReserved(name) else { continue }
                bucket.reportOnce(.conflict(ConflictReport(key: name, conflict)), &turn)
            case .integrity(let integrity):
                bucket.reportOnce(.integrity(IntegrityReport(key: bucket.shownKey(key, &turn), integrity)), &turn)
            case .stopped(let after):
                bucket.reportOnce(
                    .integrity(IntegrityReport(key: bucket.shownKey(key, &turn), stoppedAfter: after)), &turn)
            case .changed, .acknowledged, .rebased, .recreated: break
            }
        }
    }

    /// The single reported edit, if it leads exactly from `before` to `after`; otherwise their difference.
    private static func reportedEdit(_ events: [SealedEvent], _ before: JSONObject?, _ after: JSONObject?) -> Edit? {
        var edits = [ThicketSealed.Edit?]()
        for event in events { if case .changed(let edit) = event { edits.append(edit) } }
        if edits.count == 1, case .object(let diff)? = edits[0]?.operation, before != nil, after != nil,
            (try? Edits.apply(.modify(diff), to: before)) == .some(after)
        {
            return .modify(diff)
        }
        return Edits.between(before, after)
    }

    static func version(_ bucket: inout BucketMachine, of value: JSONObject?, _ key: EntityKey) throws(ClientError)
        -> FetchedVersion
    {
        guard let sealing = bucket.sealing, let value else {
            return FetchedVersion(object: value, stored: value)
        }
        guard let entity = try? SealedEntity(value) else { return FetchedVersion(object: nil, stored: value) }
        let opened = try? SealedObject.open(
            entity, author: sealing.author, place: sealing.place(key), with: try sealer(&bucket, key))
        let log = opened?.object.log
        return FetchedVersion(object: log?.object, stored: value, name: log?.appKey)
    }
}
