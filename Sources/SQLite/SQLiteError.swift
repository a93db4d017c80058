internal import CSQLite

/// What SQLite answered instead of doing what was asked.
public struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Primary result code (https://sqlite.org/rescode.html): 13 is SQLITE_FULL.
    public let code: Int32
    /// Extended result code: says which operation of an I/O error failed.
    public let extended: Int32
    /// SQLite's own words. Names tables and columns, never values.
    public let message: String

    public init(extended: Int32, message: String) {
        self.code = extended & 0xFF
        self.extended = extended
        self.message = message
    }

    /// No room on the disk, in the quota or below `max_page_count`. A file size limit shows as a failed write, so the
    /// store above also looks at `isIO`.
    public var isFull: Bool { code == SQLITE_FULL }
    /// Somebody else holds the file longer than the busy timeout.
    public var isBusy: Bool { code == SQLITE_BUSY || code == SQLITE_LOCKED }
    /// A read, write, sync or lock failed.
    public var isIO: Bool { code == SQLITE_IOERR }
    /// The file is broken, or no database.
    public var isCorrupt: Bool { code == SQLITE_CORRUPT || code == SQLITE_NOTADB }
    /// A row was refused by a constraint.
    public var isConstraint: Bool { code == SQLITE_CONSTRAINT }
    /// The file cannot be opened.
    public var isCannotOpen: Bool { code == SQLITE_CANTOPEN || code == SQLITE_PERM || code == SQLITE_AUTH }
    /// The file may not be written.
    public var isReadOnly: Bool { code == SQLITE_READONLY }

    public var description: String { "SQLite error \(extended): \(message)" }

    /// A row that the caller itself refuses, as a constraint would.
    public static func refused(_ message: String) -> SQLiteError {
        SQLiteError(extended: SQLITE_CONSTRAINT, message: message)
    }

    static let misuse = SQLiteError(extended: SQLITE_MISUSE, message: "the statement or connection is misused")
}
