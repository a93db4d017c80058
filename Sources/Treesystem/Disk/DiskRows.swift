import ThicketClient
import ThicketSQLite
import ThicketTreeShape

/// The table of the store's files. It holds no keys and no names; its pages are sealed all the same.
final class DiskRows {
    /// nil after `close`.
    private var database: Database?
    private static let formatVersion: Int64 = 1

    /// - `id`, `parts`: the key (`DiskKey`). `node`: the node's id.
    /// - `state`: `DiskEntry.State`. `bytes`: of the whole file; 0 until it is whole.
    /// - `used`: number of the last use, as far as it was written. `expires`: milliseconds since 1970.
    /// - `flags`: bit 0: persistent; bits 1 and 2: `AfterUpload`.
    private static let schema = """
        CREATE TABLE content (
            id BLOB NOT NULL, parts INTEGER NOT NULL, node BLOB NOT NULL, state INTEGER NOT NULL,
            bytes INTEGER NOT NULL, used INTEGER NOT NULL, flags INTEGER NOT NULL, expires INTEGER,
            PRIMARY KEY (id, parts)) WITHOUT ROWID;
        """

    /// - Throws: `index`.
    init(_ path: String, key: StoreKey?, vfs: String? = nil) throws(ContentError) {
        do throws(ClientError) { database = try SealedDatabase.open(path, key: key, vfs: vfs) } catch {
            throw .index(error.detail)
        }
        try sql { database throws(SQLiteError) in
            let version = try database.integer("PRAGMA user_version") ?? 0
            guard version <= Self.formatVersion else { throw SQLiteError.refused("made by a newer version") }
            guard version == 0 else { return }
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try database.execute(Self.schema)
                try database.execute("PRAGMA user_version=\(Self.formatVersion)")
            }
        }
    }

    private func sql<Value>(_ body: (Database) throws(SQLiteError) -> Value) throws(ContentError) -> Value {
        guard let database else { throw .index("the store is closed") }
        do { return try body(database) } catch {
            if error.isFull { throw .diskFull }
            throw .index("\(error)")
        }
    }

    /// Closes the file; every later call throws `index`.
    func close() { database = nil }

    /// All rows.
    func all() throws(ContentError) -> [(DiskKey, DiskEntry)] {
        try sql { database throws(SQLiteError) in
            var rows = [(DiskKey, DiskEntry)]()
            let query = "SELECT id, parts, node, state, bytes, used, flags, expires FROM content"
            try database.statement(query).forEach { row throws(SQLiteError) in
                if let entry = Self.entry(row) { rows.append(entry) }
            }
            return rows
        }
    }

    private static func entry(_ row: Statement) -> (DiskKey, DiskEntry)? {
        guard let id = DataID(octets: row.bytes(0)), let parts = UInt8(exactly: row.integer(1)),
            let node = NodeID(octets: row.bytes(2)), let state = DiskEntry.State(rawValue: Int(row.integer(3))),
            let bytes = UInt64(exactly: row.integer(4)),
            let after = DiskOptions.AfterUpload(rawValue: Int(row.integer(6) >> 1))
        else { return nil }
        let entry = DiskEntry(
            node: node, state: state, isPersistent: row.integer(6) & 1 == 1, afterUpload: after, bytes: bytes,
            used: row.integer(5), expires: row.optionalInteger(7))
        return (DiskKey(id, ContentComponents(rawValue: parts)), entry)
    }

    /// Writes rows, and removes those whose entry is nil, in one transaction that is on disk when it returns.
    ///
    /// - Throws: `diskFull`, `index`; nothing is written then.
    func write(_ rows: [(DiskKey, DiskEntry?)]) throws(ContentError) {
        guard !rows.isEmpty else { return }
        try sql { database throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                for (key, entry) in rows {
                    guard let entry else {
                        try database.statement("DELETE FROM content WHERE id = ?1 AND parts = ?2")
                            .bind(1, key.id.octets).bind(2, Int64(key.components.rawValue)).run()
                        continue
                    }
                    let flags = (entry.isPersistent ? 1 : 0) | Int64(entry.afterUpload.rawValue) << 1
                    try database.statement(
                        """
                        INSERT OR REPLACE INTO content (id, parts, node, state, bytes, used, flags, expires)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                        """
                    ).bind(1, key.id.octets).bind(2, Int64(key.components.rawValue)).bind(3, entry.node.octets)
                        .bind(4, Int64(entry.state.rawValue)).bind(5, Int64(clamping: entry.bytes))
                        .bind(6, entry.used).bind(7, flags).bind(8, entry.expires).run()
                }
            }
        }
    }
}
