import ThicketProtocol

/// Changes that the server refused in the form in which they were sent: 404, 405 and 440.
///
/// A refused change was not applied, so its edit becomes an edit of the newest known state. It keeps its ccid, without
/// the edits made since, which follow separately: a server that was meanwhile restored to a state with the change
/// recognises it (409), where under a new ccid it would apply the edit a second time (0005).
extension OpenRules {
    /// 404: the server does not have the object. An edit restores it as a whole; a removal is done.
    static func notThere(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        let edits = entity.record.edits
        if isRecreated(entity.record) { return try editRecreated(&bucket, key, &turn) }
        let gone = Ghost(version: entity.newest.version, object: nil)
        if edits.pending?.edit == .remove { return try confirm(&bucket, key, at: gone, &turn) }
        guard !isRemoval(edits), edits.attempts < SyncLimits.attemptsMax else {
            try unsendPending(&bucket, key, &turn)
            try bucket.jump(key, to: gone, &turn)
            if isRemoval(edits) { return queue(&bucket, key, &turn) }
            return try bucket.stall(key, code: ErrorCode.notFound.rawValue, &turn)
        }
        try bucket.withEntity(key, .edits, &turn) { entity in
            entity.record.edits.attempts += 1
            entity.record.edits.wanted = nil
        }
        try rebaseAndResend(&bucket, key, of: gone, &turn)
    }

    /// Whether the object is known to exist, or was requested, in a newer version than the one on which the refused
    /// change is based.
    ///
    /// Refusals are sent after all changes of their commit group, so also after changes that were decided later (0005).
    private static func isRecreated(_ record: EntityRecord) -> Bool {
        guard let source = record.edits.pending?.source else { return false }
        let newest = record.edits.held ?? record.ghost
        return (record.edits.wanted ?? (newest.object == nil ? 0 : newest.version)) > source
    }

    /// 404 about an object that another client has recreated since: an edit continues in the new object; a removal
    /// applied to the old one.
    private static func editRecreated(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let (edits, ghost) = try bucket.withEntity(key, .edits, &turn) { entity in
            // The next change is based on a newer version, so earlier refusals do not count.
            entity.record.edits.forgetRefusals()
            return (entity.record.edits, entity.record.ghost)
        }
        guard isRemoval(edits) else { return try rebaseAndResend(&bucket, key, &turn) }
        try unsendPending(&bucket, key, &turn) { edits in
            edits.forgetRefusals()
            if edits.later == .remove { edits.later = nil }
        }
        // A requested state is applied when it arrives.
        let next = edits.wanted == nil ? edits.held ?? ghost : ghost
        try advance(&bucket, key, to: next, by: Edits.gap(ghost.object, next.object), &turn)
    }

    /// 405, 440: the server does not accept this form. The next attempt is based on the newest known state. It carries
    /// the whole object only when the change was made from exactly that state, because `d` may overwrite changes of
    /// others, and after 405 only in the last attempt.
    static func doesNotFit(_ bucket: inout BucketMachine, _ key: EntityKey, code: Int, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let record = try bucket.entity(key, &turn).record
        let edits = record.edits
        let source = edits.pending?.source
        let isRemoval = isRemoval(edits)
        let isRefusedRemoval = edits.pending?.edit == .remove && edits.later == nil
        let isNewest =
            edits.held == nil && edits.wanted == nil && (source == nil || source == record.ghost.version)
        let attempts = isNewest ? edits.attempts + 1 : 1
        guard attempts <= SyncLimits.attemptsMax else {
            try unsendPending(&bucket, key, &turn)
            return try bucket.stall(key, code: code, &turn)
        }
        // A 405 on the newest version is improbable, except when a request that arrived twice is refused twice: the
        // second answer then seems to concern the form in flight. So the whole object, which may undo changes of
        // others, comes last.
        let isLast = attempts == SyncLimits.attemptsMax
        try bucket.withEntity(key, .edits, &turn) { entity in
            if isRemoval { entity.unsendPending() }
            entity.record.edits.attempts = attempts
            entity.record.edits.sendsWhole = isNewest && (code == ErrorCode.invalidDiff.rawValue || isLast)
            // A removal after the edit was not itself refused: it names its version.
            if isRemoval, !isRefusedRemoval { entity.record.edits.forgetRefusals() }
        }
        // The newest local version is not the server's: scans the index before anything is sent.
        if isNewest, code == ErrorCode.badVersion.rawValue { bucket.scan.isNeeded = true }
        guard isRemoval else { return try rebaseAndResend(&bucket, key, &turn) }
        if let held = edits.held { try bucket.jump(key, to: held, &turn) }
        queue(&bucket, key, &turn)
    }

