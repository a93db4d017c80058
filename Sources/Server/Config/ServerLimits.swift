/// Every bound of a running server that an operator may set, with its unit, default and its effect on clients.
///
/// Bounds fixed by the protocol are in `Limits`. The loader keeps each value within the range given here.
public struct ServerLimits: Sendable, Equatable {
    // MARK: Sizes

    /// Bytes of one object as compact JSON, 1 KiB...64 MiB. Above it: error 413, nothing stored.
    ///
    /// The original's limit is not published; 1 MB is what its clients were told (wire contract, section 6.3).
    public var documentBytesMax: Int = 1 << 20

    /// Bytes of one message (all fragments together), 64 KiB...256 MiB. Above it: close code 1009.
    ///
    /// A change may carry the diff and the whole object, each with escapes, hence a multiple of `documentBytesMax`.
    public var frameBytesMax: Int = 8 << 20

    // MARK: One connection

    /// Connections of all kinds, 1...1,000,000. Above it a new one is closed at once; the limit on open files, less a
    /// reserve, applies too.
    public var connectionsMax: Int = 100_000

    /// Channels (buckets) of one connection, 1...10,000. A further `init`: `auth:` with code 500.
    public var channelsPerConnectionMax: Int = 128

    /// Bytes queued for one client, 64 KiB...1 GiB. Above it: close code 1013, and the client catches up by `cv` when
    /// it reconnects.
    public var pendingBytesPerConnectionMax: Int = 16 << 20

    /// Bytes queued for all connections together, 64 MiB...1 TiB; SockJS sessions may have a quarter of it in addition.
    /// Above it, sending to a connection that is behind closes that connection with 1013.
    public var pendingBytesTotalMax: Int = 2 << 30

    /// Bytes of unfinished requests and messages of all connections together, 16 MiB...1 TiB. Above it a connection
    /// that holds more than its share is answered 503 or closed with 1013.
    public var gatheredBytesTotalMax: Int = 512 << 20

    /// Messages per second of one connection on average, 1...1,000,000. A connection above it is read more slowly; see
    /// `messagesBurst`.
    public var messagesPerSecond: Int = 50_000

    /// Messages that a connection may send at once after a quiet time, 1...10,000,000. A connection that exceeds it by
    /// another whole burst is answered `N:?` (changes: error 503) until it falls back.
    public var messagesBurst: Int = 100_000

    /// Changes per second of one connection on average, 1...1,000,000. The effect is that of `messagesPerSecond`.
    public var changesPerSecond: Int = 20_000

    /// Changes that a connection may send at once after a quiet time, 1...10,000,000. As `messagesBurst`; then error
    /// 503.
    public var changesBurst: Int = 40_000

    /// Unanswered reads (`init`, `i`, `e`, `cv`) of one connection, 1...100,000. Above it the connection is not read
    /// until some are answered; at four times the number: close code 1013.
    ///
    /// Some clients have 200 `e` in flight, one requests 160 versions at once (wire contract, section 5).
    public var readsPerConnectionMax: Int = 512

    /// SockJS sessions without a socket of their own, 1...1,000,000. A further one: status 503.
    public var sockJSSessionsMax: Int = 20_000

    /// Bytes of a streaming SockJS response, 4 KiB...64 MiB; then the client requests the next one.
    public var sockJSResponseBytes: Int = 128 << 10

    // MARK: One user, one bucket

    /// Channels of one user on all connections, 1...1,000,000. A further `init`: `auth:` with code 500.
    public var channelsPerUserMax: Int = 10_000

    /// Changes of one user that await their outcome, 1...10,000,000. Above it the user's connections are not read until
    /// half of them have it.
    public var changesPerUserMax: Int = 4_096

    /// Bytes of memory of those changes, 64 KiB...16 GiB. From it on the user's connections are not read until the
    /// changes take half of it; at twice as much, changes are refused with 503, or the connection is closed with 1013.
    public var changeBytesPerUserMax: Int = 8 << 20

