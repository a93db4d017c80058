import ThicketCrypto

/// How a `SQLiteStore` treats its file. Tests run with tiny numbers and failing disks.
public struct StoreSettings: Sendable {
    /// Milliseconds a commit, or the opening, waits for another process that holds the file.
    public var busyTimeoutMilliseconds: Int32 = 10_000
    /// Bytes of the file that readers map into memory; 0 maps nothing. A disk error inside a mapping ends the process,
    /// where a failed read is an error like any other.
    public var mappedBytes: Int64 = 0
    /// KiB of pages that the writer keeps; each other connection keeps a quarter of it.
    public var cacheKiB: Int = 16 << 10
    /// Bytes of the log that are written out before they are needed, 0 for none: a commit into them takes the disk less
    /// than one that makes the file longer (0015).
    public var logReservedBytes: Int = 0
    /// Pages in the log from which the background moves what it can without stopping anybody.
    public var passivePages: Int = 8_000
    /// Pages in the log from which the writer itself makes it begin anew between two groups (64 MiB). After a crash
    /// SQLite reads the whole log before anything else, a MiB in about 1.2 ms (0065).
    public var restartPages: Int = 16_384
    /// Pages that the writer itself moves for that at most (4 MiB): the background has moved the others before.
    public var restartRestPages: Int = 1_024
    /// Pages in the log from which it begins anew however many are left to move (128 MiB): the background does not get
    /// on.
    public var restartPagesMax: Int = 32_768
    /// Milliseconds the writer waits for readers when it makes the log begin anew; then it goes on and tries later.
    public var restartWaitMilliseconds: Int32 = 20
    /// Changes whose objects' heads are kept in memory before they begin to go into their table (0075); half as many
    /// again come until they have.
    public var lateHeadsMax: Int = 8_192
    /// Objects in all remembered index walks together.
    public var walkEntriesMax: Int = 1_000_000
    /// Index walks remembered.
    public var walksMax: Int = 64
    /// Positions in all remembered catch-ups together.
    public var catchUpEntriesMax: Int = 2_000_000
    /// Bytes of segments that all readers remember together; the newest stays however large it is.
    public var segmentBytesMax: Int = 16 << 20
    /// Bytes of settled ccids that the writer remembers.
    public var changeIDBytesMax: Int = 64 << 20
    /// Ccids of a bucket's newest changes that the group that changes it settles as one run (0037).
    public var changeIDRunLength: Int = 2_048
    /// Pages the file may grow to; nil leaves SQLite's bound (4 TiB).
    public var pagesMax: Int?
    /// A file system registered with SQLite; nil for the usual one.
    public var vfs: String?
    /// Asked before each call to the disk that is not SQLite's, with the file's path: an errno lets it fail, 0 does
    /// not.
    public var fileFault: @Sendable (FileCall, String) -> Int32 = { _, _ in 0 }
    /// Gives that many bytes nobody can guess: the keys of a new store.
    public var random: @Sendable (Int) -> [UInt8] = { RandomBytes.make($0) }

    public init() {}

    /// What an operator has set; the rest stays as it is here.
    public init(_ limits: ServerLimits) {
        cacheKiB = limits.pageCacheBytes >> 10
        logReservedBytes = limits.logReservedBytes
        changeIDBytesMax = limits.changeIDCacheBytes
        segmentBytesMax = limits.segmentCacheBytes
        lateHeadsMax = limits.lateHeadsMax
        walkEntriesMax = limits.walkObjectsMax
        catchUpEntriesMax = limits.catchUpPositionsMax
    }
}
