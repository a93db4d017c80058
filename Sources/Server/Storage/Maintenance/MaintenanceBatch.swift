import ThicketProtocol

/// A small piece of background work: planned from committed, immutable rows, applied by the writer.
public struct MaintenanceBatch: Sendable, Hashable {
    /// Cuts a prefix of a bucket's log.
    public struct Cut: Sendable, Hashable {
        /// Row of the bucket.
        public let bucket: BucketRow
        /// The bucket's floor at planning time; the cut is skipped if it has moved since.
        public let floorBefore: GlobalID
        /// The last row that is cut; the new floor.
        public let floor: GlobalID
        /// Rows to delete, oldest first.
        public let rows: [GlobalID]
        /// The objects that these rows belong to.
        public let keys: Set<EntityKey>
        /// Hashes of the rows' ccids with the times of the rows; they are kept in `old_ccid`.
        public let changeIDs: [OldChangeID]
        /// Bodies that must stay readable without the rows.
        public let keptBodies: [KeptBody]
        /// Bodies kept earlier that no request can ask for any more.
        public let droppedBodies: [KeptVersion]
        /// Maximum bytes of rows and bodies that are written or removed.
        public let bytes: Int
    }

    /// A ccid whose row is cut.
    public struct OldChangeID: Sendable, Hashable {
        /// Keyed hash of the ccid.
        public let hash: UInt64
        /// Time of the change, milliseconds since 1970.
        public let timestamp: Int64
    }

    /// Identifies one version of an object.
    public struct KeptVersion: Sendable, Hashable {
        /// The object's key.
        public let key: EntityKey
        /// The object's version.
        public let version: Version
    }

    /// A body that is kept apart from the log.
    public struct KeptBody: Sendable, Hashable {
        /// The object's key.
        public let key: EntityKey
        /// The object's version.
        public let version: Version
        /// The body as JSON.
        public let body: [UInt8]
    }

    /// One blob of bodies.
    public struct Segment: Sendable, Hashable {
        /// Newest gid that the segment covers; its range begins above the next older segment's `high`.
        public let high: GlobalID
        /// Number of objects in it.
        public let count: Int
        /// The blob, in the layout of `Segment`.
        public let content: [UInt8]
    }

    /// New segments of one bucket.
    public struct SegmentWork: Sendable, Hashable {
        /// Row of the bucket.
        public let bucket: BucketRow
        /// Existing segments with a `high` above this gid and up to `through` are replaced.
        public let above: GlobalID
        /// Upper end of the replaced range.
        public let through: GlobalID
        /// Number of these existing segments.
        public let replaced: Int
        /// Bytes of these existing segments.
        public let replacedBytes: Int
        /// Ascending by `high`.
        public let segments: [Segment]
        /// Bytes of log that these segments cover; subtracted from the bucket's count of fresh bytes.
        public let freshBytes: Int64
    }

    /// Hashes of cut rows' ccids whose retention time is over.
    public struct Forgetting: Sendable, Hashable {
        /// Row of the bucket.
        public let bucket: BucketRow
        /// Keyed hashes of the ccids.
        public let hashes: [UInt64]
    }

    /// Archives the ccids of a stretch of a bucket's log as one block.
    public struct ChangeIDRun: Sendable, Hashable {
        /// Row of the bucket.
        public let bucket: BucketRow
        /// The bucket's `settled` column at planning time; the run is skipped if it has moved since.
        public let archivedBefore: GlobalID
        /// The newest change of the stretch, which becomes the value of `settled`.
        public let archived: GlobalID
        /// Block sorted by hash; empty when retention has removed all rows of the stretch.
        public let block: [UInt8]
        /// Number of changes that leave the bucket's count of unarchived changes: archived by this run, or gone.
        public let count: Int64
    }

    /// Rewrites a hash range of a bucket's archived ccids, with the entries that the runs add to it.
    public struct ChangeIDMerge: Sendable, Hashable {
        /// Row of the bucket.
        public let bucket: BucketRow
        /// First hash of the range. All blocks that begin in the range are replaced.
        public let first: UInt64
        /// Last hash of the range.
        public let last: UInt64
        /// Ascending; the first block begins at `first`.
        public let blocks: [HashBlock]
        /// Number of blocks and runs that are replaced.
        public let replaced: Int
        /// Bytes of these blocks and runs.
        public let replacedBytes: Int
        /// Set by the last range of a merge: runs up to this change are now contained in the blocks and are deleted.
        public let mergedRuns: GlobalID?
    }

