import ThicketSQLite
import ThicketTreeShape

/// The rows of blobs that several writers of the file change.
enum BlobRows {
    /// Adds to the counters of a user and of its app.
    /// - Parameter user: `""` for a blob whose owner was erased.
    static func add(
        _ change: BlobUsage, to app: String, _ user: String, _ database: Database
    ) throws(SQLiteError) {
        for owner in user.isEmpty ? [""] : [user, ""] {
            try database.statement(
                """
                INSERT INTO blob_use (app, user, blobs, bytes, uploads, open) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                ON CONFLICT (app, user) DO UPDATE SET blobs = blobs + ?3, bytes = bytes + ?4, uploads = uploads + ?5,
                open = open + ?6
                """
            ).bind(1, app).bind(2, owner).bind(3, Int64(change.count)).bind(4, change.bytes)
                .bind(5, Int64(change.openCount)).bind(6, change.openBytes).run()
        }
    }

    /// The counters of a user in an app, or of all users of the app as the user `""`.
    static func usage(of app: String, _ user: String, _ database: Database) throws(SQLiteError) -> BlobUsage? {
        try database.statement("SELECT blobs, bytes, open, uploads FROM blob_use WHERE app = ?1 AND user = ?2")
            .bind(1, app).bind(2, user).first(usage)
    }

    /// The columns blobs, bytes, open and uploads.
    static func usage(_ row: Statement) -> BlobUsage {
        BlobUsage(
            count: Int(row.integer(0)), bytes: row.integer(1), openBytes: row.integer(2), openCount: Int(row.integer(3))
        )
    }

    /// Removes the row of a blob. Its bytes are deleted later, also after a crash.
    static func remove(_ blob: [UInt8], _ database: Database) throws(SQLiteError) {
        try database.statement("DELETE FROM blob WHERE id = ?1").bind(1, blob).run()
        try database.statement("INSERT OR IGNORE INTO blob_gone (id) VALUES (?1)").bind(1, blob).run()
    }

    /// Marks blobs as orphans since `time` (milliseconds since 1970) unless a node refers to them.
    static func orphan(_ blobs: Set<[UInt8]>, since time: Int64, _ database: Database) throws(SQLiteError) {
        let update = try database.statement(
            """
            UPDATE blob SET orphaned = ?2 WHERE id = ?1 AND orphaned IS NULL
            AND NOT EXISTS (SELECT 1 FROM node WHERE blob = ?1)
            """)
        for blob in blobs { try update.bind(1, blob).bind(2, time).run() }
    }
}
