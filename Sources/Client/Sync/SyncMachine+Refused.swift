import ThicketProtocol

/// Changes that the server refused in the form they had: 404, 405 and 440.
///
/// What was refused was not applied, so its edit is an edit of the newest state that is known now. It keeps its ccid,
/// alone, with what was done since apart behind it: a server that was restored meanwhile to a state that has the change
/// says so by 409, where under a new ccid it would take the edit a second time (0082).
extension SyncMachine {
    /// 404: the object was gone at the server. An edit brings it back as a whole; a removal is done.
    mutating func notThere(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        if isMadeAnew(entity.record) { return try editAnew(number, key) }
        let newest = entity.record.edits.held ?? entity.record.ghost
        let gone = Ghost(version: newest.version, object: nil)
        if entity.record.edits.pending?.edit == .remove { return try settle(number, key, at: gone) }
        if isRemoval(entity.record.edits) {
            _ = try takeBack(number, key)
            try jump(number, key, to: gone)
            return queue(number, key, try self.entity(number, key).record.edits)
        }
        guard entity.record.edits.attempts < SyncLimits.attemptsMax else {
            _ = try takeBack(number, key)
            try jump(number, key, to: gone)
            return try stall(number, key, code: ErrorCode.notFound.rawValue)
        }
        entity.record.edits.attempts += 1
        entity.record.edits.wanted = nil
        put(number, key, entity, .edits)
        try goesAnew(number, key, of: gone)
    }

    /// The object is known to be there, or asked for, in a version newer than the one that the refused change was made
    /// from.
    ///
    /// Refusals come behind all changes of their group, so also behind those that were decided after them (0070).
    private func isMadeAnew(_ record: EntityRecord) -> Bool {
        guard let source = record.edits.pending?.source else { return false }
        let newest = record.edits.held ?? record.ghost
        return (record.edits.wanted ?? (newest.object == nil ? 0 : newest.version)) > source
    }

    /// 404 about what was there before somebody made the object anew: an edit goes on in the new one, a removal was of
    /// the one that is gone.
    private mutating func editAnew(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        // No form has failed: the next change is made from a newer version.
        entity.record.edits.forgetRefusals()
        put(number, key, entity, .edits)
        guard isRemoval(entity.record.edits) else { return try goesAnew(number, key) }
        let held = entity.record.edits.held
        let edits = try takeBack(number, key)
        entity = try self.entity(number, key)
        entity.record.edits.forgetRefusals()
        if edits.later == .remove { entity.record.edits.later = nil }
        put(number, key, entity, .edits)
        // What is asked for comes later.
        let ghost = entity.record.ghost
        let next = edits.wanted == nil ? held ?? ghost : ghost
        try advance(number, key, to: next, by: Edits.gap(ghost.object, next.object))
    }

    /// 405, 440: not in this form. Next time it goes against the newest state we know; as a whole only when it was made
    /// from that very state, since `d` may overwrite what others did meanwhile, and after 405 only the last time.
    mutating func doesNotFit(_ number: Int, _ key: EntityKey, code: Int) throws(ClientError) {
        var entity = try entity(number, key)
        let source = entity.record.edits.pending?.source
        let held = entity.record.edits.held
        let isRemoval = isRemoval(entity.record.edits)
        let isRefusedRemoval = entity.record.edits.pending?.edit == .remove && entity.record.edits.later == nil
        let isNewest =
            held == nil && entity.record.edits.wanted == nil
            && (source == nil || source == entity.record.ghost.version)
        let attempts = isNewest ? entity.record.edits.attempts + 1 : 1
        guard attempts <= SyncLimits.attemptsMax else {
            _ = try takeBack(number, key)
            return try stall(number, key, code: code)
        }
        if isRemoval {
            _ = try takeBack(number, key)
            entity = try self.entity(number, key)
        }
        entity.record.edits.attempts = attempts
        // 405 on the newest version can hardly be, where a request that arrived twice is refused twice: the second
        // answer looks like one to the form that is on its way. So the whole, which may undo what others do meanwhile,
        // comes last.
        let isLast = attempts == SyncLimits.attemptsMax
        entity.record.edits.sendsWhole = isNewest && (code == ErrorCode.invalidDiff.rawValue || isLast)
        // A removal behind the edit was not refused itself: it names its version.
        if isRemoval, !isRefusedRemoval { entity.record.edits.forgetRefusals() }
        put(number, key, entity, .edits)
        // Our newest is not the server's: look again before anything is sent.
        if isNewest, code == ErrorCode.badVersion.rawValue { channels[number].needsWalk = true }
        guard isRemoval else { return try goesAnew(number, key) }
        if let held { try jump(number, key, to: held) }
        queue(number, key, try self.entity(number, key).record.edits)
    }

