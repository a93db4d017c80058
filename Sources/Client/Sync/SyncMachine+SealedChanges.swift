import ThicketProtocol
import ThicketSealed

/// Changes and states of a sealed bucket, as received from the server.
extension SyncMachine {
    mutating func appliedSealed(_ change: RemoteChange, on number: Int) throws(ClientError) {
        var entity = try entity(number, change.key)
        let pending = entity.record.edits.pending
        let isOwn = pending.map { has(change.changeIDs, $0.changeID.text) } ?? false
        if isOwn {
            clearInFlight(number, change.key)
            channels[number].retry.reset()
            if isSettled { backoff.reset() }
        }
        if let sent = channels[number].sealing?.compacting[change.key], has(change.changeIDs, sent) {
            channels[number].sealing?.compacting[change.key] = nil
        }
        let newest = entity.record.edits.held ?? entity.record.ghost
        guard change.end > newest.version else {
            return isOwn ? try settleSealed(number, change.key) : ()
        }
        guard case .modify(let diff) = change.effect else {
            return try vanish(number, change.key, at: change.end, before: change.end - 1)
        }
        guard entity.record.edits.wanted == nil, let diff, let next = Self.state(diff, change, of: newest) else {
            return try want(number, change.key, change.end)
        }
        let isCreation = (change.source ?? 0) == 0
        if isOwn, isCreation {
            // The creation is derived from what was sent: the server's state must equal it.
            entity.record.edits.held = nil
            putSealed(number, change.key, entity)
            return try show(number, change.key, next, operation: nil)
        }
        guard entity.record.edits.held == nil, entity.record.ghost.object != nil, !isCreation else {
            return try jumpSealed(number, change.key, to: next)
        }
        try show(
            number, change.key, next, operation: SealedChange.insertion(diff),
            step: GhostStep(version: change.end, diff: diff))
    }

    private func has(_ ids: [String], _ id: String) -> Bool { ids.contains { $0.utf8.elementsEqual(id.utf8) } }

    private static func state(_ diff: ObjectDiff, _ change: RemoteChange, of newest: Ghost) -> Ghost? {
        let isNew = (change.source ?? 0) == 0
        guard isNew || (change.source == newest.version && newest.object != nil) else { return nil }
        let base = isNew ? JSONObject() : newest.object ?? JSONObject()
        guard let object = try? JSONDiff.apply(diff, to: base) else { return nil }
        return Ghost(version: change.end, object: object)
    }

    /// The server's current state of the object, without the changes that led to it.
    mutating func jumpSealed(_ number: Int, _ key: EntityKey, to next: Ghost) throws(ClientError) {
        guard next.object != nil else { return try vanish(number, key, at: next.version) }
        var entity = try entity(number, key)
        if entity.record.ghost.object != nil {
            guard let later = entity.record.edits.held, later.object == nil, later.version > next.version else {
                return try show(number, key, next, operation: nil)
            }
            // The last content before the removal: an object that had stopped is read further.
            entity.sealed?.tryNewerRules()
            cache[address(number, key)] = entity
            try show(number, key, next, operation: nil)
            return try vanish(number, key, at: later.version)
        }
        guard let pending = entity.record.edits.pending else { return try meet(number, key, next) }
        // A stopped object has had its answer: with a creation in flight, an object stops only when it is known to be
        // this client's.
        if pending.isConfirmed || entity.sealed?.stop == .shape {
            return try show(number, key, next, operation: nil)
        }
        // This client's creation, or another client's of the same key: the answer to this one's decides.
        entity.record.edits.held = next
        putSealed(number, key, entity)
    }

