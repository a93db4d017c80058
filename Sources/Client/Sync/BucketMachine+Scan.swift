import ThicketProtocol

/// Scanning the bucket's whole index, page by page.
extension BucketMachine {
    /// Starts a scan of the whole index. Ghosts are kept; objects that the index does not list are gone at its end.
    mutating func beginWalk(_ turn: inout SyncTurn) {
        record.walksStarted += 1
        var walk = IndexScan(id: record.walksStarted)
        walk.isSame = served.holdsPosition
        record.walk = walk
        scan.isHere = false
        scan.isNeeded = false
        turn.touch(number)
    }

    /// Scans the index again on this connection: at once, or after a pause when the previous scan had no result.
    mutating func walkAgain(_ turn: inout SyncTurn) {
        beginWalk(&turn)
        phase = .walking
        answerDue = nil
        scan.fruitless += 1
        if scan.fruitless > 1 {
            resumeAt = turn.now + retry.next(turn.random.next())
        } else {
            resumeAt = nil
            requestPage(&turn)
        }
    }

    mutating func requestPage(_ turn: inout SyncTurn) {
        let mark = record.walk?.mark
        let request = askForPage(mark, &turn)
        turn.send(request)
    }

    /// Requests the page after the one in front of `mark`, before that one is handled.
    ///
    /// - Returns: nil when it cannot be requested yet.
    mutating func askAhead(_ mark: String, _ turn: inout SyncTurn) -> [UInt8]? {
        guard let walk = record.walk, phase == .walking, scan.askedAhead == nil, !isOfAnotherStore(walk),
            !(walk.mark.map { $0.utf8.elementsEqual(mark.utf8) } ?? false)
        else { return nil }
        scan.askedAhead = mark
        return askForPage(mark, &turn)
    }

    private mutating func askForPage(_ mark: String?, _ turn: inout SyncTurn) -> [UInt8] {
        answerDue = turn.now + SyncLimits.answerMilliseconds
        return Messages.onChannel(number, Messages.index(mark: mark, limit: turn.link.options.indexPageObjects))
    }

    mutating func received(page: IndexPage, _ turn: inout SyncTurn) throws(ClientError) {
        guard phase == .walking, record.walk != nil else { return }
        guard try identifyWalk(&turn), var walk = record.walk else { return }
        let isAsked = scan.askedAhead != nil && scan.askedAhead == page.mark
        scan.askedAhead = nil
        if !isAsked { answerDue = nil }
        if walk.current == nil { walk.current = page.current }
        walk.objectsRead += Int64(page.entries.count)
        if let total = page.count { walk.objectsTotal = total }
        let isStuck = page.mark != nil && page.mark == walk.mark
        walk.mark = page.mark
        record.walk = walk
        turn.touch(number)
        try receive(page.entries, walk: walk.id, &turn)
        if isStuck { return turn.hangUp("the index scan makes no progress") }
        guard page.mark == nil else { return isAsked ? () : requestPage(&turn) }
        try finishWalk(walk, &turn)
    }

    /// Most objects of a first scan are new. They are received in the quick way (`receiveNew`) only when the bucket has
    /// no reader to be notified of them.
    private mutating func receive(_ entries: [IndexPage.Entry], walk: Int64, _ turn: inout SyncTurn) throws(ClientError)
    {
        let name = record.name
        guard !turn.isHeard(name) else {
            for entry in entries { try indexed(entry, walk: walk, &turn) }
            return
        }
        let known = try turn.store.known(name, among: entries.map(\.key))
        try rules.receiveNew(&self, entries, known, walk: walk, &turn)
    }

    mutating func indexed(_ object: IndexPage.Entry, walk: Int64, _ turn: inout SyncTurn) throws(ClientError) {
        if record.walk?.isSame == false { return try rules.indexedElsewhere(&self, object, walk: walk, &turn) }
        let (entity, wasMet) = try meet(object.key, walk, &turn)
        let newest = entity.newest
        let isConfirmed = entity.record.edits.pending?.isConfirmed ?? false
        if object.version == newest.version, newest.object != nil, !isConfirmed { return }
        // A change that arrived during the scan is newer than the scan's snapshot.
        if object.version < newest.version, wasMet { return }
        // A read-only sealed object that is known to exist in this version.
        if let sealed = entity.sealed, sealed.problem != nil, object.version == newest.version { return }
        guard let value = object.data?.object else {
            return try want(object.key, object.version, &turn)
        }
        try jump(object.key, to: Ghost(version: object.version, object: value), &turn)
    }

    /// Records that the scan lists the object.
    ///
    /// - Returns: the object, and whether it was met before, in a page or a change.
    mutating func meet(
        _ key: EntityKey, _ walk: Int64, _ turn: inout SyncTurn
    ) throws(ClientError) -> (LocalEntity, wasMet: Bool) {
        try withEntity(key, .marks, &turn) { entity in
            let wasMet = entity.record.walk == walk
            entity.record.walk = walk
            return (entity, wasMet)
        }
    }

    private mutating func finishWalk(_ walk: IndexScan, _ turn: inout SyncTurn) throws(ClientError) {
        var gone = try unlistedKeys(walk, &turn)
        let isAskedAgain = try rules.setAside(&self, &gone, &turn)
        for key in gone.sorted() {
            try rules.unlisted(&self, key, walk, &turn)
        }
        try missRequested(walk, &turn)
        try rules.missUnread(&self, walk, &turn)
        try confirmAccepted(&turn)
        scan.walked = walk
        record.walk = nil
        if !walk.isSame { record.store = walk.store }
        if !isAskedAgain { record.changeVersion = walk.current }
        turn.touch(number)
        phase = .catchingUp
        askSince(&turn)
    }

    /// The objects that the server had and the index does not list.
    private func unlistedKeys(_ walk: IndexScan, _ turn: inout SyncTurn) throws(ClientError) -> Set<EntityKey> {
        let name = record.name
        var gone = Set(try turn.store.keysUnseen(name, walk: walk.id))
        // The store does not contain this turn yet.
        for (address, entity) in turn.entities where address.bucket == name {
            if entity.record.walk == walk.id || entity.record.ghost.object == nil { gone.remove(address.key) }
        }
        return gone
    }

    /// Requested objects that this device never had and that the index does not list are gone.
    private mutating func missRequested(_ walk: IndexScan, _ turn: inout SyncTurn) throws(ClientError) {
        for key in keys.stale.sorted() {
            let known = try entity(key, &turn).record
            guard known.walk != walk.id, known.ghost.object == nil else { continue }
            try jump(key, to: Ghost(version: known.ghost.version, object: nil), &turn)
        }
    }

    /// Confirms changes that the server has accepted (409) at an unknown version: the index requested since then, with
    /// the changes after it, includes them, even if another client has removed the object and the index does not list
    /// it.
    private mutating func confirmAccepted(_ turn: inout SyncTurn) throws(ClientError) {
        for key in keys.edited.sorted() {
            let entity = try entity(key, &turn)
            guard entity.record.edits.pending?.isConfirmed == true, entity.record.edits.wanted == nil else { continue }
            try rules.confirm(&self, key, at: entity.newest, &turn)
        }
    }

    /// Requests everything after the known position.
    mutating func askSince(_ turn: inout SyncTurn) {
        catchUp = CatchUp()
        answerDue = turn.now + SyncLimits.answerMilliseconds
        turn.send(Messages.onChannel(number, "cv:" + (record.changeVersion?.text ?? "")))
    }
}
