import ThicketProtocol
import ThicketSealed

/// Objects of a sealed bucket that the server removed, and those that an index does not list.
extension SealedRules {
    /// The server reports that the object is gone.
    ///
    /// - Parameter last: the version that was removed, if known; for an honest removal it is the tombstone. It is
    ///   requested when this device does not have it.
    static func vanish(
        _ bucket: inout BucketMachine, _ key: EntityKey, at version: Version, before last: Version? = nil,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        let gone = Ghost(version: version, object: nil)
        let isSent = entity.record.edits.pending != nil
        if sealed.stop == .rules {
            guard sealed.object == nil else { return try goneUnread(&bucket, key, at: version, &turn) }
            // Removed here as well, so nothing is lost.
            sealed.tryNewerRules()
        }
        if let last, last > entity.record.ghost.version, entity.record.ghost.object != nil, sealed.log.object != nil,
            sealed.problem == nil, !sealed.isReplacing
        {
            try keep(&bucket, key, entity.sealed, &turn) { record in
                (record.edits.wanted, record.edits.held) = (nil, gone)
            }
            return try bucket.want(key, last, &turn)
        }
        // After the removal neither a newer format remains nor an unreadable object where this device had nothing else.
        let isFree = entity.record.ghost.object == nil && !isSent && sealed.leaveUnreadable()
        let isBack = sealed.stop == .shape || isFree
        sealed.leaveNewerShape()
        let forget = { (record: inout EntityRecord) in
            record.edits.wanted = nil
            if isBack { record.edits.comeBack() }
        }
        if entity.record.ghost.object == nil {
            try keep(&bucket, key, isBack ? sealed : entity.sealed, isGhostNew: true, &turn) { record in
                forget(&record)
                (record.ghost, record.edits.held) = (gone, nil)
            }
            return isBack ? sendOn(&bucket, key, &turn) : ()
        }
        if sealed.isReplacing {
            sealed.hasReplaced()
        } else if sealed.problem != nil || sealed.isStopped {
            return try hold(&bucket, key, gone, &turn)
        } else if sealed.log.object == nil || sealed.object == nil {
            // Removed after its tombstone, as required; or it was removed here as well.
            sealed.removedAfterTombstone()
        } else {
            let events = sealed.serverRemoved()
            try keep(&bucket, key, sealed, &turn) { record in
                forget(&record)
                record.edits.held = gone
            }
            return try report(&bucket, key, before: entity.local, events, &turn)
        }
        if isSent { bucket.outbox.answered(key) }
        try keep(&bucket, key, sealed, isGhostNew: true, &turn) { record in
            forget(&record)
            (record.ghost, record.edits.held) = (gone, nil)
            (record.edits.pending, record.edits.attempts) = (nil, 0)
        }
        bucket.sealing?.recordChanged(key)
        queue(&bucket, key, &turn)
        try report(&bucket, key, before: entity.local, [.changed(nil)], &turn)
    }

    static func confirm(
        _ bucket: inout BucketMachine, _ key: EntityKey, at target: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try confirmPending(&bucket, key, &turn)
    }

    /// The server has the pending change (409, or an acknowledgement of something already read), and everything it has
    /// was received: what is still pending has no effect.
    static func confirmPending(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed, let pending = entity.record.edits.pending else {
            return
        }
        if entity.record.ghost.object == nil, let held = entity.record.edits.held {
            try keep(&bucket, key, sealed, &turn) { $0.edits.pending?.isConfirmed = true }
            return try jump(&bucket, key, to: held, &turn)
        }
        // The unreadable part may include the change.
        guard !sealed.isStopped else { return }
        var events = [SealedEvent]()
        if entity.record.ghost.object == nil, pending.edit != .remove {
            // This client created it, another client removed it again, and no message said so: it is a draft again.
            sealed.keepMine()
            sealed.hasReplaced()
        } else if sealed.pending != nil {
            events = sealed.refuse()
        }
        try keep(&bucket, key, sealed, &turn) { $0.edits.pending = nil }
        queue(&bucket, key, &turn)
        try report(&bucket, key, before: entity.local, events, &turn)
    }

    /// The server does not have the requested version. For a read-only object any state that it shows is sufficient.
    static func wantNoMore(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        if entity.record.edits.held?.object == nil, sealed.stop == .rules {
            // The last content is no longer available: the object was removed, and the reason cannot be determined.
            sealed.tryNewerRules()
            try keep(&bucket, key, sealed, &turn)
        } else if sealed.problem != nil {
            try keep(&bucket, key, sealed, &turn) { $0.edits.wanted = nil }
        }
    }

    /// Before missing objects are reported, the changes since the last connection are requested: an honest removal has
    /// a tombstone among them, which an index does not show.
    ///
    /// - Returns: whether the changes are requested; the missing objects are then removed from `gone`.
    static func setAside(_ bucket: inout BucketMachine, _ gone: inout Set<EntityKey>, _ turn: inout SyncTurn)
        throws(ClientError) -> Bool
    {
        guard bucket.record.changeVersion != nil else { return false }
        var missing = Set<EntityKey>()
        for key in gone {
            guard let sealed = try bucket.entity(key, &turn).sealed, sealed.problem == nil,
                sealed.log.object != nil, !sealed.isReplacing
            else { continue }
            missing.insert(key)
        }
        guard !missing.isEmpty else { return false }
        gone.subtract(missing)
        bucket.sealing?.missing = missing
        return true
    }

    /// Unreadable objects that no index lists any more are gone, if this device has nothing else under their keys.
    static func missUnread(_ bucket: inout BucketMachine, _ walk: IndexScan, _ turn: inout SyncTurn) throws(ClientError)
    {
        let name = bucket.record.name
        var keys = Set(try turn.store.keysHeld(name))
        // The store does not contain this turn yet.
        for (address, entity) in turn.entities where address.bucket == name {
            if entity.record.edits.held != nil { keys.insert(address.key) }
        }
        for key in keys.sorted() {
            let record = try bucket.entity(key, &turn).record
            // A creation in flight gets its own answer, unless it stopped after that.
            guard record.ghost.object == nil, record.edits.pending == nil || record.edits.sealed.isNewer,
                record.walk != walk.id, let held = record.edits.held, held.object != nil
            else { continue }
            try bucket.jump(key, to: Ghost(version: held.version, object: nil), &turn)
        }
    }

    /// The server no longer has those changes: missing objects stay missing.
    ///
    /// - Returns: whether any object was missing; the changes since the index are then requested.
    static func missedForGood(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) -> Bool {
        guard let walked = bucket.scan.walked, bucket.sealing?.missing.isEmpty == false else {
            return false
        }
        try reportMissing(&bucket, &turn)
        bucket.record.changeVersion = walked.current
        turn.touch(bucket.number)
        bucket.askSince(&turn)
        return true
    }

    static func reportMissing(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) {
        guard let missing = bucket.sealing?.missing, !missing.isEmpty else { return }
        bucket.sealing?.missing = []
        for key in missing.sorted() {
            let record = try bucket.entity(key, &turn).record
            // Recreated since.
            guard record.ghost.object != nil, record.walk != bucket.scan.walked?.id else { continue }
            try vanish(&bucket, key, at: record.ghost.version, &turn)
        }
    }
}
