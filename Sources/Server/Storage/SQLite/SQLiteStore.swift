import Synchronization
import ThicketProtocol
import ThicketSQLite

/// A store in one SQLite file: an append-only log by rising number, and thin heads that point into it.
///
/// One writer of one `SQLiteStore` (another one of the same file does not know its late heads), any number of readers,
/// each on its own connection. What the writer has committed is on disk (`synchronous=EXTRA`) and readers see it at
/// their next call.
public final class SQLiteStore: Store {
    /// The file's name in a data folder.
    public static let fileName = "thicket.db"

    public let identity: StoreIdentity
    public let path: String
    public let settings: StoreSettings
    let walks: WalkCache
    let late: LateHeads
    /// How often heads could not be written with their group, and what came of it last.
    let headFailure = Mutex<(count: Int, last: String)>((0, ""))
    /// Pages in the log after the newest commit; the keeper looks here.
    let walPages = Atomic<Int>(0)
    /// Counts how often the log began anew, and of that log the pages that stand in the file by now.
    let walLife = Atomic<Int>(0)
    let walMoved = Mutex<(life: Int, pages: Int)>((0, 0))
    private let rows: Atomic<BucketRow>

    /// Opens the store, makes it when the file is missing, and brings an older one up to date.
    public init(path: String, settings: StoreSettings = .init()) throws(StoreError) {
        let database = try Self.connect(path, .create, settings)
        try Schema.prepare(database) { () throws(SQLiteError) in
            try Meta.seed(database, random: settings.random)
        }
        self.identity = try Meta.identity(database)
        self.path = path
        self.settings = settings
        self.walks = WalkCache(settings)
        self.late = try LateHeads.load(database, changesMax: settings.lateHeadsMax)
        let last = try storing("reading the buckets") { () throws(SQLiteError) in
            max(
                try database.integer("SELECT max(id) FROM bucket") ?? 0,
                try Meta.integer(Meta.erasedRow, database) ?? 0)
        }
        self.rows = Atomic(last)
    }

    public func makeWriter() throws(StoreError) -> any StoreWriter {
        let database = try Self.connect(path, .readWrite, settings, isWriter: true)
        try Schema.check(database)
        try storing("beginning the log") { () throws(SQLiteError) in try Schema.useLog(database) }
        return try SQLiteWriter(self, database)
    }

    public var memory: StoreMemory { walks.memory }

    /// How often their table did not take heads that a group had with it, and why it was so last; safe to log.
    public var headFailures: (count: Int, last: String) { headFailure.withLock { $0 } }

    /// Heads of objects that are in the log and not yet in their table.
    public var lateHeadCount: Int { late.all.count }

    public func makeReader() throws(StoreError) -> any StoreReader { try makeSQLiteReader() }

    public func makeKeeper(_ settings: RetentionSettings) throws(StoreError) -> any StoreKeeper {
        let log = try Self.connect(path, .readWrite, self.settings)
        return SQLiteKeeper(self, reader: try makeSQLiteReader(), log: log, settings: settings)
    }

    func makeSQLiteReader() throws(StoreError) -> SQLiteReader {
        let database = try Self.connect(path, .readOnly, settings)
        try Schema.check(database)
        return try SQLiteReader(identity, walks, late, database)
    }

    /// A row number that no bucket has had.
    func newBucketRow() -> BucketRow { rows.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Opens a connection with what every connection of ours has set.
    /// - Parameter isWriter: it keeps all pages, where the others read what the system has in memory, too; and gathers
    ///   what it writes into the log (0077).
    static func connect(
        _ path: String, _ mode: OpenMode, _ settings: StoreSettings, isWriter: Bool = false
    ) throws(StoreError) -> Database {
        // SQLite gives its log the rights of the file.
        if mode == .create { try Files(settings).createPrivate(path) }
        return try storing("opening the file") { () throws(SQLiteError) in
            let vfs = isWriter ? GatheringFileSystem.name(over: settings.vfs) : settings.vfs
            let database = try Database(
                path: path, mode: mode, busyTimeoutMilliseconds: settings.busyTimeoutMilliseconds, vfs: vfs)
            // With less than EXTRA a crash may undo that a journal was deleted. With the log that is the same as FULL;
            // but the file gets its log by a journal, and one that comes back takes the log from it (decision 0072).
            // Debian's SQLite overwrites deleted pages by default, which doubles the log's pages and hides nothing
            // here: older versions are kept on purpose.
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
