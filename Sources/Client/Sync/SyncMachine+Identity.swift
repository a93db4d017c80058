import ThicketProtocol

/// Decides whether the server's bucket is the one to which the ghosts belong, or may be a different one
/// (docs/decisions/0083).
///
/// An object that is missing from an index was removed only if the index and the ghosts belong to the same bucket.
/// Otherwise the object exists on this device only, and it is sent again.
extension SyncMachine {
    /// Whether the server's bucket is the one to which the ghosts belong.
    private func isSameStore(_ number: Int) -> Bool {
        channels[number].storeTold.map { $0 == channels[number].record.store } ?? channels[number].positionHolds
    }

    /// Handles the bucket's identity as reported by the server.
    mutating func heardStore(_ store: String?, on number: Int) {
        guard let store else { return }
        channels[number].storeTold = store
        guard let known = channels[number].record.store else {
            if channels[number].positionHolds { positionIsKnown(number) }
            return
        }
        guard known != store else { return }
        channels[number].positionHolds = false
        switch channels[number].phase {
        // A position belongs to one bucket: the answer to it is useless in another.
        case .catchingUp, .live: walkAgain(number)
        // The next page of a running scan decides.
        case .walking, .closed, .opening, .refused, .lapsed, .renewing: break
        }
    }

    /// The server knows the client's position, so its bucket is the one to which the ghosts belong.
    mutating func positionIsKnown(_ number: Int) {
        channels[number].positionHolds = true
        guard channels[number].record.store == nil, let told = channels[number].storeTold else { return }
        channels[number].record.store = told
        touchChannel(number)
    }

    // MARK: - Index scans

    /// Whether the scan was started in a bucket of another identity, on an earlier connection.
    func isOfAnotherStore(_ walk: IndexScan, _ number: Int) -> Bool {
        walk.mark != nil && !channels[number].isWalkHere && channels[number].storeTold != walk.store
    }

    /// Handles the arrival of a page: the first one on this connection decides how the scan is interpreted.
    ///
    /// - Returns: false when the page is useless and the scan starts from the beginning.
    mutating func identifyWalk(_ number: Int) throws(ClientError) -> Bool {
        guard !channels[number].isWalkHere, var walk = channels[number].record.walk else { return true }
        if isOfAnotherStore(walk, number) {
            beginWalk(number)
            requestPage(number)
            return false
        }
        channels[number].isWalkHere = true
        let told = channels[number].storeTold
        let wasSame = walk.isSame
        if walk.mark == nil {
            walk.isSame = isSameStore(number)
            walk.store = told
            if !walk.isSame, try isUntouched(number, walk) {
                walk.isSame = true
                channels[number].record.store = told
            }
        } else if told == nil {
            // Nothing proves that the earlier pages came from this bucket.
            walk.isSame = false
        }
        channels[number].record.walk = walk
        touchChannel(number)
        if !walk.isSame, walk.mark == nil || wasSame { try losePosition(number, walk) }
        return true
    }

    /// Whether the server has never confirmed anything of the bucket on this device.
    private func isUntouched(_ number: Int, _ walk: IndexScan) throws(ClientError) -> Bool {
        let record = channels[number].record
        guard record.store == nil, record.changeVersion == nil else { return false }
        for (address, entity) in cache where address.bucket == record.name && entity.record.ghost.object != nil {
            return false
        }
        return try store.keysUnseen(record.name, walk: walk.id).isEmpty
    }

    /// The local state belongs to a bucket that may differ from the one being scanned: versions, and answers that the
    /// server has a change, do not apply to it.
    private mutating func losePosition(_ number: Int, _ walk: IndexScan) throws(ClientError) {
        let name = channels[number].record.name
        // In a sealed bucket the changes since the position are requested once more: an honest removal has a tombstone
        // among them.
        if channels[number].sealing == nil { channels[number].record.changeVersion = nil }
        channels[number].record.store = nil
        channels[number].record.generation = walk.id
        touchChannel(number)
        forgottenRemovals.insert(name)
        for key in channels[number].edited.union(channels[number].stale).sorted() {
            var entity = try entity(number, key)
            var edits = entity.record.edits
            edits.pending?.appliedAt = nil
            edits.pending?.isConfirmed = false
            if entity.sealed == nil {
                (edits.held, edits.wanted) = (nil, nil)
                if entity.record.ghost.object == nil { entity.record.ghost.version = 0 }
            }
            entity.record.edits = edits
            put(number, key, entity, entity.sealed == nil ? [.ghost, .edits] : .edits)
        }
    }

    /// No page has arrived yet of an index that may belong to another bucket than the ghosts: the index will include
    /// all earlier changes.
    func isBeforeStrangeIndex(_ number: Int) -> Bool {
        guard channels[number].phase == .walking, !channels[number].isWalkHere else { return false }
        return channels[number].storeTold != nil && !isSameStore(number)
    }

    /// A change that the index will show. If it is this client's own, it counts as answered and is resent later.
    mutating func passOver(_ change: AppliedChange, on number: Int) throws(ClientError) {
        guard let pending = try entity(number, change.key).record.edits.pending,
            change.ccids.contains(where: { $0.utf8.elementsEqual(pending.changeID.text.utf8) })
        else { return }
        clearInFlight(number, change.key)
        channels[number].resend.append(change.key)
    }

