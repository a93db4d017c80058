import ThicketProtocol

/// Moves of an open object's ghost under its local edits.
extension LocalEntity {
    /// The effect of moving the ghost on what the app sees.
    struct Seen {
        let before: JSONObject?
        var after: JSONObject?
        var change: Edit?
        /// `change` is known to lead exactly from `before` to `after`.
        var isExact = false
        /// The record before the move, if its edits were rebased and not kept as a whole.
        var merged: EntityRecord?
        /// Edits wait to become a change.
        var isWaiting = false

        /// The change; nil when nothing changed. Editors apply it, so it must lead exactly to the current state.
        var exactChange: Edit? {
            guard before != after else { return nil }
            let isExact = isExact || (try? Edits.apply(change, to: before)) == .some(after)
            return isExact ? change : Edits.between(before, after)
        }
    }

    /// Applies one foreign change that was made from the ghost: local edits are rebased over it, and it over them.
    ///
    /// With G the ghost, P pending, L later and R the change: P' = P rebased over R, L' = L rebased over (R rebased
    /// over P); the app sees R rebased over P and then over L.
    ///
    /// - Parameter isStep: the change leads exactly from the ghost to `next`.
    mutating func advance(to next: Ghost, by change: Edit?, isStep: Bool) -> Seen {
        let edits = record.edits
        var seen = Seen(before: local, change: change, isExact: isStep && !edits.hasEdits)
        if edits.hasEdits {
            do {
                let known = record
                seen.change = try rebase(over: change, at: next)
                seen.merged = known
            } catch {
                keepWhole(edits, next)
                seen.change = Edits.between(seen.before, local)
            }
        } else {
            base = next.object
            local = next.object
        }
        record.ghost = next
        return finished(seen)
    }

    /// - Returns: the change, as it changes what the app sees.
    private mutating func rebase(over change: Edit?, at next: Ghost) throws(DiffError) -> Edit? {
        let edits = record.edits
        let (ghost, known) = (record.ghost.object, base)
        var beyondPending = try Edits.yield(change, to: edits.pending?.edit, base: ghost)
        record.edits.pending?.edit = try Edits.carry(edits.pending?.edit, over: change, base: ghost)
        let isLess = sparePending(at: next)
        base = try Edits.apply(record.edits.pending?.edit, to: next.object)
        if isLess { beyondPending = Edits.gap(known, base) }
        record.edits.later = try Edits.carry(edits.later, over: beyondPending, base: known)
        spareLater()
        let seen = try Edits.yield(beyondPending, to: edits.later, base: known)
        local = try Edits.apply(record.edits.later, to: base)
        return seen
    }

    /// The pending change is included in `target`: later edits are rebased over all differences that do not come from
    /// this client.
    ///
    /// - Parameter step: the step that leads exactly from the ghost to `target`.
    mutating func confirm(at target: Ghost, step: GhostStep?) -> Seen {
        let edits = record.edits
        let difference = base == target.object ? nil : Edits.gap(base, target.object)
        var seen = Seen(before: local, change: difference)
        if difference != nil {
            do {
                seen.change = try rebaseLater(over: difference, at: target, step)
            } catch {
                keepWhole(edits, target)
                seen.change = Edits.between(seen.before, local)
            }
        }
        record.edits.pending = nil
        wanted.pending = nil
        record.edits.held = nil
        record.edits.forgetRefusals()
        if let wanted = record.edits.wanted, wanted <= target.version { record.edits.wanted = nil }
        record.ghost = target
        base = target.object
        // The values are equal, but the members may be in another order.
        if record.edits.later == nil { local = target.object }
        return finished(seen)
    }

    /// - Returns: the difference, as it changes what the app sees.
    private mutating func rebaseLater(
        over difference: Edit?, at target: Ghost, _ step: GhostStep?
    ) throws(DiffError) -> Edit? {
        let edits = record.edits
        let known = base
        let move = step.map { step in
            Edits.Move(made: edits.pending?.edit, applied: step.diff, ghost: record.ghost.object)
        }
        record.edits.later = try Edits.rebase(edits.later, over: difference, as: move, base: known)
        base = target.object
        spareLater()
        local = try Edits.apply(record.edits.later, to: target.object)
        return try Edits.yield(difference, to: edits.later, base: known)
    }

    private mutating func finished(_ seen: Seen) -> Seen {
        if !record.edits.hasEdits { record.edits.forgetRefusal() }
        var seen = seen
        seen.after = local
        seen.isWaiting = record.edits.isWaiting
        return seen
    }

    /// Removes from a pending edit that replaces the whole object the values that others have set to the same result.
    /// The pending edit is already rebased onto `next`, and everything else is as before.
    ///
    /// - Returns: whether anything was removed.
    private mutating func sparePending(at next: Ghost) -> Bool {
        guard let pending = record.edits.pending, pending.isWhole else { return false }
        wanted.pending = wanted.pending ?? base
        guard let rest = Edits.sparing(pending.edit, of: next.object, wanted: wanted.pending) else { return false }
        record.edits.pending?.edit = rest
        return true
    }

    /// As above, for the later edits, which were rebased onto `base`, while `local` is as before.
    private mutating func spareLater() {
        guard record.edits.isWhole else { return }
        wanted.later = wanted.later ?? local
        guard let rest = Edits.sparing(record.edits.later, of: base, wanted: wanted.later) else { return }
        record.edits.later = rest
    }

    /// Last resort when edits cannot be rebased: what the user sees is kept as a replacement of the whole object.
    private mutating func keepWhole(_ edits: EditState, _ next: Ghost) {
        record.edits = edits
        record.edits.pending?.edit = nil
        record.edits.later = Edits.between(next.object, local)
        base = next.object
    }

    /// Turns a change that was certainly not applied back into an unsent edit, together with the later edits.
    mutating func unsendPending() {
        var edits = record.edits
        let isWhole = edits.isAllWhole
        // The state wanted before other changes moved the edits; that of the pending edit only if no later edit follows
        // it.
        wanted.later = edits.later == nil ? wanted.pending : wanted.later
        wanted.pending = nil
        edits.later = folded
        edits.isWhole = isWhole && edits.later != nil
        edits.pending = nil
        edits.held = nil
        edits.attempts += 1
        record.edits = edits
        base = record.ghost.object
    }

    private var folded: Edit? {
        let (edits, ghost) = (record.edits, record.ghost.object)
        // Both were applied to this object before, so composing cannot fail; if it does, what the app sees is kept.
        do {
            return try Edits.compose(edits.pending?.edit, edits.later, base: ghost)
        } catch {
            return Edits.between(ghost, local)
        }
    }
}
