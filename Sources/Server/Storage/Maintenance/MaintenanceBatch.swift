import ThicketProtocol

/// A small piece of background work, planned from committed rows that never change again, applied by the writer.
public struct MaintenanceBatch: Sendable, Hashable {
    /// A prefix of a bucket's log is cut.
    public struct Cut: Sendable, Hashable {
        public let bucket: BucketRow
        /// The bucket's floor when this was planned; the cut is skipped if it has moved since.
        public let floorBefore: GlobalID
        /// The last row cut.
        public let floor: GlobalID
        /// Rows to delete, oldest first.
        public let rows: [GlobalID]
        /// The objects whose rows they are.
        public let keys: Set<EntityKey>
        /// Their ccids' hashes with the rows' times, to be kept on.
        public let changeIDs: [OldChangeID]
        /// Bodies that must stay readable without the rows.
        public let keptBodies: [KeptBody]
        /// Bodies kept earlier that nobody can ask for any more.
        public let droppedBodies: [KeptVersion]
        /// Bytes of rows and bodies that are written or removed, at most.
        public let bytes: Int
    }

    /// A ccid whose row is cut.
    public struct OldChangeID: Sendable, Hashable {
        public let hash: UInt64
        /// Milliseconds since 1970.
        public let timestamp: Int64
    }

    /// Names one version of an object.
    public struct KeptVersion: Sendable, Hashable {
        public let key: EntityKey
        public let version: Version
    }

    /// A body kept apart from the log.
    public struct KeptBody: Sendable, Hashable {
        public let key: EntityKey
        public let version: Version
        public let body: [UInt8]
    }

    /// One blob of bodies.
    public struct Segment: Sendable, Hashable {
        /// Newest gid the segment answers for; it begins above the next older segment's.
        public let high: GlobalID
        /// Objects in it.
        public let count: Int
        public let content: [UInt8]
    }

    /// New segments of one bucket.
    public struct SegmentWork: Sendable, Hashable {
        public let bucket: BucketRow
        /// Existing segments whose `high` lies above this and up to `through` are replaced.
        public let above: GlobalID
        public let through: GlobalID
        /// Those existing segments: how many, and their bytes.
        public let replaced: Int
        public let replacedBytes: Int
        /// Ascending by `high`.
        public let segments: [Segment]
        /// Bytes of log that these segments take in: the bucket's count of fresh bytes falls by as much.
        public let freshBytes: Int64
    }

    /// Hashes of cut rows' ccids that need not be kept any longer.
    public struct Forgetting: Sendable, Hashable {
        public let bucket: BucketRow
        public let hashes: [UInt64]
    }

    /// The ccids of a stretch of a bucket's log as one block: they are settled.
    public struct ChangeIDRun: Sendable, Hashable {
        public let bucket: BucketRow
        /// The bucket's `settled` when this was planned; the run is passed over if it has moved since.
        public let settledBefore: GlobalID
        /// The newest change of the stretch: `settled` from now on.
        public let settled: GlobalID
        /// Sorted block; empty when the stretch has no rows any more.
        public let block: [UInt8]
        /// Changes that the bucket counts as not settled and that are settled, or gone, by this.
        public let count: Int64
    }

    /// A stretch of a bucket's settled ccids, by hash, written anew with what the runs add to it.
    public struct ChangeIDMerge: Sendable, Hashable {
        public let bucket: BucketRow
        /// First and last hash of the stretch. All blocks that begin in it are replaced.
        public let first: UInt64
        public let last: UInt64
        /// Ascending; the first begins at `first`.
        public let blocks: [HashBlock]
        /// Blocks and runs that go, and their bytes.
        public let replaced: Int
        public let replacedBytes: Int
        /// Set by the merge's last stretch: runs up to this change are in the blocks now, and go.
        public let mergedRuns: GlobalID?
    }

    /// Ccids from one hash on.
    public struct HashBlock: Sendable, Hashable {
        public let low: UInt64
        public let block: [UInt8]
    }

    /// Rows of client names that no change names any more.
    public struct UnusedClients: Sendable, Hashable {
        /// Newer changes that the writer looks at; where there are more, the names stay until the next look.
        public static let newerRowsMax = 2_000

        public let rows: [Int64]
        /// The newest change that was looked at: the writer looks at those after it.
        public let through: GlobalID
    }

    /// A step in the erasing of what a user had whose account has ended.
    public struct Erasure: Sendable, Hashable {
        public let app: AppID
        public let user: UserID
        /// Rows, and bytes of them, that the step removes at most; one row is always taken.
        public let rowsMax: Int
        public let bytesMax: Int
    }

    public var cuts: [Cut] = []
    public var segments: [SegmentWork] = []
    public var forgettings: [Forgetting] = []
    public var changeIDRuns: [ChangeIDRun] = []
    public var changeIDMerges: [ChangeIDMerge] = []
    public var unusedClients: UnusedClients?
    public var erasures: [Erasure] = []
    /// Heads of objects that are written into their table, at most (`LateHeads`).
    public var headsMax: Int = 0

    public init() {}

    /// Rows that applying it writes or removes, at most: what a group of changes has to wait for
    /// (`RetentionSettings.rowsPerBatch`).
    public var rowCount: Int {
        var count = forgettings.reduce(0) { $0 + $1.hashes.count } + (unusedClients?.rows.count ?? 0)
        for cut in cuts {
            count += cut.rows.count + cut.changeIDs.count + cut.keptBodies.count + cut.droppedBodies.count
        }
        for work in segments { count += work.segments.count + work.replaced }
        for merge in changeIDMerges { count += merge.blocks.count + merge.replaced }
        return erasures.reduce(count + changeIDRuns.count + headsMax) { $0 + $1.rowsMax }
    }

    /// Bytes of those rows, as `rowCount` (`RetentionSettings.bytesPerBatch`).
    public var byteCount: Int {
        var count = cuts.reduce(0) { $0 + $1.bytes } + changeIDRuns.reduce(0) { $0 + $1.block.count }
        for work in segments {
            count += work.segments.reduce(work.replacedBytes) { $0 + $1.content.count }
        }
        for merge in changeIDMerges {
            count += merge.blocks.reduce(merge.replacedBytes) { $0 + $1.block.count }
        }
        return erasures.reduce(count) { $0 + $1.bytesMax }
    }

    /// It only brings heads into their table: what was planned besides rests on nothing of it.
    public var isHeadsOnly: Bool {
        var rest = self
        rest.headsMax = 0
        return headsMax > 0 && rest.isEmpty
    }

    public var isEmpty: Bool {
        cuts.isEmpty && segments.isEmpty && forgettings.isEmpty && changeIDRuns.isEmpty && changeIDMerges.isEmpty
            && unusedClients == nil && erasures.isEmpty && headsMax == 0
    }
}
