import ThicketProtocol

/// Scanning the bucket's whole index, page by page.
extension BucketMachine {
    /// Starts a scan of the whole index. Ghosts are kept; objects that the index does not list are gone at its end.
    mutating func beginScan(_ turn: inout SyncTurn) {
        record.scansStarted += 1
        var indexScan = IndexScan(id: record.scansStarted)
        indexScan.isSame = served.holdsPosition
        record.indexScan = indexScan
        scan.isHere = false
        scan.isNeeded = false
        turn.touch(number)
    }

    /// Scans the index again on this connection: at once, or after a pause when the previous scan had no result.
    mutating func scanAgain(_ turn: inout SyncTurn) {
        beginScan(&turn)
        phase = .scanning
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
        let mark = record.indexScan?.mark
        let request = askForPage(mark, &turn)
        turn.send(request)
    }

    /// Requests the page after the one in front of `mark`, before that one is handled.
    ///
    /// - Returns: nil when it cannot be requested yet.
    mutating func askAhead(_ mark: String, _ turn: inout SyncTurn) -> [UInt8]? {
        guard let indexScan = record.indexScan, phase == .scanning, scan.askedAhead == nil,
            !isOfAnotherStore(indexScan), !(indexScan.mark.map { $0.utf8.elementsEqual(mark.utf8) } ?? false)
        else { return nil }
        scan.askedAhead = mark
        return askForPage(mark, &turn)
    }

    private mutating func askForPage(_ mark: String?, _ turn: inout SyncTurn) -> [UInt8] {
        answerDue = turn.now + SyncLimits.answerMilliseconds
        return Messages.onChannel(number, Messages.index(mark: mark, limit: turn.link.options.indexPageObjects))
    }

    mutating func received(page: IndexPage, _ turn: inout SyncTurn) throws(ClientError) {
        guard phase == .scanning, record.indexScan != nil else { return }
        guard try identifyScan(&turn), var indexScan = record.indexScan else { return }
        let isAsked = scan.askedAhead != nil && scan.askedAhead == page.mark
        scan.askedAhead = nil
        if !isAsked { answerDue = nil }
        if indexScan.current == nil { indexScan.current = page.current }
        indexScan.objectsRead += Int64(page.entries.count)
        if let total = page.count { indexScan.objectsTotal = total }
        let isStuck = page.mark != nil && page.mark == indexScan.mark
        indexScan.mark = page.mark
        record.indexScan = indexScan
        turn.touch(number)
        try receive(page.entries, scanID: indexScan.id, &turn)
        if isStuck { return turn.hangUp("the index scan makes no progress") }
        guard page.mark == nil else { return isAsked ? () : requestPage(&turn) }
        try finishScan(indexScan, &turn)
    }

    /// Most objects of a first scan are new. They are received in the quick way (`receiveNew`) only when the bucket has
    /// no reader to be notified of them.
    private mutating func receive(
        _ entries: [IndexPage.Entry], scanID: Int64, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let name = record.name
        guard !turn.hasReader(name) else {
            for entry in entries { try indexed(entry, scanID: scanID, &turn) }
            return
        }
        let known = try turn.store.known(name, among: entries.map(\.key))
        try rules.receiveNew(&self, entries, known, scanID: scanID, &turn)
    }

    mutating func indexed(_ object: IndexPage.Entry, scanID: Int64, _ turn: inout SyncTurn) throws(ClientError) {
        if record.indexScan?.isSame == false { return try rules.indexedElsewhere(&self, object, scanID: scanID, &turn) }
        let (entity, wasMet) = try meet(object.key, scanID, &turn)
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
        _ key: EntityKey, _ scanID: Int64, _ turn: inout SyncTurn
    ) throws(ClientError) -> (LocalEntity, wasMet: Bool) {
        try withEntity(key, .marks, &turn) { entity in
            let wasMet = entity.record.scanID == scanID
            entity.record.scanID = scanID
            return (entity, wasMet)
        }
    }

    private mutating func finishScan(_ indexScan: IndexScan, _ turn: inout SyncTurn) throws(ClientError) {
        var gone = try unlistedKeys(indexScan, &turn)
        let isAskedAgain = try rules.setAside(&self, &gone, &turn)
        for key in gone.sorted() {
            try rules.unlisted(&self, key, indexScan, &turn)
        }
        try missRequested(indexScan, &turn)
        try rules.missUnread(&self, indexScan, &turn)
        try confirmAccepted(&turn)
        scan.finished = indexScan
        record.indexScan = nil
        if !indexScan.isSame { record.store = indexScan.store }
        if !isAskedAgain { record.changeVersion = indexScan.current }
        turn.touch(number)
        phase = .catchingUp
        askSince(&turn)
    }

    /// The objects that the server had and the index does not list.
    private func unlistedKeys(_ indexScan: IndexScan, _ turn: inout SyncTurn) throws(ClientError) -> Set<EntityKey> {
        let name = record.name
        var gone = Set(try turn.store.keysUnseen(name, scanID: indexScan.id))
        // The store does not contain this turn yet.
        for (address, entity) in turn.entities where address.bucket == name {
            if entity.record.scanID == indexScan.id || entity.record.ghost.object == nil { gone.remove(address.key) }
        }
        return gone
    }

    /// Requested objects that this device never had and that the index does not list are gone.
    private mutating func missRequested(_ indexScan: IndexScan, _ turn: inout SyncTurn) throws(ClientError) {
        for key in keys.stale.sorted() {
            let known = try entity(key, &turn).record
            guard known.scanID != indexScan.id, known.ghost.object == nil else { continue }
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
