import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Why a sealed object cannot be opened on a device that has no state of it.
public struct SealedOpenError: Error, Equatable, Sendable {
    /// What does not fit.
    public let integrity: SealedIntegrity

    /// An error with this finding.
    public init(integrity: SealedIntegrity) { self.integrity = integrity }
}

extension SealedObject {
    /// Opens an object on a device that has no state of it.
    /// - Throws: `SealedOpenError` when the snapshot does not open.
    public static func open(
        _ entity: SealedEntity, author: AuthorID, place: SealedPlace, with sealer: some Sealer
    ) throws(SealedOpenError) -> (object: SealedObject, events: [SealedEvent]) {
        guard let newest = entity.newest,
            let snapshot = Base64.decodeURL(Array(newest.text.utf8)[...])
        else { throw SealedOpenError(integrity: .snapshotMismatch(at: entity.newest?.position ?? 0)) }
        return try open(
            snapshot, at: newest.position, tail: entity.tail.lazy.map(Self.bytes(of:)), author: author, place: place,
            with: sealer)
    }

    /// The same for values that were decoded already.
    /// - Parameter tail: operations after the snapshot, the newest first.
    public static func open(
        _ snapshot: [UInt8], at position: Int, tail: some BidirectionalCollection<[UInt8]>, author: AuthorID,
        place: SealedPlace, with sealer: some Sealer
    ) throws(SealedOpenError) -> (object: SealedObject, events: [SealedEvent]) {
        guard let log = log(of: snapshot, at: position, place, sealer) else {
            throw SealedOpenError(integrity: .snapshotMismatch(at: position))
        }
        var object = SealedObject(author: author, log: log)
        let events = object.receiveAll(tail.reversed(), with: sealer)
        return (object, events)
    }

    private static func log(
        of snapshot: (position: Int, text: String), _ place: SealedPlace, _ sealer: some Sealer
    ) -> SealedLog? {
        Base64.decodeURL(Array(snapshot.text.utf8)[...]).flatMap { log(of: $0, at: snapshot.position, place, sealer) }
    }

    /// The log in a snapshot; nil when it does not open.
    public static func log(
        of snapshot: [UInt8], at position: Int, _ place: SealedPlace, _ sealer: some Sealer
    ) -> SealedLog? {
        guard let clear = sealer.open(snapshot, kind: .snapshot, position: position)?.clear else { return nil }
        return SealedSnapshot.log(clear: clear, place: place, position: position)
    }

    /// The bytes of an operation's text. A text that is not base64url becomes an operation that does not open.
    public static func bytes(of text: String) -> [UInt8] {
        Base64.decodeURL(Array(text.utf8)[...]) ?? Array(text.utf8)
    }

    /// Takes operations that follow the log, the oldest first.
    private mutating func receiveAll(_ tail: some Sequence<[UInt8]>, with sealer: some Sealer) -> [SealedEvent] {
        var events = [SealedEvent]()
        for sealed in tail {
            events += receive(sealed, with: sealer)
            if problem != nil || isStopped { break }
        }
        return events
    }

    /// Takes the object as the server shows it now: after a reconnect, an index, or a compaction. Everything that both
    /// sides know is compared before any of it is accepted.
    ///
    /// - Parameter byOthers: another account may have written the snapshot: its claims about this device's own
    ///   operations are checked against what this device has sealed.
    public mutating func adopt(
        _ entity: SealedEntity, with sealer: some Sealer, byOthers: Bool = false
    ) -> [SealedEvent] {
        guard problem == nil, !isStopped else { return [] }
        guard let newest = entity.newest,
            let theirs = Self.log(of: newest, log.place, sealer),
            // A server key belongs to the same app key forever.
            log.appKey.isEmpty || theirs.appKey.utf8.elementsEqual(log.appKey.utf8)
        else { return [block(.snapshotMismatch(at: entity.newest?.position ?? 0))] }
        draftBase = nil
        let tail = entity.tail.reversed().map(Self.bytes(of:))
        guard theirs.incarnation == log.incarnation else { return adopt(another: theirs, tail, sealer) }
        if let place = theirs.chain.firstDifference(to: log.chain) { return [block(.forked(at: place))] }
        if theirs.position > log.position {
            let events = catchUp(to: theirs, byOthers)
            showLogObject()
            return events + tail.flatMap { receive($0, with: sealer) }
        }
        return compare(theirs, tail, sealer)
    }

    /// The snapshot is at or before our position: the operations after it must lead to our state.
    private mutating func compare(
        _ snapshot: SealedLog, _ tail: [[UInt8]], _ sealer: some Sealer
    ) -> [SealedEvent] {
        var replayed = snapshot
        let known = min(log.position - snapshot.position, tail.count)
        var chain = snapshot.chain
        for sealed in tail[..<known] { chain.append(sealed) }
        if let place = chain.firstDifference(to: log.chain) { return [block(.forked(at: place))] }
        guard chain.position == log.position else { return [block(.rolledBack(to: chain.position))] }
        for sealed in tail[..<known] {
            let opened = sealer.open(sealed, kind: .operation, position: 0)?.clear
            guard replayed.append(sealed, clear: opened).isAppended else { break }
        }
        guard replayed == log else { return [block(.snapshotMismatch(at: snapshot.position))] }
        return tail[known...].flatMap { receive($0, with: sealer) }
    }

