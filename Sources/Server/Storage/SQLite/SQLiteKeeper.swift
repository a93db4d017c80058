import ThicketProtocol
import ThicketSQLite

/// Background work of a `SQLiteStore`: moves the log into the file, plans retention and segments.
final class SQLiteKeeper: StoreKeeper {
    private let store: SQLiteStore
    private let log: Database
    private let retention: RetentionPlanner<SQLiteReader>
    private let segments: SegmentPlanner
    private let changeIDs: ChangeIDPlanner
    private let clients: ClientNamePlanner

    init(_ store: SQLiteStore, reader: SQLiteReader, log: Database, settings: RetentionSettings) {
        self.store = store
        self.log = log
        retention = RetentionPlanner(reader: reader, settings: settings)
        segments = SegmentPlanner(reader, settings)
        changeIDs = ChangeIDPlanner(reader, settings)
        clients = ClientNamePlanner(reader, settings)
    }

    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        try moveLogIfLong()
        if let batch: MaintenanceBatch = try changeIDs.nextBatch(now: now) { return batch }
        if let batch: MaintenanceBatch = try segments.nextBatch(now: now) { return batch }
        if let batch: MaintenanceBatch = try retention.nextBatch(now: now) { return batch }
        return try clients.nextBatch(now: now)
    }

    /// Moves pages without stopping anybody; the writer's next commit then may begin the log anew.
    private func moveLogIfLong() throws(StoreError) {
        guard store.walPages.load(ordering: .relaxed) >= store.settings.passivePages else { return }
        try storing("moving the log") { () throws(SQLiteError) in _ = try log.checkpoint(.passive) }
    }
}

extension SQLiteReader: RetentionSource {
    final func withState<Result>(
        _ body: (any LogSource) throws(StoreError) -> Result
    ) throws(StoreError) -> Result { try reading { () throws(StoreError) in try body(self) } }

    final func oldChangeIDs(
        in bucket: BucketRow, before: Int64, limit: Int
    ) throws(StoreError) -> [UInt64] {
        var hashes: [UInt64] = []
        try storing("looking for old ccids") { () throws(SQLiteError) in
            try database.statement("SELECT h FROM old_ccid WHERE b = ?1 AND ts < ?2 LIMIT ?3")
                .bind(1, bucket).bind(2, before).bind(3, Int64(limit)).forEach { (row) throws(SQLiteError) in
                    hashes.append(UInt64(bitPattern: row.integer(0)))
                }
        }
        return hashes
    }

    final func keptVersions(of key: EntityKey, in bucket: BucketRow) throws(StoreError) -> [Version] {
        var versions: [Version] = []
        try storing("listing kept bodies") { () throws(SQLiteError) in
            try database.statement("SELECT ver FROM ver WHERE b = ?1 AND k = ?2 ORDER BY ver")
                .bind(1, bucket).bind(2, key.text)
                .forEach { (row) throws(SQLiteError) in versions.append(row.integer(0)) }
        }
        return versions
    }
}