    // MARK: - Objects

    /// An index that may belong to another bucket than the ghosts lists the object: versions cannot be compared, so the
    /// objects are.
    mutating func indexedAnew(_ object: IndexPage.Entry, walk: Int64, on number: Int) throws(ClientError) {
        var entity = try entity(number, object.key)
        let wasMet = entity.record.walk == walk
        entity.record.walk = walk
        if wasMet {
            put(number, object.key, entity, .marks)
            // A change that arrived during the scan is newer than the scan's snapshot.
            let newest = entity.record.edits.held ?? entity.record.ghost
            guard object.version > newest.version else { return }
        } else {
            put(number, object.key, entity, .marks)
        }
        let isKnown = entity.sealed == nil && entity.record.ghost.object != nil
        guard let value = object.data?.object else {
            if isKnown, !wasMet {
                // Until the object arrives.
                entity.record.ghost.version = 0
                put(number, object.key, entity, .ghost)
            }
            return try want(number, object.key, object.version)
        }
        let next = Ghost(version: object.version, object: value)
        if entity.sealed != nil, entity.record.ghost == next, entity.record.edits.held == nil { return }
        if isKnown, !wasMet { return try rebaseOnUnprovenGhost(number, object.key, next) }
        try jump(number, object.key, to: next)
    }

    /// The state of an object in a bucket that may differ from the one to which its ghost belongs.
    ///
    /// Where the two differ, their order is unknown: the server's state prevails, and the state shown here is reported
    /// in full.
    mutating func rebaseOnUnprovenGhost(_ number: Int, _ key: EntityKey, _ next: Ghost) throws(ClientError) {
        guard let theirs = next.object else { return try bringBack(number, key) }
        var entity = try entity(number, key)
        let mine = entity.local
        if theirs == mine {
            // It includes everything that was done here.
            clearInFlight(number, key)
            entity.record.edits = EditState()
            entity.record.ghost = next
            (entity.base, entity.local) = (theirs, theirs)
            return put(number, key, entity, [.ghost, .edits])
        }
        if theirs != entity.record.ghost.object, theirs != entity.base, let mine {
            let report = ConflictReport(
                key: shownKey(number, key), path: [], losing: .object(mine), winning: .object(theirs))
            tellOnce(number, .conflict(report))
        }
        if let pending = entity.record.edits.pending {
            guard isMisread(pending, at: next.version, number) else {
                // Only the server knows whether the state includes the change.
                entity.record.edits.held = next
                return put(number, key, entity, .edits)
            }
            if theirs == entity.base { return try settle(number, key, at: next) }
            sendAsNew(pending, &entity, number, key)
            return try rebaseAndResend(number, key, of: next)
        }
        try advance(number, key, to: next, by: Edits.gap(entity.record.ghost.object, theirs))
    }

    /// Whether another bucket could mistake the change's source version for one of its own. A restore never reuses
    /// version numbers.
    private func isMisread(_ pending: PendingChange, at version: Version, _ number: Int) -> Bool {
        guard channels[number].storeTold != nil, let source = pending.source else { return false }
        return (0..<SyncLimits.restoredVersionsMin).contains(version - source)
    }

    /// The change is sent in another form, under its own ccid; this also holds after a restart.
    private mutating func sendAsNew(
        _ pending: PendingChange, _ entity: inout Entity, _ number: Int, _ key: EntityKey
    ) {
        entity.record.edits.pending = PendingChange(
            changeID: pending.changeID, edit: pending.edit, source: pending.source, bytes: [])
        put(number, key, entity, .edits)
    }

    /// The object is missing from the index of a bucket that may differ from the one to which its ghost belongs: it is
    /// sent again as a new object. If it was removed here, it is gone on both sides.
    mutating func bringBack(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        guard let mine = entity.local else {
            clearInFlight(number, key)
            entity.record.edits = EditState()
            entity.record.ghost = Ghost()
            entity.base = nil
            return put(number, key, entity, [.ghost, .edits])
        }
        if entity.record.ghost.object != nil { channels[number].broughtBack?.insert(key) }
        if let pending = entity.record.edits.pending, case .modify? = pending.edit {
            // A server restored to a state that includes the change recognises it by its ccid.
            guard channels[number].storeTold != nil else {
                entity.record.edits.held = Ghost()
                return put(number, key, entity, .edits)
            }
            sendAsNew(pending, &entity, number, key)
            return try rebaseAndResend(number, key, of: Ghost())
        }
        clearInFlight(number, key)
        entity.record.edits = EditState()
        entity.record.edits.later = Edits.between(nil, mine)
        entity.record.ghost = Ghost()
        entity.base = nil
        put(number, key, entity, [.ghost, .edits])
        queue(number, key, entity.record.edits)
    }

    /// The objects that were queued again since the last call, in order of their keys; recording starts with the first
    /// call.
    package mutating func takeBroughtBack(_ bucket: BucketName) throws(ClientError) -> [String] {
        let number = try number(bucket)
        let keys = channels[number].broughtBack ?? []
        channels[number].broughtBack = []
        return keys.sorted().map { shownKey(number, $0) }
    }
}
