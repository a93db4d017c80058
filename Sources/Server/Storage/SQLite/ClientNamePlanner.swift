import ThicketProtocol
import ThicketSQLite

/// Periodically scans the log, a stretch at a time, for client names that no row refers to any more.
final class ClientNamePlanner {
    private let reader: SQLiteReader
    private let settings: RetentionSettings
    private var nextLook = Int64.min
    /// The scan in progress.
    private var look: Look?

    private struct Look {
        /// Names that existed when the scan began and that no scanned row refers to.
        var unused: Set<Int64>
        /// The scan has covered the log up to this position.
        var place: GlobalID
        var isAtEnd = false
    }

    init(_ reader: SQLiteReader, _ settings: RetentionSettings) {
        self.reader = reader
        self.settings = settings
    }

    func nextBatch(now: Int64) throws(StoreError) -> MaintenanceBatch? {
        guard look != nil || now >= nextLook else { return nil }
        var current = if let look { look } else { try begin() }
        while !current.isAtEnd, !current.unused.isEmpty { try advance(&current) }
        let rows = Array(current.unused.sorted().prefix(settings.rowsPerBatch))
        guard !rows.isEmpty else {
            look = nil
            nextLook = now + settings.clientInterval
            return nil
        }
        current.unused.subtract(rows)
        look = current
        var batch = MaintenanceBatch()
        batch.unusedClients = .init(rows: rows, through: current.place)
        return batch
    }

    /// A name can only be unused if changes were cut or erased.
    private func begin() throws(StoreError) -> Look {
        var rows = Set<Int64>()
        try storing("listing client names") { () throws(SQLiteError) in
            let isCut = try reader.database.integer("SELECT 1 FROM bucket WHERE floor > 0 LIMIT 1") != nil
            let isErased = try Meta.integer(Meta.erased, reader.database) != nil
            guard isCut || isErased else { return }
            try reader.database.statement("SELECT id FROM client").forEach { (row) throws(SQLiteError) in
                rows.insert(row.integer(0))
            }
        }
        return Look(unused: rows, place: 0)
    }

    private func advance(_ look: inout Look) throws(StoreError) {
        var seen = Set<Int64>()
        var place = look.place
        var count = 0
        try storing("looking for client names") { () throws(SQLiteError) in
            try reader.database.statement("SELECT gid, client FROM chg WHERE gid > ?1 ORDER BY gid LIMIT ?2")
                .bind(1, place).bind(2, Int64(settings.clientScanRows)).forEach { (row) throws(SQLiteError) in
                    place = row.integer(0)
                    seen.insert(row.integer(1))
                    count += 1
                }
        }
        look.unused.subtract(seen)
        look.place = place
        look.isAtEnd = count < settings.clientScanRows
    }
}
