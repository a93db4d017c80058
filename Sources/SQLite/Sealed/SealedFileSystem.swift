internal import CSQLite
import Synchronization

/// A file system for SQLite whose files hold nothing that can be read: every page of the database and of the
/// write-ahead log is sealed on its way to the disk, whatever stands on it: values, names, indexes, the schema.
///
/// It serves one database, opened by `Database(path:vfs:)` with its `name`, in write-ahead mode with `extraBytes`
/// reserved on each page (`Database.reservePageEnds`). Below it lies another file system, the usual one or a model of a
/// disk, which gets as many writes of the same length at the same places as without it: what a crash does is the same.
///
/// - A page of the database is sealed bytes and `extraBytes` of nonce and tag. In front of the first one stands the
///   file's salt, in place of the 16 bytes by which a SQLite file is known.
/// - A page in the log is the same. Its frame's checksum, which would tell something of the page, is hidden together
///   with the log's salt beside it (https://sqlite.org/fileformat2.html#the_write_ahead_log).
/// - Rollback journals hold no page, and other files are not made.
public final class SealedFileSystem: Sendable {
    /// Bytes of a page.
    public static let pageBytes = 4_096
    /// Bytes at the end of a page that belong to the seal.
    public static let extraBytes = 32
    /// Bytes of a file's salt.
    public static let saltBytes = 16
    /// How every SQLite file begins that is not sealed.
    public static let clearBeginning: [UInt8] = Array("SQLite format 3\0".utf8)
    /// The extended code of a read that met what does not open: damaged, or sealed under another key.
    public static let notOpening: Int32 = SQLITE_IOERR | (32 << 8)

    /// By which SQLite knows it.
    public let name: String
    private let registered: SealedCalls.Registered

    private static let counter: Atomic<Int> = Atomic(0)

    /// Registers it, until nobody holds it any more.
    /// - Parameter inner: the name of the file system below; nil for the usual one.
    /// - Returns: nil when there is no file system of that name, or no memory.
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
    /// Keeps that many bytes at the end of every page free. Only of a file that holds nothing yet.
    public func reservePageEnds(_ bytes: Int) throws(SQLiteError) {
        try execute("PRAGMA page_size=\(SealedFileSystem.pageBytes)")
        try setReservedBytes(Int32(bytes))
    }
}
