import ThicketProtocol

/// Local edits on their way to the server, and the server's answers.
extension BucketMachine {
    /// Sends a pending change again; an edit that is not yet a change becomes one.
    mutating func sendAgain(_ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        guard let pending = try entity(key, &turn).record.edits.pending else {
            return try rules.sendNew(&self, key, &turn)
        }
        try rules.resend(&self, key, pending, &turn)
    }

    mutating func sendChange(_ key: EntityKey, _ bytes: [UInt8], _ turn: inout SyncTurn) {
        guard outbox.inFlight[key] == nil else { return }
        outbox.sent(key, bytes: bytes.count, at: turn.now)
        turn.send(Messages.onChannel(number, "c:", bytes))
    }

    /// The server has applied the object's change.
    mutating func acknowledged(_ key: EntityKey, _ turn: inout SyncTurn) {
        outbox.answered(key)
        retry.reset()
        if isCaughtUp { turn.provesLink = true }
    }

    /// The server did not apply the change with one of these ccids.
    mutating func refused(_ key: EntityKey, code: Int, changeIDs: [String], _ turn: inout SyncTurn) throws(ClientError)
    {
        let known = try entity(key, &turn)
        if rules.refusedUpkeep(&self, key, code: code, changeIDs: changeIDs, &turn) { return }
        guard let pending = known.record.edits.pending,
            changeIDs.contains(where: { $0.utf8.elementsEqual(pending.changeID.text.utf8) })
        else { return }
        outbox.answered(key)
        if code == ErrorCode.unauthorized.rawValue { return notPermitted(key, &turn) }
        if code >= 500 { return sendLater(key, &turn) }
        try rules.refused(&self, key, code: code, &turn)
    }

    /// The server closed the connection, probably because of this change in flight: sending it again would fail again.
    mutating func refuseAsTooLarge(_ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        try rules.refused(&self, key, code: ErrorCode.tooLarge.rawValue, &turn)
    }

    /// 401: nothing can be sent with this token on this connection. The change is kept.
    private mutating func notPermitted(_ key: EntityKey, _ turn: inout SyncTurn) {
        outbox.resend.append(key)
        guard !outbox.isReadOnly else { return }
        outbox.isReadOnly = true
        let edit = RefusedEdit(unauthorized: shownKey(key, &turn))
        turn.actions.append(.event(record.name, .refused(edit)))
    }

    /// 500, 503: the same change is sent again after a pause.
    private mutating func sendLater(_ key: EntityKey, _ turn: inout SyncTurn) {
        outbox.resend.append(key)
        outbox.pause(until: turn.now + retry.next(turn.random.next()))
    }

    /// Keeps the edit and reports the refusal to the app; the next edit of the object tries again.
    mutating func stall(_ key: EntityKey, code: Int, _ turn: inout SyncTurn) throws(ClientError) {
        try withEntity(key, .edits, &turn) { entity in
            entity.record.edits.forgetRefusals()
            entity.record.edits.refusal = entity.record.edits.hasEdits ? code : nil
        }
        let edit = RefusedEdit(key: shownKey(key, &turn), code: code)
        turn.actions.append(.event(record.name, .refused(edit)))
    }
}
