import ThicketProtocol

/// Decides whether the server's bucket is the one to which the ghosts belong, or may be a different one
/// (docs/decisions/0083).
///
/// An object that is missing from an index was removed only if the index and the ghosts belong to the same bucket.
/// Otherwise the object exists on this device only, and it is sent again.
extension BucketMachine {
    /// Whether the server's bucket is the one to which the ghosts belong.
    private var isSameStore: Bool {
        served.store.map { $0 == record.store } ?? served.holdsPosition
    }

    /// Handles the bucket's identity as reported by the server.
    mutating func receivedStore(_ store: String?, _ turn: inout SyncTurn) {
        guard let store else { return }
        served.store = store
        guard let known = record.store else {
            if served.holdsPosition { positionIsKnown(&turn) }
            return
        }
        guard known != store else { return }
        served.holdsPosition = false
        switch phase {
        // A position belongs to one bucket: the answer to it is useless in another.
        case .catchingUp, .live: scanAgain(&turn)
        // The next page of a running scan decides.
        case .scanning, .closed, .opening, .refused, .lapsed, .renewing: break
        }
    }

    /// The server knows the client's position, so its bucket is the one to which the ghosts belong.
    mutating func positionIsKnown(_ turn: inout SyncTurn) {
        served.holdsPosition = true
        guard record.store == nil, let servedStore = served.store else { return }
        record.store = servedStore
        turn.touch(number)
    }

    /// Whether the scan was started in a bucket of another identity, on an earlier connection.
    func isOfAnotherStore(_ indexScan: IndexScan) -> Bool {
        indexScan.mark != nil && !scan.isHere && served.store != indexScan.store
    }

    /// Handles the arrival of a page: the first one on this connection decides how the scan is interpreted.
    ///
    /// - Returns: false when the page is useless and the scan starts from the beginning.
    mutating func identifyScan(_ turn: inout SyncTurn) throws(ClientError) -> Bool {
        guard !scan.isHere, var indexScan = record.indexScan else { return true }
        if isOfAnotherStore(indexScan) {
            beginScan(&turn)
            requestPage(&turn)
            return false
        }
        scan.isHere = true
        let servedStore = served.store
        let wasSame = indexScan.isSame
        if indexScan.mark == nil {
            indexScan.isSame = isSameStore
            indexScan.store = servedStore
            if !indexScan.isSame, try isUntouched(indexScan, &turn) {
                indexScan.isSame = true
                record.store = servedStore
            }
        } else if servedStore == nil {
            // Nothing proves that the earlier pages came from this bucket.
            indexScan.isSame = false
        }
        record.indexScan = indexScan
        turn.touch(number)
        if !indexScan.isSame, indexScan.mark == nil || wasSame { try losePosition(indexScan, &turn) }
        return true
    }

    /// Whether the server has never confirmed anything of the bucket on this device.
    private func isUntouched(_ indexScan: IndexScan, _ turn: inout SyncTurn) throws(ClientError) -> Bool {
        guard record.store == nil, record.changeVersion == nil else { return false }
        for (address, entity) in turn.entities where address.bucket == record.name && entity.record.ghost.object != nil
        {
            return false
        }
        return try turn.store.keysUnseen(record.name, scanID: indexScan.id).isEmpty
    }

    /// The local state belongs to a bucket that may differ from the one being scanned: versions, and answers that the
    /// server has a change, do not apply to it.
    private mutating func losePosition(_ indexScan: IndexScan, _ turn: inout SyncTurn) throws(ClientError) {
        let rules = rules
        if !rules.keepsLostPosition { record.changeVersion = nil }
        record.store = nil
        record.generation = indexScan.id
        turn.touch(number)
        turn.forgottenRemovals.insert(record.name)
        for key in keys.edited.union(keys.stale).sorted() {
            try withEntity(key, &turn) { entity, done in
                entity.record.edits.pending?.appliedAt = nil
                entity.record.edits.pending?.isConfirmed = false
                done.parts = rules.forgetProof(&entity)
            }
        }
    }

    /// No page has arrived yet of an index that may belong to another bucket than the ghosts: the index will include
    /// all earlier changes.
    var isBeforeForeignIndex: Bool {
        guard phase == .scanning, !scan.isHere else { return false }
        return served.store != nil && !isSameStore
    }

    /// A change that the index will show. If it is this client's own, it counts as answered and is resent later.
    mutating func passOver(_ change: AppliedChange, _ turn: inout SyncTurn) throws(ClientError) {
        guard let pending = try entity(change.key, &turn).record.edits.pending,
            change.ccids.contains(where: { $0.utf8.elementsEqual(pending.changeID.text.utf8) })
        else { return }
        outbox.answered(change.key)
        outbox.resend.append(change.key)
    }
}
