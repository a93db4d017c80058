import ThicketProtocol

/// An object as its shard loads it: head, body and the counters of the keyframe policy.
public struct EntityHead: Hashable, Sendable {
    /// The head without the body.
    public let record: EntityRecord
    /// Body as JSON; nil when the object is deleted.
    public let body: [UInt8]?
    /// Changes since the newest keyframe, or since the creation when there is no keyframe; input of `KeyframePolicy`.
    public let diffsSinceKeyframe: Int
    /// Bytes of the diffs of these changes.
    public let diffBytesSinceKeyframe: Int

    /// Creates a head with its body and keyframe counters.
    public init(record: EntityRecord, body: [UInt8]?, diffsSinceKeyframe: Int, diffBytesSinceKeyframe: Int) {
        self.record = record
        self.body = body
        self.diffsSinceKeyframe = diffsSinceKeyframe
        self.diffBytesSinceKeyframe = diffBytesSinceKeyframe
    }
}

/// Everything needed to rebase a change: the body it was made on, and the changes since.
public struct EntityHistory: Hashable, Sendable {
    /// Body at the requested version as JSON; nil when the object was deleted at that version.
    public let base: [UInt8]?
    /// The entity's changes above the requested version, oldest first.
    public let changes: [ChangeRecord]

    /// Maximum bytes of diffs and keyframes read for one history; beyond it the history is nil.
    public static let bytesMax = 32 << 20

    /// Creates a history; `changes` are oldest first.
    public init(base: [UInt8]?, changes: [ChangeRecord]) {
        self.base = base
        self.changes = changes
    }
}

/// Part of a bucket's log.
public struct ChangePage: Hashable, Sendable {
    /// Oldest first.
    public let changes: [ChangeRecord]
    /// More changes follow; request them with the gid of the last change as `after`.
    public let hasMore: Bool

    /// Creates a page; `changes` are oldest first.
    public init(changes: [ChangeRecord], hasMore: Bool) {
        self.changes = changes
        self.hasMore = hasMore
    }
}

/// Selects a part of a bucket's index.
public struct IndexQuery: Hashable, Sendable {
    /// Row of the bucket.
    public var bucket: BucketRow
    /// Position of the scan: objects are listed as they were right after this change.
    public var current: GlobalID
    /// The `current` of the scan that this one replaced, for clients whose pages must not carry a usable position. The
    /// store ignores it.
    public var replacedCurrent: GlobalID?
    /// Where the page begins: objects whose newest change is below this position, or above it if the oldest come first;
    /// nil for the first page.
    public var before: GlobalID?
    /// Whether the objects that changed longest ago come first: in a tree, most nodes then follow their parents.
    public var oldestFirst = false
    /// Lists only objects whose newest change is above this position. The store ignores it; see `IndexSlice.since`.
    public var since: GlobalID?
    /// Maximum number of objects on the page.
    public var limit: Int
    /// Whether the page includes bodies.
    public var withData: Bool
    /// Bytes of bodies after which the page ends early; a page always has at least one object if any is left.
    public var byteLimit: Int

    /// Creates a query; the defaults select the first page without bodies.
    public init(
        bucket: BucketRow, current: GlobalID, before: GlobalID? = nil, limit: Int = Limits.indexPageDefault,
        withData: Bool = false, byteLimit: Int = Limits.indexPageBytesMax
    ) {
        self.bucket = bucket
        self.current = current
        self.before = before
        self.limit = limit
        self.withData = withData
        self.byteLimit = byteLimit
    }
}

/// One object of an index page.
public struct IndexEntry: Hashable, Sendable {
    /// The object's key.
    public let key: EntityKey
    /// The object's version at the position of the scan.
    public let version: Version
    /// The change that made this version.
    public let gid: GlobalID
    /// The body as JSON if the query asked for data; otherwise nil.
    public let body: [UInt8]?

    /// Creates an entry.
    public init(key: EntityKey, version: Version, gid: GlobalID, body: [UInt8]?) {
        self.key = key
        self.version = version
        self.gid = gid
        self.body = body
    }
}

/// A page of a bucket's index: live objects, in the order of the query.
public struct IndexSlice: Hashable, Sendable {
    /// The listed objects, in the order of the query.
    public let entries: [IndexEntry]
    /// `IndexQuery.before` of the next page; nil when this page is the last.
    public let next: GlobalID?
    /// Number of objects in the whole scan; 0 when the page was answered without listing all objects.
    public let total: Int

    /// Creates a page.
    public init(entries: [IndexEntry], next: GlobalID?, total: Int) {
        self.entries = entries
        self.next = next
        self.total = total
    }

    /// The part of the page above position `gid`; the scan ends at it.
    public func since(_ gid: GlobalID?) -> IndexSlice {
        guard let gid, let end = entries.firstIndex(where: { $0.gid <= gid }) else { return self }
        return IndexSlice(entries: Array(entries[..<end]), next: nil, total: 0)
    }
}