    /// Changes of one user decided before the next user's turn, 1...100,000; more while the disk is slower than the
    /// decisions.
    public var changesPerUserTurn: Int = 64

    /// Unanswered reads of one user, 1...1,000,000. The effect is that of `changesPerUserMax`. At most half of the
    /// readers work on them.
    public var readsPerUserMax: Int = 1_024

    /// Bytes queued for all connections of one user, 1 MiB...16 GiB. Above it, sending to a connection that is behind
    /// closes that connection with 1013.
    public var pendingBytesPerUserMax: Int = 32 << 20

    /// Bytes of unfinished messages of one user's connections, and of all unauthenticated ones, 1 MiB...16 GiB. Above
    /// it a connection that adds to them is answered 503 or closed with 1013.
    public var gatheredBytesPerUserMax: Int = 16 << 20

    /// Microseconds of one turn of the network loop for one user's connections, and for all unauthenticated ones,
    /// 10...1,000,000. The rest of their messages waits for the next turn.
    public var turnMicrosecondsPerUser: Int = 100

    /// Percent of the time of the network loop, and of the thread that decides changes, that one user gets while other
    /// users want it, 1...100; the same for all unauthenticated connections together. 100 disables the bound.
    public var threadPercentPerUser: Int = 25

    /// Microseconds of processor time from which on a message, or the decision of a change, is costly,
    /// 100...10,000,000. A user that causes another one within a minute is throttled for `costlyThrottleFactor` times
    /// as long.
    public var costlyMicroseconds: Int = 5_000

    /// How long a user is throttled after costly work, as a multiple of its cost, 0...10,000. With 250 the user has 0.4
    /// percent of each thread, so that 99 of 100 changes of other users are not delayed by it; with 100 the 99th
    /// percentile just is.
    public var costlyThrottleFactor: Int = 250

    /// Buckets of one user, 1...1,000,000. A further one: `auth:` with code 500.
    public var bucketsPerUserMax: Int = 500

    /// Nodes directly in an inbox that other accounts have sent, 1...100,000. A further one: 413 `inbox-full`.
    public var inboxNodesMax: Int = 10_000

    /// Of these, nodes that one account has sent, 1...100,000. A further one: 413 `inbox-full`.
    public var inboxNodesPerSenderMax: Int = 1_000

    /// Nodes that one account sends into one inbox in a minute, 1...1,000,000. A further one: 413 `rate`.
    public var messagesPerMinuteMax: Int = 100

    /// Channels on one bucket, 1...1,000,000. A further `init`: `auth:` with code 500.
    public var subscribersPerBucketMax: Int = 20_000

    /// Bytes of encoded changes kept in memory for one bucket, 0...1 GiB. An older `cv` is answered from disk.
    public var tailBytesMax: Int = 1 << 20

    /// Changes kept in memory for one bucket, 0...1,000,000. The effect is that of `tailBytesMax`.
    public var tailChangesMax: Int = 1_000

    /// Bytes of encoded changes kept in memory for all buckets, 0...1 TiB. The effect is that of `tailBytesMax`.
    public var tailBytesTotalMax: Int = 256 << 20

    /// Bytes of one `c:` message of a catch-up from disk, 64 KiB...64 MiB. A longer catch-up is split into several
    /// messages.
    public var catchUpPageBytes: Int = 4 << 20

    /// Changes of one `c:` message of a catch-up from disk, 1...1,000,000. The effect is that of `catchUpPageBytes`.
    public var catchUpPageChanges: Int = 20_000

    /// HTTP requests of all users that wait for changes, 0...1,000,000. A further one: 503.
    public var changesWaitersMax: Int = 10_000

    /// How long such a request waits before it is answered without changes, 0 (not at all)...10 min.
    ///
    /// Proxies often give up after 60 s.
    public var changesWait: Duration = .seconds(50)

