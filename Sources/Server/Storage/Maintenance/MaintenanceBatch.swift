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
        /// Their ccids' hashes with the rows' times, to be kept on.
        public let changeIDs: [OldChangeID]
        /// Bodies that must stay readable without the rows.
        public let keptBodies: [KeptBody]
        /// Bodies kept earlier that nobody can ask for any more.
        public let droppedBodies: [KeptVersion]
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
        /// Ascending by `high`.
        public let segments: [Segment]
        /// Bytes of log that these segments take in: the bucket's count of fresh bytes falls by as much.
        public let freshBytes: Int64
    }

    /// Hashes of ccids that need not be kept any longer.
    public struct Forgetting: Sendable, Hashable {
        public let bucket: BucketRow
        /// Those of changes older than this (milliseconds since 1970).
        public let before: Int64
    }

    public var cuts: [Cut] = []
    public var segments: [SegmentWork] = []
    public var forgettings: [Forgetting] = []

    public init() {}

    public var isEmpty: Bool { cuts.isEmpty && segments.isEmpty && forgettings.isEmpty }
}
