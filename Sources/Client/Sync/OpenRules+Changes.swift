import ThicketProtocol

/// Changes from the server: acknowledgements of this client's changes, and foreign changes, which move the ghost under
/// the local edits.
extension OpenRules {
    static func applied(
        _ bucket: inout BucketMachine, _ change: RemoteChange, _ entity: LocalEntity, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let pending = entity.record.edits.pending?.changeID.text
        if let pending, change.changeIDs.contains(where: { $0.utf8.elementsEqual(pending.utf8) }) {
            bucket.acknowledged(change.key, &turn)
            try acknowledged(&bucket, change, entity, &turn)
        } else {
            try foreign(&bucket, change, entity, &turn)
        }
    }

    /// The state after a change of `newest`; nil when the change does not fit it.
    ///
    /// - Parameters:
    ///   - edit: the local edit of `newest`.
    ///   - made: the result of that edit; texts that the change edits in the same way are taken from it.
    private static func state(after change: RemoteChange, of newest: Ghost, edit: Edit? = nil, made: JSONObject? = nil)
        -> Ghost?
    {
        switch change.effect {
        case .remove: return Ghost(version: change.end, object: nil)
        case .modify(nil): return nil
        case .modify(let diff?):
            let isNew = (change.source ?? 0) == 0
            guard isNew || (change.source == newest.version && newest.object != nil) else { return nil }
            let base = isNew ? JSONObject() : newest.object ?? JSONObject()
            var mine: ObjectDiff?
            if !isNew, case .modify(let known)? = edit { mine = known }
            guard let object = try? Edits.apply(diff, to: base, alike: mine, made: made) else { return nil }
            return Ghost(version: change.end, object: object)
        }
    }

    private static func foreign(
        _ bucket: inout BucketMachine, _ change: RemoteChange, _ entity: LocalEntity, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let edits = entity.record.edits
        let newest = edits.held ?? entity.record.ghost
        guard change.end > newest.version else { return }
        var isRemoval = false
        if case .remove = change.effect { isRemoval = true }
        if edits.wanted != nil, !isRemoval { return try bucket.want(change.key, change.end, &turn) }
        guard let next = state(after: change, of: newest) else {
            return try bucket.want(change.key, change.end, &turn)
        }
        if edits.held != nil || edits.wanted != nil { return try bucket.jump(change.key, to: next, &turn) }
        switch change.effect {
        case .remove: try advance(&bucket, change.key, to: next, by: .remove, &turn)
        case .modify(let diff):
            let isDirect = newest.object == nil || (change.source ?? 0) != 0
            guard isDirect, let diff else { return try bucket.jump(change.key, to: next, &turn) }
            try advance(&bucket, change.key, to: next, by: .modify(diff), step: step(change, from: newest), &turn)
        }
    }

    /// The change as a step from `ghost` to the resulting state; nil when it is not a step.
    private static func step(_ change: RemoteChange, from ghost: Ghost) -> GhostStep? {
        guard case .modify(let diff?) = change.effect, (change.source ?? 0) != 0, ghost.object != nil else {
            return nil
        }
        return GhostStep(version: change.end, diff: diff)
    }

    /// This client's change, as the server applied it (rebased, if other changes came first).
    private static func acknowledged(
        _ bucket: inout BucketMachine, _ change: RemoteChange, _ entity: LocalEntity, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let newest = entity.newest
        if change.end <= newest.version { return try confirm(&bucket, change.key, at: newest, &turn) }
        var isRemoval = false
        if case .remove = change.effect { isRemoval = true }
        let edits = entity.record.edits
        let isOnGhost = edits.held == nil
        if edits.wanted == nil || isRemoval,
            let next = state(after: change, of: newest, edit: isOnGhost ? edits.pending?.edit : nil, made: entity.base)
        {
            return try confirm(&bucket, change.key, at: next, step: isOnGhost ? step(change, from: newest) : nil, &turn)
        }
        try bucket.withEntity(change.key, .edits, &turn) { $0.record.edits.pending?.appliedAt = change.end }
        try bucket.want(change.key, change.end, &turn)
    }

    /// Moves the ghost by one foreign change that was made from it (`LocalEntity.advance`).
    ///
    /// - Parameter step: the change, when it leads exactly from the ghost to `next`.
    static func advance(
        _ bucket: inout BucketMachine, _ key: EntityKey, to next: Ghost, by change: Edit?, step: GhostStep? = nil,
        _ turn: inout SyncTurn
    ) throws(ClientError) {
        let seen = try bucket.withEntity(key, &turn) { entity, done in
            (done.parts, done.ghostStep) = (entity.record.edits.hasEdits ? [.ghost, .edits] : .ghost, step)
            return entity.advance(to: next, by: change, isStep: step != nil)
        }
        if let known = seen.merged {
            reportGaveWay(
                &bucket, key, known.edits, over: change, ghost: known.ghost.object, next: next.object,
                local: seen.after, &turn)
        }
        report(&bucket, key, seen, &turn)
    }

    static func confirm(
        _ bucket: inout BucketMachine, _ key: EntityKey, at target: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError) {
        try confirm(&bucket, key, at: target, step: nil, &turn)
    }

    /// - Parameter step: the step that leads exactly from the ghost to `target`.
    private static func confirm(
        _ bucket: inout BucketMachine, _ key: EntityKey, at target: Ghost, step: GhostStep?, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let seen = try bucket.withEntity(key, &turn) { entity, done in
            (done.parts, done.ghostStep) = ([.ghost, .edits], step)
            return entity.confirm(at: target, step: step)
        }
        report(&bucket, key, seen, &turn)
    }

    static func jump(
        _ bucket: inout BucketMachine, _ key: EntityKey, to next: Ghost, _ turn: inout SyncTurn
    ) throws(ClientError) {
        let entity = try bucket.entity(key, &turn)
        // The ghost was confirmed by a store that may differ from this one.
        if entity.record.ghost.isUnproven { return try rebaseOnUnprovenGhost(&bucket, key, next, &turn) }
        guard let pending = entity.record.edits.pending else {
            let change = Edits.gap(entity.record.ghost.object, next.object)
            return try advance(&bucket, key, to: next, by: change, &turn)
        }
        if pending.isConfirmed || pending.appliedAt.map({ $0 <= next.version }) ?? false {
            return try confirm(&bucket, key, at: next, &turn)
        }
        if bucket.outbox.refusedWaiting.contains(key) { return try rebaseAndResend(&bucket, key, of: next, &turn) }
        try bucket.withEntity(key, .edits, &turn) { $0.record.edits.held = next }
    }

    /// Queues what the move of the ghost has left, and reports the move.
    private static func report(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ seen: LocalEntity.Seen, _ turn: inout SyncTurn
    ) {
        if seen.isWaiting { bucket.outbox.ready.append(key) }
        guard turn.hasReader(bucket.record.name) else { return turn.revision += 1 }
        guard let change = seen.exactChange else { return }
        bucket.report(key, before: seen.before, after: seen.after, by: change, .remote, &turn)
    }
}