    // MARK: Blobs

    /// Bytes of one user's blobs in one app, open uploads included, 0 (no blobs)...1 PiB. Above it: 413, reason
    /// `quota`.
    public var blobUserMax: Int = 10 << 30

    /// Bytes of the blobs of all users of one app, 0...1 EiB. The effect is that of `blobUserMax`.
    public var blobAppMax: Int = 1 << 40

    /// Open uploads of one user in one app, 1...100,000. The effect is that of `blobUserMax`.
    public var blobUploadsMax: Int = 1_000

    /// Requests about blobs in progress, 1...10,000; each may hold a file and 256 KiB. A further one: 503.
    public var blobTransfersMax: Int = 256

    /// The same for one user, 1...10,000.
    public var blobTransfersPerUserMax: Int = 16

    // MARK: The whole server

    /// Bytes of parsed objects kept in memory, approximately, 1 MiB...1 TiB. An evicted object is read again for its
    /// next edit.
    public var objectCacheBytes: Int = 256 << 20

    /// Bytes of one user's parsed objects, 1 MiB...1 TiB. The effect is that of `objectCacheBytes`.
    public var objectCacheBytesPerUser: Int = 24 << 20

    /// Bytes of buckets without their objects (their ccids) kept in memory, approximately, 1 MiB...1 TiB. The effect is
    /// that of `objectCacheBytes`.
    public var bucketCacheBytes: Int = 128 << 20

    /// Bytes of database pages that the store's writer caches, 1 MiB...64 GiB. Each other connection of the store, one
    /// per reader and two for maintenance, caches a quarter of it, because the system caches the pages too.
    public var pageCacheBytes: Int = 16 << 20

    /// Bytes of archived ccids that the writer caches, 1 MiB...64 GiB. Others are read when needed.
    public var changeIDCacheBytes: Int = 64 << 20

    /// Bytes of segments that all readers cache together, 1 MiB...64 GiB. Others are read when needed.
    public var segmentCacheBytes: Int = 16 << 20

    /// Changes whose objects' heads are kept in memory before they are written to their table, 64...100,000 (0008).
    public var writeBehindHeadsMax: Int = 8_192

    /// Objects of all cached index scans, 1,000...1,000,000,000, about 60 bytes each. Other scans are made again.
    public var scanObjectsMax: Int = 1_000_000

    /// Changes of all cached catch-ups from disk, 1,000...1,000,000,000, 8 bytes each. Others are made again.
    public var catchUpPositionsMax: Int = 2_000_000

    /// Bytes of index pages and lists of children cached in their sent form, 0...1 TiB. Others are made again.
    public var indexCacheBytes: Int = 32 << 20

    /// Bytes of the write-ahead log that are allocated in advance, 0...1 GiB (0008).
    public var logReservedBytes: Int = 16 << 20

    /// Changes handed to the shard that await their outcome, 1...10,000,000. Above it: error 503.
    public var changesQueuedMax: Int = 50_000

    /// Bytes of those changes, 1 MiB...16 GiB. The effect is that of `changesQueuedMax`.
    public var changeBytesQueuedMax: Int = 256 << 20

    /// Percent of `changesQueuedMax` and `changeBytesQueuedMax` from which on senders are not read, 1...100.
    public var queueHighWaterPercent: Int = 50

    /// Unanswered reads of all connections, 1...10,000,000. Above it connections that send reads are not read; at twice
    /// the number: close code 1013.
    public var readsQueuedMax: Int = 100_000

    /// Microseconds, 0...1,000,000: while groups of changes have taken no longer than this on average, the network loop
    /// commits a lone change itself instead of waking another thread for it (0001). 0 disables this.
    public var inlineCommitMicroseconds: Int = 500

    /// Changes of one commit, 1...100,000. Further ones wait for the next.
    public var commitChangesMax: Int = 1_024

    /// The defaults.
    public init() {}
}
