/// Every bound of a running server that an operator may set, with its unit, default and what a client sees at it.
///
/// What the protocol itself fixes stands in `Limits`. The loader keeps each value within the range named here.
public struct ServerLimits: Sendable, Equatable {
    // MARK: Size of one thing

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
    /// reserve, counts too.
    public var connectionsMax: Int = 100_000

    /// Channels (buckets) of one connection, 1...10,000. One more `init`: `auth:` with code 500.
    public var channelsPerConnectionMax: Int = 128

    /// Bytes waiting to be read by one client, 64 KiB...1 GiB. Above it: close code 1013, and the client catches up by
    /// `cv` when it comes back.
    public var pendingBytesPerConnectionMax: Int = 16 << 20

    /// Bytes waiting to be read by all connections together, 64 MiB...1 TiB; a quarter of them may be those of SockJS
    /// sessions besides. Above it a connection that is behind is closed with 1013 when more is sent to it.
    public var pendingBytesTotalMax: Int = 2 << 30

    /// Bytes of unfinished requests and messages of all connections together, 16 MiB...1 TiB. Above it a connection
    /// that holds more than its share is answered 503 or closed with 1013.
    public var gatheredBytesTotalMax: Int = 512 << 20

    /// Messages a second of one connection on average, 1...1,000,000. A connection above it is read more slowly; see
    /// `messagesBurst`.
    public var messagesPerSecond: Int = 50_000

    /// Messages a connection may send at once after a quiet time, 1...10,000,000. One that still goes on by a whole
    /// burst more is answered `N:?` (changes: error 503) until it falls back.
    public var messagesBurst: Int = 100_000

    /// Changes a second of one connection on average, 1...1,000,000. As `messagesPerSecond`.
    public var changesPerSecond: Int = 20_000

    /// Changes a connection may send at once after a quiet time, 1...10,000,000. As `messagesBurst`; then error 503.
    public var changesBurst: Int = 40_000

    /// Reads (`init`, `i`, `e`, `cv`) of one connection that await their answer, 1...100,000. Above it the connection
    /// is read no further until some are answered; at four times the number: close code 1013.
    ///
    /// Some clients have 200 `e` in flight, one asks for 160 versions at once (wire contract, section 5).
    public var readsPerConnectionMax: Int = 512

    /// SockJS sessions without a socket of their own, 1...1,000,000. One more: status 503.
    public var sockJSSessionsMax: Int = 20_000

    /// Bytes of a streaming SockJS response, 4 KiB...64 MiB; then the client asks for the next one.
    public var sockJSResponseBytes: Int = 128 << 10

    // MARK: One user, one bucket

    /// Channels of one user on all connections, 1...1,000,000. One more `init`: `auth:` with code 500.
    public var channelsPerUserMax: Int = 10_000

    /// Changes of one user that await their outcome, 1...10,000,000. Above it the user's connections are read no
    /// further until half of them have it.
    public var changesPerUserMax: Int = 4_096

    /// Bytes that those changes take in memory, 64 KiB...16 GiB. From it on none of the user's connections is read
    /// until they take half; at twice as much they are refused with 503, or their connection is closed with 1013.
    public var changeBytesPerUserMax: Int = 8 << 20

    /// Changes of one user decided before it is the next one's turn, 1...100,000; more while the disk is slower than
    /// the decisions.
    public var changesPerUserTurn: Int = 64

    /// Reads of one user that await their answer, 1...1,000,000. As `changesPerUserMax`. Half of the readers at most
    /// work on them.
    public var readsPerUserMax: Int = 1_024

    /// Bytes waiting to be read by all connections of one user, 1 MiB...16 GiB. Above it a connection that is behind is
    /// closed with 1013 when more is sent to it.
    public var pendingBytesPerUserMax: Int = 32 << 20

    /// Bytes of unfinished messages of one user's connections, and of all that have shown no token, 1 MiB...16 GiB.
    /// Above it a connection that adds to them is answered 503 or closed with 1013.
    public var gatheredBytesPerUserMax: Int = 16 << 20

    /// Microseconds of one turn of the network loop for one user's connections, and for all that have shown no token,
    /// 10...1,000,000. What is left of their messages waits for the next turn.
    public var turnMicrosecondsPerUser: Int = 100

    /// The part of the time in percent that one user has of the network loop, and of the thread that decides changes,
    /// while others want it too, 1...100; the same for all that have shown no token together. 100: all of it.
    public var threadPercentPerUser: Int = 25

    /// Microseconds of processor time from which a message, or the decision of a change, is costly, 100...10,000,000.
    /// Whoever sends one again within a minute rests for `costlyRestFactor` times as long.
    public var costlyMicroseconds: Int = 5_000

