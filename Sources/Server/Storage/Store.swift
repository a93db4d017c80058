import ThicketProtocol
import ThicketTreeShape

/// The storage of a server's buckets.
///
/// A store has one writer at a time. The writer and each reader are used by one thread at a time.
public protocol Store: AnyObject, Sendable {
    /// Keys and numbers that identify this store.
    var identity: StoreIdentity { get }
    /// Creates the only writer.
    func makeWriter() throws(StoreError) -> any StoreWriter
    /// Creates a reader for the calling thread.
    func makeReader() throws(StoreError) -> any StoreReader
    /// Creates the planner of retention and segments, for a background thread; `now` is passed to each `nextBatch`.
    func makeMaintenance(_ settings: RetentionSettings) throws(StoreError) -> any StoreMaintenance
    /// Opens the ledger of blobs for the calling thread.
    func makeBlobLedger() throws(StoreError) -> any BlobLedger
    /// Memory held for all readers; may be read on any thread.
    var memory: StoreMemory { get }
}

/// Nodes in an inbox that other accounts have put there.
public struct InboxCount: Sendable, Hashable {
    /// Of all accounts.
    public var all: Int
    /// Of the account that was asked for.
    public var ofSender: Int

    /// A count.
    public init(all: Int = 0, ofSender: Int = 0) { (self.all, self.ofSender) = (all, ofSender) }
}

/// Bytes that a store holds in memory for all its readers.
public struct StoreMemory: Sendable, Hashable {
    /// Bytes of cached segments.
    public var segments = 0
    /// Bytes of cached index scans.
    public var scans = 0
    /// Bytes of the positions of cached catch-ups.
    public var catchUps = 0
}

extension Store {
    /// Default: nothing is held in memory.
    public var memory: StoreMemory { .init() }
}

extension StoreWriter {
    /// Default: no ccids are held in memory.
    public var changeIDBytes: Int { 0 }
}

/// Reads committed data. Each call sees one state of the whole store.
///
/// Calls that serve clients take the highest change that the client may see (`upTo`, `current`): changes that are
/// committed but not yet published stay hidden.
public protocol StoreReader: AnyObject {
    /// Keys and numbers that identify the store.
    var identity: StoreIdentity { get }

    /// Highest gid in use; 0 in an empty store. The next change gets this value + 1.
    func lastGlobalID() throws(StoreError) -> GlobalID
    /// nil when the bucket has no row: it was never changed and not created as sealed.
    func bucket(_ id: BucketID) throws(StoreError) -> BucketRecord?
    /// The mode that an operator set for new buckets of this name.
    func mode(ofNew name: BucketName, in app: AppID) throws(StoreError) -> BucketMode
    /// The user's buckets that hold changes or were created as sealed.
    func buckets(of app: AppID, user: UserID) throws(StoreError) -> [BucketRecord]
    /// Buckets above `row` in row order, at most `limit`; for jobs that visit every bucket.
    func buckets(afterRow row: BucketRow, limit: Int) throws(StoreError) -> [BucketRecord]

