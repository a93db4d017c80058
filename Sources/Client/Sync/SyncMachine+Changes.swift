import ThicketProtocol

/// A change that the server applied, as received.
struct RemoteChange {
    enum Effect {
        /// nil: the diff could not be parsed.
        case modify(ObjectDiff?)
        case remove
    }

    let key: EntityKey
    let changeIDs: [String]
    let position: ChangeVersion?
    let effect: Effect
    /// nil or 0: the object is new.
    let source: Version?
    let end: Version
}

/// Changes from the server: acknowledgements of this client's changes, and foreign changes, which move the ghost under
/// the local edits.
extension SyncMachine {
    /// - Parameter movesPosition: everything before this change has arrived.
    mutating func applied(
        _ change: RemoteChange, on number: Int, movesPosition: Bool = true
    ) throws(ClientError) {
        var entity = try entity(number, change.key)
        if let walk = channels[number].record.walk, entity.record.walk != walk.id {
            entity.record.walk = walk.id
            put(number, change.key, entity, .marks)
        }
        if channels[number].sealing != nil {
            try appliedSealed(change, on: number)
        } else {
            try appliedOpen(change, entity, on: number)
        }
        // During a scan the position to store is that of its first page.
        guard movesPosition, let position = change.position, channels[number].record.walk == nil else {
            return
        }
        channels[number].record.changeVersion = position
        touchChannel(number)
    }

    private mutating func appliedOpen(
        _ change: RemoteChange, _ entity: Entity, on number: Int
    ) throws(ClientError) {
        let pending = entity.record.edits.pending?.changeID.text
        if let pending, change.changeIDs.contains(where: { $0.utf8.elementsEqual(pending.utf8) }) {
            clearInFlight(number, change.key)
            channels[number].retry.reset()
            if isSettled { backoff.reset() }
            try acknowledged(change, entity, on: number)
        } else {
            try foreign(change, entity, on: number)
        }
    }

