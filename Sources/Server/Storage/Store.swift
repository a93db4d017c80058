import ThicketProtocol

/// Where a server keeps its buckets.
///
/// Writers and readers belong to one thread at a time. There is one writer at a time.
public protocol Store: AnyObject, Sendable {
    var identity: StoreIdentity { get }
    /// The one writer.
    func makeWriter() throws(StoreError) -> any StoreWriter
    /// A reader for the calling thread.
    func makeReader() throws(StoreError) -> any StoreReader
    /// Plans retention and segments, for a background thread (`now` is passed to each turn).
    func makeKeeper(_ settings: RetentionSettings) throws(StoreError) -> any StoreKeeper
    /// What is kept in memory for readers; may be asked on any thread.
    var memory: StoreMemory { get }
}

/// Bytes that a store keeps for all its readers.
public struct StoreMemory: Sendable, Hashable {
    public var segments: Int = 0
    public var walks: Int = 0
    public var catchUps: Int = 0
}

extension Store {
    /// What is kept for readers; nothing unless a store says otherwise.
    public var memory: StoreMemory { .init() }
}

extension StoreWriter {
    /// Bytes of ccids that are kept in memory; none unless a store says otherwise.
    public var changeIDBytes: Int { 0 }
}

/// Reads what is committed. Each call sees one state of the whole store.
///
/// Calls that serve clients take the highest change the client may know of (`upTo`, `current`): what is committed but
/// not yet published stays unseen.
public protocol StoreReader: AnyObject {
    var identity: StoreIdentity { get }

    /// Highest gid in use; 0 in an empty store. The next change gets one more.
    func lastGlobalID() throws(StoreError) -> GlobalID
    /// nil when the bucket has never been changed.
    func bucket(_ id: BucketID) throws(StoreError) -> BucketRecord?
    /// What an operator has said of all buckets of that name: the mode of those that are not there yet.
    func mode(ofNew name: BucketName, in app: AppID) throws(StoreError) -> BucketMode
    /// The user's buckets that hold changes, or are to hold sealed ones.
    func buckets(of app: AppID, user: UserID) throws(StoreError) -> [BucketRecord]
    /// All buckets in row order, above `row`, at most `limit`: for jobs that visit every bucket.
    func buckets(afterRow row: BucketRow, limit: Int) throws(StoreError) -> [BucketRecord]

