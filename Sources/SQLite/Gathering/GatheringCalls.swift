internal import CSQLite
import Synchronization

/// A file system for SQLite that buffers the writes of the write-ahead log (`GatheredLog`) on top of another one, for
/// connections that write much. All other files are handled by the inner file system.
public enum GatheringFileSystem {
    /// Registered names by inner name; they stay registered until the process ends.
    private static let registered = Mutex<[String?: String]>([:])

    /// Registers the file system if necessary.
    /// - Parameter inner: name of the file system below; nil for the default one.
    /// - Returns: the name of the buffering file system; `inner` when no such file system exists.
    public static func name(over inner: String? = nil) -> String? {
        registered.withLock { names in
            if let known = names[inner] { return known }
            let name = "thicket-gathering-\(names.count)"
            guard GatheringCalls.register(name, over: inner) else { return inner }
            names[inner] = name
            return name
        }
    }
}

/// The C side: function tables that SQLite calls.
private enum GatheringCalls {
    /// The memory that SQLite allocates for an open database or its log: this, followed by the record of the inner file
    /// system.
    struct Head {
        var base: sqlite3_file
        /// For a database: the buffer of its log while that is open. For a log: its own buffer, retained.
        var log: UnsafeMutableRawPointer?
        /// For a log: its database.
        var database: UnsafeMutablePointer<sqlite3_file>?
    }

    typealias File = UnsafeMutablePointer<sqlite3_file>
    typealias System = UnsafeMutablePointer<sqlite3_vfs>
    typealias Methods = UnsafePointer<sqlite3_io_methods>

    /// Bytes of `Head`, rounded up so that the record after it is aligned.
    static let headBytes = (MemoryLayout<Head>.size + 15) / 16 * 16

    static func register(_ name: String, over inner: String?) -> Bool {
        Database.prepareLibrary()
        guard let usual = sqlite3_vfs_find(inner) else { return false }
        let bytes = name.utf8CString
        let text = UnsafeMutableBufferPointer<CChar>.allocate(capacity: bytes.count)
        _ = text.initialize(from: bytes)
        let made = System.allocate(capacity: 1)
        made.initialize(to: usual.pointee)
        made.pointee.zName = UnsafePointer(text.baseAddress)
        made.pointee.szOsFile = Int32(headBytes) + usual.pointee.szOsFile
        made.pointee.pNext = nil
        made.pointee.pAppData = UnsafeMutableRawPointer(usual)
        made.pointee.xOpen = openFile
        made.pointee.xDelete = { system, name, syncsFolder in
            guard let inner = GatheringCalls.inner(system) else { return SQLITE_IOERR }
            return inner.pointee.xDelete(inner, name, syncsFolder)
        }
        made.pointee.xAccess = { system, name, flags, answer in
            guard let inner = GatheringCalls.inner(system) else { return SQLITE_IOERR }
            return inner.pointee.xAccess(inner, name, flags, answer)
        }
        return sqlite3_vfs_register(made, 0) == SQLITE_OK
    }

    static func inner(_ system: System?) -> System? {
        system?.pointee.pAppData?.assumingMemoryBound(to: sqlite3_vfs.self)
    }

    static func head(_ file: File) -> UnsafeMutablePointer<Head> {
        UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
    }

    static func real(_ file: File) -> File {
        (UnsafeMutableRawPointer(file) + headBytes).assumingMemoryBound(to: sqlite3_file.self)
    }

    /// Index of the write lock (https://sqlite.org/walformat.html#wal_locks).
    static let writeLock: Int32 = 0

    /// The buffer of a log, or of a database's log; nil when the log is not open.
    static func log(_ file: File?) -> GatheredLog? {
        guard let file, let log = head(file).pointee.log else { return nil }
        return Unmanaged<GatheredLog>.fromOpaque(log).takeUnretainedValue()
    }

    /// Calls the inner file system.
    static func below(_ file: File?, _ absent: Int32, _ body: (File, Methods) -> Int32) -> Int32 {
        guard let file else { return absent }
        let real = real(file)
        return body(real, real.pointee.pMethods)
    }

    /// The same, after flushing the buffer.
    static func passedOn(_ file: File?, _ body: (File, Methods) -> Int32) -> Int32 {
        let result = log(file)?.passOn() ?? SQLITE_OK
        return result == SQLITE_OK ? below(file, SQLITE_IOERR, body) : result
    }

    // Initialized once and never modified.
    nonisolated(unsafe) static let logTable = table { methods in
        // A log is neither mapped nor shared: SQLite calls methods beyond version 1 on the database's file.
        methods.iVersion = 1
        methods.xClose = { file in
            guard let file else { return SQLITE_OK }
            // Frames of an uncommitted transaction; a failure to write them does not matter.
            _ = GatheringCalls.log(file)?.passOn()
            let head = GatheringCalls.head(file)
            if let database: File = head.pointee.database { GatheringCalls.head(database).pointee.log = nil }
            if let log = head.pointee.log { Unmanaged<GatheredLog>.fromOpaque(log).release() }
            return GatheringCalls.below(file, SQLITE_OK) { $1.pointee.xClose($0) }
        }
        methods.xRead = { GatheringCalls.log($0)?.read($1, $2, $3) ?? SQLITE_IOERR }
        methods.xWrite = { file, data, count, offset in
            GatheringCalls.log(file)?.write(.init(start: data, count: Int(count)), offset) ?? SQLITE_IOERR
        }
        methods.xTruncate = { GatheringCalls.log($0)?.truncate($1) ?? SQLITE_IOERR }
        methods.xSync = { file, flags in GatheringCalls.passedOn(file) { $1.pointee.xSync($0, flags) } }
        methods.xFileSize = { file, size in GatheringCalls.passedOn(file) { $1.pointee.xFileSize($0, size) } }
    }