    /// The state after a change of `newest`; nil when the change does not fit it.
    ///
    /// - Parameters:
    ///   - edit: the local edit of `newest`.
    ///   - made: the result of that edit; texts that the change edits in the same way are taken from it.
    private func state(
        after change: RemoteChange, of newest: Ghost, edit: Edit? = nil, made: JSONObject? = nil
    ) -> Ghost? {
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

    private mutating func foreign(_ change: RemoteChange, _ entity: Entity, on number: Int) throws(ClientError) {
        let edits = entity.record.edits
        let newest = edits.held ?? entity.record.ghost
        guard change.end > newest.version else { return }
        var isRemoval = false
        if case .remove = change.effect { isRemoval = true }
        if edits.wanted != nil, !isRemoval { return try want(number, change.key, change.end) }
        guard let next = state(after: change, of: newest) else {
            return try want(number, change.key, change.end)
        }
        if edits.held != nil || edits.wanted != nil { return try jump(number, change.key, to: next) }
        switch change.effect {
        case .remove: try advance(number, change.key, to: next, by: .remove)
        case .modify(let diff):
            let isDirect = newest.object == nil || (change.source ?? 0) != 0
            guard isDirect, let diff else { return try jump(number, change.key, to: next) }
            try advance(number, change.key, to: next, by: .modify(diff), step: step(change, from: newest))
        }
    }

    /// The change as a step from `ghost` to the resulting state; nil when it is not a step.
    private func step(_ change: RemoteChange, from ghost: Ghost) -> GhostStep? {
        guard case .modify(let diff?) = change.effect, (change.source ?? 0) != 0, ghost.object != nil else {
            return nil
        }
        return GhostStep(version: change.end, diff: diff)
    }

    /// This client's change, as the server applied it (rebased, if other changes came first).
    private mutating func acknowledged(
        _ change: RemoteChange, _ entity: Entity, on number: Int
    ) throws(ClientError) {
        let newest = entity.record.edits.held ?? entity.record.ghost
        if change.end <= newest.version { return try settle(number, change.key, at: newest) }
        var isRemoval = false
        if case .remove = change.effect { isRemoval = true }
        let edits = entity.record.edits
        let isOnGhost = edits.held == nil
        if edits.wanted == nil || isRemoval,
            let next = state(
                after: change, of: newest, edit: isOnGhost ? edits.pending?.edit : nil, made: entity.base)
        {
            return try settle(number, change.key, at: next, step: isOnGhost ? step(change, from: newest) : nil)
        }
        var entity = entity
        entity.record.edits.pending?.appliedAt = change.end
        put(number, change.key, entity, .edits)
        try want(number, change.key, change.end)
    }

    // MARK: - Moving the ghost

    /// Applies one foreign change that was made from the ghost: local edits are rebased over it, and it over them.
    ///
    /// With G the ghost, P pending, L later and R the change: P' = P rebased over R, L' = L rebased over (R rebased
    /// over P); the app sees R rebased over P and then over L.
    ///
    /// - Parameter step: the change, when it leads exactly from the ghost to `next`.
    mutating func advance(
        _ number: Int, _ key: EntityKey, to next: Ghost, by change: Edit?, step: GhostStep? = nil
    ) throws(ClientError) {
        var entity = try entity(number, key)
        let before = entity.local
        let edits = entity.record.edits
        var seen = change
        if edits.hasEdits {
            do {
                let ghost = entity.record.ghost.object
                let known = entity.base
                var beyondPending = try Edits.yield(change, to: edits.pending?.edit, base: ghost)
                entity.record.edits.pending?.edit = try Edits.carry(edits.pending?.edit, over: change, base: ghost)
                let isLess = sparePending(&entity, at: next)
                entity.base = try Edits.apply(entity.record.edits.pending?.edit, to: next.object)
                if isLess { beyondPending = Edits.gap(known, entity.base) }
                entity.record.edits.later = try Edits.carry(edits.later, over: beyondPending, base: known)
                spareLater(&entity)
                seen = try Edits.yield(beyondPending, to: edits.later, base: known)
                entity.local = try Edits.apply(entity.record.edits.later, to: entity.base)
                tellGaveWay(
                    number, key, edits, over: change, ghost: ghost, next: next.object, local: entity.local)
            } catch {
                keepWhole(&entity, edits, next)
                seen = Edits.between(before, entity.local)
            }
        } else {
            entity.base = next.object
            entity.local = next.object
        }
        entity.record.ghost = next
        let isExact = step != nil && !edits.hasEdits
        let outcome = Outcome(before: before, seen: seen, isExact: isExact, step: step)
        finish(number, key, &entity, outcome, parts: edits.hasEdits ? [.ghost, .edits] : .ghost)
    }

    /// Removes from a pending edit that replaces the whole object the values that others have set to the same result.
    ///
    /// - Parameter entity: with the pending edit rebased onto `next`, and everything else as before.
    /// - Returns: whether anything was removed.
    private func sparePending(_ entity: inout Entity, at next: Ghost) -> Bool {
        guard let pending = entity.record.edits.pending, pending.isWhole else { return false }
        entity.wanted.pending = entity.wanted.pending ?? entity.base
        guard let rest = Edits.sparing(pending.edit, of: next.object, wanted: entity.wanted.pending) else {
            return false
        }
        entity.record.edits.pending?.edit = rest
        return true
    }

    /// As above, for the later edits, which were rebased onto `entity.base`, while `entity.local` is as before.
    private func spareLater(_ entity: inout Entity) {
        guard entity.record.edits.isWhole else { return }
        entity.wanted.later = entity.wanted.later ?? entity.local
        guard
            let rest = Edits.sparing(entity.record.edits.later, of: entity.base, wanted: entity.wanted.later)
        else { return }
        entity.record.edits.later = rest
    }

    /// The pending change is included in `target`: later edits are rebased over all differences that do not come from
    /// this client.
    ///
    /// - Parameter step: the step that leads exactly from the ghost to `target`.
    mutating func settle(
        _ number: Int, _ key: EntityKey, at target: Ghost, step: GhostStep? = nil
    ) throws(ClientError) {
        if channels[number].sealing != nil { return try settleSealed(number, key) }
        var entity = try entity(number, key)
        let before = entity.local
        let edits = entity.record.edits
        let difference = entity.base == target.object ? nil : Edits.gap(entity.base, target.object)
        var seen = difference
        if difference != nil {
            do {
                let move = step.map { (step: GhostStep) in
                    Edits.Move(made: edits.pending?.edit, applied: step.diff, ghost: entity.record.ghost.object)
                }
                let known = entity.base
                entity.record.edits.later = try Edits.settle(edits.later, over: difference, as: move, base: known)
                entity.base = target.object
                spareLater(&entity)
                entity.local = try Edits.apply(entity.record.edits.later, to: target.object)
                seen = try Edits.yield(difference, to: edits.later, base: known)
            } catch {
                keepWhole(&entity, edits, target)
                seen = Edits.between(before, entity.local)
            }
        }
        entity.record.edits.pending = nil
        entity.wanted.pending = nil
        entity.record.edits.held = nil
        entity.record.edits.forgetRefusals()
        if let wanted = entity.record.edits.wanted, wanted <= target.version {
            entity.record.edits.wanted = nil
        }
        entity.record.ghost = target
        entity.base = target.object
        // The values are equal, but the members may be in another order.
        if entity.record.edits.later == nil { entity.local = target.object }
        finish(number, key, &entity, Outcome(before: before, seen: seen, step: step), parts: [.ghost, .edits])
    }

    /// The server's state is known at a version to which no known steps lead from the ghost.
    mutating func jump(_ number: Int, _ key: EntityKey, to next: Ghost) throws(ClientError) {
        var entity = try entity(number, key)
        if let wanted = entity.record.edits.wanted {
            if wanted > next.version, next.object != nil { return }
            entity.record.edits.wanted = nil
            put(number, key, entity, .edits)
            // In a sealed bucket, the change in flight has waited for this state.
            if channels[number].sealing != nil, entity.record.edits.pending != nil,
                channels[number].inFlight[key] == nil
            {
                channels[number].resend.append(key)
            }
        }
        if channels[number].sealing != nil { return try jumpSealed(number, key, to: next) }
        // The ghost was confirmed by a store that may differ from this one.
        if entity.record.ghost.isUnproven { return try rebaseOnUnprovenGhost(number, key, next) }
        guard let pending = entity.record.edits.pending else {
            let change = Edits.gap(entity.record.ghost.object, next.object)
            return try advance(number, key, to: next, by: change)
        }
        if pending.isConfirmed || pending.appliedAt.map({ $0 <= next.version }) ?? false {
            return try settle(number, key, at: next)
        }
        if channels[number].refusedWaiting.contains(key) { return try rebaseAndResend(number, key, of: next) }
        entity.record.edits.held = next
        put(number, key, entity, .edits)
    }

    /// Last resort when edits cannot be rebased: what the user sees is kept as a replacement of the whole object.
    private func keepWhole(_ entity: inout Entity, _ edits: EditState, _ next: Ghost) {
        entity.record.edits = edits
        entity.record.edits.pending?.edit = nil
        entity.record.edits.later = Edits.between(next.object, entity.local)
        entity.base = next.object
    }

    /// The effect of moving the ghost on what the app sees.
    private struct Outcome {
        let before: JSONObject?
        let seen: Edit?
        /// `seen` is known to lead exactly from `before` to the current state.
        var isExact = false
        let step: GhostStep?
    }

    private mutating func finish(
        _ number: Int, _ key: EntityKey, _ entity: inout Entity, _ outcome: Outcome, parts: EntityParts
    ) {
        if !entity.record.edits.hasEdits {
            entity.record.edits.refusal = nil
            entity.record.edits.forgetRefusals()
        }
        put(number, key, entity, parts, ghostStep: outcome.step)
        queue(number, key, entity.record.edits)
        guard isHeard(channels[number].record.name) else { return revision += 1 }
        let before = outcome.before
        guard before != entity.local else { return }
        // Editors apply the reported difference, so it must lead exactly to the current state.
        let isExact = outcome.isExact || (try? Edits.apply(outcome.seen, to: before)) == .some(entity.local)
        guard let exact = isExact ? outcome.seen : Edits.between(before, entity.local) else { return }
        tell(number, key, before: before, after: entity.local, by: exact, .remote)
    }

    // MARK: - Reloading

    /// Requests the object as of `version`, because a change did not fit the ghost.
    mutating func want(_ number: Int, _ key: EntityKey, _ version: Version) throws(ClientError) {
        var entity = try entity(number, key)
        entity.record.edits.wanted = max(entity.record.edits.wanted ?? 0, version)
        put(number, key, entity, .edits)
        if channels[number].reloads[key] == nil { channels[number].reloadQueue.append(key) }
    }

    /// An `e` answer: part of a reload, or a version requested for the history.
    mutating func received(entity value: JSONObject?, key: EntityKey, version: Version, on number: Int)
        throws(ClientError)
    {
        let fetched = try clearVersion(of: value, key, on: number)
        actions.append(.fetched(address(number, key), version, fetched))
        guard channels[number].reloads.removeValue(forKey: key) != nil else { return }
        guard let wanted = try entity(number, key).record.edits.wanted else { return }
        guard version >= wanted else { return channels[number].reloadQueue.append(key) }
        guard let value else {
            // Not the requested version: the app is reading the history.
            guard version == wanted else { return channels[number].reloadQueue.append(key) }
            // The version is not kept any more, or the object was removed since: only the index shows which.
            channels[number].needsWalk = true
            try wantNoMore(number, key)
            return
        }
        try jump(number, key, to: Ghost(version: version, object: value))
        queue(number, key, try entity(number, key).record.edits)
    }
}