    /// Head of an object, deleted ones too; nil when the key never existed.
    func entity(_ key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityRecord?
    /// Head with body and keyframe counters; nil when the key never existed.
    func head(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityHead?
    /// The object's body at `version`; nil when that version is not kept, was a deletion or lies above `upTo`.
    func body(
        of key: EntityKey, version: Version, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> [UInt8]?
    /// The base at `version` and every later change of the entity; nil when the log does not reach back to `version`,
    /// `version` is above the head, or more than `limit` changes came after: answer 405.
    func history(
        of key: EntityKey, after version: Version, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> EntityHistory?
    /// Keys of live objects in byte order, above `key`, at most `limit`; for EMPTY in bounded batches.
    func liveKeys(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityKey]

    /// Heads of removed objects in byte order of their keys, above `key`, at most `limit`.
    func removedHeads(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityRecord]
    /// One row of the log without its diff; nil when there is none.
    func link(_ gid: GlobalID) throws(StoreError) -> ChangeLink?

    /// One row of the log; nil when there is none.
    func change(_ gid: GlobalID) throws(StoreError) -> ChangeRecord?
    /// Changes of the bucket above `after` and up to `upTo`, oldest first; nil when `after` is below the floor or above
    /// the bucket's head: the cv is unknown.
    /// - Parameters:
    ///   - limit: changes on the page at most.
    ///   - byteLimit: bytes of diffs after which the page ends; one change is always given.
    func changes(
        in bucket: BucketRow, after: GlobalID, upTo: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> ChangePage?
    /// A page of the index; nil when `current` is below the floor or above the head: the walk starts anew.
    func indexPage(_ query: IndexQuery) throws(StoreError) -> IndexSlice?
    /// The same, where bodies may be taken from memory. Optional: a reader may read all of them itself.
    func indexPage(_ query: IndexQuery, known: any KnownBodies) throws(StoreError) -> IndexSlice?

    /// The changes that all users of an app have made in their buckets of one name, oldest first, from a bounded part
    /// of the log; without those whose accounts have ended.
    /// - Parameters:
    ///   - after: not above the newest change.
    ///   - limit: changes at most.
    ///   - byteLimit: bytes of diffs after which the page ends; one change is always given.
    func changes(
        ofAll name: BucketName, in app: AppID, after: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> WidePage
    /// The highest position at or below which one of those buckets has forgotten changes; 0 when none has.
    func floor(ofAll name: BucketName, in app: AppID) throws(StoreError) -> GlobalID
    /// What the user is called; nil where nobody knows another name than the id.
    func name(of user: UserID, in app: AppID) throws(StoreError) -> UserID?

    /// Whether the row `gid` has this ccid: confirms a hit in the set.
    func confirms(_ changeID: ChangeID, at gid: GlobalID) throws(StoreError) -> Bool

    func hasApp(_ app: AppID) throws(StoreError) -> Bool
    /// What the token with this SHA-256 admits to; nil when there is none, or the user's account has ended. Sees tokens
    /// made by other processes at once.
    func grant(tokenHash: [UInt8]) throws(StoreError) -> TokenGrant?
    /// Whether the user's account has ended and what it had is not erased yet: nobody is to read it. As `grant`.
    func hasEnded(_ user: UserID, in app: AppID) throws(StoreError) -> Bool
    /// Whether the key with this SHA-256 is an administrator's of the app. As `grant`.
    func isAdminKey(hash: [UInt8], of app: AppID) throws(StoreError) -> Bool
}

extension StoreReader {
    // Only a store in a file has accounts.
    public func hasEnded(_ user: UserID, in app: AppID) throws(StoreError) -> Bool { false }

    public func indexPage(_ query: IndexQuery, known: any KnownBodies) throws(StoreError) -> IndexSlice? {
        try indexPage(query)
    }
}

/// Bodies that are in memory. What a change led to is the same for ever.
public protocol KnownBodies: AnyObject {
    /// The body that change `gid` led to, as JSON; nil when it is not at hand.
    func body(of gid: GlobalID) -> [UInt8]?
}

/// The one writer. Reads through it see its own commits.
public protocol StoreWriter: StoreReader {
    /// A row number for a bucket that has none yet; never given twice.
    func newBucketRow() -> BucketRow
    /// The ccids of the bucket's newest changes, in no order: those that `settledChange` does not answer for.
    func changeIDTail(of bucket: BucketRow) throws(StoreError) -> ChangeIDTail
    /// Looks among the older ccids of a bucket, those of changes at or below `ChangeIDTail.settled`: bounded work
    /// however long the log is.
    /// - Returns: the row that tells whether the hit is real; 0 when retention has cut it and the hash alone decides;
    ///   nil when no such ccid is known.
    func settledChange(hash: UInt64, in bucket: BucketRecord) throws(StoreError) -> GlobalID?
    /// Ccids of a bucket from which on the group that changes it takes a run of them along, for `settledChange` to
    /// answer for; nil when the store looks nothing up, so that all must stay in memory.
    var changeIDRunLength: Int? { get }
    /// Reads from now on, until `commit` or `endReads`, cost less: they share one state of the store. Optional, and a
    /// reader that cannot do it reads as before.
    func beginReads()
    /// Ends what `beginReads` or `beginCommit` began; `commit` does so too.
    func endReads()
    /// Makes sure that the next `commit` waits for nothing but the disk: takes what it needs now and holds it until
    /// `commit` or `endReads`.
    /// - Returns: false, and nothing is held, when it would have to wait for others or has old work to do first.
    func beginCommit() -> Bool
    /// Bytes of ccids that are kept in memory.
    var changeIDBytes: Int { get }
    /// Writes the group in one transaction and returns when it is durable.
    /// - Throws: nothing of the batch is stored then, and the caller forgets what it derived from it. (After `io` or
    ///   `full` a crash may still bring the batch back; a change sent again is then found by its ccid.)
    func commit(_ batch: WriteBatch) throws(StoreError)
    /// Objects of the bucket that are not deleted.
    func liveCount(in bucket: BucketRow) throws(StoreError) -> Int
    /// The objects of the bucket whose newest changes are the oldest, in that order, at most `limit`.
    func leastRecent(in bucket: BucketRow, limit: Int) throws(StoreError) -> [LiveEntity]
    /// Whether the bucket holds encrypted notes, and how many there may be. Sees what operators change at once.
    func noteRule(of bucket: BucketID) throws(StoreError) -> NoteRule
    /// Makes one small durable write, to find out whether commits work (again).
    func probe() throws(StoreError)
    /// Writes what a keeper has planned. Returns the buckets whose marks it moved, for their owner.
    func apply(_ work: MaintenanceBatch) throws(StoreError) -> [BucketMove]
}

extension StoreWriter {
    public func beginReads() {}
    public func endReads() {}
    public func beginCommit() -> Bool { true }
    // Only a store in a file has apps with settings.
    public func noteRule(of bucket: BucketID) throws(StoreError) -> NoteRule { .none }
}

/// An object that is not deleted, and its newest change.
public struct LiveEntity: Hashable, Sendable {
    public let key: EntityKey
    public let gid: GlobalID

    public init(key: EntityKey, gid: GlobalID) { (self.key, self.gid) = (key, gid) }
}

/// Plans background work over its own reader; the writer applies it between groups.
public protocol StoreKeeper: AnyObject {
    /// The next small piece of work, nil when there is none for now. The caller has it applied before the next call.
    /// - Parameter now: milliseconds since 1970.
    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch?
}

/// Where a bucket's marks stand after background work that moved one of them.
public struct BucketMove: Hashable, Sendable {
    public let bucket: BucketRow
    /// The log begins above.
    public let floor: GlobalID
    /// `ChangeIDTail.settled`.
    public let settled: GlobalID
}
