import ThicketProtocol

/// Local edits on their way to the server, and the server's answers.
extension SyncMachine {
    /// Turns an object's waiting edit into a change, stores it, and sends it.
    mutating func sendNew(_ number: Int, _ key: EntityKey) throws(ClientError) {
        if channels[number].sealing != nil { return try sendSealed(number, key) }
        var entity = try entity(number, key)
        var edits = entity.record.edits
        guard edits.pending == nil, edits.wanted == nil, edits.refusal == nil, let edit = edits.later else {
            return
        }
        let ghost = entity.record.ghost
        guard ghost.object != nil || edit != .remove else {
            edits.later = nil
            entity.record.edits = edits
            put(number, key, entity, .edits)
            return
        }
        let text = hexText(random.next()) + hexText(random.next())
        guard let changeID = try? ChangeID(text) else { return }
        // A removal names its version, so that it cannot hit an object that another client recreated. If it was refused
        // because of an edit in between, the removal prevails and is sent without a version.
        let namesVersion = ghost.object != nil && !(edit == .remove && edits.attempts > 0)
        let source = namesVersion ? ghost.version : nil
        let bytes = Messages.change(
            key: key, changeID: changeID, edit: edit, source: source, whole: edits.sendsWhole ? entity.local : nil,
            isWhole: edits.isWhole)
        edits.pending = PendingChange(changeID: changeID, edit: edit, source: source, bytes: bytes)
        edits.later = nil
        entity.record.edits = edits
        entity.base = entity.local
        entity.wanted = Wanted()
        put(number, key, entity, .edits)
        sendsNewChange = true
        sendChange(number, key, bytes)
    }

    /// Resends a pending change unchanged, or rebased when it was refused; an edit that is not yet a change becomes
    /// one.
    mutating func resend(_ number: Int, _ key: EntityKey) throws(ClientError) {
        let record = try entity(number, key).record
        guard let pending = record.edits.pending else { return try sendNew(number, key) }
        if channels[number].sealing != nil { return try resendSealed(number, key, pending) }
        if channels[number].refusedWaiting.contains(key) || pending.bytes.isEmpty {
            return try resendPending(number, key, pending)
        }
        guard isNewest(record, pending.source) || !Messages.hasWhole(pending.bytes) else {
            return try sendWithoutWhole(number, key, pending)
        }
        sendChange(number, key, pending.bytes)
    }

    /// Whether nothing is known that is newer than the version on which the change is based.
    private func isNewest(_ record: EntityRecord, _ source: Version?) -> Bool {
        let isOnGhost = source == (record.ghost.object == nil ? nil : record.ghost.version)
        return isOnGhost && record.edits.held == nil && record.edits.wanted == nil
    }

    mutating func sendChange(_ number: Int, _ key: EntityKey, _ bytes: [UInt8]) {
        guard channels[number].inFlight[key] == nil else { return }
        channels[number].refusedWaiting.remove(key)
        channels[number].inFlight[key] = Channel.InFlight(sentAt: now, bytes: bytes.count)
        channels[number].bytesInFlight += bytes.count
        send(Messages.onChannel(number, "c:", bytes))
    }

    /// The server has answered the object's change.
    mutating func clearInFlight(_ number: Int, _ key: EntityKey) {
        guard let flight = channels[number].inFlight.removeValue(forKey: key) else { return }
        channels[number].bytesInFlight -= flight.bytes
    }

    /// Queues the edits made since the last change.
    mutating func queue(_ number: Int, _ key: EntityKey, _ edits: EditState) {
        if channels[number].sealing != nil { return queueSealed(number, key) }
        if edits.pending == nil, edits.later != nil, edits.refusal == nil { channels[number].ready.append(key) }
    }

    // MARK: - Refusals

    /// The server did not apply the change with one of these ccids.
    mutating func refused(_ number: Int, _ key: EntityKey, code: Int, changeIDs: [String]) throws(ClientError) {
        let known = try entity(number, key)
        if compactionRefused(number, key, code: code, changeIDs: changeIDs) { return }
        guard let pending = known.record.edits.pending,
            changeIDs.contains(where: { $0.utf8.elementsEqual(pending.changeID.text.utf8) })
        else { return }
        clearInFlight(number, key)
        let isAboutForm = code < 500 && code != ErrorCode.unauthorized.rawValue
        if channels[number].sealing != nil, isAboutForm { return try refusedSealed(number, key, code: code) }
        switch ErrorCode(rawValue: code) {
        case .duplicateChange: try isInside(number, key)
        case .emptyChange: try saysNothing(number, key)
        case .notFound: try notThere(number, key)
        case .badVersion, .invalidDiff: try doesNotFit(number, key, code: code)
        case .unauthorized: notPermitted(number, key)
        case .invalidRequest, .tooLarge: try giveUp(number, key, code: code)
        case .serverError, .unavailable: sendLater(number, key)
        case nil: if code >= 500 { sendLater(number, key) } else { try giveUp(number, key, code: code) }
        }
    }

