public import ThicketProtocol
public import ThicketSealed

/// An object of a shared bucket is made, deleted, and gone.
extension SharedObject {
    /// An object that is not there, for a device that wants to make it.
    ///
    /// - Parameter appKey: the app's own key.
    /// - Throws: `SharingError.otherObject` when the sealer is another object's.
    public static func absent(_ appKey: String, with sealer: AuthoredSealer) throws(SharingError) -> SharedObject {
        guard sealer.isNamed(appKey) else { throw .otherObject }
        return SharedObject(.absent(author: sealer.author, place: sealer.place, appKey: appKey))
    }

    /// Makes an object where the app sees none: a draft, until the server has taken it (`created`).
    /// - Throws: `readOnly` also for an account that may only read.
    public mutating func create(_ content: JSONObject, with sealer: AuthoredSealer) throws(SealedEditError) {
        guard sealer.maySeal else { throw .readOnly }
        try object.create(content)
    }

    /// Deletes the object: its tombstone is the next operation that `seal` gives. Once that counts, the server is told
    /// to remove the object.
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
    /// - Returns: what must be saved before it is sent; nil without a draft, while the server has something that is to
    ///   be removed first, and as `seal`.
    public func created(
        incarnation: [UInt8], id: [UInt8], nonce: [UInt8], with sealer: AuthoredSealer
    ) -> (object: SharedObject, snapshot: [UInt8])? {
        guard maySeal(sealer), object.problem == nil, !object.isStopped, !object.isReplacing,
            let made = object.created(incarnation: incarnation, list: sealer.listVersion)
        else { return nil }
        return (SharedObject(made), made.sealedSnapshot(id: id, nonce: nonce, with: sealer))
    }

    /// The server has an object under this key, and it was not here: for a draft, and for a creation that the server
    /// has answered with 405. If it is that very creation, nothing more is to be done; else what was to be made goes on
    /// top of it.
    /// - Throws: `SharedOpenError`; nothing has been taken then.
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

    /// The server did not take the creation, and has nothing under the key: it is a draft again.
    public mutating func notCreated() { object.notCreated() }

    /// The server says that the object is gone. Behind a tombstone that counts, or where it was deleted here, too, it
    /// is; what was edited here since is a draft. After *keep mine* there is room for what is kept. Else it is an
    /// alarm, and nothing is given up.
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
