import ThicketCrypto

/// Settings of a `SQLiteStore`. Tests use tiny numbers and failing disks.
public struct StoreSettings: Sendable {
    /// Milliseconds for which a commit, or opening the store, waits for another process that holds the file.
    public var busyTimeoutMilliseconds: Int32 = 10_000
    /// Bytes of the file that readers map into memory; 0 maps nothing. A disk error in a mapped page kills the process,
    /// whereas a failed read is an ordinary error.
    public var mappedBytes: Int64 = 0
    /// KiB of the writer's page cache; each other connection has a quarter of it.
    public var cacheKiB: Int = 16 << 10
    /// Bytes of the write-ahead log that are allocated in advance, 0 for none: a commit into allocated space is cheaper
    /// than one that extends the file (decision 0008).
    public var logReservedBytes = 0
    /// Pages in the write-ahead log at which maintenance starts passive checkpoints, which block no other thread.
    public var passivePages: Int = 8_000
    /// Pages in the write-ahead log at which the writer itself restarts it between two groups (64 MiB). After a crash
    /// SQLite reads the whole log first, at about 1.2 ms per MiB (decision 0008).
    public var restartPages: Int = 16_384
    /// Maximum pages that the writer itself checkpoints for a restart (4 MiB); maintenance has checkpointed the others
    /// before.
    public var restartRestPages: Int = 1_024
    /// Pages in the write-ahead log at which it is restarted regardless of the pages left to checkpoint (128 MiB):
    /// maintenance is not keeping up.
    public var restartPagesMax: Int = 32_768
    /// Milliseconds for which the writer waits for readers when it restarts the log; after that it continues and
    /// retries later.
    public var restartWaitMilliseconds: Int32 = 20
    /// Number of changes whose heads are kept in memory before they are written to their table (decision 0008); about
    /// half as many again arrive while they are being written.
    public var writeBehindHeadsMax: Int = 8_192
    /// Maximum number of objects in all cached index scans together.
    public var scanEntriesMax: Int = 1_000_000
    /// Maximum number of cached index scans.
    public var scansMax: Int = 64
    /// Maximum number of positions in all cached catch-ups together.
    public var catchUpEntriesMax: Int = 2_000_000
    /// Maximum bytes of segments in the cache shared by all readers; the newest segment stays regardless of its size.
    public var segmentBytesMax: Int = 16 << 20
    /// Maximum bytes of archived ccids that the writer caches.
    public var changeIDBytesMax: Int = 64 << 20
    /// Number of ccids of a bucket's newest changes that a group of that bucket archives as one run (decision 0008).
    public var changeIDRunLength: Int = 2_048
    /// Maximum number of pages of the file; nil leaves SQLite's bound (4 TiB).
    public var pagesMax: Int?
    /// Name of a file system registered with SQLite; nil for the default one.
    public var vfs: String?
    /// Fault injection: called before each file system call outside of SQLite, with the file's path. Returns the errno
    /// with which the call fails, or 0.
    public var fileFault: @Sendable (FileCall, String) -> Int32 = { _, _ in 0 }
    /// Returns the given number of unpredictable bytes, for the keys of a new store.
    public var random: @Sendable (Int) -> [UInt8] = { RandomBytes.make($0) }

    /// Creates the defaults.
    public init() {}

    /// Takes the limits that an operator has set; the other settings keep their defaults.
    public init(_ limits: ServerLimits) {
        cacheKiB = limits.pageCacheBytes >> 10
        logReservedBytes = limits.logReservedBytes
        changeIDBytesMax = limits.changeIDCacheBytes
        segmentBytesMax = limits.segmentCacheBytes
        writeBehindHeadsMax = limits.writeBehindHeadsMax
        scanEntriesMax = limits.scanObjectsMax
        catchUpEntriesMax = limits.catchUpPositionsMax
    }
}
