import ThicketProtocol
import ThicketSQLite

/// Background work of a `SQLiteStore`: checkpoints the write-ahead log, plans retention and segments.
final class SQLiteMaintenance: StoreMaintenance {
    private let store: SQLiteStore
    private let log: Database
    private let reader: SQLiteReader
    private let settings: RetentionSettings
    private let erasures: ErasurePlanner
    private var planners: Planners
    /// The newest write-behind head at the last check, and the time since which it is the newest, in milliseconds since
    /// 1970.
    private var newestHead: (through: GlobalID, since: Int64) = (0, 0)

    /// Planners that keep state between calls.
    private struct Planners {
        let retention: RetentionPlanner<SQLiteReader>
        let segments: SegmentPlanner
        let changeIDs: ChangeIDPlanner
        let clients: ClientNamePlanner

        init(_ reader: SQLiteReader, _ settings: RetentionSettings) {
            retention = RetentionPlanner(reader: reader, settings: settings)
            segments = SegmentPlanner(reader, settings)
            changeIDs = ChangeIDPlanner(reader, settings)
            clients = ClientNamePlanner(reader, settings)
        }
    }

    init(_ store: SQLiteStore, reader: SQLiteReader, log: Database, settings: RetentionSettings) {
        (self.store, self.log, self.reader, self.settings) = (store, log, reader, settings)
        erasures = ErasurePlanner(reader, settings)
        planners = Planners(reader, settings)
    }

    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        try moveLogIfLong()
        if let batch = try erasures.nextBatch() {
            // The erasure may remove what the other planners refer to.
            planners = Planners(reader, settings)
            return batch
        }
        if let batch = try planners.changeIDs.nextBatch(now: now) { return batch }
        if let batch = try planners.segments.nextBatch(now: now) { return batch }
        if let batch = try planners.retention.nextBatch(now: now) { return batch }
        if let batch: MaintenanceBatch = try planners.clients.nextBatch(now: now) { return batch }
        return nextHeads(now: now)
    }

    /// Milliseconds without a change after which maintenance writes the heads that no group takes along.
    private static let quietMilliseconds: Int64 = 1_000

    private func nextHeads(now: Int64) -> MaintenanceBatch? {
        let (count, through) = store.late.all
        if through != newestHead.through || now < newestHead.since { newestHead = (through, now) }
        guard count > 0, now - newestHead.since >= Self.quietMilliseconds else { return nil }
        var batch = MaintenanceBatch()
        batch.headsMax = settings.rowsPerBatch
        return batch
    }

    /// Runs passive checkpoints, which block no other thread, until few enough pages are left for the writer to restart
    /// the write-ahead log. Each pass is shorter than the one before, because fewer pages were written during it.
    private func moveLogIfLong() throws(StoreError) {
        for _ in 0..<Self.passesMax {
            guard store.walPages.load(ordering: .relaxed) >= store.settings.passivePages else { return }
            let generation = store.walGeneration.load(ordering: .acquiring)
            let moved = try storing("moving the log") { () throws(SQLiteError) in
                try log.checkpoint(.passive).moved
            }
            store.walMoved.withLock { $0 = (generation, moved) }
            guard store.walPages.load(ordering: .relaxed) - moved > store.settings.restartRestPages else { return }
        }
    }

    /// Maximum number of passive checkpoints in one call.
    private static let passesMax = 4
}

extension SQLiteReader: RetentionSource {
    final func withState<Result>(
        _ body: (any LogSource) throws(StoreError) -> Result
    ) throws(StoreError) -> Result { try reading { () throws(StoreError) in try body(self) } }

    final func oldChangeIDs(
        in bucket: BucketRow, before: Int64, limit: Int
    ) throws(StoreError) -> [UInt64] {
        var hashes = [UInt64]()
        try storing("looking for old ccids") { () throws(SQLiteError) in
            try database.statement("SELECT h FROM old_ccid WHERE b = ?1 AND ts < ?2 LIMIT ?3")
                .bind(1, bucket).bind(2, before).bind(3, Int64(limit)).forEach { (row) throws(SQLiteError) in
                    hashes.append(UInt64(bitPattern: row.integer(0)))
                }
        }
        return hashes
    }

    final func keptVersions(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> [(
        version: Version, bytes: Int
    )] {
        var versions = [(version: Version, bytes: Int)]()
        try storing("listing kept bodies") { () throws(SQLiteError) in
            try database.statement("SELECT ver, length(body) FROM ver WHERE b = ?1 AND k = ?2 ORDER BY ver")
                .bind(1, bucket).bind(2, key.text)
                .forEach { (row) throws(SQLiteError) in versions.append((row.integer(0), Int(row.integer(1)))) }
        }
        return versions
    }
}
