import Synchronization
import ThicketProtocol
import ThicketSQLite

/// A store in one SQLite file: an append-only log in ascending order, and heads without bodies that point into it.
///
/// Exactly one writer of exactly one `SQLiteStore` (a second instance on the same file does not know the write-behind
/// heads) and any number of readers, each on its own connection. Committed data is on disk (`synchronous=EXTRA`), and
/// readers see it at their next call.
public final class SQLiteStore: Store {
    /// The file's name in a data folder.
    public static let fileName = "thicket.db"

    /// Keys and numbers that identify the store.
    public let identity: StoreIdentity
    /// Path of the file.
    public let path: String
    /// The settings the store was opened with.
    public let settings: StoreSettings
    let readerCache: ReaderCache
    let late: WriteBehindHeads
    /// Number of times heads could not be written with their group, and the latest error.
    let headFailure = Mutex<(count: Int, last: String)>((0, ""))
    /// Pages in the write-ahead log after the newest commit; maintenance polls this.
    let walPages = Atomic<Int>(0)
    /// Number of restarts of the write-ahead log; `walMoved` holds the pages of one such generation that are already
    /// checkpointed.
    let walGeneration = Atomic<Int>(0)
    let walMoved = Mutex<(generation: Int, pages: Int)>((0, 0))
    private let rows: Atomic<BucketRow>

    /// Opens the store; creates the file if it is missing, and migrates an older one.
    public init(path: String, settings: StoreSettings = .init()) throws(StoreError) {
        let database = try Self.connect(path, .create, settings)
        try Schema.prepare(database) { () throws(SQLiteError) in
            try Meta.seed(database, random: settings.random)
        }
        self.identity = try Meta.identity(database)
        self.path = path
        self.settings = settings
        self.readerCache = ReaderCache(settings)
        self.late = try WriteBehindHeads.load(database, changesMax: settings.writeBehindHeadsMax)
        let last = try storing("reading the buckets") { () throws(SQLiteError) in
            max(
                try database.integer("SELECT max(id) FROM bucket") ?? 0,
                try Meta.integer(Meta.erasedRow, database) ?? 0)
        }
        self.rows = Atomic(last)
    }

    /// Opens the writer's connection; the caller creates at most one.
    public func makeWriter() throws(StoreError) -> any StoreWriter {
        let database = try Self.connect(path, .readWrite, settings, isWriter: true)
        try Schema.check(database)
        try storing("beginning the log") { () throws(SQLiteError) in try Schema.enableLog(database) }
        return try SQLiteWriter(self, database)
    }

    /// Bytes of the shared caches.
    public var memory: StoreMemory { readerCache.memory }

    /// Number of times the table did not take the heads that a group carried, and the latest reason; safe to log.
    public var headFailures: (count: Int, last: String) { headFailure.withLock { $0 } }

    /// Number of heads that are in the log and not yet in their table.
    public var writeBehindHeadCount: Int { late.all.count }

    /// Opens a read-only connection for the calling thread.
    public func makeReader() throws(StoreError) -> any StoreReader { try makeSQLiteReader() }

    /// Opens the connections of maintenance: one for reading, one for checkpoints.
    public func makeMaintenance(_ settings: RetentionSettings) throws(StoreError) -> any StoreMaintenance {
        let log = try Self.connect(path, .readWrite, self.settings)
        return SQLiteMaintenance(self, reader: try makeSQLiteReader(), log: log, settings: settings)
    }

    func makeSQLiteReader() throws(StoreError) -> SQLiteReader {
        let database = try Self.connect(path, .readOnly, settings)
        try Schema.check(database)
        return try SQLiteReader(identity, readerCache, late, database)
    }

    /// A row number that no bucket has had.
    func newBucketRow() -> BucketRow { rows.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Opens a connection with the settings common to all connections of the store.
    /// - Parameter isWriter: gives the connection the full page cache (others get a quarter and also use the system's
    ///   cache), and the file system that gathers writes to the write-ahead log (decision 0008).
    static func connect(
        _ path: String, _ mode: OpenMode, _ settings: StoreSettings, isWriter: Bool = false
    ) throws(StoreError) -> Database {
        // SQLite creates its write-ahead log with the permissions of the file.
        if mode == .create { try Files(settings).createPrivate(path) }
        return try storing("opening the file") { () throws(SQLiteError) in
            let vfs = isWriter ? GatheringFileSystem.name(over: settings.vfs) : settings.vfs
            let database = try Database(
                path: path, mode: mode, busyTimeoutMilliseconds: settings.busyTimeoutMilliseconds, vfs: vfs)
            // With less than EXTRA, a crash may undo the deletion of a rollback journal. In WAL mode EXTRA equals FULL;
            // but the switch to WAL mode uses a rollback journal, and a journal that comes back undoes the switch
            // (decision 0008).
            // Debian's SQLite overwrites deleted pages by default, which doubles the pages in the log and protects
            // nothing here, because older versions are kept on purpose.
            try database.execute(
                """
                PRAGMA synchronous=EXTRA; PRAGMA secure_delete=OFF; PRAGMA trusted_schema=OFF;
                PRAGMA cache_size=-\(isWriter ? settings.cacheKiB : max(settings.cacheKiB / 4, 1)); PRAGMA temp_store=MEMORY;
                PRAGMA mmap_size=\(mode == .readOnly ? settings.mappedBytes : 0)
                """)
            if mode != .readOnly {
                database.watchLog()
                if let pages = settings.pagesMax { try database.limitPages(pages) }
            }
            return database
        }
    }
}