    /// Head of an object, including deleted ones; nil when the key never existed.
    func entity(_ key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityRecord?
    /// Head with body and keyframe counters; nil when the key never existed.
    func head(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> EntityHead?
    /// The object's body at `version`; nil when that version is not kept, was a deletion or is above `upTo`.
    func body(
        of key: EntityKey, version: Version, in bucket: BucketRow, upTo: GlobalID
    ) throws(StoreError) -> [UInt8]?
    /// The body at `version` and every later change of the entity. nil when the log does not reach back to `version`,
    /// `version` is above the head, or more than `limit` changes follow; the answer to the client is then 405.
    func history(
        of key: EntityKey, after version: Version, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> EntityHistory?
    /// The place of a node of a tree; nil when the node does not exist.
    func place(of node: NodeID, in bucket: BucketRow) throws(StoreError) -> NodePlace?
    /// The node at a place of a tree; nil when the place is free.
    func node(at place: NodePlace, in bucket: BucketRow) throws(StoreError) -> NodeID?
    /// Nodes directly below a parent in the order of their tags, at most `limit`.
    func children(of parent: NodeParent, in bucket: BucketRow, limit: Int) throws(StoreError) -> [NodeID]
    /// Children with their records: one list for each parent of the question. A parent without a row has none.
    func children(_ read: ChildRead, in bucket: BucketRow) throws(StoreError) -> [StoredChildren]
    /// Nodes of all trees whose burn time is at or before `time` (milliseconds since 1970), the earliest first, at most
    /// `limit`.
    func burningNodes(at time: Int64, limit: Int) throws(StoreError) -> [BurningNode]
    /// The stored answer of a batch; nil when none is stored.
    func batchAnswer(_ batch: BatchID, in bucket: BucketRow) throws(StoreError) -> BatchAnswer?
    /// Stored answers of batches before `time` (milliseconds since 1970), the earliest first, at most `limit`.
    func batchAnswers(before time: Int64, limit: Int) throws(StoreError) -> [BatchPlace]
    /// The length of a complete blob that a record of the bucket may refer to: the bucket's owner has uploaded it, or
    /// a node of the bucket refers to it. nil for any other blob.
    func length(of blob: BlobID, by owner: BucketID, in bucket: BucketRow?) throws(StoreError) -> Int64?
    /// The policy of the inbox of the bucket's owner; the default if the owner has set none.
    func inboxPolicy(of owner: BucketID) throws(StoreError) -> InboxPolicy
    /// The nodes of a tree that have a list: roots of shared branches.
    func listRoots(in bucket: BucketRow) throws(StoreError) -> Set<NodeID>
    /// The accounts that the list of a node permits to read; nil when the node has no list, or does not exist.
    func readers(of root: NodeID, in bucket: BucketRow) throws(StoreError) -> [UserID]?
    /// Nodes directly below a node that an account, not the owner, has created, at most `limit`.
    func children(
        of parent: NodeID, by user: UserID, in bucket: BucketRow, limit: Int
    ) throws(StoreError) -> [NodeID]
    /// Nodes directly in the inbox of a tree that other accounts have put there, and those of one of them. Counted up
    /// to `TreeLimits.inboxNodesCeiling`.
    func inboxCount(of sender: UserID, in bucket: BucketRow) throws(StoreError) -> InboxCount
    /// The usage of a tree, from counters.
    func usage(of owner: BucketID, in bucket: BucketRow) throws(StoreError) -> TreeUsage
    /// Keys of live objects above `key` in byte order, at most `limit`; for EMPTY in bounded batches.
    func liveKeys(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityKey]

    /// Heads of removed objects above `key` in byte order of their keys, at most `limit`.
    func removedHeads(
        in bucket: BucketRow, after key: EntityKey?, limit: Int
    ) throws(StoreError) -> [EntityRecord]
    /// One log row without its diff; nil when the row does not exist.
    func link(_ gid: GlobalID) throws(StoreError) -> ChangeLink?

    /// One log row; nil when the row does not exist.
    func change(_ gid: GlobalID) throws(StoreError) -> ChangeRecord?
    /// Changes of the bucket above `after` and up to `upTo`, oldest first. nil when `after` is below the floor or above
    /// the bucket's head: the cv is unknown.
    /// - Parameters:
    ///   - limit: maximum number of changes on the page.
    ///   - byteLimit: bytes of diffs after which the page ends; a page has at least one change if any is left.
    func changes(
        in bucket: BucketRow, after: GlobalID, upTo: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> ChangePage?
    /// A page of the index; nil when `current` is below the floor or above the head: the client must restart the scan.
    func indexPage(_ query: IndexQuery) throws(StoreError) -> IndexSlice?
    /// The same, with bodies from memory where `known` has them. Optional: a reader may read all bodies itself.
    func indexPage(_ query: IndexQuery, known: any BodyCache) throws(StoreError) -> IndexSlice?

    /// Changes that all users of an app made in their buckets of one name, oldest first, from a bounded part of the
    /// log. Changes of closed accounts are left out.
    /// - Parameters:
    ///   - after: must not be above the newest change.
    ///   - limit: maximum number of changes.
    ///   - byteLimit: bytes of diffs after which the page ends; a page has at least one change if any is left.
    func changes(
        ofAll name: BucketName, in app: AppID, after: GlobalID, limit: Int, byteLimit: Int
    ) throws(StoreError) -> WidePage
    /// The highest floor of these buckets: retention has cut changes at or below it. 0 when nothing was cut.
    func floor(ofAll name: BucketName, in app: AppID) throws(StoreError) -> GlobalID
    /// The display name of the user; nil when it is the same as the id.
    func name(of user: UserID, in app: AppID) throws(StoreError) -> UserID?

    /// Whether the row `gid` has this ccid: confirms a match of its hash.
    func confirms(_ changeID: ChangeID, at gid: GlobalID) throws(StoreError) -> Bool

    /// Whether the app is registered.
    func hasApp(_ app: AppID) throws(StoreError) -> Bool
    /// The access granted by the token with this SHA-256; nil when the token does not exist or the user's account is
    /// closed. Sees tokens created by other processes at once.
    func grant(tokenHash: [UInt8]) throws(StoreError) -> TokenGrant?
    /// Whether the user's account is closed and its data not yet erased; such data must not be read. Sees changes by
    /// other processes at once.
    func hasEnded(_ user: UserID, in app: AppID) throws(StoreError) -> Bool
    /// Whether the key with this SHA-256 is an administrator key of the app. Sees changes by other processes at once.
    func isAdminKey(hash: [UInt8], of app: AppID) throws(StoreError) -> Bool
    /// The bounds of a guest; nil when there is none of this id. Sees changes by other processes at once.
    func guest(_ user: UserID, in app: AppID) throws(StoreError) -> GuestBounds?
    /// Guests that have ended by `time` (milliseconds since 1970), the earliest first, at most `limit`.
    func endedGuests(by time: Int64, limit: Int) throws(StoreError) -> [EndedGuest]
}

extension StoreReader {
    /// Default for stores without accounts; only a store in a file has them.
    public func hasEnded(_ user: UserID, in app: AppID) throws(StoreError) -> Bool { false }

    /// Default: ignores `known` and reads all bodies from the store.
    public func indexPage(_ query: IndexQuery, known: any BodyCache) throws(StoreError) -> IndexSlice? {
        try indexPage(query)
    }
}

/// Bodies that are in memory. The body after a given change is immutable, so a cached one never becomes stale.
public protocol BodyCache: AnyObject {
    /// The body after change `gid`, as JSON; nil when it is not in memory.
    func body(of gid: GlobalID) -> [UInt8]?
}

/// The only writer. Reads through it see its own commits.
public protocol StoreWriter: StoreReader {
    /// A new row number for a bucket; never returned twice.
    func newBucketRow() -> BucketRow
    /// The ccids of the bucket's newest changes, in no order: those that `archivedChange` does not find.
    func changeIDTail(of bucket: BucketRow) throws(StoreError) -> ChangeIDTail
    /// Looks up a ccid among the archived ccids of a bucket, those of changes at or below `ChangeIDTail.archived`. The
    /// work is bounded regardless of the length of the log.
    /// - Returns: the row that confirms or refutes the match; 0 when retention has cut it and the hash alone decides;
    ///   nil when no such ccid is known.
    func archivedChange(hash: UInt64, in bucket: BucketRecord) throws(StoreError) -> GlobalID?
    /// Number of in-memory ccids of a bucket at which the next group of that bucket archives a run of them, so that
    /// `archivedChange` finds them. nil when the store has no archive, so that all ccids must stay in memory.
    var changeIDRunLength: Int? { get }
    /// Starts a read transaction that ends with `commit` or `endReads`: reads share one state of the store and cost
    /// less. Optional: by default reads work as before.
    func beginReads()
    /// Ends what `beginReads` or `beginCommit` began; `commit` does so too.
    func endReads()
    /// Lets the reads of an open group see what other writers of the store have committed since `beginReads`. Rows that
    /// only this writer changes stay as they are.
    func refreshReads()
    /// Prepares the next `commit` so that it waits only for the disk: acquires the locks it needs and holds them until
    /// `commit` or `endReads`.
    /// - Returns: false, with nothing held, when this would have to wait for another lock holder or when older work
    ///   must be done first.
    func beginCommit() -> Bool
    /// Bytes of ccids that are held in memory.
    var changeIDBytes: Int { get }
    /// Writes the group in one transaction and returns when it is durable.
    /// - Throws: when nothing of the batch is stored; the caller must discard the state it derived from it. (After `io`
    ///   or `full`, a crash may still make the batch visible; a change that is sent again is then found by its ccid.)
    func commit(_ batch: WriteBatch) throws(StoreError)
    /// Number of objects of the bucket that are not deleted.
    func liveCount(in bucket: BucketRow) throws(StoreError) -> Int
    /// The least recently changed objects of the bucket, in that order, at most `limit`.
    func leastRecent(in bucket: BucketRow, limit: Int) throws(StoreError) -> [LiveEntity]
    /// Whether the bucket holds encrypted notes, and the maximum number of notes. Sees changes by operators at once.
    func noteRule(of bucket: BucketID) throws(StoreError) -> NoteRule
    /// Makes one small durable write, to find out whether commits work (again).
    func probe() throws(StoreError)
    /// Writes a batch that `StoreMaintenance` planned. Returns the buckets whose marks moved, for the shards that own
    /// them.
    func apply(_ work: MaintenanceBatch) throws(StoreError) -> [BucketMove]
}

extension StoreWriter {
    /// Default: reads do not share a transaction.
    public func beginReads() {}
    /// Default: nothing to end.
    public func endReads() {}
    /// Default: each read sees the newest state.
    public func refreshReads() {}
    /// Default: nothing to prepare.
    public func beginCommit() -> Bool { true }
    /// Default for stores without app settings; only a store in a file has them.
    public func noteRule(of bucket: BucketID) throws(StoreError) -> NoteRule { .none }
}

/// An object that is not deleted, and its newest change.
public struct LiveEntity: Hashable, Sendable {
    /// The object's key.
    public let key: EntityKey
    /// Its newest change.
    public let gid: GlobalID

    /// Creates an entry.
    public init(key: EntityKey, gid: GlobalID) { (self.key, self.gid) = (key, gid) }
}

/// Plans background work with its own reader; the writer applies it between groups.
public protocol StoreMaintenance: AnyObject {
    /// The next small piece of work; nil when none is due. The caller has it applied before the next call.
    /// - Parameter now: milliseconds since 1970.
    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch?
}

/// The marks of a bucket after background work that moved one of them.
public struct BucketMove: Hashable, Sendable {
    /// Row of the bucket.
    public let bucket: BucketRow
    /// The log begins above this position.
    public let floor: GlobalID
    /// New value of `ChangeIDTail.archived`.
    public let archived: GlobalID
}
