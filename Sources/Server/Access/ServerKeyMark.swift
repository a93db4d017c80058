import ThicketSQLite

/// The database remembers by which key file it was sealed, so that a lost file is not quietly replaced by another one,
/// with which partners let nobody in.
enum ServerKeyMark {
    /// How a key file stands to a database.
    enum Standing: Sendable, Hashable {
        /// Nothing was ever sealed there.
        case unmarked
        case own
        /// Another file sealed what is there.
        case foreign
    }

    static func standing(of key: ServerKey, _ database: Database) throws(SQLiteError) -> Standing {
        let kept = try Meta.bytes(Meta.serverKey, database)
        return kept.isEmpty ? .unmarked : kept == key.mark ? .own : .foreign
    }

    /// Sets the mark where there is none; inside a transaction that is about to write.
    /// - Returns: whether this is the key by which the database is sealed.
    static func claim(_ key: ServerKey, _ database: Database) throws(SQLiteError) -> Bool {
        switch try standing(of: key, database) {
        case .own: return true
        case .foreign: return false
        case .unmarked:
            try Meta.set(Meta.serverKey, key.mark, database)
            return true
        }
    }

    /// Whether a key file belongs to the database at `path`; false also when that cannot be read.
    static func isSet(path: String) -> Bool {
        guard let database = try? SQLiteStore.connect(path, .readWrite, .init()) else { return false }
        return !((try? Meta.bytes(Meta.serverKey, database)) ?? []).isEmpty
    }

    /// Whether the key is the one by which the database is sealed; false also when that cannot be read.
    static func isOwn(_ key: ServerKey, path: String) -> Bool {
        guard let database = try? SQLiteStore.connect(path, .readWrite, .init()) else { return false }
        return (try? standing(of: key, database)) == .own
    }

    /// Sets the mark where there is none.
    /// - Returns: the key with what the files before it have left; nil when another one sealed the database.
    static func claim(_ key: ServerKey, path: String) throws(StoreError) -> ServerKey? {
        let database = try SQLiteStore.connect(path, .readWrite, .init())
        return try storing("looking at the mark of the key file") { () throws(SQLiteError) in
            try database.transaction(.immediate) { () throws(SQLiteError) in
                try claim(key, database) ? try KeyHeritage.heir(key, database) : nil
            }
        }
    }
}