    /// A block of ccids, starting at one hash.
    public struct HashBlock: Sendable, Hashable {
        /// First hash that the block covers.
        public let low: UInt64
        /// The entries, in the layout of `ChangeIDBlock`.
        public let block: [UInt8]
    }

    /// Client names that no change refers to any more.
    public struct UnusedClients: Sendable, Hashable {
        /// Maximum number of newer changes that the writer checks; if there are more, the names stay until the next
        /// scan.
        public static let newerRowsMax = 2_000

        /// Rows of `client`.
        public let rows: [Int64]
        /// The newest change that the planner scanned; the writer checks the changes after it.
        public let through: GlobalID
    }

    /// One step in erasing the data of a user whose account is closed.
    public struct Erasure: Sendable, Hashable {
        /// The app of the user.
        public let app: AppID
        /// The user whose data is erased.
        public let user: UserID
        /// Maximum number of rows that the step removes; at least one row is removed.
        public let rowsMax: Int
        /// Maximum bytes of rows that the step removes.
        public let bytesMax: Int
    }

    /// Prefixes of logs to cut.
    public var cuts: [Cut] = []
    /// Segments to write and replace.
    public var segments: [SegmentWork] = []
    /// Hashes of cut ccids to delete.
    public var forgettings: [Forgetting] = []
    /// Runs of ccids to archive.
    public var changeIDRuns: [ChangeIDRun] = []
    /// Ranges of archived ccids to rewrite.
    public var changeIDMerges: [ChangeIDMerge] = []
    /// Client names to delete.
    public var unusedClients: UnusedClients?
    /// Steps of erasures.
    public var erasures: [Erasure] = []
    /// Answers of batches to delete.
    public var batchAnswers: [BatchPlace] = []
    /// Guests that have ended, to be removed with their accounts.
    public var endedGuests: [EndedGuest] = []
    /// The time of the plan for `endedGuests`, milliseconds since 1970.
    public var endedBy: Int64 = 0
    /// Maximum number of heads to write into their table (`WriteBehindHeads`).
    public var headsMax = 0

    /// Creates an empty batch.
    public init() {}

    /// Rows of a guest, its account and its logins, about.
    static let rowsPerGuest = 8

    /// Maximum number of rows that applying the batch writes or removes. A group of changes may have to wait for this
    /// work (`RetentionSettings.rowsPerBatch`).
    public var rowCount: Int {
        var count = forgettings.reduce(0) { $0 + $1.hashes.count } + (unusedClients?.rows.count ?? 0)
        for cut in cuts {
            count += cut.rows.count + cut.changeIDs.count + cut.keptBodies.count + cut.droppedBodies.count
        }
        for work in segments { count += work.segments.count + work.replaced }
        for merge in changeIDMerges { count += merge.blocks.count + merge.replaced }
        count += batchAnswers.count + endedGuests.count * Self.rowsPerGuest
        return erasures.reduce(count + changeIDRuns.count + headsMax) { $0 + $1.rowsMax }
    }

    /// Bytes of these rows, also an upper bound (`RetentionSettings.bytesPerBatch`).
    public var byteCount: Int {
        var count = cuts.reduce(0) { $0 + $1.bytes } + changeIDRuns.reduce(0) { $0 + $1.block.count }
        for work in segments {
            count += work.segments.reduce(work.replacedBytes) { $0 + $1.content.count }
        }
        for merge in changeIDMerges {
            count += merge.blocks.reduce(merge.replacedBytes) { $0 + $1.block.count }
        }
        count += batchAnswers.reduce(0) { $0 + $1.bytes }
        return erasures.reduce(count) { $0 + $1.bytesMax }
    }

    /// Whether the batch only writes heads into their table; no other planned work depends on such a batch.
    public var isHeadsOnly: Bool {
        var rest = self
        rest.headsMax = 0
        return headsMax > 0 && rest.isEmpty
    }

    /// Whether the batch contains no work.
    public var isEmpty: Bool {
        cuts.isEmpty && segments.isEmpty && forgettings.isEmpty && changeIDRuns.isEmpty && changeIDMerges.isEmpty
            && unusedClients == nil && erasures.isEmpty && batchAnswers.isEmpty && endedGuests.isEmpty && headsMax == 0
    }
}
