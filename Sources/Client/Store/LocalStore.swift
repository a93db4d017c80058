package import ThicketProtocol

/// Which parts of an object's record one turn changed; the others are not written.
package struct EntityParts: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }
    package static let ghost = EntityParts(rawValue: 1)
    package static let edits = EntityParts(rawValue: 2)
    /// `isLive`, `walk` and `name`.
    package static let marks = EntityParts(rawValue: 4)
}

/// One object's part of a batch: its new record, and, where that is short to say, what led to it.
package struct EntityWrite: Sendable {
    package let address: EntityAddress
    package let record: EntityRecord
    package let parts: EntityParts
    /// What leads the kept ghost to the new one, in order; nil: not told. A store may keep these in place of the whole.
    package let ghostSteps: [GhostStep]?
    /// What was done behind the kept edits, in order, and is all that became of them; nil: not told.
    package let laterSteps: [ObjectDiff]?

    package init(
        _ address: EntityAddress, _ record: EntityRecord, _ parts: EntityParts, ghostSteps: [GhostStep]? = nil,
        laterSteps: [ObjectDiff]? = nil
    ) {
        self.address = address
        self.record = record
        self.parts = parts
        self.ghostSteps = ghostSteps
        self.laterSteps = laterSteps
    }
}

/// An object that a store has no record of, as an index brings it: there, and without edits.
package struct NewObject: Sendable {
    package let address: EntityAddress
    package let version: Version
    package let walk: Int64
    /// A JSON object, as it came.
    package let body: JSONFragment
    /// The same in fewer bytes, for a file (`PackedEntity`); nil: it has no such form.
    package let packed: [UInt8]?
    /// The app's own key, in a sealed bucket.
    package let name: String?
    /// The app sees it: it is no sealed tombstone.
    package let isLive: Bool

    package init(
        _ address: EntityAddress, version: Version, walk: Int64, body: JSONFragment, packed: [UInt8]? = nil,
        name: String? = nil, isLive: Bool = true
    ) {
        self.packed = packed
        self.address = address
        self.version = version
        self.walk = walk
        self.body = body
        self.name = name
        self.isLive = isLive
    }

    /// The same as a record.
    ///
    /// - Throws: `misfit` when the body is no object, against the promise.
    package func record() throws(ClientError) -> EntityRecord {
        guard let object = body.object else {
            throw ClientError(.misfit, "an index lists what is no object")
        }
        return EntityRecord(
            ghost: Ghost(version: version, object: object), isLive: isLive, walk: walk, name: name)
    }
}

/// Everything one turn wants kept, as one transaction.
package struct LocalBatch: Sendable {
    /// Objects the store has no record of, none of which is in `entities`.
    package var arrivals: [NewObject] = []
    package var entities: [EntityWrite] = []
    package var buckets: [BucketRecord] = []
    /// Buckets of whose conflicts and alarms, as far as they are kept, somebody has been told: they are forgotten.
    package var told: Set<BucketName> = []
    /// Conflicts and alarms that were found in this turn; kept behind `told`.
    package var untold: [UntoldWrite] = []
    /// Buckets whose removals were made by another store: their versions count for nothing (0) from now on. Done before
    /// `entities` are written.
    package var forgottenRemovals: Set<BucketName> = []
    /// It has to be on the disk, and survive a loss of power, when `commit` returns: a change in it is sent next, and
    /// would be made a second time, under another name, if its record were lost.
    package var isOnDisk: Bool = false
    package init() {}
    package var isEmpty: Bool {
        arrivals.isEmpty && entities.isEmpty && buckets.isEmpty && told.isEmpty && untold.isEmpty
            && forgottenRemovals.isEmpty
    }
}

/// An object with something unconfirmed, in short.
package struct EditedKey: Sendable, Equatable {
    package let key: EntityKey
    package let hasEdits: Bool
    package let isRefused: Bool
    package let isStale: Bool

    package init(key: EntityKey, hasEdits: Bool, isRefused: Bool, isStale: Bool) {
        self.key = key
        self.hasEdits = hasEdits
        self.isRefused = isRefused
        self.isStale = isStale
    }

    package init(_ key: EntityKey, _ edits: EditState) {
        self.init(
            key: key, hasEdits: edits.hasEdits, isRefused: edits.isRefused, isStale: edits.wanted != nil)
    }
}

/// Where a client keeps what must survive: ghosts, unconfirmed edits, positions. One process at a time.
///
/// Calls are synchronous and come from one thread. An error means that nothing of the call took effect.
package protocol LocalStore: AnyObject {
    /// A name for this copy that stays the same for its whole life; made from `fresh` the first time.
    func clientID(fresh: ClientID) throws(ClientError) -> ClientID
    /// A value of the store's owner (which account it belongs to); nil when never set.
    func note(_ name: String) throws(ClientError) -> String?
    func setNote(_ name: String, to value: String) throws(ClientError)

    func buckets() throws(ClientError) -> [BucketRecord]
    /// nil when nothing is kept under that key.
    func entity(_ address: EntityAddress) throws(ClientError) -> EntityRecord?
    /// Which of these have a record.
    func known(_ bucket: BucketName, among keys: [EntityKey]) throws(ClientError) -> Set<EntityKey>
    /// Keys of objects the app sees, in byte order, behind `after`, at most `limit`.
    func liveKeys(_ bucket: BucketName, after: EntityKey?, limit: Int) throws(ClientError) -> [EntityKey]
    /// Names of the objects the app sees in a sealed bucket, in byte order, behind `after`, at most `limit`.
    func liveNames(_ bucket: BucketName, after: String?, limit: Int) throws(ClientError) -> [String]
    /// Objects whose `edits` are not empty, in byte order of their keys.
    func edited(_ bucket: BucketName) throws(ClientError) -> [EditedKey]
    /// Keys of objects whose `edits` hold something (`held`), in byte order: a few, where `edited` may be many.
    func keysHeld(_ bucket: BucketName) throws(ClientError) -> [EntityKey]
    /// Keys of objects the server had, which the walk has not met.
    func keysUnseen(_ bucket: BucketName, walk: Int64) throws(ClientError) -> [EntityKey]
    /// Keys and versions of objects the server has, in byte order, at most `limit`.
    func versions(_ bucket: BucketName, limit: Int) throws(ClientError) -> [(key: EntityKey, version: Version)]
    /// Conflicts and alarms of the bucket of which nobody has been told, by their places.
    func untold(_ bucket: BucketName) throws(ClientError) -> [BucketEvent]
    /// Keeps all of it or nothing.
    func commit(_ batch: LocalBatch) throws(ClientError)
    /// No call follows. Frees the lock.
    func close()
}
