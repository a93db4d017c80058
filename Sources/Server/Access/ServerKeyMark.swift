import ThicketSQLite

/// The database records which key file sealed it, so that a lost file is not silently replaced by another, under
/// which no partner's users could log in.
enum ServerKeyMark {
    /// Relation of a key file to a database.
    enum Standing: Sendable, Hashable {
        /// Nothing was ever sealed in it.
        case unmarked
        case own
        /// It was sealed by another file.
        case foreign
    }

    static func standing(of key: ServerKey, _ database: Database) throws(SQLiteError) -> Standing {
        let kept = try Meta.bytes(Meta.serverKey, database)
        return kept.isEmpty ? .unmarked : kept == key.mark ? .own : .foreign
    }

    /// Sets the mark if the database has none; inside a transaction that is about to write.
    /// - Returns: whether the database is sealed by this key.
    static func claim(_ key: ServerKey, _ database: Database) throws(SQLiteError) -> Bool {
        switch try standing(of: key, database) {
        case .own: return true
        case .foreign: return false
        case .unmarked:
            try Meta.set(Meta.serverKey, key.mark, database)
            return true
        }
    }

    /// Whether the database at `path` is marked with a key file; false also when it cannot be read.
    static func isSet(path: String) -> Bool {
        guard let database = try? SQLiteStore.connect(path, .readWrite, .init()) else { return false }
        return !((try? Meta.bytes(Meta.serverKey, database)) ?? []).isEmpty
    }

    /// Whether the database is sealed by this key; false also when it cannot be read.
    static func isOwn(_ key: ServerKey, path: String) -> Bool {
        guard let database = try? SQLiteStore.connect(path, .readWrite, .init()) else { return false }
        return (try? standing(of: key, database)) == .own
    }

    /// Sets the mark if the database has none.
    /// - Returns: the key with the history of earlier files; nil when the database is sealed by another one.
    static func claim(_ key: ServerKey, path: String) throws(StoreError) -> ServerKey? {
        let database = try SQLiteStore.connect(path, .readWrite, .init())
        return try storing("reading the mark of the key file") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try claim(key, database) ? try KeyHistory.adoptingPrevious(key, database) : nil
            }
        }
    }
}
