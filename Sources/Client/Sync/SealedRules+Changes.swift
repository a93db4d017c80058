import ThicketProtocol
import ThicketSealed

/// Changes and states of a sealed bucket, as received from the server.
extension SealedRules {
    static func applied(
        _ bucket: inout BucketMachine, _ change: RemoteChange, _ entity: LocalEntity, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let pending = entity.record.edits.pending
        let isOwn = pending.map { has(change.changeIDs, $0.changeID.text) } ?? false
        if isOwn { bucket.acknowledged(change.key, &turn) }
        if let sent = bucket.sealing?.compacting[change.key], has(change.changeIDs, sent) {
            bucket.sealing?.compacting[change.key] = nil
        }
        let newest = entity.newest
        guard change.end > newest.version else {
            return isOwn ? try confirmPending(&bucket, change.key, &turn) : ()
        }
        guard case .modify(let diff) = change.effect else {
            return try vanish(&bucket, change.key, at: change.end, before: change.end - 1, &turn)
        }
        guard entity.record.edits.wanted == nil, let diff, let next = Self.state(diff, change, of: newest) else {
            return try bucket.want(change.key, change.end, &turn)
        }
        let isCreation = (change.source ?? 0) == 0
        if isOwn, isCreation {
            // The creation is derived from what was sent: the server's state must equal it.
            try keep(&bucket, change.key, entity.sealed, &turn) { $0.edits.held = nil }
            return try show(&bucket, change.key, next, operation: nil, &turn)
        }
        guard entity.record.edits.held == nil, entity.record.ghost.object != nil, !isCreation else {
            return try jump(&bucket, change.key, to: next, &turn)
        }
        try show(
            &bucket, change.key, next, operation: SealedChange.insertion(diff),
            step: GhostStep(version: change.end, diff: diff), &turn)
    }

    private static func has(_ ids: [String], _ id: String) -> Bool { ids.contains { $0.utf8.elementsEqual(id.utf8) } }

    private static func state(_ diff: ObjectDiff, _ change: RemoteChange, of newest: Ghost) -> Ghost? {
        let isNew = (change.source ?? 0) == 0
        guard isNew || (change.source == newest.version && newest.object != nil) else { return nil }
        let base = isNew ? JSONObject() : newest.object ?? JSONObject()
        guard let object = try? JSONDiff.apply(diff, to: base) else { return nil }
        return Ghost(version: change.end, object: object)
    }

    static func gotRequested(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError) {
        // The change in flight has waited for this state.
        guard try bucket.entity(key, &turn).record.edits.pending != nil, bucket.outbox.inFlight[key] == nil else {
            return
        }
        bucket.outbox.resend.append(key)
    }

    static func jump(_ bucket: inout BucketMachine, _ key: EntityKey, to next: Ghost, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        guard next.object != nil else { return try vanish(&bucket, key, at: next.version, &turn) }
        let entity = try bucket.entity(key, &turn)
        if entity.record.ghost.object != nil {
            guard let later = entity.record.edits.held, later.object == nil, later.version > next.version else {
                return try show(&bucket, key, next, operation: nil, &turn)
            }
            // The last content before the removal: an object that had stopped is read further.
            turn.entities[bucket.address(key)]?.sealed?.tryNewerRules()
            try show(&bucket, key, next, operation: nil, &turn)
            return try vanish(&bucket, key, at: later.version, &turn)
        }
        guard let pending = entity.record.edits.pending else { return try showNew(&bucket, key, next, &turn) }
        // A stopped object has had its answer: with a creation in flight, an object stops only when it is known to be
        // this client's.
        if pending.isConfirmed || entity.sealed?.stop == .shape {
            return try show(&bucket, key, next, operation: nil, &turn)
        }
        // This client's creation, or another client's of the same key: the answer to this one's decides.
        try hold(&bucket, key, next, &turn)
    }

    /// The server shows the object at `next`.
    ///
    /// - Parameters:
    ///   - operation: the sealed operation that is the only change since the ghost; nil: the whole objects are
    ///     compared.
    ///   - step: the same operation as a step of the ghost.
    static func show(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ next: Ghost, operation: [UInt8]?, step: GhostStep? = nil,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed, let object = next.object else { return }
        guard sealed.problem == nil, sealed.stop != .rules else { return try hold(&bucket, key, next, &turn) }
        guard !SealedEntity.isNewer(object) else { return try stop(&bucket, key, at: next, &turn) }
        let isBack = sealed.stop == .shape
        sealed.leaveNewerShape()
        guard !sealed.isReplacing else {
            try moveGhost(&bucket, key, sealed, to: next, &turn)
            return isBack ? sendOn(&bucket, key, &turn) : ()
        }
        let sealer = try sealer(&bucket, key)
        guard let shown = try? SealedEntity(object) else {
            let events = sealed.serverShowedClear()
            try keep(&bucket, key, sealed, &turn) { record in
                record.edits.leaveNewerShape()
                record.edits.held = next
            }
            return try report(&bucket, key, before: entity.local, events, &turn)
        }
        let events =
            operation.map { sealed.receive($0, with: sealer) } ?? sealed.adopt(shown, with: sealer)
        let known = entity.sealed?.log
        let isSame = sealed.log.chain == known?.chain && sealed.log.incarnation == known?.incarnation
        let state = Shown(next: next, entity: shown, isSame: isSame, step: step)
        try finish(&bucket, key, sealed, state, events, &turn) { $0.leaveNewerShape() }
        if isBack { sendOn(&bucket, key, &turn) }
        try report(&bucket, key, before: entity.local, events, &turn)
    }

