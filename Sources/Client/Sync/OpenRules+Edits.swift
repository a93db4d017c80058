import ThicketProtocol
import ThicketSealed

/// The app's edits, and their way to the server.
extension OpenRules {
    static func add(
        _ bucket: inout BucketMachine, _ edit: Edit, _ key: EntityKey, name: String, isWhole: Bool,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        try checkOpen(bucket.address(key), &turn)
        let known = try bucket.entity(key, &turn)
        let (before, after) = (known.record.edits, try compose(edit, known, isWhole: isWhole))
        try bucket.withEntity(key, &turn) { entity, done in
            (done.parts, done.laterStep) = (.edits, laterStep(edit, from: before, to: after.edits))
            entity.wanted.later = nil
            (entity.record.edits, entity.local) = (after.edits, after.local)
        }
        if after.edits.isWaiting { bucket.outbox.ready.append(key) }
        bucket.report(key, before: known.local, after: after.local, by: edit, .local, &turn)
    }

    /// - Throws: `misfit` when the edit does not fit the object.
    private static func compose(
        _ edit: Edit, _ known: LocalEntity, isWhole: Bool
    ) throws(ClientError) -> (edits: EditState, local: JSONObject?) {
        var edits = known.record.edits
        let local: JSONObject?
        do {
            local = try Edits.apply(edit, to: known.local)
            let isAllWhole = isWhole && (edits.later == nil || edits.isWhole)
            edits.later = try Edits.compose(edits.later, edit, base: known.base)
            edits.isWhole = isAllWhole && edits.later != nil
        } catch {
            throw ClientError(.misfit, "the edit does not fit the object: \(error)")
        }
        if edits.refusal != nil { edits.forgetRefusal() }
        return (edits, local)
    }

    static func retryRefused(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try bucket.withEntity(key, .edits, &turn) { $0.record.edits.forgetRefusal() }
        queue(&bucket, key, &turn)
    }

    static func discard(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        let (before, after) = try bucket.withEntity(key, [.ghost, .edits], &turn) { entity in
            let before = entity.local
            entity.record.ghost = entity.newest
            entity.record.edits = EditState()
            entity.base = entity.record.ghost.object
            entity.local = entity.record.ghost.object
            return (before, entity.local)
        }
        guard let change = Edits.between(before, after) else { return }
        bucket.report(key, before: before, after: after, by: change, .local, &turn)
    }

    /// The edit, if nothing else happened than composing it with the earlier edits.
    private static func laterStep(_ edit: Edit, from before: EditState, to after: EditState) -> ObjectDiff? {
        guard case .modify(let diff) = edit, case .modify? = after.later, before.hasEdits, before.later != .remove,
            before.refusal == nil, before.isWhole == after.isWhole
        else { return nil }
        return diff
    }

    /// In an open bucket, nothing unsealed may overwrite a sealed object.
    private static func checkOpen(_ address: EntityAddress, _ turn: inout SyncTurn) throws(ClientError) {
        guard let ghost = turn.entities[address]?.record.ghost.object,
            SealedEntity.looksSealed(ghost)
        else { return }
        throw ClientError(.sealed, "the object is sealed: open the bucket with its secret")
    }

    static func sendNew(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        let edits = entity.record.edits
        guard edits.pending == nil, edits.wanted == nil, edits.refusal == nil, let edit = edits.later else {
            return
        }
        let ghost = entity.record.ghost
        guard ghost.object != nil || edit != .remove else {
            return try bucket.withEntity(key, .edits, &turn) { $0.record.edits.later = nil }
        }
        let text = hexText(turn.random.next()) + hexText(turn.random.next())
        guard let changeID = try? ChangeID(text) else { return }
        // A removal names its version, so that it cannot hit an object that another client recreated. If it was refused
        // because of an edit in between, the removal prevails and is sent without a version.
        let namesVersion = ghost.object != nil && !(edit == .remove && edits.attempts > 0)
        let source = namesVersion ? ghost.version : nil
        let bytes = Messages.change(
            key: key, changeID: changeID, edit: edit, source: source, whole: edits.sendsWhole ? entity.local : nil,
            isWhole: edits.isWhole)
        try bucket.withEntity(key, .edits, &turn) { entity in
            entity.record.edits.pending = PendingChange(changeID: changeID, edit: edit, source: source, bytes: bytes)
            entity.record.edits.later = nil
            entity.base = entity.local
            entity.wanted = LocalEntity.Wanted()
        }
        turn.sendsNewChange = true
        bucket.sendChange(key, bytes, &turn)
    }