    /// Advances to a later snapshot of the same chain, as far as that can be verified.
    private mutating func catchUp(to snapshot: SealedLog, _ byOthers: Bool) -> [SealedEvent] {
        guard log.lastPositions.allSatisfy({ snapshot.lastPositions[$0.key] ?? 0 >= $0.value }),
            snapshot.list >= log.list, !byOthers || isPossible(snapshot)
        else {
            return [block(.snapshotMismatch(at: snapshot.position))]
        }
        guard snapshot.reaches(log.position) else {
            let (done, seen) = (claimed(by: snapshot) == nil ? nil : pending, projected)
            let events = leap(to: snapshot, pendingWasCounted: done != nil)
            return byOthers ? events + (done.map { lacking($0, seen) } ?? []) : events
        }
        guard leads(to: snapshot) else { return [block(.snapshotMismatch(at: snapshot.position))] }
        var next = self
        guard let events = next.advance(to: snapshot, byOthers) else {
            return [block(.snapshotMismatch(at: snapshot.position))]
        }
        self = next
        return events
    }

    /// - Returns: nil when the snapshot claims an impossible effect of the pending operation.
    private mutating func advance(to snapshot: SealedLog, _ byOthers: Bool) -> [SealedEvent]? {
        var events = [SealedEvent]()
        var ordered: JSONValue? = log.object.map { .object($0) }
        var counted = claimed(by: snapshot)
        for position in (log.position + 1)...snapshot.position {
            let entry = snapshot.entry(at: position)
            if byOthers, position == counted, !isDone(by: entry?.edit, on: ordered) {
                guard letGo?.author == pendingAuthor else { return nil }
                // It is the operation that was given up.
                counted = nil
            }
            guard let entry else { continue }
            if entry.author == pendingAuthor, let done = pending, !byOthers || position == counted {
                // An operation of ours has one place in the log: it is the pending one.
                pending = nil
                events += [.acknowledged(done.changeID)] + Self.conflicts(of: done.edit, on: ordered)
            } else {
                events += advance(over: entry.edit, entry.author)
            }
            // It fits: `leads` has checked it.
            if let outcome = try? entry.edit.apply(to: ordered) { ordered = outcome.value }
        }
        log = snapshot
        if counted != nil, let done = pending {
            // It counts and had nothing left to do.
            pending = nil
            projected = log.object.map { .object($0) }
            events.append(.acknowledged(done.changeID))
        }
        return events
    }

    /// Whether a snapshot's claims about the operations that we have not seen turn our object into its object.
    private func leads(to snapshot: SealedLog) -> Bool {
        var object: JSONValue? = log.object.map { .object($0) }
        for position in (log.position + 1)...snapshot.position {
            guard let entry = snapshot.entry(at: position) else { continue }
            guard let outcome = try? entry.edit.apply(to: object), outcome.edit == entry.edit else {
                return false
            }
            object = outcome.value
        }
        return object == snapshot.object.map { .object($0) }
    }

    /// The operations in between are not available: our edits are transformed over the difference of the two states.
    private mutating func leap(to snapshot: SealedLog, pendingWasCounted: Bool) -> [SealedEvent] {
        var events = [SealedEvent]()
        let after: JSONValue? = snapshot.object.map { .object($0) }
        if pendingWasCounted, let done = pending {
            pending = nil
            events.append(.acknowledged(done.changeID))
        }
        // The state on which the remaining edits were made: with the pending one, if it counted.
        let before = pending == nil ? projected : log.object.map { .object($0) }
        log = snapshot
        let edit = Self.difference(from: before, to: after).flatMap { try? $0.apply(to: before).edit }
        if let edit { events += advance(over: edit, AuthorID(rawValue: 0)) }
        // An operation sealed for the old state does not count, wherever it arrives.
        if pending != nil { events += refuse() }
        projected = after
        return events
    }

    /// The key was deleted and created again, by a device that knew of the deletion, or by one that keeps its own
    /// content. That device need not have seen all that existed here: what the app saw is reported.
    private mutating func adopt(
        another theirs: SealedLog, _ tail: [[UInt8]], _ sealer: some Sealer
    ) -> [SealedEvent] {
        guard !pastIncarnations.contains(theirs.incarnation) else { return [block(.rolledBack(to: theirs.position))] }
        // A device that creates the object again knows the lists of the earlier one; a removed reader could start it
        // under an older list.
        guard sealer.listVersion == 0 || theirs.list >= log.list else {
            return [block(.snapshotMismatch(at: theirs.position))]
        }
        remember(log.incarnation)
        stoppedAfter = nil
        letGo = nil
        let before = shown
        var events = [.recreated] + leap(to: theirs, pendingWasCounted: false)
        showLogObject()
        events += tail.flatMap { receive($0, with: sealer) }
        if before != nil, before != shown {
            events.append(.conflict(SealedConflict(path: [], losing: before, winning: shown)))
        }
        return events
    }

    mutating func remember(_ incarnation: [UInt8]) {
        pastIncarnations.append(incarnation)
        if pastIncarnations.count > SealedLimits.pastIncarnationsMax { pastIncarnations.removeFirst() }
    }

    /// The server reports that the object is gone: an ordinary `-`, `EMPTY`, or an index without it. Without a
    /// tombstone the removal may hide an attack.
    public mutating func serverRemoved() -> [SealedEvent] {
        guard log.object != nil, problem == nil else { return [] }
        return [block(.removed)]
    }

    /// The server shows the object in a shape that only newer programs know: it is not read, and local state is kept.
    public mutating func serverShowedNewerShape() -> [SealedEvent] {
        guard problem == nil, stop == nil else { return [] }
        stop = .shape
        return [.stopped(after: nil)]
    }

    /// The server shows it in a known shape, or not at all.
    public mutating func leaveNewerShape() { if stop == .shape { stop = nil } }

    /// This program may be newer: it tries the operations at which an older one had to stop. A stop at the same
    /// position is not reported again.
    public mutating func tryNewerRules() { if stop == .rules { stop = nil } }

    /// The server shows an object that is not sealed.
    public mutating func serverShowedClear() -> [SealedEvent] {
        problem == nil ? [block(.clear)] : []
    }
}
