package import ThicketSQLite

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The SQLite file of a local store: in write-ahead mode, with every page sealed (docs/decisions/0048), and locked for
/// this session while the object exists.
package final class StoreFile {
    package let database: Database
    private let lock: StoreLock

    /// Pages of the write-ahead log, 32 MiB, at which it is checkpointed: a checkpoint writes the pages once more and
    /// flushes both files; with a smaller log a first sync would do little else.
    private static let logPagesMax = 8_192

    /// How long to wait for another program that reads the file with SQLite directly. Sessions exclude each other by
    /// the lock file.
    private static let otherProgramMilliseconds: Int32 = 500

    /// - Parameters:
    ///   - key: the files are sealed under it; an unsealed store is sealed now. nil: unsealed, for tests.
    ///   - vfs: a file system registered with SQLite, for tests; nil for the default one.
    /// - Throws: `storeInUse`, `store`.
    package init(
        path: String, key: StoreKey?, durability: StoreDurability, vfs: String? = nil
    ) throws(ClientError) {
        lock = try StoreLock(path: Self.followed(path) + ".lock")
        // User content: readable by this user only. SQLite gives its other files the same permissions.
        let problem = makeForUser(path)
        guard problem == 0 else {
            throw ClientError(.store, "cannot open \(path): \(String(cString: strerror(problem)))")
        }
        do throws(SQLiteError) {
            let sealing = try key.map { (key) throws(SQLiteError) in
                try StoreSealing(key, path: path, vfs: vfs)
            }
            try sealing?.sealClearStore(busyTimeoutMilliseconds: Self.otherProgramMilliseconds)
            database = try Database(
                path: path, busyTimeoutMilliseconds: Self.otherProgramMilliseconds, vfs: vfs, sealed: sealing?.files)
            // The file has one user only, so SQLite need not lock it for each statement.
            try database.execute("PRAGMA locking_mode=EXCLUSIVE")
            try sealing?.prepare(database)
            try database.execute("PRAGMA journal_mode=WAL")
            try database.execute("PRAGMA wal_autocheckpoint=\(Self.logPagesMax)")
            try database.execute("PRAGMA synchronous=\(durability == .power ? "FULL" : "NORMAL")")
        } catch {
            if error.isBusy { throw ClientError(.storeInUse, "another program has this store's file open (\(path))") }
            guard key != nil, error.extended == SealedFileSystem.notOpening || error.isCorrupt else {
                throw SQLiteLocalStore.clientError(error)
            }
            throw ClientError(
                .store,
                "\(path) cannot be opened: it is damaged, or sealed under another key than the one on this machine",
                number: Int(error.extended))
        }
    }

    /// Resolves links, so that the lock belongs to the file and not to one of its names.
    private static func followed(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }
}

/// Creates a file readable by this user only, unless it exists. Returns 0 or an errno.
func makeForUser(_ path: String) -> Int32 {
    let made = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard made >= 0 else { return errno }
    close(made)
    return 0
}
