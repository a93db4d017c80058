package import ThicketSQLite

/// Opens SQLite files of parts that keep state beside the local store, sealed as that store is (docs/decisions/0048).
package enum SealedDatabase {
    /// Opens a file for one program, in write-ahead mode. Commits are on disk when they return.
    ///
    /// - Parameters:
    ///   - path: the file; created readable by this user only.
    ///   - key: every page is sealed under it; nil: unsealed, for tests.
    ///   - vfs: a file system registered with SQLite, for tests; nil for the default one.
    /// - Throws: `storeInUse`; `store`, also for a damaged file or one under another key.
    package static func open(
        _ path: String, key: StoreKey?, vfs: String? = nil
    ) throws(ClientError) -> sending Database {
        let problem = makeForUser(path)
        guard problem == 0 else { throw ClientError(.store, "cannot open \(path): \(PrivateFile.reason(problem))") }
        do throws(SQLiteError) {
            let sealing = try key.map { (key) throws(SQLiteError) in try StoreSealing(key, path: path, vfs: vfs) }
            let database = try Database(path: path, busyTimeoutMilliseconds: 0, vfs: vfs, sealed: sealing?.files)
            try database.execute("PRAGMA locking_mode=EXCLUSIVE")
            try sealing?.prepare(database)
            try database.execute("PRAGMA journal_mode=WAL")
            try database.execute("PRAGMA synchronous=FULL")
            // Takes the lock now.
            try database.transaction(.immediate) { () throws(SQLiteError) in }
            return database
        } catch {
            if error.isBusy { throw ClientError(.storeInUse, "another program has \(path) open") }
            throw SQLiteLocalStore.clientError(error)
        }
    }
}
