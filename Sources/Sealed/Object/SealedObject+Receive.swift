import ThicketProtocol

extension SealedObject {
    /// Takes the operation that follows the log, in the order of the server: another author's or our own.
    public mutating func receive(_ sealed: [UInt8], with sealer: some Sealer) -> [SealedEvent] {
        guard problem == nil, !isStopped else { return [] }
        let clear = sealer.open(sealed, kind: .operation, position: 0)?.clear
        // Its bytes never change. Another holder of the keys may seal other bytes under its id.
        let isOwn = pending?.sealed == sealed
        let verdict = log.append(sealed, clear: clear)
        var events = warnings(verdict)
        switch verdict {
        case .applied(let author, let edit, let conflicts):
            events += conflicts.map { .conflict($0) }
            if isOwn {
                events += acknowledge()
            } else if let edit {
                events += advance(over: edit, author)
            }
        case .void where isOwn: events += refuse()
        case .misfit where isOwn: events += recover()
        case .void, .misfit, .unknownRules, .forked: break
        }
        showLogObject()
        return events
    }

    /// With no local edits left, the app sees the log's object itself. It equals what the app saw except for the order
    /// of members, which follows the order of operations on the server, on every device.
    mutating func showLogObject() {
        guard pending == nil, later == nil else { return }
        projected = log.object.map { .object($0) }
        (shown, wanted) = (projected, nil)
    }

    /// The events that every device reports for an operation of any author.
    private mutating func warnings(_ verdict: SealedLog.Verdict) -> [SealedEvent] {
        let position = log.position
        switch verdict {
        case .applied: return []
        case .void(let reason):
            switch reason {
            case .doesNotOpen: return [.integrity(.misfit(at: position, .doesNotOpen))]
            case .malformed: return [.integrity(.misfit(at: position, .malformed))]
            case .behindAuthor: return [.integrity(.misfit(at: position, .repeated))]
            case .tooOld, .otherIncarnation, .olderList: return []
            }
        case .misfit: return [.integrity(.misfit(at: position, .doesNotFit))]
        case .unknownRules:
            let isReported = stoppedAfter == position
            (stop, stoppedAfter) = (.rules, position)
            return isReported ? [] : [.stopped(after: position)]
        case .forked(let place): return [block(.forked(at: place))]
        }
    }

    /// Makes the object read-only until the user has chosen.
    mutating func block(_ integrity: SealedIntegrity) -> SealedEvent {
        if problem == nil { problem = integrity }
        return .integrity(integrity)
    }

    /// Our own operation counts: the log holds what the app already sees.
    private mutating func acknowledge() -> [SealedEvent] {
        guard let done = pending else { return [] }
        pending = nil
        projected = log.object.map { .object($0) }
        return [.acknowledged(done.changeID)]
    }

    /// The server refused the pending operation, or it does not count: its edit, as transformed, is put before the
    /// later ones and sent again in another change.
    ///
    /// Call it when the server answers 409 and the log, read to its end, does not hold the operation.
    public mutating func refuse() -> [SealedEvent] {
        guard let lost = pending else { return [] }
        let ordered: JSONValue? = log.object.map { .object($0) }
        // It will be sealed like an edit that was never sent, on top of the values that it replaces.
        let gaveWay = Self.conflicts(of: lost.edit, on: ordered)
        let isAllWhole = lost.isWhole && (later == nil || isLaterWhole)
        do throws(DiffError) {
            later = try Self.composed(lost.edit?.uncontested, later)
            isLaterWhole = isAllWhole
            pending = nil
            projected = ordered
        } catch { return recover() + gaveWay }
        let events = [.rebased(lost.changeID)] + spareLater() + gaveWay
        // Nothing may be left of the operation: others have made the same change.
        showLogObject()
        return events
    }

