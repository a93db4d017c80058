internal import CSQLite

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The C side of `SealedFileSystem`: function tables that SQLite calls.
enum SealedCalls {
    /// The memory that SQLite allocates per open file: this, followed by the record of the inner file system.
    private struct Head {
        var base: sqlite3_file
        var file: UnsafeMutableRawPointer
    }

    typealias File = UnsafeMutablePointer<sqlite3_file>
    typealias System = UnsafeMutablePointer<sqlite3_vfs>

    /// Bytes of `Head`, rounded up so that the record after it is aligned.
    private static let headBytes = (MemoryLayout<Head>.size + 15) / 16 * 16

    /// An entry in SQLite's list of file systems. Not modified while it is registered.
    struct Registered: @unchecked Sendable {
        fileprivate let system: System
    }

    static func register(_ name: String, _ cipher: any PageCipher, over inner: String?) -> Registered? {
        Database.prepareLibrary()
        guard let usual = sqlite3_vfs_find(inner), let text = strdup(name) else {
            return nil
        }
        let made = System.allocate(capacity: 1)
        made.initialize(to: usual.pointee)
        made.pointee.zName = UnsafePointer(text)
        made.pointee.szOsFile = Int32(headBytes) + usual.pointee.szOsFile
        made.pointee.pNext = nil
        made.pointee.pAppData = Unmanaged.passRetained(SealedStore(cipher, usual)).toOpaque()
        made.pointee.xOpen = openFile
        made.pointee.xDelete = { system, name, syncsFolder in
            guard let inner: System = SealedCalls.store(system)?.inner else { return SQLITE_IOERR }
            return inner.pointee.xDelete(inner, name, syncsFolder)
        }
        made.pointee.xAccess = { system, name, flags, answer in
            guard let inner: System = SealedCalls.store(system)?.inner else { return SQLITE_IOERR }
            return inner.pointee.xAccess(inner, name, flags, answer)
        }
        guard sqlite3_vfs_register(made, 0) == SQLITE_OK else { return nil }
        return Registered(system: made)
    }

    /// Must be called only when none of its files is open.
    static func unregister(_ registered: Registered) {
        let system = registered.system
        sqlite3_vfs_unregister(system)
        if let context = system.pointee.pAppData {
            Unmanaged<SealedStore>.fromOpaque(context).release()
        }
        free(UnsafeMutableRawPointer(mutating: system.pointee.zName))
        system.deallocate()
    }

