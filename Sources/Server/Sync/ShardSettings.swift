/// Bounds of one shard: of its groups, its objects and its memory.
public struct ShardSettings: Sendable, Equatable {
    /// Changes of one commit at most, 1 and up. More hardly raises the rate and waits longer.
    public var groupChangesMax: Int = 256
    /// Bytes of the rows of one commit and of the objects before its changes, after which no more changes are taken
    /// into it: bounds what a group holds in memory.
    public var groupBytesMax: Int = 16 << 20
    /// Bytes of one object as compact JSON; more is answered 413 (wire contract, 6.3).
    public var documentBytesMax: Int = 1 << 20
    /// Buckets of one user; the first change of one more is answered 500.
    public var bucketsPerUserMax: Int = 500
    /// Bytes of parsed objects in memory, roughly.
    public var entityCacheBytes: Int = 256 << 20
    /// Bytes of those of one user.
    public var entityCacheBytesPerUser: Int = 32 << 20
    /// Bytes of buckets without their objects (ccids mostly) in memory, roughly.
    public var bucketCacheBytes: Int = 128 << 20
    /// Newest changes of one object kept in memory for late edits.
    public var recentChangesMax: Int = 256
    /// Bytes of those, the values between them included; twice the object is always allowed, unless it is above 4 MiB.
    public var recentBytesMax: Int = 256 << 10
    /// Changes of one object that an edit may be late by; beyond, error 405.
    public var rebaseChangesMax: Int = 10_000
    /// The same as changes times the bytes of the object. What they cost the shard is bounded by `LateEdit`.
    public var rebaseBytesMax: Int = 1 << 30
    /// When a row carries the whole body.
    public var keyframes = KeyframePolicy()
    /// What a change may cost to decide here, in the bytes of `LongDecision.work`; one that costs more is given out to
    /// be decided elsewhere. As it stands everything is decided here.
    public var decidedHereMax: Int = .max
    /// Objects that one `EMPTY` removes in one group.
    public var emptyObjectsPerGroup: Int = 128
    /// `EMPTY` requests that may be under way; one more is answered 503.
    public var emptyJobsMax: Int = 64

    public init() {}

    /// What an operator has set; the rest stays as it is here.
    public init(_ limits: ServerLimits) {
        groupChangesMax = limits.commitChangesMax
        documentBytesMax = limits.documentBytesMax
        bucketsPerUserMax = limits.bucketsPerUserMax
        entityCacheBytes = limits.objectCacheBytes
        entityCacheBytesPerUser = limits.objectCacheBytesPerUser
        bucketCacheBytes = limits.bucketCacheBytes
    }
}
