internal import CSQLite

/// Access with which a connection opens its file.
public enum OpenMode: Sendable, Hashable {
    /// The file must exist and is not written.
    case readOnly
    /// The file must exist.
    case readWrite
    /// The file is created if it is missing.
    case create
}

/// The moment at which a transaction acquires the write lock.
public enum TransactionMode: String, Sendable {
    /// At the first write; for reads.
    case deferred = "BEGIN DEFERRED"
    /// Immediately; waits for at most the busy timeout.
    case immediate = "BEGIN IMMEDIATE"
}

/// Kinds of checkpoint (https://sqlite.org/c3ref/wal_checkpoint_v2.html).
public enum CheckpointMode: Sendable {
    /// As many pages as possible without waiting for other connections.
    case passive
    /// All pages; waits for readers and blocks writers, so that the next write restarts the log.
    case restart
    /// As `restart`, and truncates the log file to 0 bytes.
    case truncate
}

/// One connection to an SQLite file. Used by one thread (or actor) at a time.
public final class Database {
    private let connection: Connection
    private var statements = [String: Statement]()

    /// Pages in the write-ahead log after this connection's newest commit; updated after `watchLog()`.
    public var walPages: Int { connection.walPages }
    private var handle: OpaquePointer { connection.handle }

    /// Opens `path`, which may be `:memory:`.
    /// - Parameters:
    ///   - busyTimeoutMilliseconds: maximum wait of a statement for locks of other connections. Set before any access
    ///     to the file, because otherwise even reading the journal mode may fail.
    ///   - vfs: name of a file system registered with SQLite (`FaultVFS`); nil for the default one.
    ///   - sealed: file system that seals the file; retained while the connection is open. `vfs` is then ignored.
    ///   - isURI: whether `path`, and names in statements, are URIs (https://sqlite.org/uri.html).
    public init(
        path: String, mode: OpenMode = .create, busyTimeoutMilliseconds: Int32 = 10_000, vfs: String? = nil,
        sealed: SealedFileSystem? = nil, isURI: Bool = false
    ) throws(SQLiteError) {
        var flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        if isURI { flags |= SQLITE_OPEN_URI }
        switch mode {
        case .readOnly: flags |= SQLITE_OPEN_READONLY
        case .readWrite: flags |= SQLITE_OPEN_READWRITE
        case .create: flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        }
        Self.prepareLibrary()
        var opened: OpaquePointer?
        let result = sqlite3_open_v2(path, &opened, flags, sealed?.name ?? vfs)
        guard result == SQLITE_OK, let opened else {
            let message = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
            sqlite3_close_v2(opened)
            throw SQLiteError(extended: result, message: message)
        }
        connection = Connection(opened, sealed)
        sqlite3_busy_timeout(opened, busyTimeoutMilliseconds)
    }

    /// Applies settings that must precede the first use of SQLite in the process; no effect after that.
    package static func prepareLibrary() { _ = isPrepared }

    /// SQLite's memory statistics are not used, and counting takes a lock at each heap call.
    private static let isPrepared: Bool = thicket_sqlite_forget_memory() == SQLITE_OK

    /// Sets the maximum wait of the following statements for locks of other connections.
    public func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    /// Counts the pages of the log from now on (`walPages`), which also disables SQLite's automatic checkpoints at
    /// commit.
    public func watchLog() {
        sqlite3_wal_hook(
            handle,
            { context, _, _, pages in
                if let context {
                    Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue().walPages = Int(pages)
                }
                return SQLITE_OK
            }, Unmanaged.passUnretained(connection).toOpaque())
    }

    /// Runs one or more statements without parameters.
    public func execute(_ sql: String) throws(SQLiteError) {
        try check(sqlite3_exec(handle, sql, nil, nil, nil))
    }

    /// The prepared form of `sql`, cached per connection. `sql` must be constant program text, never built from input.
    public func statement(_ sql: String) throws(SQLiteError) -> Statement {
        if let known = statements[sql] { return known }
        let made = try Statement(connection, sql)
        statements[sql] = made
        return made
    }

    /// A prepared statement that the caller keeps; it is not cached.
    public func prepare(_ sql: String) throws(SQLiteError) -> Statement { try Statement(connection, sql) }

    /// First column of the first row as an integer; nil when the row is missing or the value is NULL.
    public func integer(_ sql: String) throws(SQLiteError) -> Int64? {
        try statement(sql).first { $0.isNull(0) ? nil : $0.integer(0) } ?? nil
    }

    /// First column of the first row as text; nil when the row is missing or the value is NULL.
    public func text(_ sql: String) throws(SQLiteError) -> String? {
        try statement(sql).first { $0.isNull(0) ? nil : $0.text(0) } ?? nil
    }

    // MARK: Transactions

    /// Whether a transaction is open.
    public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Begins a transaction; an immediate one waits for the write lock for at most the busy timeout.
    public func begin(_ mode: TransactionMode) throws(SQLiteError) { try statement(mode.rawValue).run() }
    /// Commits the open transaction.
    public func commit() throws(SQLiteError) { try statement("COMMIT").run() }

    /// Rolls back the open transaction if one is still open: some errors have rolled it back already. Drops the
    /// connection's page cache.
    public func rollback() {
        // After failed reads, SQLite 3.40 may keep pages of a rolled-back transaction and write them with a later one.
        defer { sqlite3_db_release_memory(handle) }
        guard isInTransaction else { return }
        // A ROLLBACK that itself reports an error has nevertheless ended the transaction.
        try? statement("ROLLBACK").run()
    }

