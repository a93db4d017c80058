import ThicketProtocol
import ThicketSQLite

/// Finds users whose accounts are closed and whose data is not erased yet.
final class ErasurePlanner {
    private let reader: SQLiteReader
    private let settings: RetentionSettings

    init(_ reader: SQLiteReader, _ settings: RetentionSettings) {
        self.reader = reader
        self.settings = settings
    }

    /// The next step of the oldest erasure. Repeated until no data of that user is left.
    func nextBatch() throws(StoreError) -> MaintenanceBatch? {
        let next: (app: String, user: String)? = try storing("looking for ended accounts") { () throws(SQLiteError) in
            try reader.database.statement("SELECT app, user FROM erasure ORDER BY created, app, user LIMIT 1")
                .first { ($0.text(0), $0.text(1)) }
        }
        guard let next else { return nil }
        var batch = MaintenanceBatch()
        batch.erasures = [
            MaintenanceBatch.Erasure(
                app: try .stored(next.app), user: try .stored(next.user), rowsMax: settings.rowsPerBatch,
                bytesMax: settings.bytesPerBatch)
        ]
        return batch
    }
}
