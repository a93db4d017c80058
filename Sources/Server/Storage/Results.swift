import ThicketProtocol

/// An object as its bucket's owner loads it: head, value and what the keyframe rule counts.
public struct EntityHead: Hashable, Sendable {
    public let record: EntityRecord
    /// Body as JSON; nil when the object is deleted.
    public let body: [UInt8]?
    /// Changes since the newest keyframe (all of this life when there is none); feeds `KeyframePolicy`.
    public let diffsSinceKeyframe: Int
    /// Bytes of their diffs.
    public let diffBytesSinceKeyframe: Int

    public init(record: EntityRecord, body: [UInt8]?, diffsSinceKeyframe: Int, diffBytesSinceKeyframe: Int) {
        self.record = record
        self.body = body
        self.diffsSinceKeyframe = diffsSinceKeyframe
        self.diffBytesSinceKeyframe = diffBytesSinceKeyframe
    }
}

/// Everything needed to rebase a change: the value it was made on, and what came after.
public struct EntityHistory: Hashable, Sendable {
    /// Body at the wanted version as JSON; nil when the object was deleted at that version.
    public let base: [UInt8]?
    /// The entity's changes above the wanted version, oldest first.
    public let changes: [ChangeRecord]

    /// Bytes of diffs and keyframes after which no more are read for one history; it is then nil.
    public static let bytesMax = 32 << 20

    public init(base: [UInt8]?, changes: [ChangeRecord]) {
        self.base = base
        self.changes = changes
    }
}

/// Part of a bucket's log.
public struct ChangePage: Hashable, Sendable {
    /// Oldest first.
    public let changes: [ChangeRecord]
    /// More follow: ask again after the last one's gid.
    public let hasMore: Bool

    public init(changes: [ChangeRecord], hasMore: Bool) {
        self.changes = changes
        self.hasMore = hasMore
    }
}

/// Which part of a bucket's index is wanted.
public struct IndexQuery: Hashable, Sendable {
    public var bucket: BucketRow
    /// The walk's `current`: objects are listed as they stood right after this change.
    public var current: GlobalID
    /// The `current` of the walk that this one took the place of, for clients whose pages must not tell that of this
    /// one. The store does not look at it.
    public var told: GlobalID?
    /// Objects whose newest change is below this one; nil for the first page.
    public var before: GlobalID?
    /// Only objects whose newest change is above this one. The store does not look at it: see `IndexSlice.since`.
    public var since: GlobalID?
    /// Objects on the page at most.
    public var limit: Int
    /// Whether bodies are wanted.
    public var withData: Bool
    /// Bytes of bodies after which the page ends early; one object is always given.
    public var byteLimit: Int

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
    public let key: EntityKey
    public let version: Version
    /// The change that made this version.
    public let gid: GlobalID
    /// JSON, when data was asked for.
    public let body: [UInt8]?

    public init(key: EntityKey, version: Version, gid: GlobalID, body: [UInt8]?) {
        self.key = key
        self.version = version
        self.gid = gid
        self.body = body
    }
}

/// A page of a bucket's index: live objects, most recently changed first.
public struct IndexSlice: Hashable, Sendable {
    public let entries: [IndexEntry]
    /// `IndexQuery.before` of the next page; nil when this page is the last.
    public let next: GlobalID?
    /// Objects in the whole walk; 0 when it took no look at all of them.
    public let total: Int

    public init(entries: [IndexEntry], next: GlobalID?, total: Int) {
        self.entries = entries
        self.next = next
        self.total = total
    }

    /// The part of the page above a position; the walk ends there.
    public func since(_ gid: GlobalID?) -> IndexSlice {
        guard let gid, let end = entries.firstIndex(where: { $0.gid <= gid }) else { return self }
        return IndexSlice(entries: Array(entries[..<end]), next: nil, total: 0)
    }
}