    static func store(_ system: System?) -> SealedStore? {
        (system?.pointee.pAppData).map { Unmanaged<SealedStore>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: - Files

    private static func head(_ file: File) -> UnsafeMutablePointer<Head> {
        UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
    }

    static func real(_ file: File?) -> File? {
        file.map { (UnsafeMutableRawPointer($0) + headBytes).assumingMemoryBound(to: sqlite3_file.self) }
    }

    static func methods(_ file: File?) -> sqlite3_io_methods? { real(file)?.pointee.pMethods?.pointee }

    static func sealed(_ file: File?) -> SealedFile? {
        file.map { Unmanaged<SealedFile>.fromOpaque(head($0).pointee.file).takeUnretainedValue() }
    }

    fileprivate static func opened(_ file: File, _ sealed: SealedFile) {
        head(file).pointee.file = Unmanaged.passRetained(sealed).toOpaque()
        file.pointee.pMethods = table
    }

    /// The kind of a file that is sealed. Other files would contain clear text and are refused.
    fileprivate static func kind(_ flags: Int32) -> SealedFile.Kind? {
        if flags & SQLITE_OPEN_MAIN_DB != 0 { return .database }
        if flags & SQLITE_OPEN_WAL != 0 { return .log }
        if flags & SQLITE_OPEN_MAIN_JOURNAL != 0 { return .journal }
        return nil
    }

    // Initialized once and never modified.
    nonisolated(unsafe) private static let table = {
        var methods = sqlite3_io_methods()
        // Version 2 has no methods for memory mapping, so that every byte passes through this table.
        methods.iVersion = 2
        methods.xClose = { file in
            guard let file else { return SQLITE_OK }
            Unmanaged<SealedFile>.fromOpaque(SealedCalls.head(file).pointee.file).release()
            return SealedCalls.methods(file)?.xClose?(SealedCalls.real(file)) ?? SQLITE_OK
        }
        methods.xRead = { file, place, count, offset in
            SealedCalls.sealed(file)?.read(.init(start: place, count: Int(count)), offset) ?? SQLITE_IOERR
        }
        methods.xWrite = { file, data, count, offset in
            SealedCalls.sealed(file)?.write(.init(start: data, count: Int(count)), offset) ?? SQLITE_IOERR
        }
        methods.xTruncate = { SealedCalls.methods($0)?.xTruncate?(SealedCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xSync = { SealedCalls.methods($0)?.xSync?(SealedCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xFileSize = { SealedCalls.methods($0)?.xFileSize?(SealedCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xLock = { SealedCalls.methods($0)?.xLock?(SealedCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xUnlock = { SealedCalls.methods($0)?.xUnlock?(SealedCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xCheckReservedLock = {
            SealedCalls.methods($0)?.xCheckReservedLock?(SealedCalls.real($0), $1) ?? SQLITE_IOERR
        }
        methods.xFileControl = {
            SealedCalls.methods($0)?.xFileControl?(SealedCalls.real($0), $1, $2) ?? SQLITE_NOTFOUND
        }
        methods.xSectorSize = { SealedCalls.methods($0)?.xSectorSize?(SealedCalls.real($0)) ?? 4_096 }
        methods.xDeviceCharacteristics = {
            SealedCalls.methods($0)?.xDeviceCharacteristics?(SealedCalls.real($0)) ?? 0
        }
        methods.xShmMap = { SealedCalls.methods($0)?.xShmMap?(SealedCalls.real($0), $1, $2, $3, $4) ?? SQLITE_IOERR }
        methods.xShmLock = { SealedCalls.methods($0)?.xShmLock?(SealedCalls.real($0), $1, $2, $3) ?? SQLITE_IOERR }
        methods.xShmBarrier = { SealedCalls.methods($0)?.xShmBarrier?(SealedCalls.real($0)) }
        methods.xShmUnmap = { SealedCalls.methods($0)?.xShmUnmap?(SealedCalls.real($0), $1) ?? SQLITE_OK }
        let place = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        place.initialize(to: methods)
        return UnsafePointer(place)
    }()
}

private func openFile(
    _ system: SealedCalls.System?, _ name: UnsafePointer<CChar>?, _ file: SealedCalls.File?, _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let file, let real = SealedCalls.real(file),
        let store = SealedCalls.store(system)
    else { return SQLITE_CANTOPEN }
    file.pointee.pMethods = nil
    guard let kind = SealedCalls.kind(flags) else { return SQLITE_CANTOPEN }
    real.pointee.pMethods = nil
    var result = store.inner.pointee.xOpen(store.inner, name, real, flags, outFlags)
    if result == SQLITE_OK, kind == .database { result = readSalt(store, real) }
    guard result == SQLITE_OK else {
        if real.pointee.pMethods != nil { _ = real.pointee.pMethods.pointee.xClose(real) }
        return result
    }
    SealedCalls.opened(file, SealedFile(kind, store, real))
    return SQLITE_OK
}

/// - Returns: an error also for a database that is not sealed.
private func readSalt(_ store: SealedStore, _ real: SealedCalls.File) -> Int32 {
    let methods = real.pointee.pMethods.pointee
    var size: sqlite3_int64 = 0
    let result = methods.xFileSize(real, &size)
    guard result == SQLITE_OK, size >= SealedFileSystem.saltBytes else {
        store.open(salt: nil)
        return result
    }
    var salt = [UInt8](repeating: 0, count: SealedFileSystem.saltBytes)
    let read = methods.xRead(real, &salt, Int32(salt.count), 0)
    guard read == SQLITE_OK else { return read }
    guard salt != SealedFileSystem.clearBeginning else { return SQLITE_NOTADB }
    store.open(salt: salt)
    return SQLITE_OK
}
