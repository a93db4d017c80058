internal import CSQLite
import Synchronization

/// A file system for SQLite whose files contain no readable data: every page of the database and of the write-ahead log
/// is sealed before it is written, including values, names, indexes and the schema.
///
/// It serves one database, opened by `Database(path:vfs:)` with its `name`, in WAL mode with `extraBytes` reserved on
/// each page (`Database.reservePageEnds`). It uses an inner file system, the default one or a model of a disk, which
/// receives the same number of writes of the same lengths at the same offsets as without sealing; the effect of a crash
/// is therefore the same.
///
/// - A page of the database consists of sealed bytes and `extraBytes` of nonce and tag. The first page begins with the
///   file's salt, in place of the 16-byte signature of an SQLite file.
/// - A page in the log has the same format. The checksum of its frame, which would reveal information about the page,
///   is hidden together with the log's salt next to it (https://sqlite.org/fileformat2.html#the_write_ahead_log).
/// - Rollback journals contain no pages, and other files are not created.
public final class SealedFileSystem: Sendable {
    /// Bytes of a page.
    public static let pageBytes = 4_096
    /// Bytes of nonce and tag at the end of a page.
    public static let extraBytes = 32
    /// Bytes of a file's salt.
    public static let saltBytes = 16
    /// The signature with which every unsealed SQLite file begins.
    public static let clearBeginning: [UInt8] = Array("SQLite format 3\0".utf8)
    /// Extended code of a read whose page does not open: damaged, or sealed with another key.
    public static let notOpening: Int32 = SQLITE_IOERR | (32 << 8)

    /// The name under which it is registered with SQLite.
    public let name: String
    private let registered: SealedCalls.Registered

    private static let counter: Atomic<Int> = Atomic(0)

    /// Registers the file system until this object is released.
    /// - Parameter inner: name of the inner file system; nil for the default one.
    /// - Returns: nil when no file system has that name, or when memory is exhausted.
    public init?(_ cipher: any PageCipher, over inner: String? = nil) {
        name = "thicket-sealed-\(Self.counter.add(1, ordering: .relaxed).newValue)"
        guard let registered = SealedCalls.register(name, cipher, over: inner) else {
            return nil
        }
        self.registered = registered
    }

    deinit { SealedCalls.unregister(registered) }
}

extension Database {
    /// Reserves this number of bytes at the end of every page. Works only for an empty file.
    public func reservePageEnds(_ bytes: Int) throws(SQLiteError) {
        try execute("PRAGMA page_size=\(SealedFileSystem.pageBytes)")
        try setReservedBytes(Int32(bytes))
    }
}
