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

    /// One blob of bodies, newest change first.
    public struct Segment: Sendable, Hashable {
        /// Newest and oldest gid the segment answers for (objects whose newest change lay in between).
        public let high: GlobalID
        public let low: GlobalID
        public let content: [UInt8]
    }

    /// New segments of one bucket.
    public struct SegmentWork: Sendable, Hashable {
        public let bucket: BucketRow
        /// Segments whose `high` lies above this are replaced.
        public let replacesAbove: GlobalID
        public let segments: [Segment]
    }

    public var cuts: [Cut] = []
    public var segments: [SegmentWork] = []
    /// Forget hashes of ccids cut from the log whose change is older than this (milliseconds since 1970).
    public var forgetChangeIDsBefore: Int64?

    public init() {}

    public var isEmpty: Bool { cuts.isEmpty && segments.isEmpty && forgetChangeIDsBefore == nil }
}