    /// Runs `body` in one transaction: everything is written, or nothing.
    public func transaction<Result>(
        _ mode: TransactionMode, _ body: () throws(SQLiteError) -> Result
    ) throws(SQLiteError) -> Result {
        try begin(mode)
        do {
            let result = try body()
            try commit()
            return result
        } catch {
            rollback()
            throw error
        }
    }

    /// Sets the bytes reserved per page; see `reservePageEnds`.
    func setReservedBytes(_ count: Int32) throws(SQLiteError) {
        var count = count
        try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &count))
    }

    /// Number of rows changed by the newest INSERT, UPDATE or DELETE.
    public var changedRows: Int { Int(sqlite3_changes64(handle)) }
    /// Row id of the newest INSERT of this connection.
    public var lastInsertRow: Int64 { sqlite3_last_insert_rowid(handle) }

    // MARK: Files

    /// Moves pages from the log into the database.
    /// - Returns: number of pages in the log, and how many of them have been moved so far.
    @discardableResult
    public func checkpoint(_ mode: CheckpointMode) throws(SQLiteError) -> (pages: Int, moved: Int) {
        let flag =
            switch mode {
            case .passive: SQLITE_CHECKPOINT_PASSIVE
            case .restart: SQLITE_CHECKPOINT_RESTART
            case .truncate: SQLITE_CHECKPOINT_TRUNCATE
            }
        var pages: Int32 = 0
        var moved: Int32 = 0
        try check(sqlite3_wal_checkpoint_v2(handle, nil, flag, &pages, &moved))
        return (Int(max(pages, 0)), Int(max(moved, 0)))
    }

    /// Extends the file of the write-ahead log to at least `bytes`, filled with zeros, so that commits write into it
    /// without changing its size. SQLite reads a log up to the first frame with a wrong checksum, and zeros never have
    /// a valid one.
    ///
    /// Holds the write lock meanwhile, so that no other connection appends. Uses the connection's file system. After an
    /// error the file has its old size, or is longer by the bytes already written.
    public func reserveLog(bytes: Int) throws(SQLiteError) {
        guard bytes > 0 else { return }
        try begin(.immediate)
        defer { rollback() }
        var pointer: UnsafeMutablePointer<sqlite3_file>?
        try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &pointer))
        guard let file = pointer, let methods = file.pointee.pMethods?.pointee else { return }
        var size: sqlite3_int64 = 0
        try check(methods.xFileSize(file, &size))
        guard size < bytes else { return }
        let before = size
        // SQLite's own file system accepts less than 128 KiB per write.
        let zeros = [UInt8](repeating: 0, count: 1 << 16)
        while size < bytes {
            let count = min(zeros.count, bytes - Int(size))
            let result = methods.xWrite(file, zeros, Int32(count), size)
            guard result == SQLITE_OK else {
                _ = methods.xTruncate(file, before)
                return try check(result)
            }
            size += sqlite3_int64(count)
        }
        let result = methods.xSync(file, SQLITE_SYNC_NORMAL)
        guard result == SQLITE_OK else {
            // The flush of gathered bytes may have failed for lack of space.
            _ = methods.xTruncate(file, before)
            return try check(result)
        }
    }

    /// Sets the maximum size of the database in pages; a write beyond it fails like on a full disk. Returns the limit
    /// in effect.
    @discardableResult
    public func limitPages(_ count: Int) throws(SQLiteError) -> Int {
        Int(try prepare("PRAGMA max_page_count=\(count)").first { $0.integer(0) } ?? 0)
    }

    /// Runs SQLite's check; returns one line per finding, empty for a sound file.
    /// - Parameter isQuick: leaves out the comparison of indexes with their tables, which is most of the work.
    /// - Throws: also when a page could not be read. SQLite reports that as a finding, although the file may be sound.
    public func integrityFindings(isQuick: Bool = false) throws(SQLiteError) -> [String] {
        var findings = [String]()
        try prepare(isQuick ? "PRAGMA quick_check" : "PRAGMA integrity_check")
            .forEach { (row) throws(SQLiteError) in findings.append(row.text(0)) }
        for finding in findings {
            guard let code = Self.errorCode(in: finding), code & 0xFF == SQLITE_IOERR else { continue }
            throw SQLiteError(extended: code, message: "a page could not be read during the check")
        }
        return findings == ["ok"] ? [] : findings
    }

    /// The number after "error code=", with which SQLite ends the finding on an unreadable page.
    private static func errorCode(in finding: String) -> Int32? {
        let words: [Substring] = finding.split(separator: "=")
        guard words.count > 1, words[words.count - 2].hasSuffix("error code") else { return nil }
        return Int32(words[words.count - 1].prefix { $0.isNumber })
    }

    /// SQLite's version, for example "3.40.1".
    public static var libraryVersion: String { String(cString: sqlite3_libversion()) }

    private func check(_ result: Int32) throws(SQLiteError) { try connection.check(result) }
}

/// SQLite's connection object, closed when the `Database` and all of its statements have been released.
final class Connection {
    let handle: OpaquePointer
    var walPages = 0
    /// Released after the connection is closed.
    private let fileSystem: SealedFileSystem?

    init(_ handle: OpaquePointer, _ fileSystem: SealedFileSystem?) {
        (self.handle, self.fileSystem) = (handle, fileSystem)
    }
    deinit { sqlite3_close_v2(handle) }

    func check(_ result: Int32) throws(SQLiteError) {
        guard result != SQLITE_OK else { return }
        throw SQLiteError(extended: result, message: String(cString: sqlite3_errmsg(handle)))
    }
}
