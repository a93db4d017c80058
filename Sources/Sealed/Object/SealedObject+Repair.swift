import ThicketProtocol

/// The two ways out of a problem. The user chooses; nothing is decided for them.
extension SealedObject {
    /// *Keep mine*: what the app sees, as a new incarnation. The client removes what the server has and creates this.
    ///
    /// - Parameters:
    ///   - incarnation: 16 random bytes.
    ///   - list: version of the list of readers that it is made under, `Sealer.listVersion`.
    /// - Returns: nil when the object is deleted here.
    public func keepingMine(incarnation: [UInt8], list: Int = 0) -> SealedObject? {
        guard let object else { return nil }
        var fresh = SealedObject(
            author: author,
            log: SealedLog(
                place: log.place, appKey: log.appKey, incarnation: incarnation, object: object, list: list))
        (fresh.pastIncarnations, fresh.owedMark) = (pastIncarnations, owedMark)
        fresh.remember(log.incarnation)
        return fresh
    }

    /// *Take the server's*: what it shows, and nothing of what is here. What the app saw goes out as a conflict, so
    /// that nothing is lost that somebody wants.
    ///
    /// - Throws: `SealedOpenError` when that does not open; then nothing has happened.
    public mutating func takeServers(
        _ entity: SealedEntity, with sealer: some Sealer
    ) throws(SealedOpenError) -> [SealedEvent] {
        let (theirs, events) = try Self.open(
            entity, author: author, place: log.place, with: sealer)
        let mine = shown
        var fresh = theirs
        fresh.pastIncarnations = pastIncarnations.filter { $0 != theirs.log.incarnation }
        fresh.owedMark = owedMark
        letPendingGo()
        if theirs.log.incarnation == log.incarnation { fresh.letGo = letGo }
        self = fresh
        var told = events + [.changed(nil)]
        if mine != shown { told.append(.conflict(SealedConflict(path: [], losing: mine, winning: shown))) }
        return told
    }

    /// *Take the server's*, where it has nothing: the object is deleted.
    public mutating func takeRemoval() -> [SealedEvent] {
        let mine = shown
        (log.object, pending, later, projected, shown, problem) = (nil, nil, nil, nil, nil, nil)
        // What was deleted here, too, gives way to nothing.
        guard mine != nil else { return [.changed(nil)] }
        return [.changed(nil), .conflict(SealedConflict(path: [], losing: mine, winning: nil))]
    }

    /// What could not be read is gone from the server. Under a key where this device has nothing else but a draft,
    /// nothing is left to choose.
    ///
    /// - Returns: whether that was in the way.
    public mutating func leaveUnreadable() -> Bool {
        guard problem != nil, log.object == nil else { return false }
        problem = nil
        return true
    }
}

extension SealedObject {
    /// Whether a snapshot is due.
    public enum Compaction: Sendable, Equatable {
        case none
        /// Our own operation has landed on a position divisible by 64.
        case now
        /// The tail has grown long: some device compacts after a random wait.
        case afterRandomWait
    }

    /// - Parameters:
    ///   - ownPosition: where our own operation has just landed; nil for any other occasion.
    ///   - tail: operations in the tail.
    public static func compaction(ownPosition: Int?, tail: Int) -> Compaction {
        if let ownPosition, ownPosition % SealedLimits.windowPositions == 0, tail > 0 { return .now }
        return tail > SealedLimits.tailCompactedBeyond ? .afterRandomWait : .none
    }

    /// The snapshot of what the log holds.
    ///
    /// - Parameters:
    ///   - id: 16 random bytes.
    ///   - nonce: 12 random bytes.
    public func sealedSnapshot(id: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> [UInt8] {
        sealer.seal(
            SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: id, position: log.position, nonce: nonce)
    }

    /// Whether every state is what the one before and the edits between give: what must always hold.
    public var isConsistent: Bool {
        let ordered: JSONValue? = log.object.map { .object($0) }
        guard let middle = Self.value(ordered, after: pending?.edit), middle == projected,
            let end = Self.value(middle, after: later)
        else { return false }
        return end == shown
    }

    /// nil when the edit does not fit.
    private static func value(_ value: JSONValue?, after edit: Edit?) -> JSONValue?? {
        guard let edit else { return .some(value) }
        return (try? edit.apply(to: value)).map { .some($0.value) } ?? .none
    }
}
