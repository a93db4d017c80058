/// How much history is kept. Tests use tiny numbers.
public struct RetentionSettings: Sendable, Hashable {
    /// Minimum milliseconds for which a change stays in the log (30 days).
    public var logAgeMin: Int64 = 30 * 86_400_000
    /// Minimum number of a bucket's newest changes that stay in its log.
    public var logChangesMin: Int = 10_000
    /// Number of an object's newest versions that stay readable (wire contract, section 5).
    public var versionsNewest: Int64 = 60
    /// Number of further versions that stay readable: those whose number is 1 modulo `versionsStep`.
    public var versionsSparse: Int64 = 100
    /// Distance between the sparse versions.
    public var versionsStep: Int64 = 10
    /// Milliseconds for which the hash of a ccid is kept after its row is cut (a year).
    public var changeIDAgeMin: Int64 = 365 * 86_400_000
    /// Maximum number of rows changed in one transaction; a group of changes may have to wait for it.
    public var rowsPerBatch: Int = 500
    /// Maximum bytes of bodies written in one transaction (at least one body is written).
    public var bytesPerBatch: Int = 2 << 20
    /// Milliseconds between two passes over all buckets.
    public var sweepInterval: Int64 = 3_600_000
    /// Target bytes of one segment.
    public var segmentBytes: Int = 1 << 20
    /// Bytes of new log rows in a bucket after which its segments are updated.
    public var segmentLogBytesMin: Int = 1 << 20
    /// Milliseconds between two checks for such buckets.
    public var segmentInterval: Int64 = 5_000
    /// Number of ccids in one block.
    public var changeIDsPerBlock: Int = 2_048
    /// Number of unarchived ccids in a bucket at which maintenance archives them. A bucket that is being written to
    /// archives them earlier, together with its changes (`StoreSettings.changeIDRunLength`).
    public var changeIDsLooseMin: Int = 4_096
    /// Number of blocks in log order after which a bucket's blocks are merged into those in hash order.
    public var changeIDRunsMax: Int = 32
    /// Milliseconds between two checks for buckets with ccids to archive.
    public var changeIDInterval: Int64 = 2_000
    /// Milliseconds between two scans for unused client names (a day).
    public var clientInterval: Int64 = 86_400_000
    /// Log rows per read of such a scan.
    public var clientScanRows: Int = 10_000

    /// Creates the production defaults.
    public init() {}

    /// Whether `version` stays readable while the object's newest version is `head`.
    public func keeps(_ version: Int64, head: Int64) -> Bool {
        if version > head - versionsNewest { return true }
        return version > head - versionsNewest - versionsSparse * versionsStep && version % versionsStep == 1
    }
}
