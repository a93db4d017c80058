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
        if sealed.stop == .rules, sealed.object != nil { return try goneUnread(&bucket, key, at: version, &turn) }
        // Where it had stopped, it was removed here as well, so nothing is lost.
        sealed.tryNewerRules()
        let gone = Ghost(version: version, object: nil)
        guard entity.record.ghost.object != nil else { return try goneUnseen(&bucket, key, gone, sealed, &turn) }
        if let last, last > entity.record.ghost.version, needsTombstone(sealed) {
            try keep(&bucket, key, entity.sealed, &turn) { ($0.edits.wanted, $0.edits.held) = (nil, gone) }
            return try bucket.want(key, last, &turn)
        }
        sealed.leaveNewerShape()
        if sealed.isReplacing {
            sealed.hasReplaced()
            return try dropGhost(&bucket, key, gone, sealed, &turn)
        }
        guard sealed.problem == nil else { return try hold(&bucket, key, gone, &turn) }
        guard sealed.log.object == nil || sealed.object == nil else {
            return try blockRemoved(&bucket, key, gone, sealed, &turn)
        }
        // Removed after its tombstone, as required; or it was removed here as well.
        sealed.removedAfterTombstone()
        try dropGhost(&bucket, key, gone, sealed, &turn)
    }

    /// Whether an honest removal by another device has a tombstone that this device has not read.
    private static func needsTombstone(_ sealed: SealedObject) -> Bool {
        sealed.problem == nil && sealed.log.object != nil && !sealed.isReplacing
    }

    /// The removed object has no ghost. After the removal neither a newer format remains nor an unreadable object where
    /// this device had nothing else.
    private static func goneUnseen(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ gone: Ghost, _ sealed: SealedObject, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        var sealed = sealed
        let isFree = entity.record.edits.pending == nil && sealed.leaveUnreadable()
        let isBack = sealed.stop == .shape || isFree
        sealed.leaveNewerShape()
        try keep(&bucket, key, isBack ? sealed : entity.sealed, isGhostNew: true, &turn) { record in
            if isBack { record.edits.comeBack() }
            (record.ghost, record.edits.held, record.edits.wanted) = (gone, nil, nil)
        }
        if isBack { sendOn(&bucket, key, &turn) }
    }

    /// A removal without a tombstone may hide an attack: the user chooses.
    private static func blockRemoved(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ gone: Ghost, _ sealed: SealedObject, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let before = try bucket.entity(key, &turn).local
        var sealed = sealed
        let events = sealed.serverRemoved()
        try keep(&bucket, key, sealed, &turn) { record in
            record.edits.leaveNewerShape()
            (record.edits.held, record.edits.wanted) = (gone, nil)
        }
        try report(&bucket, key, before: before, events, &turn)
    }

    /// Accepts the removal; edits that remain become a new object.
    private static func dropGhost(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ gone: Ghost, _ sealed: SealedObject, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        if entity.record.edits.pending != nil { bucket.outbox.answered(key) }
        try keep(&bucket, key, sealed, isGhostNew: true, &turn) { record in
            record.edits.leaveNewerShape()
            (record.ghost, record.edits.held, record.edits.wanted) = (gone, nil, nil)
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
            guard let sealed = try bucket.entity(key, &turn).sealed, needsTombstone(sealed) else { continue }
            missing.insert(key)
        }
        guard !missing.isEmpty else { return false }
        gone.subtract(missing)
        bucket.sealing?.missing = missing
        return true
    }

    /// Unreadable objects that no index lists any more are gone, if this device has nothing else under their keys.
    static func missUnread(
        _ bucket: inout BucketMachine, _ indexScan: IndexScan, _ turn: inout SyncTurn
    ) throws(ClientError) {
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
                record.scanID != indexScan.id, let held = record.edits.held, held.object != nil
            else { continue }
            try bucket.jump(key, to: Ghost(version: held.version, object: nil), &turn)
        }
    }

    /// The server no longer has those changes: missing objects stay missing.
    ///
    /// - Returns: whether any object was missing; the changes since the index are then requested.
    static func missedForGood(_ bucket: inout BucketMachine, _ turn: inout SyncTurn) throws(ClientError) -> Bool {
        guard let finished = bucket.scan.finished, bucket.sealing?.missing.isEmpty == false else {
            return false
        }
        try reportMissing(&bucket, &turn)
        bucket.record.changeVersion = finished.current
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
            guard record.ghost.object != nil, record.scanID != bucket.scan.finished?.id else { continue }
            try vanish(&bucket, key, at: record.ghost.version, &turn)
        }
    }
}