    /// 409: the server has the change. Its version is known only if a newer ghost is held.
    private mutating func isInside(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        if let held = entity.record.edits.held, entity.record.edits.wanted == nil {
            return try settle(number, key, at: held)
        }
        entity.record.edits.pending?.isConfirmed = true
        put(number, key, entity, .edits)
        channels[number].needsWalk = true
    }

    /// 412: the object already equals the change's result.
    private mutating func saysNothing(_ number: Int, _ key: EntityKey) throws(ClientError) {
        let known = try entity(number, key)
        let edits = known.record.edits
        if edits.wanted != nil { return try isInside(number, key) }
        var target = known.record.edits.held ?? known.record.ghost
        // A removal without effect: the object is gone, and the message about that is still to come. A held newer state
        // is more recent than that.
        if edits.pending?.edit == .remove, edits.held == nil { target.object = nil }
        try settle(number, key, at: target)
    }

    /// 401: nothing can be sent with this token on this connection. The change is kept.
    private mutating func notPermitted(_ number: Int, _ key: EntityKey) {
        channels[number].resend.append(key)
        guard !channels[number].isReadOnly else { return }
        channels[number].isReadOnly = true
        let edit = RefusedEdit(unauthorized: shownKey(number, key))
        actions.append(.event(channels[number].record.name, .refused(edit)))
    }

    /// 400, 413: sending the same change again would fail again.
    private mutating func giveUp(_ number: Int, _ key: EntityKey, code: Int) throws(ClientError) {
        if channels[number].sealing != nil { return try refusedSealed(number, key, code: code) }
        let held = try entity(number, key).record.edits.held
        _ = try takeBack(number, key)
        if let held { try jump(number, key, to: held) }
        try stall(number, key, code: code)
    }

    /// 500, 503: the same change is sent again after a pause.
    private mutating func sendLater(_ number: Int, _ key: EntityKey) {
        channels[number].resend.append(key)
        let resume = now + channels[number].retry.next(random.next())
        channels[number].sendAt = max(channels[number].sendAt ?? 0, resume)
    }

    /// Turns a change that was certainly not applied back into an unsent edit, together with the later edits.
    mutating func takeBack(_ number: Int, _ key: EntityKey) throws(ClientError) -> EditState {
        var entity = try entity(number, key)
        var edits = entity.record.edits
        let isWhole = edits.isAllWhole
        // The state wanted before other changes moved the edits; that of the pending edit only if no later edit follows
        // it.
        entity.wanted.later = edits.later == nil ? entity.wanted.pending : entity.wanted.later
        entity.wanted.pending = nil
        edits.later = folded(edits, entity)
        edits.isWhole = isWhole && edits.later != nil
        edits.pending = nil
        edits.held = nil
        edits.attempts += 1
        entity.record.edits = edits
        entity.base = entity.record.ghost.object
        put(number, key, entity, .edits)
        return edits
    }

    private func folded(_ edits: EditState, _ entity: Entity) -> Edit? {
        let ghost = entity.record.ghost.object
        // Both were applied to this object before, so composing cannot fail; if it does, what the app sees is kept.
        do {
            return try Edits.compose(edits.pending?.edit, edits.later, base: ghost)
        } catch {
            return Edits.between(ghost, entity.local)
        }
    }

    /// Keeps the edit and reports the refusal to the app; the next edit of the object tries again.
    mutating func stall(_ number: Int, _ key: EntityKey, code: Int) throws(ClientError) {
        var entity = try entity(number, key)
        entity.record.edits.forgetRefusals()
        entity.record.edits.refusal = entity.record.edits.hasEdits ? code : nil
        put(number, key, entity, .edits)
        let edit = RefusedEdit(key: shownKey(number, key), code: code)
        actions.append(.event(channels[number].record.name, .refused(edit)))
    }

    /// The server closed the connection because a message was too large: the largest change must not be sent again.
    mutating func refuseLargestFlight() throws(ClientError) {
        var largest: (number: Int, key: EntityKey, bytes: Int)?
        for number in channels.indices {
            // Sorted, so that among changes of equal size the choice is deterministic.
            for (key, flight) in channels[number].inFlight.sorted(by: { $0.key < $1.key })
            where flight.bytes > largest?.bytes ?? 0 { largest = (number, key, flight.bytes) }
        }
        guard let largest, largest.bytes >= SyncLimits.suspectBytesMin else { return }
        try giveUp(largest.number, largest.key, code: ErrorCode.tooLarge.rawValue)
    }
}