    /// An object that did not exist here: another client created it.
    private static func showNew(_ bucket: inout BucketMachine, _ key: EntityKey, _ next: Ghost, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed, let object = next.object else { return }
        guard !SealedEntity.isNewer(object) else { return try stop(&bucket, key, at: next, &turn) }
        sealed.leaveNewerShape()
        // An object that could not be opened before may be readable now.
        guard !sealed.isReplacing else { return try moveGhost(&bucket, key, sealed, to: next, &turn) }
        guard let shown = try? SealedEntity(object) else { return try holdUnread(&bucket, key, next, .clear, &turn) }
        let sealer = try sealer(&bucket, key)
        var (theirs, events): (SealedObject, [SealedEvent])
        do throws(SealedOpenError) {
            (theirs, events) = try SealedObject.open(
                shown, author: sealed.author, place: sealed.log.place, with: sealer)
        } catch { return try holdUnread(&bucket, key, next, error.integrity, &turn) }
        let position = theirs.log.position
        guard isNamed(&bucket, theirs.log, key) else {
            return try holdUnread(&bucket, key, next, .snapshotMismatch(at: position), &turn)
        }
        let isRolledBack = sealed.pastIncarnations.contains(theirs.log.incarnation)
        if isRolledBack { events += theirs.report(.rolledBack(to: position)) }
        events += sealed.yield(to: theirs)
        try finish(&bucket, key, sealed, Shown(next: next, entity: shown), events, &turn) { $0.leaveNewerShape() }
        try report(&bucket, key, before: entity.local, events, &turn)
    }

    /// The user kept this device's state. The server's is not read: its removal needs only the version.
    private static func moveGhost(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ sealed: SealedObject, to next: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try keep(&bucket, key, sealed, isGhostNew: true, &turn) { record in
            record.edits.leaveNewerShape()
            record.ghost = next
        }
    }

    /// Another client's object cannot be opened: it is stored until the user has chosen.
    private static func holdUnread(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ next: Ghost, _ why: SealedIntegrity, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard var sealed = entity.sealed else { return }
        sealed.leaveNewerShape()
        let events = sealed.problem == why ? [] : sealed.report(why)
        try keep(&bucket, key, sealed, &turn) { record in
            record.edits.leaveNewerShape()
            record.edits.held = next
        }
        try report(&bucket, key, before: entity.local, events, &turn)
    }

    /// The server's state, and the result of processing it.
    struct Shown {
        let next: Ghost
        let entity: SealedEntity
        /// The log has not advanced.
        var isSame = false
        var step: GhostStep?
    }

    /// Moves the ghost exactly as far as the log advanced, so that the log can always be derived from the ghost.
    ///
    /// - Parameter prepare: changes the edits first.
    static func finish(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ sealed: SealedObject, _ shown: Shown,
        _ events: [SealedEvent], _ turn: inout SyncTurn, _ prepare: (inout EditState) -> Void
    ) throws(ClientError) {
        let isCreation = try keep(&bucket, key, sealed, &turn) { entity, done in
            prepare(&entity.record.edits)
            return move(&entity, sealed, shown, &done)
        }
        queue(&bucket, key, &turn)
        let isOwn = events.contains { if case .acknowledged = $0 { true } else { false } }
        // A creation by this client does not advance the log, but is new to the other devices.
        if !shown.isSame || isCreation {
            try SealedUpkeep.wentOn(&bucket, key, sealed, isOwn: isOwn, tail: shown.entity.tail.count, &turn)
        }
    }

    /// - Parameter entity: still with the sealed state before `sealed`.
    /// - Returns: whether a creation was in flight.
    private static func move(
        _ entity: inout LocalEntity, _ sealed: SealedObject, _ shown: Shown, _ done: inout EntityChange
    ) -> Bool {
        let isOperation = entity.sealed?.pending != nil
        let isCreation = entity.record.ghost.object == nil && entity.record.edits.pending != nil
        if sealed.problem == nil, !sealed.isStopped {
            (entity.record.ghost, entity.record.edits.held) = (shown.next, nil)
            done.parts = .ghost
        } else {
            entity.record.edits.held = shown.next
            // A creation by this client that the server has accepted also moves the ghost.
            let hasMoved = !shown.isSame || (isCreation && sealed.problem == nil)
            if hasMoved, let read = part(of: shown.entity, upTo: sealed.log.position) {
                entity.record.ghost.object = read.object
                done.parts = .ghost
            }
        }
        if (isOperation && sealed.pending == nil) || (isCreation && entity.record.ghost.object != nil) {
            entity.record.edits.pending = nil
            (entity.record.edits.refusal, entity.record.edits.attempts) = (nil, 0)
        }
        if let wanted = entity.record.edits.wanted, wanted <= shown.next.version {
            entity.record.edits.wanted = nil
        }
        if entity.record.ghost == shown.next { done.ghostStep = shown.step }
        return isCreation
    }

    /// The server's state as it was at `position`; nil when its snapshot is newer or it does not reach so far.
    private static func part(of shown: SealedEntity, upTo position: Int) -> SealedEntity? {
        let count = position - (shown.newest?.position ?? 0)
        guard (0...shown.tail.count).contains(count) else { return nil }
        return SealedEntity(snapshots: shown.snapshots, tail: Array(shown.tail.suffix(count)))
    }

    /// While an object is read-only, the server's state is only recorded.
    static func hold(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ next: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try keep(&bucket, key, try bucket.entity(key, &turn).sealed, &turn) { $0.edits.held = next }
    }
}