    /// Whether the object is to be removed: what was done to it before does not matter any more.
    private func isRemoval(_ edits: EditState) -> Bool { edits.pending?.edit == .remove || edits.later == .remove }

    /// The edit of a refused change is to go out once more, as an edit of `next`, or of the newest state that is known
    /// when it goes. What is asked for comes first: `jump` comes back here with it.
    mutating func goesAnew(_ number: Int, _ key: EntityKey, of next: Ghost? = nil) throws(ClientError) {
        channels[number].refusedWaiting.insert(key)
        var entity = try entity(number, key)
        guard entity.record.edits.wanted == nil else { return }
        let next = next ?? entity.record.edits.held
        let isRemoval = isRemoval(entity.record.edits)
        if isRemoval {
            try foldRemoval(number, key)
            entity = try self.entity(number, key)
        }
        entity.record.edits.held = nil
        put(number, key, entity, .edits)
        if let next {
            try advance(number, key, to: next, by: Edits.gap(entity.record.ghost.object, next.object))
        }
        if isRemoval { return queue(number, key, try self.entity(number, key).record.edits) }
        channels[number].resend.append(key)
    }

    /// A removal takes the place of the refused edit before it. It was not refused itself, so it names its version.
    private mutating func foldRemoval(_ number: Int, _ key: EntityKey) throws(ClientError) {
        _ = try takeBack(number, key)
        var entity = try entity(number, key)
        entity.record.edits.forgetRefusals()
        put(number, key, entity, .edits)
    }

    /// Sends what `goesAnew` has made ready.
    mutating func sendAnew(_ number: Int, _ key: EntityKey, _ pending: PendingChange) throws(ClientError) {
        let entity = try entity(number, key)
        guard entity.record.edits.wanted == nil else { return }
        // Made since it was refused.
        if isRemoval(entity.record.edits) {
            try foldRemoval(number, key)
            return queue(number, key, try self.entity(number, key).record.edits)
        }
        let whole = entity.record.edits.sendsWhole ? entity.base : nil
        // This server has said that it does not have it, whatever another one said before.
        var refused = pending
        (refused.appliedAt, refused.isConfirmed) = (nil, false)
        try sendForm(number, key, of: refused, whole: whole)
    }

    /// A change that carries the object as a whole undoes what was done to it since. So it goes again as it was only
    /// while nothing newer is known than what it was made from; otherwise its edit goes alone, as an edit of the state
    /// that it was carried to.
    mutating func sendWithoutWhole(_ number: Int, _ key: EntityKey, _ pending: PendingChange) throws(ClientError) {
        var entity = try entity(number, key)
        // No form has failed: the next one is made from a newer version.
        entity.record.edits.forgetRefusals()
        put(number, key, entity, .edits)
        try sendForm(number, key, of: pending, whole: nil)
    }

    /// Sends a change as an edit of today's ghost, under its own ccid: a server that has it says 409 (0082).
    private mutating func sendForm(
        _ number: Int, _ key: EntityKey, of pending: PendingChange, whole: JSONObject?
    ) throws(ClientError) {
        var entity = try entity(number, key)
        guard let edit = pending.edit else {
            // Nothing is left of it: what waits for its answer is the newest state.
            return try settle(number, key, at: entity.record.edits.held ?? entity.record.ghost)
        }
        let ghost = entity.record.ghost
        let source = ghost.object == nil ? nil : ghost.version
        let bytes = Messages.change(
            key: key, changeID: pending.changeID, edit: edit, source: source, whole: whole, isWhole: pending.isWhole)
        entity.record.edits.pending = PendingChange(
            changeID: pending.changeID, edit: edit, source: source, bytes: bytes, appliedAt: pending.appliedAt,
            isConfirmed: pending.isConfirmed)
        put(number, key, entity, .edits)
        sendsNewChange = true
        launch(number, key, bytes)
    }
}
