import ThicketProtocol

/// Objects in a bucket that may be a different one than the one to which the ghosts belong (docs/decisions/0083).
extension OpenRules {
    static func unlisted(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ indexScan: IndexScan, _ turn: inout SyncTurn
    ) throws(ClientError) {
        guard indexScan.isSame else { return try bringBack(&bucket, key, &turn) }
        let version = try bucket.entity(key, &turn).record.ghost.version
        try bucket.jump(key, to: Ghost(version: version, object: nil), &turn)
    }

    static func forgetProof(_ entity: inout LocalEntity) -> EntityParts {
        (entity.record.edits.held, entity.record.edits.wanted) = (nil, nil)
        if entity.record.ghost.object == nil { entity.record.ghost.version = 0 }
        return [.ghost, .edits]
    }

    static func indexedElsewhere(
        _ bucket: inout BucketMachine, _ object: IndexPage.Entry, scanID: Int64, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let (entity, wasMet) = try bucket.meet(object.key, scanID, &turn)
        // A change that arrived during the scan is newer than the scan's snapshot.
        if wasMet, object.version <= entity.newest.version { return }
        let isKnown = entity.record.ghost.object != nil
        guard let value = object.data?.object else {
            if isKnown, !wasMet {
                // Until the object arrives.
                try bucket.withEntity(object.key, .ghost, &turn) { $0.record.ghost.version = 0 }
            }
            return try bucket.want(object.key, object.version, &turn)
        }
        let next = Ghost(version: object.version, object: value)
        if isKnown, !wasMet { return try rebaseOnUnprovenGhost(&bucket, object.key, next, &turn) }
        try bucket.jump(object.key, to: next, &turn)
    }

    /// The state of an object in a bucket that may differ from the one to which its ghost belongs.
    ///
    /// Where the two differ, their order is unknown: the server's state prevails, and the state shown here is reported
    /// in full.
    static func rebaseOnUnprovenGhost(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ next: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError) {
        guard let theirs = next.object else { return try bringBack(&bucket, key, &turn) }
        let entity = try bucket.entity(key, &turn)
        let mine = entity.local
        if theirs == mine {
            // It includes everything that was done here.
            bucket.outbox.answered(key)
            return try bucket.withEntity(key, [.ghost, .edits], &turn) { entity in
                entity.record.edits = EditState()
                entity.record.ghost = next
                (entity.base, entity.local) = (theirs, theirs)
            }
        }
        if theirs != entity.record.ghost.object, theirs != entity.base, let mine {
            let report = ConflictReport(
                key: bucket.shownKey(key, &turn), path: [], losing: .object(mine), winning: .object(theirs))
            bucket.reportOnce(.conflict(report), &turn)
        }
        if let pending = entity.record.edits.pending {
            guard isMisread(pending, at: next.version, bucket.served.store) else {
                // Only the server knows whether the state includes the change.
                return try bucket.withEntity(key, .edits, &turn) { $0.record.edits.held = next }
            }
            if theirs == entity.base { return try confirm(&bucket, key, at: next, &turn) }
            try sendAsNew(&bucket, pending, key, &turn)
            return try rebaseAndResend(&bucket, key, of: next, &turn)
        }
        try advance(&bucket, key, to: next, by: Edits.gap(entity.record.ghost.object, theirs), &turn)
    }

    /// Whether another bucket could mistake the change's source version for one of its own. A restore never reuses
    /// version numbers.
    private static func isMisread(
        _ pending: PendingChange, at version: Version, _ servedStore: String?
    ) -> Bool {
        guard servedStore != nil, let source = pending.source else { return false }
        return (0..<SyncLimits.restoredVersionsMin).contains(version - source)
    }

    /// The change is sent in another form, under its own ccid; this also holds after a restart.
    private static func sendAsNew(
        _ bucket: inout BucketMachine, _ pending: PendingChange, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try bucket.withEntity(key, .edits, &turn) { entity in
            entity.record.edits.pending = PendingChange(
                changeID: pending.changeID, edit: pending.edit, source: pending.source, bytes: [])
        }
    }

    /// The object is missing from the index of a bucket that may differ from the one to which its ghost belongs: it is
    /// sent again as a new object. If it was removed here, it is gone on both sides.
    static func bringBack(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard let mine = entity.local else {
            bucket.outbox.answered(key)
            return try startAgain(&bucket, key, with: nil, &turn)
        }
        if entity.record.ghost.object != nil { bucket.broughtBack?.insert(key) }
        if let pending = entity.record.edits.pending, case .modify? = pending.edit {
            // A server restored to a state that includes the change recognises it by its ccid.
            guard bucket.served.store != nil else {
                return try bucket.withEntity(key, .edits, &turn) { $0.record.edits.held = Ghost() }
            }
            try sendAsNew(&bucket, pending, key, &turn)
            return try rebaseAndResend(&bucket, key, of: Ghost(), &turn)
        }
        bucket.outbox.answered(key)
        try startAgain(&bucket, key, with: Edits.between(nil, mine), &turn)
        queue(&bucket, key, &turn)
    }

    /// The server does not have the object: only `edit` is left of it.
    private static func startAgain(
        _ bucket: inout BucketMachine, _ key: EntityKey, with edit: Edit?, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try bucket.withEntity(key, [.ghost, .edits], &turn) { entity in
            entity.record.edits = EditState()
            entity.record.edits.later = edit
            entity.record.ghost = Ghost()
            entity.base = nil
        }
    }
}
