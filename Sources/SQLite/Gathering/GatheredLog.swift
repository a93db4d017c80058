internal import CSQLite

/// An open write-ahead log whose writes are buffered until they must be visible.
///
/// SQLite writes a frame in two pieces, its header and its page, and a commit frame by frame. Each piece is a system
/// call, and for a piece that begins in the middle of a page of the file, the kernel first fills the rest of the page
/// with zeros. Consecutive pieces are therefore combined into one write. The buffer is flushed before any operation
/// that could observe the difference: with the last frame of a commit; before a sync, a query of the file's size, a
/// read of these bytes, a truncation, a write elsewhere and closing; and before any lock of the log's shared memory is
/// acquired or released. No other connection can therefore write while the buffer holds data, and no connection sees
/// frames that are only in the buffer.
///
/// A failed write is reported by the call that flushed the buffer and retried by the next flush, because SQLite may
/// continue the transaction. Data that cannot be written is discarded when the write lock is released, because it then
/// belongs to no transaction.
final class GatheredLog {
    /// 30 frames of 4 KiB pages. SQLite's own file system accepts less than 128 KiB per write.
    static let bytesMax = 30 * (frameHeaderBytes + 4_096)
    /// https://sqlite.org/fileformat2.html#the_write_ahead_log
    private static let frameHeaderBytes = 24

    private let real: UnsafeMutablePointer<sqlite3_file>
    private let room: UnsafeMutableRawPointer
    /// File offset and number of the buffered bytes.
    private var start: Int64 = 0
    private var count = 0
    /// Whether the newest piece was the header of a commit's last frame.
    private var isCommitted = false

    init(_ real: UnsafeMutablePointer<sqlite3_file>) {
        self.real = real
        room = .allocate(byteCount: Self.bytesMax, alignment: 16)
    }

    deinit { room.deallocate() }

    private var methods: UnsafePointer<sqlite3_io_methods> { real.pointee.pMethods }

    func write(_ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int32 {
        if count > 0, offset != start + Int64(count) || count + bytes.count > Self.bytesMax {
            let result = passOn()
            guard result == SQLITE_OK else { return result }
        }
        guard bytes.count <= Self.bytesMax, let base = bytes.baseAddress else {
            return methods.pointee.xWrite(real, bytes.baseAddress, Int32(bytes.count), offset)
        }
        if count == 0 { start = offset }
        (room + count).copyMemory(from: base, byteCount: bytes.count)
        count += bytes.count
        let isWhole = isCommitted
        isCommitted = Self.isOfCommit(bytes)
        return isWhole ? passOn() : SQLITE_OK
    }

    /// Whether the bytes are a frame header that contains the database size after a commit.
    private static func isOfCommit(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes.count == frameHeaderBytes && bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self) != 0
    }

    func read(_ place: UnsafeMutableRawPointer?, _ wanted: Int32, _ offset: Int64) -> Int32 {
        if count > 0, offset < start + Int64(count), offset + Int64(wanted) > start {
            let result = passOn()
            guard result == SQLITE_OK else { return result }
        }
        return methods.pointee.xRead(real, place, wanted, offset)
    }

    func truncate(_ size: Int64) -> Int32 {
        // Bytes that are cut off need not be written first.
        if size <= start { forget() }
        let result = passOn()
        return result == SQLITE_OK ? methods.pointee.xTruncate(real, size) : result
    }

    /// Writes the buffered bytes. After an error they stay in the buffer.
    func passOn() -> Int32 {
        guard count > 0 else { return SQLITE_OK }
        let result = methods.pointee.xWrite(real, room, Int32(count), start)
        if result == SQLITE_OK { count = 0 }
        return result
    }

    /// Discards the buffered bytes.
    func forget() { (count, isCommitted) = (0, false) }
}