    /// How long a user rests after something costly, as a multiple of what it cost, 0...10,000. With 250 it has 0.4
    /// percent of each thread, so that 99 of 100 changes of others do not meet it; with 100 the 99th percentile is just
    /// it.
    public var costlyRestFactor: Int = 250

    /// Buckets of one user, 1...1,000,000. One more: `auth:` with code 500.
    public var bucketsPerUserMax: Int = 500

    /// Channels on one bucket, 1...1,000,000. One more `init`: `auth:` with code 500.
    public var subscribersPerBucketMax: Int = 20_000

    /// Bytes of encoded changes kept in memory for one bucket, 0...1 GiB. An older `cv` is answered from disk.
    public var tailBytesMax: Int = 1 << 20

    /// Changes kept in memory for one bucket, 0...1,000,000. As `tailBytesMax`.
    public var tailChangesMax: Int = 1_000

    /// Bytes of encoded changes kept in memory for all buckets, 0...1 TiB. As `tailBytesMax`.
    public var tailBytesTotalMax: Int = 256 << 20

    /// Bytes of one `c:` message of a catch-up from disk, 64 KiB...64 MiB. A longer one comes in several messages.
    public var catchUpPageBytes: Int = 4 << 20

    /// Changes of one `c:` message of a catch-up from disk, 1...1,000,000. As `catchUpPageBytes`.
    public var catchUpPageChanges: Int = 20_000

    /// HTTP requests of all users that wait for changes, 0...1,000,000. One more: 503.
    public var changesWaitersMax: Int = 10_000

    /// How long such a request waits before it is answered that there were none, 0 (not at all) to 10 min.
    ///
    /// Proxies often give up after 60 s.
    public var changesWait: Duration = .seconds(50)

    // MARK: The whole server

    /// Bytes of parsed objects kept in memory, roughly, 1 MiB...1 TiB. What falls out is read again when it is edited.
    public var objectCacheBytes: Int = 256 << 20

    /// Bytes of those of one user, 1 MiB...1 TiB. As above.
    public var objectCacheBytesPerUser: Int = 24 << 20

    /// Bytes of buckets without their objects (their ccids) kept in memory, roughly, 1 MiB...1 TiB. As above.
    public var bucketCacheBytes: Int = 128 << 20

    /// Bytes of database pages that the store's writer keeps, 1 MiB...64 GiB. Each of its other connections, one a
    /// reader and two of the keeper, keeps a quarter of it: the system has the pages, too.
    public var pageCacheBytes: Int = 16 << 20

    /// Bytes of old ccids that the writer remembers, 1 MiB...64 GiB. Others are read when they are asked for.
    public var changeIDCacheBytes: Int = 64 << 20

    /// Bytes of segments that all readers remember together, 1 MiB...64 GiB. As above.
    public var segmentCacheBytes: Int = 16 << 20

    /// Changes whose objects' heads are kept in memory before they begin to go into their table, 64...100,000 (0075).
    public var lateHeadsMax: Int = 8_192

    /// Objects in all index walks that are remembered, 1,000...1,000,000,000: some 60 bytes each. Others are made anew.
    public var walkObjectsMax: Int = 1_000_000

    /// Changes of all catch-ups from disk that are remembered, 1,000...1,000,000,000: 8 bytes each. As above.
    public var catchUpPositionsMax: Int = 2_000_000

    /// Bytes of index pages kept as they were sent, 0...1 TiB. Others are made anew.
    public var indexCacheBytes: Int = 32 << 20

    /// Bytes of the write-ahead log that are written out before they are needed, 0...1 GiB (0015).
    public var logReservedBytes: Int = 16 << 20

    /// Changes handed to the shard that await their outcome, 1...10,000,000. Above it: error 503.
    public var changesQueuedMax: Int = 50_000

    /// Bytes of those changes, 1 MiB...16 GiB. As `changesQueuedMax`.
    public var changeBytesQueuedMax: Int = 256 << 20

    /// Percent of `changesQueuedMax` and `changeBytesQueuedMax` from which senders are read no further, 1...100.
    public var queueHighWaterPercent: Int = 50

    /// Reads of all connections that await their answer, 1...10,000,000. Above it askers are read no further; at twice
    /// the number: close code 1013.
    public var readsQueuedMax: Int = 100_000

    /// Microseconds, 0...1,000,000: while groups of changes have taken no longer than this on average, the network loop
    /// commits a lone change itself instead of waking another thread for it (0020). 0 is never.
    public var inlineCommitMicroseconds: Int = 500

    /// Changes of one commit, 1...100,000. More wait for the next.
    public var commitChangesMax: Int = 1_024

    public init() {}
}