    /// Whether the object is to be removed, so that earlier edits of it do not matter any more.
    private static func isRemoval(_ edits: EditState) -> Bool {
        edits.pending?.edit == .remove || edits.later == .remove
    }

    /// Sends the edit of a refused change again, as an edit of `next` or of the newest state known when it is sent. A
    /// requested state comes first: `jump` calls this again with it.
    static func rebaseAndResend(
        _ bucket: inout BucketMachine, _ key: EntityKey, of next: Ghost? = nil, _ turn: inout SyncTurn
    ) throws(ClientError) {
        bucket.outbox.refusedWaiting.insert(key)
        let record = try bucket.entity(key, &turn).record
        guard record.edits.wanted == nil else { return }
        let next = next ?? record.edits.held
        let isRemoval = isRemoval(record.edits)
        if isRemoval { try foldRemoval(&bucket, key, &turn) }
        try bucket.withEntity(key, .edits, &turn) { $0.record.edits.held = nil }
        if let next {
            try advance(&bucket, key, to: next, by: Edits.gap(record.ghost.object, next.object), &turn)
        }
        if isRemoval { return queue(&bucket, key, &turn) }
        bucket.outbox.resend.append(key)
    }

    /// A removal replaces the refused edit before it. The removal itself was not refused, so it names its version.
    private static func foldRemoval(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        try unsendPending(&bucket, key, &turn) { $0.forgetRefusals() }
    }

    /// Sends what `rebaseAndResend` has prepared.
    static func resendPending(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ pending: PendingChange, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard entity.record.edits.wanted == nil else { return }
        // A removal was made after the refusal.
        if isRemoval(entity.record.edits) {
            try foldRemoval(&bucket, key, &turn)
            return queue(&bucket, key, &turn)
        }
        let whole = entity.record.edits.sendsWhole ? entity.base : nil
        // This server does not have the change, whatever another server reported before.
        var refused = pending
        (refused.appliedAt, refused.isConfirmed) = (nil, false)
        try sendForm(&bucket, key, of: refused, whole: whole, &turn)
    }

    /// A change that carries the whole object undoes later changes. So it is resent unchanged only while nothing newer
    /// is known than the version on which it is based; otherwise only its edit is sent, based on the state onto which
    /// it was rebased.
    static func sendWithoutWhole(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ pending: PendingChange, _ turn: inout SyncTurn
    ) throws(ClientError) {
        // The next change is based on a newer version, so earlier refusals do not count.
        try bucket.withEntity(key, .edits, &turn) { $0.record.edits.forgetRefusals() }
        try sendForm(&bucket, key, of: pending, whole: nil, &turn)
    }

    /// Sends a change as an edit of the current ghost, under its own ccid: a server that has it answers 409 (0005).
    private static func sendForm(
        _ bucket: inout BucketMachine, _ key: EntityKey, of pending: PendingChange, whole: JSONObject?,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        guard let edit = pending.edit else {
            // The change has no effect any more, so the newest known state already equals its result.
            return try confirm(&bucket, key, at: entity.newest, &turn)
        }
        let ghost = entity.record.ghost
        let source = ghost.object == nil ? nil : ghost.version
        let bytes = Messages.change(
            key: key, changeID: pending.changeID, edit: edit, source: source, whole: whole, isWhole: pending.isWhole)
        try bucket.withEntity(key, .edits, &turn) { entity in
            entity.record.edits.pending = PendingChange(
                changeID: pending.changeID, edit: edit, source: source, bytes: bytes, appliedAt: pending.appliedAt,
                isConfirmed: pending.isConfirmed)
        }
        turn.sendsNewChange = true
        bucket.sendChange(key, bytes, &turn)
    }
}
