internal import CSQLite

/// A prepared statement: bind, step, read, reset. Parameters count from 1, columns from 0, as in SQLite.
///
/// A failed bind is reported by the next step, so that binds can be chained.
public final class Statement {
    private let handle: OpaquePointer
    private let connection: Connection
    private var bindResult: Int32 = SQLITE_OK

    /// SQLITE_TRANSIENT: SQLite copies the bytes during the call. Defined here because Swift does not import the macro.
    private static let copied: sqlite3_destructor_type = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    init(_ connection: Connection, _ sql: String) throws(SQLiteError) {
        var prepared: OpaquePointer?
        let result = sqlite3_prepare_v3(
            connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        try connection.check(result)
        guard let prepared else { throw SQLiteError.misuse }
        self.handle = prepared
        self.connection = connection
    }

    deinit { sqlite3_finalize(handle) }

    // MARK: Parameters

    /// Binds an integer; returns self for chaining.
    @discardableResult
    public func bind(_ place: Int32, _ value: Int64) -> Statement {
        record(sqlite3_bind_int64(handle, place, value))
        return self
    }

    /// Binds an integer, or NULL for nil.
    @discardableResult
    public func bind(_ place: Int32, _ value: Int64?) -> Statement {
        if let value { return bind(place, value) }
        record(sqlite3_bind_null(handle, place))
        return self
    }

    /// Binds a blob; the bytes are copied.
    @discardableResult
    public func bind(_ place: Int32, _ bytes: [UInt8]) -> Statement {
        bytes.withUnsafeBytes { record(bindBlob(place, $0, Self.copied)) }
        return self
    }

    /// Binds a blob; the bytes are copied.
    @discardableResult
    public func bind(_ place: Int32, _ bytes: ArraySlice<UInt8>) -> Statement {
        bytes.withUnsafeBytes { record(bindBlob(place, $0, Self.copied)) }
        return self
    }

    /// Binds a blob, or NULL for nil; the bytes are copied.
    @discardableResult
    public func bind(_ place: Int32, _ bytes: [UInt8]?) -> Statement {
        if let bytes { return bind(place, bytes) }
        record(sqlite3_bind_null(handle, place))
        return self
    }

    /// Binds a text; the bytes are copied.
    @discardableResult
    public func bind(_ place: Int32, _ text: String) -> Statement {
        var text = text
        text.withUTF8 { buffer in
            let base = buffer.baseAddress ?? UnsafePointer(Self.nothing)
            base.withMemoryRebound(to: CChar.self, capacity: max(buffer.count, 1)) {
                record(sqlite3_bind_text64(handle, place, $0, UInt64(buffer.count), Self.copied, UInt8(SQLITE_UTF8)))
            }
        }
        return self
    }

    /// Binds a text, or NULL for nil; the bytes are copied.
    @discardableResult
    public func bind(_ place: Int32, _ text: String?) -> Statement {
        if let text { return bind(place, text) }
        record(sqlite3_bind_null(handle, place))
        return self
    }

    /// Binds a blob without a copy: `bytes` must stay valid until the statement is reset. For large bodies.
    @discardableResult
    public func bind(_ place: Int32, inPlace bytes: UnsafeRawBufferPointer) -> Statement {
        record(bindBlob(place, bytes, nil))
        return self
    }

    /// Binds a text without a copy, with the same condition as `bind(_:inPlace:)`.
    public func bind(_ place: Int32, textInPlace text: UnsafeBufferPointer<UInt8>) {
        let base = text.baseAddress ?? UnsafePointer(Self.nothing)
        base.withMemoryRebound(to: CChar.self, capacity: max(text.count, 1)) {
            record(sqlite3_bind_text64(handle, place, $0, UInt64(text.count), nil, UInt8(SQLITE_UTF8)))
        }
    }

    private func bindBlob(
        _ place: Int32, _ bytes: UnsafeRawBufferPointer, _ destructor: sqlite3_destructor_type?
    ) -> Int32 {
        // A null pointer would bind NULL instead of an empty blob.
        guard let base = bytes.baseAddress, !bytes.isEmpty else {
            return sqlite3_bind_zeroblob(handle, place, 0)
        }
        return sqlite3_bind_blob64(handle, place, base, UInt64(bytes.count), destructor)
    }

    /// A valid address for an empty text.
    private nonisolated(unsafe) static let nothing: UnsafeMutablePointer<UInt8> = {
        // Written once here and only read later.
        let place = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)
        place.initialize(to: 0)
        return place
    }()

    private func record(_ result: Int32) { if result != SQLITE_OK { bindResult = result } }

    // MARK: Running

    /// Advances to the next row; false at the end. Reset before the next run.
    public func step() throws(SQLiteError) -> Bool {
        guard bindResult == SQLITE_OK else {
            let result = bindResult
            reset()
            throw SQLiteError(extended: result, message: String(cString: sqlite3_errstr(result)))
        }
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let result:
            let error = SQLiteError(
                extended: result, message: String(cString: sqlite3_errmsg(connection.handle)))
            reset()
            throw error
        }
    }

    /// Ends the run, which releases locks and the current row. Parameters keep their values.
    public func reset() {
        sqlite3_reset(handle)
        bindResult = SQLITE_OK
    }

    /// Runs to the end and resets.
    public func run() throws(SQLiteError) {
        while try step() {}
        reset()
    }

    /// As `run`, for closures that lend the bound bytes.
    /// - Returns: the error; nil on success.
    public func runLent() -> SQLiteError? {
        do {
            try run()
            return nil
        } catch {
            return error
        }
    }

    /// Reads the first row, if any, and resets.
    public func first<Result>(_ read: (Statement) throws(SQLiteError) -> Result) throws(SQLiteError) -> Result? {
        guard try step() else {
            reset()
            return nil
        }
        defer { reset() }
        return try read(self)
    }

    /// Reads every row and resets.
    public func forEach(_ read: (Statement) throws(SQLiteError) -> Void) throws(SQLiteError) {
        defer { reset() }
        while try step() { try read(self) }
    }

    // MARK: Columns of the current row

    /// The integer in a column; 0 for NULL.
    public func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
    /// Whether the column is NULL.
    public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
    /// Whether the value is stored as text (and not as a blob or number).
    public func isText(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_TEXT }

    /// The integer in a column; nil for NULL.
    public func optionalInteger(_ column: Int32) -> Int64? { isNull(column) ? nil : integer(column) }

    /// The bytes of a blob or text; empty for NULL. Copied once.
    public func bytes(_ column: Int32) -> [UInt8] { withBytes(column) { Array($0) } }

    /// The bytes of a blob or text; nil for NULL.
    public func optionalBytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : bytes(column) }

    /// The text in a column. Invalid UTF-8 is replaced; it does not occur, because only validated text is stored.
    public func text(_ column: Int32) -> String { withBytes(column) { String(decoding: $0, as: UTF8.self) } }

    /// Passes the bytes of a blob or text to `body` without a copy; valid until `body` returns.
    public func withBytes<Result>(_ column: Int32, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        // SQLite requires the pointer to be requested before the length.
        let base = sqlite3_column_blob(handle, column)
        return body(UnsafeRawBufferPointer(start: base, count: base == nil ? 0 : byteCount(column)))
    }

    /// Length of a blob or text in bytes.
    public func byteCount(_ column: Int32) -> Int { Int(sqlite3_column_bytes(handle, column)) }
}