    /// Drops the parts of whole later edits that `projected` already contains, and updates what the app sees.
    private mutating func spareLater() -> [SealedEvent] {
        guard isLaterWhole, let edit: Edit = later else { return [] }
        wanted = wanted ?? shown
        let rest = edit.sparing(of: projected, wanted: wanted)
        guard rest.isLess else { return [] }
        let before = shown
        do throws(DiffError) {
            shown = try rest.edit.map { (rest) throws(DiffError) in try rest.apply(to: projected).value } ?? projected
        } catch { return [] }
        later = rest.edit
        guard let change = Self.difference(from: before, to: shown) else { return [] }
        return [.changed(try? change.apply(to: before).edit)]
    }

    /// Transforms pending and later edits over an operation that was ordered before them, and reports what the app
    /// sees.
    mutating func advance(over edit: Edit, _ other: AuthorID) -> [SealedEvent] {
        do throws(DiffError) { return try carry(over: edit, other) } catch { return recover() }
    }

    private mutating func carry(over edit: Edit, _ other: AuthorID) throws(DiffError) -> [SealedEvent] {
        var coming: Edit? = edit
        var gaveWay = [SealedEvent]()
        var next = self
        if next.pending?.isWhole == true || next.isLaterWhole { next.wanted = next.wanted ?? shown }
        if let mine: Edit = pending?.edit {
            // Every device's log will transform it in this way: under the author that it names.
            let order = TransformOrder(isLater: true, own: pendingAuthor, other: other)
            next.pending?.edit = try mine.transformed(over: edit, order)
            coming = try edit.transformed(over: mine, order.opposite)
        }
        let order = TransformOrder(isLater: true, own: author, other: other)
        if let edit = coming {
            let outcome = try edit.apply(to: projected)
            next.projected = outcome.value
            coming = outcome.edit
        }
        if let mine: Edit = later, let edit: Edit = coming {
            let carried = try mine.transformed(over: edit, order)
            let rest = isLaterWhole ? carried?.sparing(of: next.projected, wanted: next.wanted) : nil
            let moved = rest.map { $0.edit } ?? carried
            // It will be sealed on top of the values that it replaces, so no log will report the conflict.
            gaveWay = Self.conflicts(of: moved, on: next.projected)
            next.later = moved?.uncontested
            if rest?.isLess == true {
                // The remaining edit is smaller than what was shown.
                next.shown =
                    try moved.map { (moved) throws(DiffError) in try moved.apply(to: next.projected).value }
                    ?? next.projected
                let seen = Self.difference(from: shown, to: next.shown)
                self = next
                return [.changed(seen)] + gaveWay
            }
            coming = try edit.transformed(over: mine, order.opposite)
        }
        if let edit = coming {
            let outcome = try edit.apply(to: shown)
            next.shown = outcome.value
            coming = outcome.edit
        }
        self = next
        return (coming.map { [.changed($0)] } ?? []) + gaveWay
    }

    /// The conflicts in which a transformed edit prevails when it is applied.
    static func conflicts(of edit: Edit?, on value: JSONValue?) -> [SealedEvent] {
        guard let edit, edit.isContested, let outcome = try? edit.apply(to: value) else { return [] }
        return outcome.conflicts.map { .conflict($0) }
    }

    /// Recovers from an edit that unexpectedly does not fit: what the app sees becomes an edit of the log's object.
    mutating func recover() -> [SealedEvent] {
        let lost = pending
        letPendingGo()
        pending = nil
        projected = log.object.map { .object($0) }
        later = Self.difference(from: projected, to: shown)
        return lost.map { [.rebased($0.changeID)] } ?? []
    }

    /// An edit that leads from one state of the object to another; nil when they are equal.
    static func difference(from before: JSONValue?, to after: JSONValue?) -> Edit? {
        switch (before, after) {
        case (.object(let before)?, .object(let after)?):
            let diff = JSONDiff.diff(from: before, to: after, keepsShortEqualities: true)
            return diff.isEmpty ? nil : try? Edit(.object(diff))
        case (nil, let after?): return .set(after)
        case (_?, nil): return .remove()
        default: return nil
        }
    }
}
