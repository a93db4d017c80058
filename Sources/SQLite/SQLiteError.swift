internal import CSQLite

/// An error that SQLite returned.
public struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Primary result code (https://sqlite.org/rescode.html); for example 13 is SQLITE_FULL.
    public let code: Int32
    /// Extended result code, which identifies the failed operation of an I/O error.
    public let extended: Int32
    /// SQLite's message. Names tables and columns, never values.
    public let message: String

    /// Derives the primary code from the extended one.
    public init(extended: Int32, message: String) {
        self.code = extended & 0xFF
        self.extended = extended
        self.message = message
    }

    /// No space on the disk, in the quota or below `max_page_count`. Exceeding a file size limit appears as a failed
    /// write, so the store also checks `isIO`.
    public var isFull: Bool { code == SQLITE_FULL }
    /// Another connection held the lock for longer than the busy timeout.
    public var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
    /// A read, write, sync or lock failed.
    public var isIO: Bool { code == SQLITE_IOERR }
    /// The file is corrupt or not a database.
    public var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
    /// A constraint refused a row.
    public var isConstraint: Bool { code == SQLITE_CONSTRAINT }
    /// The file cannot be opened.
    public var isCannotOpen: Bool { code == SQLITE_CANTOPEN || code == SQLITE_PERM || code == SQLITE_AUTH }
    /// The file is not writable.
    public var isReadOnly: Bool { code == SQLITE_READONLY }

    /// Extended code and message in one line.
    public var description: String { "SQLite error \(extended): \(message)" }

    /// An error for a row that the caller itself refuses, in the same way as a constraint.
    public static func refused(_ message: String) -> SQLiteError {
        SQLiteError(extended: SQLITE_CONSTRAINT, message: message)
    }

    static let misuse = SQLiteError(extended: SQLITE_MISUSE, message: "the statement or connection is misused")
}
