import ThicketProtocol

/// The two ways to resolve a problem. The user chooses; nothing is decided automatically.
extension SealedObject {
    /// *Keep mine*: what the app sees, as a new incarnation. The client removes the server's object and creates this
    /// one.
    ///
    /// - Parameters:
    ///   - incarnation: 16 random bytes.
    ///   - list: version of the list of readers under which it is made, `Sealer.listVersion`.
    /// - Returns: nil when the object is deleted here.
    public func keepingMine(incarnation: [UInt8], list: Int = 0) -> SealedObject? {
        guard let object else { return nil }
        var fresh = SealedObject(
            author: author,
            log: SealedLog(
                place: log.place, appKey: log.appKey, incarnation: incarnation, object: object, list: list))
        (fresh.pastIncarnations, fresh.requestedMark) = (pastIncarnations, requestedMark)
        fresh.remember(log.incarnation)
        return fresh
    }

    /// *Take the server's*: uses the server's state and drops the local one. What the app saw is reported as a
    /// conflict, so that no content is lost.
    ///
    /// - Throws: `SealedOpenError` when the server's state does not open; nothing has changed then.
    public mutating func takeServers(
        _ entity: SealedEntity, with sealer: some Sealer
    ) throws(SealedOpenError) -> [SealedEvent] {
        let (theirs, events) = try Self.open(
            entity, author: author, place: log.place, with: sealer)
        let mine = shown
        var fresh = theirs
        fresh.pastIncarnations = pastIncarnations.filter { $0 != theirs.log.incarnation }
        fresh.requestedMark = requestedMark
        letPendingGo()
        if theirs.log.incarnation == log.incarnation { fresh.letGo = letGo }
        self = fresh
        var reported = events + [.changed(nil)]
        if mine != shown { reported.append(.conflict(SealedConflict(path: [], losing: mine, winning: shown))) }
        return reported
    }

    /// *Take the server's*, where the server has none: the object is deleted.
    public mutating func acceptRemoval() -> [SealedEvent] {
        let mine = shown
        (log.object, pending, later, projected, shown, problem) = (nil, nil, nil, nil, nil, nil)
        // An object that was deleted here too leaves no conflict.
        guard mine != nil else { return [.changed(nil)] }
        return [.changed(nil), .conflict(SealedConflict(path: [], losing: mine, winning: nil))]
    }

    /// The unreadable object is gone from the server. Under a key where this device has only a draft, the user need not
    /// choose any more.
    ///
    /// - Returns: whether a problem was cleared.
    public mutating func leaveUnreadable() -> Bool {
        guard problem != nil, log.object == nil else { return false }
        problem = nil
        return true
    }
}

extension SealedObject {
    /// Whether a snapshot is due.
    public enum Compaction: Sendable, Equatable {
        /// It is not.
        case none
        /// Our own operation was acknowledged at a position divisible by 64.
        case now
        /// The tail has grown long: some device compacts after a random wait.
        case afterRandomWait
    }

    /// Decides whether a snapshot is due.
    /// - Parameters:
    ///   - ownPosition: the position at which our own operation was just acknowledged; nil on other occasions.
    ///   - tail: operations in the tail.
    public static func compaction(ownPosition: Int?, tail: Int) -> Compaction {
        if let ownPosition, ownPosition % SealedLimits.windowPositions == 0, tail > 0 { return .now }
        return tail > SealedLimits.tailCompactedBeyond ? .afterRandomWait : .none
    }

    /// The snapshot of the log.
    ///
    /// - Parameters:
    ///   - id: 16 random bytes.
    ///   - nonce: 12 random bytes.
    public func sealedSnapshot(id: [UInt8], nonce: [UInt8], with sealer: some Sealer) -> [UInt8] {
        sealer.seal(
            SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: id, position: log.position, nonce: nonce)
    }

    /// Whether every state is the previous one with the edits between applied, which must always hold.
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
