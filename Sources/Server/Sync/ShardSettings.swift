import ThicketTreeShape

/// Bounds of one shard: of its groups, its objects and its memory.
public struct ShardSettings: Sendable, Equatable {
    /// Maximum number of changes in one commit, at least 1. Higher values hardly increase the rate and increase the
    /// latency.
    public var groupChangesMax: Int = 256
    /// Bytes of the rows of one commit, and of the objects before its changes, after which the group takes no further
    /// changes: bounds the memory of a group.
    public var groupBytesMax: Int = 16 << 20
    /// Maximum bytes of one object as compact JSON; more is answered with 413 (wire contract, 6.3).
    public var documentBytesMax: Int = 1 << 20
    /// Maximum number of buckets of one user; the first change of a further bucket is answered with 500.
    public var bucketsPerUserMax: Int = 500
    /// Approximate bytes of parsed objects in memory.
    public var entityCacheBytes: Int = 256 << 20
    /// Approximate bytes of one user's objects in memory.
    public var entityCacheBytesPerUser: Int = 32 << 20
    /// Approximate bytes of buckets without their objects (mostly ccids) in memory.
    public var bucketCacheBytes: Int = 128 << 20
    /// Number of an object's newest changes kept in memory for late edits.
    public var recentChangesMax: Int = 256
    /// Bytes of these changes, including the values between them; twice the size of the object is always allowed,
    /// unless the object is above 4 MiB.
    public var recentBytesMax: Int = 256 << 10
    /// Maximum number of changes of an object that an edit may be late by; beyond it the answer is error 405.
    public var rebaseChangesMax: Int = 10_000
    /// Maximum of these changes times the bytes of the object. `LateEdit` bounds the time they cost the shard.
    public var rebaseBytesMax: Int = 1 << 30
    /// Determines which rows carry the whole body.
    public var keyframes = KeyframePolicy()
    /// Maximum cost of deciding a change on the shard's thread, in the bytes of `DeferredChange.work`; a more costly
    /// change is decided on another thread. By default all changes are decided on the shard's thread.
    public var decidedHereMax: Int = .max
    /// Number of objects that one `EMPTY` removes per group.
    public var clearedObjectsPerGroup: Int = 128
    /// Maximum number of `EMPTY` requests in progress; a further one is answered with 503.
    public var clearJobsMax: Int = 64
    /// Nodes that one move in a tree visits to find how deep the branch is: more may take longer than other users can
    /// wait. A branch that has more and is moved deeper is refused as too deep (decision 0093).
    public var nodeVisitsMax: Int = 16_384

    /// Nodes directly in an inbox that others have sent.
    public var inboxNodesMax: Int = TreeLimits.inboxNodesMax
    /// Nodes directly in an inbox that one account has sent.
    public var inboxNodesPerSenderMax: Int = TreeLimits.inboxNodesPerSenderMax
    /// Nodes that one account sends into one inbox in a minute.
    public var messagesPerMinuteMax: Int = TreeLimits.messagesPerMinuteMax

    /// Creates the defaults.
    public init() {}

    /// Takes the limits that an operator has set; the other settings keep their defaults.
    public init(_ limits: ServerLimits) {
        groupChangesMax = limits.commitChangesMax
        documentBytesMax = limits.documentBytesMax
        bucketsPerUserMax = limits.bucketsPerUserMax
        entityCacheBytes = limits.objectCacheBytes
        entityCacheBytesPerUser = limits.objectCacheBytesPerUser
        bucketCacheBytes = limits.bucketCacheBytes
        inboxNodesMax = limits.inboxNodesMax
        inboxNodesPerSenderMax = limits.inboxNodesPerSenderMax
        messagesPerMinuteMax = limits.messagesPerMinuteMax
    }
}
