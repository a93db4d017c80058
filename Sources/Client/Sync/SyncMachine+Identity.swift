import ThicketProtocol

/// Which bucket the server has: the one that the ghosts are of, or one that need not be (docs/decisions/0083).
///
/// An object that is absent from an index is a removed one only where the index is of the bucket that the ghosts are
/// of. Otherwise it is an object that only this device has, and it is sent again.
extension SyncMachine {
    /// The bucket that is served is the one of the ghosts.
    private func isSameStore(_ number: Int) -> Bool {
        channels[number].storeTold.map { $0 == channels[number].record.store } ?? channels[number].positionHolds
    }

    /// The server has told the identity of the bucket.
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
        // A position is of one bucket: what the server makes of it is of no use.
        case .catchingUp, .live: walkAgain(number)
        // What a walk does with it, its next page decides.
        case .walking, .closed, .opening, .refused, .lapsed, .renewing: break
        }
    }

    /// The server knows our position, so its bucket is the one that the ghosts are of.
    mutating func positionIsKnown(_ number: Int) {
        channels[number].positionHolds = true
        guard channels[number].record.store == nil, let told = channels[number].storeTold else { return }
        channels[number].record.store = told
        touchChannel(number)
    }

    // MARK: - Walking

    /// The walk was begun in a bucket of another identity, in an earlier connection.
    func isOfAnotherStore(_ walk: IndexWalk, _ number: Int) -> Bool {
        walk.mark != nil && !channels[number].isWalkHere && channels[number].storeTold != walk.store
    }

    /// A page has come: the first one of this connection decides what the walk means.
    ///
    /// - Returns: false when the page is of no use and the walk begins anew.
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
            // Nothing says that the pages before came from here.
            walk.isSame = false
        }
        channels[number].record.walk = walk
        touchChannel(number)
        if !walk.isSame, walk.mark == nil || wasSame { try losePosition(number, walk) }
        return true
    }

    /// Nothing of the bucket was ever confirmed here.
    private func isUntouched(_ number: Int, _ walk: IndexWalk) throws(ClientError) -> Bool {
        let record = channels[number].record
        guard record.store == nil, record.changeVersion == nil else { return false }
        for (address, entity) in cache where address.bucket == record.name && entity.record.ghost.object != nil {
            return false
        }
        return try store.keysUnseen(record.name, walk: walk.id).isEmpty
    }

    /// What is kept is of a bucket that need not be the one that is read from now on: what its server said of versions,
    /// and of changes that it has, does not hold here.
    private mutating func losePosition(_ number: Int, _ walk: IndexWalk) throws(ClientError) {
        let name = channels[number].record.name
        // In a sealed bucket the changes since are asked for once more: an honest removal has a tombstone there.
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

    /// No page has come yet of an index that need not be that of the ghosts: it will hold all that comes before it.
    func isBeforeStrangeIndex(_ number: Int) -> Bool {
        guard channels[number].phase == .walking, !channels[number].isWalkHere else { return false }
        return channels[number].storeTold != nil && !isSameStore(number)
    }

    /// A change that the index will show; one of ours is answered, and asked about again.
    mutating func passOver(_ change: AppliedChange, on number: Int) throws(ClientError) {
        guard let pending = try entity(number, change.key).record.edits.pending,
            change.ccids.contains(where: { $0.utf8.elementsEqual(pending.changeID.text.utf8) })
        else { return }
        landed(number, change.key)
        channels[number].resend.append(change.key)
    }

    // MARK: - Objects

    /// An index that need not be that of the ghosts lists the object: versions say nothing, so the objects are
    /// compared.
    mutating func indexedAnew(_ object: IndexPage.Entry, walk: Int64, on number: Int) throws(ClientError) {
        var entity = try entity(number, object.key)
        let wasMet = entity.record.walk == walk
        entity.record.walk = walk
        if wasMet {
            put(number, object.key, entity, .marks)
            // A change that came during the walk is newer than the walk's snapshot.
            let newest = entity.record.edits.held ?? entity.record.ghost
            guard object.version > newest.version else { return }
        } else {
            put(number, object.key, entity, .marks)
        }
        let isKnown = entity.sealed == nil && entity.record.ghost.object != nil
        guard let value = object.data?.object else {
            if isKnown, !wasMet {
                // Until the object comes.
                entity.record.ghost.version = 0
                put(number, object.key, entity, .ghost)
            }
            return try want(number, object.key, object.version)
        }
        let next = Ghost(version: object.version, object: value)
        if entity.sealed != nil, entity.record.ghost == next, entity.record.edits.held == nil { return }
        if isKnown, !wasMet { return try meetAnew(number, object.key, next) }
        try jump(number, object.key, to: next)
    }

    /// The state of an object in a bucket that need not be the one its ghost is of.
    ///
    /// Where the two differ it is not known which of them came first: the server's stands, and what was shown here is
    /// told whole.
    mutating func meetAnew(_ number: Int, _ key: EntityKey, _ next: Ghost) throws(ClientError) {
        guard let theirs = next.object else { return try bringBack(number, key) }
        var entity = try entity(number, key)
        let mine = entity.local
        if theirs == mine {
            // All that was done here is in it.
            landed(number, key)
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
                // Only the server knows whether it is inside.
                entity.record.edits.held = next
                return put(number, key, entity, .edits)
            }
            if theirs == entity.base { return try settle(number, key, at: next) }
            sendAsNew(pending, &entity, number, key)
            return try goesAnew(number, key, of: next)
        }
        try advance(number, key, to: next, by: Edits.gap(entity.record.ghost.object, theirs))
    }

    /// Whether another bucket may take the change for one of a version of its own: a restore leaves no number in use
    /// twice.
    private func isMisread(_ pending: PendingChange, at version: Version, _ number: Int) -> Bool {
        guard channels[number].storeTold != nil, let source = pending.source else { return false }
        return (0..<SyncLimits.restoredVersionsMin).contains(version - source)
    }

    /// The change goes out in another form, under its own ccid, also behind an end of the program.
    private mutating func sendAsNew(
        _ pending: PendingChange, _ entity: inout Entity, _ number: Int, _ key: EntityKey
    ) {
        entity.record.edits.pending = PendingChange(
            changeID: pending.changeID, edit: pending.edit, source: pending.source, bytes: [])
        put(number, key, entity, .edits)
    }

    /// The object is in no index of a bucket that need not be the one its ghost is of: what is here is sent again, as a
    /// new object. What was removed here is gone on both sides.
    mutating func bringBack(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        guard let mine = entity.local else {
            landed(number, key)
            entity.record.edits = EditState()
            entity.record.ghost = Ghost()
            entity.base = nil
            return put(number, key, entity, [.ghost, .edits])
        }
        if entity.record.ghost.object != nil { channels[number].broughtBack?.insert(key) }
        if let pending = entity.record.edits.pending, case .modify? = pending.edit {
            // A server that was restored to a state that has the change says so by its ccid.
            guard channels[number].storeTold != nil else {
                entity.record.edits.held = Ghost()
                return put(number, key, entity, .edits)
            }
            sendAsNew(pending, &entity, number, key)
            return try goesAnew(number, key, of: Ghost())
        }
        landed(number, key)
        entity.record.edits = EditState()
        entity.record.edits.later = Edits.between(nil, mine)
        entity.record.ghost = Ghost()
        entity.base = nil
        put(number, key, entity, [.ghost, .edits])
        queue(number, key, entity.record.edits)
    }

    /// Objects that were brought back since the last call, in the order of their keys; they are noted from the first
    /// call on.
    package mutating func takeBroughtBack(_ bucket: BucketName) throws(ClientError) -> [String] {
        let number = try number(bucket)
        let keys = channels[number].broughtBack ?? []
        channels[number].broughtBack = []
        return keys.sorted().map { shownKey(number, $0) }
    }
}
