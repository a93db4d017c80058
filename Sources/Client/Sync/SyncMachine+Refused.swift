import ThicketProtocol

/// Changes that the server refused in the form in which they were sent: 404, 405 and 440.
///
/// A refused change was not applied, so its edit becomes an edit of the newest known state. It keeps its ccid, without
/// the edits made since, which follow separately: a server that was meanwhile restored to a state with the change
/// recognises it (409), where under a new ccid it would apply the edit a second time (0005).
extension SyncMachine {
    /// 404: the server does not have the object. An edit restores it as a whole; a removal is done.
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
        try rebaseAndResend(number, key, of: gone)
    }

    /// Whether the object is known to exist, or was requested, in a newer version than the one on which the refused
    /// change is based.
    ///
    /// Refusals are sent after all changes of their commit group, so also after changes that were decided later (0005).
    private func isMadeAnew(_ record: EntityRecord) -> Bool {
        guard let source = record.edits.pending?.source else { return false }
        let newest = record.edits.held ?? record.ghost
        return (record.edits.wanted ?? (newest.object == nil ? 0 : newest.version)) > source
    }

    /// 404 about an object that another client has recreated since: an edit continues in the new object; a removal
    /// applied to the old one.
    private mutating func editAnew(_ number: Int, _ key: EntityKey) throws(ClientError) {
        var entity = try entity(number, key)
        // The next change is based on a newer version, so earlier refusals do not count.
        entity.record.edits.forgetRefusals()
        put(number, key, entity, .edits)
        guard isRemoval(entity.record.edits) else { return try rebaseAndResend(number, key) }
        let held = entity.record.edits.held
        let edits = try takeBack(number, key)
        entity = try self.entity(number, key)
        entity.record.edits.forgetRefusals()
        if edits.later == .remove { entity.record.edits.later = nil }
        put(number, key, entity, .edits)
        // A requested state is applied when it arrives.
        let ghost = entity.record.ghost
        let next = edits.wanted == nil ? held ?? ghost : ghost
        try advance(number, key, to: next, by: Edits.gap(ghost.object, next.object))
    }

    /// 405, 440: the server does not accept this form. The next attempt is based on the newest known state. It carries
    /// the whole object only when the change was made from exactly that state, because `d` may overwrite changes of
    /// others, and after 405 only in the last attempt.
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
        // A 405 on the newest version is improbable, except when a request that arrived twice is refused twice: the
        // second answer then seems to concern the form in flight. So the whole object, which may undo changes of
        // others, comes last.
        let isLast = attempts == SyncLimits.attemptsMax
        entity.record.edits.sendsWhole = isNewest && (code == ErrorCode.invalidDiff.rawValue || isLast)
        // A removal after the edit was not itself refused: it names its version.
        if isRemoval, !isRefusedRemoval { entity.record.edits.forgetRefusals() }
        put(number, key, entity, .edits)
        // The newest local version is not the server's: scans the index before anything is sent.
        if isNewest, code == ErrorCode.badVersion.rawValue { channels[number].needsWalk = true }
        guard isRemoval else { return try rebaseAndResend(number, key) }
        if let held { try jump(number, key, to: held) }
        queue(number, key, try self.entity(number, key).record.edits)
    }

    /// Whether the object is to be removed, so that earlier edits of it do not matter any more.
    private func isRemoval(_ edits: EditState) -> Bool { edits.pending?.edit == .remove || edits.later == .remove }

    /// Sends the edit of a refused change again, as an edit of `next` or of the newest state known when it is sent. A
    /// requested state comes first: `jump` calls this again with it.
    mutating func rebaseAndResend(_ number: Int, _ key: EntityKey, of next: Ghost? = nil) throws(ClientError) {
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

    /// A removal replaces the refused edit before it. The removal itself was not refused, so it names its version.
    private mutating func foldRemoval(_ number: Int, _ key: EntityKey) throws(ClientError) {
        _ = try takeBack(number, key)
        var entity = try entity(number, key)
        entity.record.edits.forgetRefusals()
        put(number, key, entity, .edits)
    }

    /// Sends what `rebaseAndResend` has prepared.
    mutating func resendPending(_ number: Int, _ key: EntityKey, _ pending: PendingChange) throws(ClientError) {
        let entity = try entity(number, key)
        guard entity.record.edits.wanted == nil else { return }
        // A removal was made after the refusal.
        if isRemoval(entity.record.edits) {
            try foldRemoval(number, key)
            return queue(number, key, try self.entity(number, key).record.edits)
        }
        let whole = entity.record.edits.sendsWhole ? entity.base : nil
        // This server does not have the change, whatever another server reported before.
        var refused = pending
        (refused.appliedAt, refused.isConfirmed) = (nil, false)
        try sendForm(number, key, of: refused, whole: whole)
    }

    /// A change that carries the whole object undoes later changes. So it is resent unchanged only while nothing newer
    /// is known than the version on which it is based; otherwise only its edit is sent, based on the state onto which
    /// it was rebased.
    mutating func sendWithoutWhole(_ number: Int, _ key: EntityKey, _ pending: PendingChange) throws(ClientError) {
        var entity = try entity(number, key)
        // The next change is based on a newer version, so earlier refusals do not count.
        entity.record.edits.forgetRefusals()
        put(number, key, entity, .edits)
        try sendForm(number, key, of: pending, whole: nil)
    }

    /// Sends a change as an edit of the current ghost, under its own ccid: a server that has it answers 409 (0005).
    private mutating func sendForm(
        _ number: Int, _ key: EntityKey, of pending: PendingChange, whole: JSONObject?
    ) throws(ClientError) {
        var entity = try entity(number, key)
        guard let edit = pending.edit else {
            // The change has no effect any more, so the newest known state already equals its result.
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
        sendChange(number, key, bytes)
    }
}