    /// The server shows the object at `next`.
    ///
    /// - Parameters:
    ///   - operation: the sealed operation that is the only change since the ghost; nil: the whole objects are
    ///     compared.
    ///   - step: the same operation as a step of the ghost.
    mutating func show(
        _ number: Int, _ key: EntityKey, _ next: Ghost, operation: [UInt8]?, step: GhostStep? = nil
    ) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed, let object = next.object else { return }
        guard sealed.problem == nil, sealed.stop != .rules else { return hold(number, key, next) }
        guard !SealedEntity.isNewer(object) else { return try stop(number, key, at: next) }
        let isBack = sealed.stop == .shape
        if isBack { comeBack(&entity, &sealed) }
        let before = entity.local
        if sealed.isReplacing {
            entity.record.ghost = next
            putSealed(number, key, entity, isGhostNew: true)
            return isBack ? sendOn(number, key) : ()
        }
        let start = (sealed.log.chain, sealed.log.incarnation)
        let sealer = try sealer(number, key)
        let shown: SealedEntity
        do throws(SealedShapeError) { shown = try SealedEntity(object) } catch {
            entity.sealed = nil
            let events = sealed.serverShowedClear()
            entity.sealed = sealed
            entity.record.edits.held = next
            putSealed(number, key, entity)
            return try tellSealed(number, key, before: before, events)
        }
        let events =
            operation.map { sealed.receive($0, with: sealer) } ?? sealed.adopt(shown, with: sealer)
        let isSame = sealed.log.chain == start.0 && sealed.log.incarnation == start.1
        try finish(number, key, &entity, sealed, Shown(next: next, entity: shown, isSame: isSame, step: step), events)
        if isBack { sendOn(number, key) }
        try tellSealed(number, key, before: before, events)
    }

    /// An object that did not exist here: another client created it.
    private mutating func meet(_ number: Int, _ key: EntityKey, _ next: Ghost) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed, let object = next.object else { return }
        guard !SealedEntity.isNewer(object) else { return try stop(number, key, at: next) }
        if sealed.stop == .shape { comeBack(&entity, &sealed) }
        // An object that could not be opened before may be readable now.
        guard !sealed.isReplacing else {
            entity.record.ghost = next
            return putSealed(number, key, entity, isGhostNew: true)
        }
        let before = entity.local
        var events: [SealedEvent]
        do {
            let shown = try SealedEntity(object)
            var theirs: SealedObject
            (theirs, events) = try SealedObject.open(
                shown, author: sealed.author, place: sealed.log.place, with: try sealer(number, key))
            guard isNamed(theirs.log, key, on: number) else {
                throw SealedOpenError(integrity: .snapshotMismatch(at: theirs.log.position))
            }
            if sealed.pastIncarnations.contains(theirs.log.incarnation) {
                events += theirs.report(.rolledBack(to: theirs.log.position))
            }
            events += sealed.yield(to: theirs)
            let state = Shown(next: next, entity: shown, isSame: false, step: nil)
            try finish(number, key, &entity, sealed, state, events)
        } catch {
            if let failed = error as? ClientError { throw failed }
            let wrong = (error as? SealedOpenError)?.integrity ?? .clear
            events = sealed.problem == wrong ? [] : sealed.report(wrong)
            entity.sealed = sealed
            entity.record.edits.held = next
            putSealed(number, key, entity)
        }
        try tellSealed(number, key, before: before, events)
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
    mutating func finish(
        _ number: Int, _ key: EntityKey, _ entity: inout Entity, _ sealed: SealedObject, _ shown: Shown,
        _ events: [SealedEvent]
    ) throws(ClientError) {
        let isOperation = entity.sealed?.pending != nil
        let isCreation = entity.record.ghost.object == nil && entity.record.edits.pending != nil
        entity.sealed = sealed
        var isGhostNew = true
        // A creation by this client that the server has accepted also moves the ghost.
        let isStill = shown.isSame && !(isCreation && sealed.problem == nil)
        if sealed.problem == nil, !sealed.isStopped {
            entity.record.ghost = shown.next
            entity.record.edits.held = nil
        } else {
            entity.record.edits.held = shown.next
            let taken = sealed.log.position - (shown.entity.newest?.position ?? 0)
            let tail = shown.entity.tail
            if isStill || !(0...tail.count).contains(taken) {
                isGhostNew = false
            } else {
                let read = SealedEntity(
                    snapshots: shown.entity.snapshots, tail: Array(tail.suffix(taken)))
                entity.record.ghost = Ghost(version: entity.record.ghost.version, object: read.object)
            }
        }
        if (isOperation && sealed.pending == nil) || (isCreation && entity.record.ghost.object != nil) {
            entity.record.edits.pending = nil
            entity.record.edits.attempts = 0
            entity.record.edits.refusal = nil
        }
        if let wanted = entity.record.edits.wanted, wanted <= shown.next.version {
            entity.record.edits.wanted = nil
        }
        let isStep = entity.record.ghost == shown.next
        putSealed(number, key, entity, isGhostNew: isGhostNew, step: isStep ? shown.step : nil)
        queueSealed(number, key)
        let isOwn = events.contains { if case .acknowledged = $0 { true } else { false } }
        // A creation by this client does not advance the log, but is new to the other devices.
        if !shown.isSame || isCreation { try wentOn(number, key, sealed, isOwn: isOwn, tail: shown.entity.tail.count) }
    }

    /// While an object is read-only, the server's state is only recorded.
    private mutating func hold(_ number: Int, _ key: EntityKey, _ next: Ghost) {
        guard var entity = cache[address(number, key)] else { return }
        entity.record.edits.held = next
        putSealed(number, key, entity)
    }

    /// The server reports that the object is gone.
    ///
    /// - Parameter last: the version that was removed, if known; for an honest removal it is the tombstone. It is
    ///   requested when this device does not have it.
    mutating func vanish(
        _ number: Int, _ key: EntityKey, at version: Version, before last: Version? = nil
    ) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed else { return }
        let before = entity.local
        let gone = Ghost(version: version, object: nil)
        entity.record.edits.wanted = nil
        let isRemoval = entity.record.edits.pending?.edit == .remove
        if sealed.stop == .rules {
            guard sealed.object == nil else { return try goneUnread(number, key, at: version) }
            // Removed here as well, so nothing is lost.
            sealed.tryNewerRules()
        }
        if let last, last > entity.record.ghost.version, entity.record.ghost.object != nil, sealed.log.object != nil,
            sealed.problem == nil, !sealed.isReplacing
        {
            entity.record.edits.held = gone
            putSealed(number, key, entity)
            return try want(number, key, last)
        }
        // After the removal neither a newer format remains nor an unreadable object where this device had nothing else.
        let isFree =
            entity.record.ghost.object == nil && entity.record.edits.pending == nil && sealed.leaveUnreadable()
        let isBack = sealed.stop == .shape || isFree
        if isBack { comeBack(&entity, &sealed) }
        if entity.record.ghost.object == nil {
            entity.record.ghost = gone
            entity.record.edits.held = nil
            putSealed(number, key, entity, isGhostNew: true)
            return isBack ? sendOn(number, key) : ()
        }
        if sealed.isReplacing {
            sealed.hasReplaced()
        } else if sealed.problem != nil || sealed.isStopped {
            return hold(number, key, gone)
        } else if sealed.log.object == nil || sealed.object == nil {
            // Removed after its tombstone, as required; or it was removed here as well.
            sealed.removedAfterTombstone()
        } else {
            let events = sealed.serverRemoved()
            entity.sealed = sealed
            entity.record.edits.held = gone
            putSealed(number, key, entity)
            return try tellSealed(number, key, before: before, events)
        }
        entity.sealed = sealed
        entity.record.ghost = gone
        entity.record.edits.held = nil
        if isRemoval || entity.record.edits.pending != nil { clearInFlight(number, key) }
        entity.record.edits.pending = nil
        entity.record.edits.attempts = 0
        putSealed(number, key, entity, isGhostNew: true)
        channels[number].sealing?.noteChanged(key)
        queueSealed(number, key)
        try tellSealed(number, key, before: before, [.changed(nil)])
    }

    /// The server has the pending change (409, or an acknowledgement of something already read), and everything it has
    /// was received: what is still pending has no effect.
    mutating func settleSealed(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        guard var sealed = entity.sealed, let pending = entity.record.edits.pending else {
            return
        }
        if entity.record.ghost.object == nil, let held = entity.record.edits.held {
            entity.record.edits.pending?.isConfirmed = true
            putSealed(number, key, entity)
            return try jumpSealed(number, key, to: held)
        }
        // The unreadable part may include the change.
        guard !sealed.isStopped else { return }
        let before = entity.local
        var events = [SealedEvent]()
        entity.record.edits.pending = nil
        if entity.record.ghost.object == nil, pending.edit != .remove {
            // This client created it, another client removed it again, and no message said so: it is a draft again.
            sealed.keepMine()
            sealed.hasReplaced()
        } else if sealed.pending != nil {
            events = sealed.refuse()
        }
        entity.sealed = sealed
        putSealed(number, key, entity)
        queueSealed(number, key)
        try tellSealed(number, key, before: before, events)
    }

    /// The server does not have the requested version. For a read-only object any state that it shows is sufficient.
    mutating func wantNoMore(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        if entity.record.edits.held?.object == nil, entity.sealed?.stop == .rules {
            // The last content is no longer available: the object was removed, and the reason cannot be determined.
            entity.sealed?.tryNewerRules()
        } else {
            guard entity.sealed?.problem != nil else { return }
            entity.record.edits.wanted = nil
        }
        putSealed(number, key, entity)
    }

    // MARK: - Objects that an index does not list

    /// Before missing objects are reported, the changes since the last connection are requested: an honest removal has
    /// a tombstone among them, which an index does not show.
    ///
    /// - Returns: whether the changes are requested; the missing objects are then removed from `gone`.
    mutating func setAside(_ gone: inout Set<EntityKey>, _ number: Int) throws(ClientError) -> Bool {
        guard channels[number].sealing != nil, channels[number].record.changeVersion != nil else { return false }
        var missing = Set<EntityKey>()
        for key in gone {
            guard let sealed = try entity(number, key).sealed, sealed.problem == nil,
                sealed.log.object != nil, !sealed.isReplacing
            else { continue }
            missing.insert(key)
        }
        guard !missing.isEmpty else { return false }
        gone.subtract(missing)
        channels[number].sealing?.missing = missing
        return true
    }

    /// Unreadable objects that no index lists any more are gone, if this device has nothing else under their keys.
    mutating func missUnread(_ number: Int, _ walk: IndexScan) throws(ClientError) {
        guard channels[number].sealing != nil else { return }
        let name = channels[number].record.name
        var keys = Set(try store.keysHeld(name))
        // The store does not contain this turn yet.
        for (address, entity) in cache where address.bucket == name {
            if entity.record.edits.held != nil { keys.insert(address.key) }
        }
        for key in keys.sorted() {
            let record = try entity(number, key).record
            // A creation in flight gets its own answer, unless it stopped after that.
            guard record.ghost.object == nil, record.edits.pending == nil || record.edits.sealed.isNewer,
                record.walk != walk.id, let held = record.edits.held, held.object != nil
            else { continue }
            try jump(number, key, to: Ghost(version: held.version, object: nil))
        }
    }

    /// The server no longer has those changes: missing objects stay missing.
    ///
    /// - Returns: whether any object was missing; the changes since the index are then requested.
    mutating func missedForGood(_ number: Int) throws(ClientError) -> Bool {
        guard let walked = channels[number].walked, channels[number].sealing?.missing.isEmpty == false else {
            return false
        }
        try tellMissing(number)
        channels[number].record.changeVersion = walked.current
        touchChannel(number)
        askSince(number)
        return true
    }

    mutating func tellMissing(_ number: Int) throws(ClientError) {
        guard let missing = channels[number].sealing?.missing, !missing.isEmpty else { return }
        channels[number].sealing?.missing = []
        for key in missing.sorted() {
            let record = try entity(number, key).record
            // Recreated since.
            guard record.ghost.object != nil, record.walk != channels[number].walked?.id else { continue }
            try vanish(number, key, at: record.ghost.version)
        }
    }
}
