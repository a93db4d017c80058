import ThicketProtocol

/// Changes from the server, and single objects that were requested from it.
extension BucketMachine {
    /// - Parameter movesPosition: everything before this change has arrived.
    mutating func applied(_ change: RemoteChange, movesPosition: Bool = true, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        var entity = try entity(change.key, &turn)
        if let indexScan = record.indexScan, entity.record.scanID != indexScan.id {
            entity = try withEntity(change.key, .marks, &turn) { entity in
                entity.record.scanID = indexScan.id
                return entity
            }
        }
        try rules.applied(&self, change, entity, &turn)
        // During a scan the position to store is that of its first page.
        guard movesPosition, let position = change.position, record.indexScan == nil else {
            return
        }
        record.changeVersion = position
        turn.touch(number)
    }

    /// The server's state is known at a version to which no known steps lead from the ghost.
    mutating func jump(_ key: EntityKey, to next: Ghost, _ turn: inout SyncTurn) throws(ClientError) {
        if let wanted = try entity(key, &turn).record.edits.wanted {
            if wanted > next.version, next.object != nil { return }
            try withEntity(key, .edits, &turn) { $0.record.edits.wanted = nil }
            try rules.gotRequested(&self, key, &turn)
        }
        try rules.jump(&self, key, to: next, &turn)
    }

    /// Requests the object as of `version`, because a change did not fit the ghost.
    mutating func want(_ key: EntityKey, _ version: Version, _ turn: inout SyncTurn) throws(ClientError) {
        try withEntity(key, .edits, &turn) { $0.record.edits.wanted = max($0.record.edits.wanted ?? 0, version) }
        reloads.want(key)
    }

    /// An `e` answer: part of a reload, or a version requested for the history.
    mutating func received(entity value: JSONObject?, key: EntityKey, version: Version, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let fetched = try rules.version(&self, of: value, key)
        turn.actions.append(.fetched(address(key), version, fetched))
        guard reloads.answered(key) else { return }
        guard let wanted = try entity(key, &turn).record.edits.wanted else { return }
        guard version >= wanted else { return reloads.queue.append(key) }
        guard let value else {
            // Not the requested version: the app is reading the history.
            guard version == wanted else { return reloads.queue.append(key) }
            // The version is not kept any more, or the object was removed since: only the index shows which.
            scan.isNeeded = true
            try rules.wantNoMore(&self, key, &turn)
            return
        }
        try jump(key, to: Ghost(version: version, object: value), &turn)
        rules.queue(&self, key, &turn)
    }
}