    /// Whether nothing is known that is newer than the version on which the change is based.
    private static func isNewest(_ record: EntityRecord, _ source: Version?) -> Bool {
        let isOnGhost = source == (record.ghost.object == nil ? nil : record.ghost.version)
        return isOnGhost && record.edits.held == nil && record.edits.wanted == nil
    }

    static func queue(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn) {
        guard turn.entities[bucket.address(key)]?.record.edits.isWaiting == true else { return }
        bucket.outbox.ready.append(key)
    }

    static func resend(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ pending: PendingChange, _ turn: inout SyncTurn
    ) throws(ClientError) {
        if bucket.outbox.refusedWaiting.contains(key) || pending.bytes.isEmpty {
            return try resendPending(&bucket, key, pending, &turn)
        }
        let record = try bucket.entity(key, &turn).record
        guard isNewest(record, pending.source) || !Messages.hasWhole(pending.bytes) else {
            return try sendWithoutWhole(&bucket, key, pending, &turn)
        }
        bucket.sendChange(key, pending.bytes, &turn)
    }

    static func refused(
        _ bucket: inout BucketMachine, _ key: EntityKey, code: Int, _ turn: inout SyncTurn
    ) throws(ClientError) {
        switch ErrorCode(rawValue: code) {
        case .duplicateChange: try isInside(&bucket, key, &turn)
        case .emptyChange: try saysNothing(&bucket, key, &turn)
        case .notFound: try notThere(&bucket, key, &turn)
        case .badVersion, .invalidDiff: try doesNotFit(&bucket, key, code: code, &turn)
        default: try giveUp(&bucket, key, code: code, &turn)
        }
    }

    /// 409: the server has the change. Its version is known only if a newer ghost is held.
    private static func isInside(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let edits = try bucket.entity(key, &turn).record.edits
        if let held = edits.held, edits.wanted == nil { return try confirm(&bucket, key, at: held, &turn) }
        try bucket.withEntity(key, .edits, &turn) { $0.record.edits.pending?.isConfirmed = true }
        bucket.scan.isNeeded = true
    }

    /// 412: the object already equals the change's result.
    private static func saysNothing(_ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let known = try bucket.entity(key, &turn)
        let edits = known.record.edits
        if edits.wanted != nil { return try isInside(&bucket, key, &turn) }
        var target = known.newest
        // A removal without effect: the object is gone, and the message about that is still to come. A held newer state
        // is more recent than that.
        if edits.pending?.edit == .remove, edits.held == nil { target.object = nil }
        try confirm(&bucket, key, at: target, &turn)
    }

    /// 400, 413 and unknown codes: sending the same change again would fail again.
    private static func giveUp(_ bucket: inout BucketMachine, _ key: EntityKey, code: Int, _ turn: inout SyncTurn)
        throws(ClientError)
    {
        let held = try bucket.entity(key, &turn).record.edits.held
        try unsendPending(&bucket, key, &turn)
        if let held { try bucket.jump(key, to: held, &turn) }
        try bucket.stall(key, code: code, &turn)
    }

    /// Turns a change that was certainly not applied back into an unsent edit, together with the later edits.
    ///
    /// - Parameter change: changes the result further.
    /// - Returns: the result.
    @discardableResult
    static func unsendPending(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ turn: inout SyncTurn,
        _ change: (inout EditState) -> Void = { _ in }
    ) throws(ClientError) -> EditState {
        try bucket.withEntity(key, .edits, &turn) { entity in
            entity.unsendPending()
            change(&entity.record.edits)
            return entity.record.edits
        }
    }
}