    // Initialized once and never modified.
    nonisolated(unsafe) static let databaseTable = table { methods in
        methods.iVersion = 3
        methods.xClose = { file in GatheringCalls.below(file, SQLITE_OK) { $1.pointee.xClose($0) } }
        methods.xRead = { file, place, count, offset in
            GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xRead($0, place, count, offset) }
        }
        methods.xWrite = { file, data, count, offset in
            GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xWrite($0, data, count, offset) }
        }
        methods.xTruncate = { file, size in
            GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xTruncate($0, size) }
        }
        methods.xSync = { file, flags in GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xSync($0, flags) } }
        methods.xFileSize = { file, size in
            GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xFileSize($0, size) }
        }
        methods.xShmMap = { file, region, bytes, grows, place in
            GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xShmMap($0, region, bytes, grows, place) }
        }
        // The next writer must not find older frames of this connection later, so frames of a rolled-back transaction
        // are flushed before the lock is released. If that fails, no data is lost.
        methods.xShmLock = { file, offset, count, flags in
            let log = GatheringCalls.log(file)
            let result = log?.passOn() ?? SQLITE_OK
            guard result == SQLITE_OK || flags & SQLITE_SHM_UNLOCK != 0 else { return result }
            let endsWriting =
                flags & SQLITE_SHM_UNLOCK != 0 && flags & SQLITE_SHM_EXCLUSIVE != 0
                && offset <= GatheringCalls.writeLock && offset + count > GatheringCalls.writeLock
            if endsWriting { log?.forget() }
            return GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xShmLock($0, offset, count, flags) }
        }
        methods.xShmBarrier = { file in
            if let file { real(file).pointee.pMethods.pointee.xShmBarrier(real(file)) }
        }
        methods.xShmUnmap = { file, deletes in
            GatheringCalls.below(file, SQLITE_OK) { $1.pointee.xShmUnmap($0, deletes) }
        }
        methods.xFetch = { file, offset, count, place in
            GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xFetch($0, offset, count, place) }
        }
        methods.xUnfetch = { file, offset, place in
            GatheringCalls.below(file, SQLITE_OK) { $1.pointee.xUnfetch($0, offset, place) }
        }
    }

    /// A table with the methods common to all files.
    private static func table(_ fill: (inout sqlite3_io_methods) -> Void) -> Methods {
        var methods = sqlite3_io_methods()
        methods.xLock = { file, level in GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xLock($0, level) } }
        methods.xUnlock = { file, level in GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xUnlock($0, level) } }
        methods.xCheckReservedLock = { file, answer in
            GatheringCalls.below(file, SQLITE_IOERR) { $1.pointee.xCheckReservedLock($0, answer) }
        }
        methods.xFileControl = { file, what, argument in
            GatheringCalls.below(file, SQLITE_NOTFOUND) { $1.pointee.xFileControl($0, what, argument) }
        }
        methods.xSectorSize = { file in GatheringCalls.below(file, 4_096) { $1.pointee.xSectorSize($0) } }
        methods.xDeviceCharacteristics = { file in
            GatheringCalls.below(file, 0) { $1.pointee.xDeviceCharacteristics($0) }
        }
        fill(&methods)
        let place = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        place.initialize(to: methods)
        return UnsafePointer(place)
    }
}

private func openFile(
    _ system: GatheringCalls.System?, _ name: UnsafePointer<CChar>?, _ file: GatheringCalls.File?, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let file, let inner = GatheringCalls.inner(system) else {
        return SQLITE_CANTOPEN
    }
    file.pointee.pMethods = nil
    // Journals and files without a name belong to the inner file system, whose record fits at the start of the memory.
    guard flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB) != 0 else {
        return inner.pointee.xOpen(inner, name, file, flags, outFlags)
    }
    let real = GatheringCalls.real(file)
    real.pointee.pMethods = nil
    let result = inner.pointee.xOpen(inner, name, real, flags, outFlags)
    guard result == SQLITE_OK else {
        if real.pointee.pMethods != nil { _ = real.pointee.pMethods.pointee.xClose(real) }
        return result
    }
    // A file system without shared memory has an older version, or leaves these methods out.
    let methods = real.pointee.pMethods.pointee
    guard (methods.iVersion >= 3 && methods.xShmMap != nil) || flags & SQLITE_OPEN_WAL != 0 else {
        // Without shared memory no log is possible.
        _ = real.pointee.pMethods.pointee.xClose(real)
        return inner.pointee.xOpen(inner, name, file, flags, outFlags)
    }
    let head = GatheringCalls.head(file)
    (head.pointee.log, head.pointee.database) = (nil, nil)
    guard flags & SQLITE_OPEN_WAL != 0 else {
        file.pointee.pMethods = GatheringCalls.databaseTable
        return SQLITE_OK
    }
    // https://sqlite.org/c3ref/database_file_object.html: the database file of the same connection that the log belongs
    // to.
    let database: GatheringCalls.File? = sqlite3_database_file_object(name)
    let log = Unmanaged.passRetained(GatheredLog(real)).toOpaque()
    (head.pointee.log, head.pointee.database) = (log, database)
    if let database { GatheringCalls.head(database).pointee.log = log }
    file.pointee.pMethods = GatheringCalls.logTable
    return SQLITE_OK
}
