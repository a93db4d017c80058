internal import CSQLite

/// How a connection opens its file.
public enum OpenMode: Sendable, Hashable {
    /// The file must exist; nothing is written.
    case readOnly
    /// The file must exist.
    case readWrite
    /// The file is made when it is missing.
    case create
}

/// When a transaction takes the write lock.
public enum TransactionMode: String, Sendable {
    /// At the first write; for reads.
    case deferred = "BEGIN DEFERRED"
    /// At once; waits for the busy timeout.
    case immediate = "BEGIN IMMEDIATE"
}

/// How far a checkpoint goes (https://sqlite.org/c3ref/wal_checkpoint_v2.html).
public enum CheckpointMode: Sendable {
    /// As many pages as possible without waiting for anybody.
    case passive
    /// All pages; waits for readers and keeps writers out, so that the log begins anew.
    case restart
    /// As `restart`, and cuts the log file to nothing.
    case truncate
}

/// One connection to a SQLite file. Belongs to one thread (or actor) at a time.
public final class Database {
    private let connection: Connection
    private var statements = [String: Statement]()

    /// Pages in the write-ahead log after this connection's newest commit; counted after `watchLog()`.
    public var walPages: Int { connection.walPages }
    private var handle: OpaquePointer { connection.handle }

    /// Opens `path`, which may be `:memory:`.
    /// - Parameters:
    ///   - busyTimeoutMilliseconds: how long a statement waits for other connections' locks. Set before anything else
    ///     is asked of the file: without it even the first look at the journal mode may fail.
    ///   - vfs: a file system registered with SQLite (`FaultVFS`); nil for the usual one.
    ///   - sealed: seals the file, and is kept as long as it is open; then `vfs` says nothing.
    ///   - isURI: `path` is a URI (https://sqlite.org/uri.html), and so are names in statements.
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

    /// Sets what must be set before SQLite is first used in the process. Where it was used before, nothing changes.
    static func prepareLibrary() { _ = isPrepared }

    /// Nobody asks SQLite how much memory it has: counting it takes a lock at every call of the heap.
    private static let isPrepared: Bool = thicket_sqlite_forget_memory() == SQLITE_OK

    /// How long the next statements wait for other connections' locks.
    public func setBusyTimeout(milliseconds: Int32) { sqlite3_busy_timeout(handle, milliseconds) }

    /// Counts the pages of the log from now on (`walPages`) and stops SQLite's own checkpoints at commit.
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

    /// The prepared form of `sql`, made once per connection. `sql` is program text, never made from input.
    public func statement(_ sql: String) throws(SQLiteError) -> Statement {
        if let known = statements[sql] { return known }
        let made = try Statement(connection, sql)
        statements[sql] = made
        return made
    }

    /// A prepared statement that the caller keeps.
    public func prepare(_ sql: String) throws(SQLiteError) -> Statement { try Statement(connection, sql) }

    /// First column of the first row, as an integer; nil when there is no row or it is NULL.
    public func integer(_ sql: String) throws(SQLiteError) -> Int64? {
        try statement(sql).first { $0.isNull(0) ? nil : $0.integer(0) } ?? nil
    }

    /// First column of the first row, as text; nil when there is no row or it is NULL.
    public func text(_ sql: String) throws(SQLiteError) -> String? {
        try statement(sql).first { $0.isNull(0) ? nil : $0.text(0) } ?? nil
    }

    // MARK: Transactions

    /// Whether a transaction is open.
    public var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    public func begin(_ mode: TransactionMode) throws(SQLiteError) { try statement(mode.rawValue).run() }
    public func commit() throws(SQLiteError) { try statement("COMMIT").run() }

    /// Undoes the open transaction, if there still is one: some errors have undone it already. What the connection has
    /// in memory of the file is forgotten.
    public func rollback() {
        // Where reads failed, SQLite 3.40 may have kept pages of what was undone, and would write them with a later
        // transaction.
        defer { sqlite3_db_release_memory(handle) }
        guard isInTransaction else { return }
        // A ROLLBACK that itself reports an error has nevertheless ended the transaction.
        try? statement("ROLLBACK").run()
    }

    /// Runs `body` in one transaction: all of it is written, or nothing.
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

    /// See `reservePageEnds`.
    func setReservedBytes(_ count: Int32) throws(SQLiteError) {
        var count = count
        try check(sqlite3_file_control(handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &count))
    }

    /// Rows changed by the newest INSERT, UPDATE or DELETE.
    public var changedRows: Int { Int(sqlite3_changes64(handle)) }
    public var lastInsertRow: Int64 { sqlite3_last_insert_rowid(handle) }

    // MARK: Files

    /// Moves pages from the log into the database.
    /// - Returns: pages in the log, and how many of them are moved by now.
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

    /// Makes the write-ahead log's file at least `bytes` long, filled with zeros, so that commits write into it without
    /// changing its size. SQLite reads a log up to the first frame that does not check out, and zeros never do.
    ///
    /// Holds the write lock meanwhile, so that nobody appends. Goes through the connection's file system. After an
    /// error the file has its old size, or as much more as was written.
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
        // SQLite's own file system takes less than 128 KiB at once.
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
            // What was gathered may not have found room.
            _ = methods.xTruncate(file, before)
            return try check(result)
        }
    }

    /// Largest size of the database in pages; a write beyond gives a full disk's error. Returns what now holds.
    @discardableResult
    public func limitPages(_ count: Int) throws(SQLiteError) -> Int {
        Int(try prepare("PRAGMA max_page_count=\(count)").first { $0.integer(0) } ?? 0)
    }

    /// Whether nothing is wrong with the file; each finding is one line.
    /// - Parameter isQuick: leaves out the comparison of indexes with their tables, which is most of the work.
    /// - Throws: also when a page could not be read, which SQLite tells as a finding: the file may be sound.
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

    /// The number behind "error code=", with which SQLite ends the finding on a page that it did not get.
    private static func errorCode(in finding: String) -> Int32? {
        let words: [Substring] = finding.split(separator: "=")
        guard words.count > 1, words[words.count - 2].hasSuffix("error code") else { return nil }
        return Int32(words[words.count - 1].prefix { $0.isNumber })
    }

    /// SQLite's version, as "3.40.1".
    public static var libraryVersion: String { String(cString: sqlite3_libversion()) }

    private func check(_ result: Int32) throws(SQLiteError) { try connection.check(result) }
}

/// SQLite's own object, closed when the `Database` and the last of its statements are gone.
final class Connection {
    let handle: OpaquePointer
    var walPages = 0
    /// Freed after the connection is closed.
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
