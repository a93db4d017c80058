import ThicketSQLite

/// The database remembers by which key file it was sealed, so that a lost file is not quietly replaced by another one, with
/// which partners let nobody in.
enum ServerKeyMark {
    /// Whether a key file belongs to the database at `path`; false also when that cannot be read.
    static func isSet(path: String) -> Bool {
        guard let database: Database = try? SQLiteStore.connect(path, .readWrite, .init()) else { return false }
        return !((try? Meta.bytes(Meta.serverKey, database)) ?? []).isEmpty
    }

    /// Sets the mark where there is none.
    /// - Returns: whether this is the key by which the database is sealed.
    static func check(_ key: ServerKey, path: String) throws(StoreError) -> Bool {
        let database: Database = try SQLiteStore.connect(path, .readWrite, .init())
        return try storing("looking at the mark of the key file") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                let kept: [UInt8] = try Meta.bytes(Meta.serverKey, database)
                if kept.isEmpty { try Meta.set(Meta.serverKey, key.mark, database) }
                return kept.isEmpty || kept == key.mark
            }
        }
    }
}
