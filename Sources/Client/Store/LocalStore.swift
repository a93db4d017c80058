package import ThicketProtocol

/// The parts of an object's record that a turn changed; the other parts are not written.
package struct EntityParts: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }
    package static let ghost = EntityParts(rawValue: 1)
    package static let edits = EntityParts(rawValue: 2)
    /// `isLive`, `scanID` and `name`.
    package static let marks = EntityParts(rawValue: 4)
}

/// The write of one object in a batch: its new record and, where it is compact, the steps that led to it.
package struct EntityWrite: Sendable {
    package let address: EntityAddress
    package let record: EntityRecord
    package let parts: EntityParts
    /// The steps from the stored ghost to the new one, in order; nil when unknown. A store may write these instead of
    /// the whole ghost.
    package let ghostSteps: [GhostStep]?
    /// The edits appended to the stored ones, in order, if nothing else changed; nil when unknown.
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

/// An object from an index that has no record in the store yet: it exists and has no edits.
package struct NewObject: Sendable {
    package let address: EntityAddress
    package let version: Version
    package let scanID: Int64
    /// The JSON object as received.
    package let body: JSONFragment
    /// The same in fewer bytes, for the file (`PackedEntity`); nil when it has no such form.
    package let packed: [UInt8]?
    /// The app's key, in a sealed bucket.
    package let name: String?
    /// Whether the app sees the object: it is not a sealed tombstone.
    package let isLive: Bool

    package init(
        _ address: EntityAddress, version: Version, scanID: Int64, body: JSONFragment, packed: [UInt8]? = nil,
        name: String? = nil, isLive: Bool = true
    ) {
        self.packed = packed
        self.address = address
        self.version = version
        self.scanID = scanID
        self.body = body
        self.name = name
        self.isLive = isLive
    }

    /// The object as a record.
    ///
    /// - Throws: `misfit` when the body is not an object although it was declared as one.
    package func record() throws(ClientError) -> EntityRecord {
        guard let object = body.object else {
            throw ClientError(.misfit, "an index lists a value that is not an object")
        }
        return EntityRecord(
            ghost: Ghost(version: version, object: object), isLive: isLive, scanID: scanID, name: name)
    }
}

/// Everything that one turn stores, as one transaction.
package struct LocalBatch: Sendable {
    /// Objects that have no record in the store; none of them is in `entities`.
    package var arrivals: [NewObject] = []
    package var entities: [EntityWrite] = []
    package var buckets: [BucketRecord] = []
    /// Buckets whose undelivered conflicts and integrity reports have been delivered: the stored ones are deleted.
    package var delivered: Set<BucketName> = []
    /// Conflicts and integrity reports of this turn; stored after `delivered` has been processed.
    package var undelivered: [UndeliveredWrite] = []
    /// Buckets whose removals belong to another server store: their versions become 0. Done before `entities` are
    /// written.
    package var forgottenRemovals: Set<BucketName> = []
    /// The transaction must survive a power failure when `commit` returns: it contains a change that is sent next; if
    /// its record were lost, the same edit would be sent a second time under another ccid.
    package var isOnDisk = false
    package init() {}
    package var isEmpty: Bool {
        arrivals.isEmpty && entities.isEmpty && buckets.isEmpty && delivered.isEmpty && undelivered.isEmpty
            && forgottenRemovals.isEmpty
    }
}

/// Summary of an object with unconfirmed edits.
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

/// A client's persistent state: ghosts, unconfirmed edits, positions. One process at a time.
///
/// Calls are synchronous and come from one thread. A call that throws has had no effect.
package protocol LocalStore: AnyObject {
    /// An identifier of this copy that never changes; the first call stores `fresh`.
    func clientID(fresh: ClientID) throws(ClientError) -> ClientID
    /// A named value, such as the account to which the store belongs; nil when never set.
    func namedValue(_ name: String) throws(ClientError) -> String?
    func setNamedValue(_ name: String, to value: String) throws(ClientError)

    func buckets() throws(ClientError) -> [BucketRecord]
    /// nil when the store has no record of that object.
    func entity(_ address: EntityAddress) throws(ClientError) -> EntityRecord?
    /// The keys among these that have a record.
    func known(_ bucket: BucketName, among keys: [EntityKey]) throws(ClientError) -> Set<EntityKey>
    /// At most `limit` keys of objects that the app sees, in byte order, after `after`.
    func liveKeys(_ bucket: BucketName, after: EntityKey?, limit: Int) throws(ClientError) -> [EntityKey]
    /// At most `limit` app keys of objects that the app sees in a sealed bucket, in byte order, after `after`.
    func liveNames(_ bucket: BucketName, after: String?, limit: Int) throws(ClientError) -> [String]
    /// The objects whose `edits` are not empty, in byte order of their keys.
    func edited(_ bucket: BucketName) throws(ClientError) -> [EditedKey]
    /// The keys of objects with a held ghost (`EditState.held`), in byte order: few, where `edited` may return many.
    func keysHeld(_ bucket: BucketName) throws(ClientError) -> [EntityKey]
    /// The keys of objects that the server had and that the scan with this number has not listed.
    func keysUnseen(_ bucket: BucketName, scanID: Int64) throws(ClientError) -> [EntityKey]
    /// At most `limit` keys and versions of objects that the server has, in byte order.
    func versions(_ bucket: BucketName, limit: Int) throws(ClientError) -> [(key: EntityKey, version: Version)]
    /// The undelivered conflicts and integrity reports of the bucket, ordered by place.
    func undelivered(_ bucket: BucketName) throws(ClientError) -> [BucketEvent]
    /// Stores the whole batch or nothing.
    func commit(_ batch: LocalBatch) throws(ClientError)
    /// Releases the lock. No call may follow.
    func close()
}
