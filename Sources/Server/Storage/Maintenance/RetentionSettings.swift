/// How much of the past is kept. Tests run with tiny numbers.
public struct RetentionSettings: Sendable, Hashable {
    /// Milliseconds a change stays in the log at least (30 days).
    public var logAgeMin: Int64 = 30 * 86_400_000
    /// Newest changes of a bucket that stay in its log at least.
    public var logChangesMin: Int = 10_000
    /// Newest versions of an object that stay readable (wire contract, section 5).
    public var versionsNewest: Int64 = 60
    /// Further versions that stay readable: those whose number is 1 modulo `versionsStep`.
    public var versionsSparse: Int64 = 100
    public var versionsStep: Int64 = 10
    /// Milliseconds the hash of a ccid is kept after its row is cut (a year).
    public var changeIDAgeMin: Int64 = 365 * 86_400_000
    /// Log rows cut in one transaction at most: what a group of changes may have to wait for.
    public var rowsPerBatch: Int = 500
    /// Bytes of bodies written in one transaction at most (one body is always taken).
    public var bytesPerBatch: Int = 2 << 20
    /// Milliseconds between two visits of all buckets.
    public var sweepInterval: Int64 = 3_600_000
    /// Bytes of one segment.
    public var segmentBytes: Int = 1 << 20
    /// Bytes of new log rows in a bucket after which its segments are brought up to date.
    public var segmentLogBytesMin: Int = 1 << 20
    /// Milliseconds between two looks for such buckets.
    public var segmentInterval: Int64 = 5_000
    /// Ccids in one block.
    public var changeIDsPerBlock: Int = 2_048
    /// Ccids of a bucket that wait to be settled before the keeper does it: those of a bucket that is written to are
    /// settled with its changes, earlier (`StoreSettings.changeIDRunLength`).
    public var changeIDsLooseMin: Int = 4_096
    /// Blocks in the order of the log after which a bucket's blocks are merged in the order of their hashes.
    public var changeIDRunsMax: Int = 32
    /// Milliseconds between two looks for buckets whose ccids are to be settled.
    public var changeIDInterval: Int64 = 2_000
    /// Milliseconds between two looks for client names that nothing names any more (a day).
    public var clientInterval: Int64 = 86_400_000
    /// Log rows looked at in one read when looking for them.
    public var clientScanRows: Int = 10_000

    public init() {}

    /// Whether `version` stays readable when the object stands at `head`.
    public func keeps(_ version: Int64, head: Int64) -> Bool {
        if version > head - versionsNewest { return true }
        return version > head - versionsNewest - versionsSparse * versionsStep && version % versionsStep == 1
    }
}
