public import ThicketProtocol
public import ThicketSealed

/// Creation, deletion and removal of an object of a shared bucket.
extension SharedObject {
    /// An object that does not exist, for a device that is about to create it.
    ///
    /// - Parameter appKey: the app's own key.
    /// - Throws: `SharingError.otherObject` when the sealer belongs to another object.
    public static func absent(_ appKey: String, with sealer: AuthoredSealer) throws(SharingError) -> SharedObject {
        guard sealer.isNamed(appKey) else { throw .otherObject }
        return SharedObject(.absent(author: sealer.author, place: sealer.place, appKey: appKey))
    }

    /// Creates an object where the app sees none: a draft until the server has accepted it (`created`).
    /// - Throws: `readOnly` also for an account that may only read.
    public mutating func create(_ content: JSONObject, with sealer: AuthoredSealer) throws(SealedEditError) {
        guard sealer.maySeal else { throw .readOnly }
        try object.create(content)
    }

    /// Deletes the object: the next operation from `seal` is its tombstone. Once that is valid, the server is asked to
    /// remove the object.
    /// - Throws: `readOnly` also for an account that may only read.
    public mutating func delete(with sealer: AuthoredSealer) throws(SealedEditError) {
        guard sealer.maySeal else { throw .readOnly }
        try object.delete()
    }

    /// The draft as a new incarnation at position 0, and the snapshot that creates it.
    ///
    /// - Parameters:
    ///   - incarnation: 16 random bytes.
    ///   - id: 16 random bytes.
    ///   - nonce: 12 random bytes.
    /// - Returns: the state, which must be stored before the snapshot is sent. nil without a draft, while the server
    ///   still has an object that must be removed first, and in the cases of `seal`.
    public func created(
        incarnation: [UInt8], id: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer
    ) -> (object: SharedObject, snapshot: [UInt8])? {
        guard maySeal(sealer), object.problem == nil, !object.isStopped, !object.isReplacing,
            let made = object.created(incarnation: incarnation, list: sealer.listVersion)
        else { return nil }
        return (SharedObject(made), made.sealedSnapshot(id: id, nonce: nonce, with: sealer))
    }

    /// Handles an object of the server under this key that was unknown here: for a draft, and for a creation that the
    /// server refused with 405. If it is the same creation, nothing remains to be done; otherwise the draft is applied
    /// on top of it.
    /// - Throws: `SharedOpenError`; the state is unchanged then.
    public mutating func meet(
        _ entity: SealedEntity, with sealer: AuthoredSealer
    ) throws(SharedOpenError) -> [SharedEvent] {
        var (theirs, events) = try Self.open(
            entity, author: object.author, with: sealer)
        if object.log.object != nil, theirs.object.log.incarnation == object.log.incarnation {
            do throws(SharedHold) { return try adopt(entity, with: sealer) } catch { throw .held(error) }
        }
        if object.pastIncarnations.contains(theirs.object.log.incarnation) {
            events += theirs.object.report(.rolledBack(to: theirs.object.log.position)).map { .object($0) }
        }
        if object.log.object != nil { object.notCreated() }
        return events + object.yield(to: theirs.object).map { .object($0) }
    }

    /// The server did not accept the creation and has no object under the key: the object becomes a draft again.
    public mutating func notCreated() { object.notCreated() }

    /// Handles the server's report that the object is gone. After a valid tombstone, or if the object was deleted here
    /// too, that is accepted, and later local edits become a draft. After *keep mine* the kept object can now be
    /// created. Otherwise it is an alarm, and no local data is given up.
    public mutating func serverRemoved() -> [SharedEvent] {
        if object.isReplacing {
            object.hasReplaced()
            return []
        }
        guard object.problem == nil, !object.isStopped else { return [] }
        guard object.log.object == nil || object.object == nil else {
            return object.serverRemoved().map { .object($0) }
        }
        object.removedAfterTombstone()
        return []
    }
}
