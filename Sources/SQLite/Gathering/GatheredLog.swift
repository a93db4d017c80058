internal import CSQLite

/// An open write-ahead log whose writes are gathered until they must be seen.
///
/// SQLite writes a frame in two pieces, its header and its page, and a commit frame after frame. Each piece is a system
/// call, and one that begins in the middle of a page of the file has the kernel fill the rest of it with zeros first.
/// Pieces that follow each other go on as one write. What is gathered is passed on before anything that could tell the
/// difference: with a commit's last frame, and before a sync, a look at the file's size or at these bytes, a cut, a
/// write elsewhere, the end; and before any lock of the log's shared memory is taken or given back. So nobody else may
/// write while something is here, and nobody is shown frames that are.
///
/// A write that fails is told by the call that passed it on, and is tried again by the next one: SQLite may go on with
/// the transaction. What cannot be written is forgotten when the write lock is given back, for then it is no
/// transaction's any more.
final class GatheredLog {
    /// 30 frames of 4 KiB pages. SQLite's own file system takes less than 128 KiB at once.
    static let bytesMax = 30 * (frameHeaderBytes + 4_096)
    /// https://sqlite.org/fileformat2.html#the_write_ahead_log
    private static let frameHeaderBytes = 24

    private let real: UnsafeMutablePointer<sqlite3_file>
    private let room: UnsafeMutableRawPointer
    /// Where the gathered bytes belong, and how many there are.
    private var start: Int64 = 0
    private var count = 0
    /// The newest piece was the header of a commit's last frame.
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

    /// Whether it is a frame's header that gives the database's size after a commit.
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
        // What would be cut need not be written before.
        if size <= start { forget() }
        let result = passOn()
        return result == SQLITE_OK ? methods.pointee.xTruncate(real, size) : result
    }

    /// Writes what is gathered. After an error it is still here.
    func passOn() -> Int32 {
        guard count > 0 else { return SQLITE_OK }
        let result = methods.pointee.xWrite(real, room, Int32(count), start)
        if result == SQLITE_OK { count = 0 }
        return result
    }

    /// No transaction needs it any more.
    func forget() { (count, isCommitted) = (0, false) }
}
