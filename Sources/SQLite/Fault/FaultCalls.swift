internal import CSQLite

/// The C side of `FaultVFS`: tables of functions that SQLite calls.
enum FaultCalls {
    /// What SQLite allocates per open file: this, and behind it the usual file system's own record.
    struct Head {
        var base: sqlite3_file
        var owner: UnsafeMutableRawPointer
        var number: Int
    }

    typealias File = UnsafeMutablePointer<sqlite3_file>

    /// Bytes of `Head`, rounded up so that the record behind it is aligned.
    static let headBytes: Int = (MemoryLayout<Head>.size + 15) / 16 * 16

    static func register(_ owner: FaultVFS) {
        guard let usual: UnsafeMutablePointer<sqlite3_vfs> = sqlite3_vfs_find(nil) else { return }
        let made: UnsafeMutablePointer<sqlite3_vfs> = .allocate(capacity: 1)
        made.initialize(to: usual.pointee)
        made.pointee.zName = UnsafePointer(strdupped(owner.name))
        made.pointee.szOsFile = Int32(headBytes) + usual.pointee.szOsFile
        made.pointee.pNext = nil
        // Registered for the life of the process, so the owner is kept for as long.
        made.pointee.pAppData = Unmanaged.passRetained(owner).toOpaque()
        made.pointee.xOpen = openFile
        made.pointee.xDelete = deleteFile
        sqlite3_vfs_register(made, 0)
    }

    private static func strdupped(_ text: String) -> UnsafeMutablePointer<CChar> {
        let bytes: ContiguousArray<CChar> = text.utf8CString
        let copy: UnsafeMutablePointer<CChar> = .allocate(capacity: bytes.count)
        for (place, byte) in bytes.enumerated() { (copy + place).initialize(to: byte) }
        return copy
    }

    static func head(_ file: File?) -> UnsafeMutablePointer<Head>? {
        file.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: Head.self) }
    }

    static func real(_ file: File?) -> File? {
        file.map { (UnsafeMutableRawPointer($0) + headBytes).assumingMemoryBound(to: sqlite3_file.self) }
    }

    static func owner(_ file: File?) -> FaultVFS? {
        head(file).map { Unmanaged<FaultVFS>.fromOpaque($0.pointee.owner).takeUnretainedValue() }
    }

    static func methods(_ file: File?) -> sqlite3_io_methods? { real(file)?.pointee.pMethods?.pointee }

    /// Counts the call; SQLITE_OK when it is to be done.
    static func outcome(_ operation: FaultRule.Operation, _ file: File?, _ code: Int32) -> Int32 {
        guard let owner: FaultVFS = owner(file), let number: Int = head(file)?.pointee.number else { return code }
        return owner.outcome(operation, owner.fileName(number), code)
    }

    /// Runs `body` on the file's record; the code when the power has gone.
    static func onRecord(_ file: File?, _ code: Int32, _ body: (OpenFile) -> Int32) -> Int32 {
        guard let owner: FaultVFS = owner(file), let number: Int = head(file)?.pointee.number else { return code }
        return owner.withFile(number, body) ?? code
    }

    // Filled once and never changed afterwards.
    nonisolated(unsafe) static let table: UnsafePointer<sqlite3_io_methods> = {
        var methods: sqlite3_io_methods = .init()
        methods.iVersion = 3
        methods.xClose = closeFile
        methods.xRead = readFile
        methods.xWrite = { file, data, count, offset in
            let code: Int32 = FaultCalls.outcome(.write, file, SQLITE_IOERR | (3 << 8))
            guard code == SQLITE_OK, let data: UnsafeRawPointer else { return code }
            return FaultCalls.onRecord(file, SQLITE_IOERR | (3 << 8)) { $0.write(data, count, offset) }
        }
        methods.xTruncate = { file, size in
            let code: Int32 = FaultCalls.outcome(.truncate, file, SQLITE_IOERR | (6 << 8))
            guard code == SQLITE_OK else { return code }
            return FaultCalls.onRecord(file, SQLITE_IOERR | (6 << 8)) { $0.truncate(size) }
        }
        methods.xSync = { file, flags in
            let code: Int32 = FaultCalls.outcome(.sync, file, SQLITE_IOERR | (4 << 8))
            guard code == SQLITE_OK else { return code }
            return FaultCalls.onRecord(file, SQLITE_IOERR | (4 << 8)) { $0.sync(flags) }
        }
        methods.xFileSize = { FaultCalls.methods($0)?.xFileSize?(FaultCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xLock = { FaultCalls.methods($0)?.xLock?(FaultCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xUnlock = { FaultCalls.methods($0)?.xUnlock?(FaultCalls.real($0), $1) ?? SQLITE_IOERR }
        methods.xCheckReservedLock = {
            FaultCalls.methods($0)?.xCheckReservedLock?(FaultCalls.real($0), $1) ?? SQLITE_IOERR
        }
        methods.xFileControl = {
            FaultCalls.methods($0)?.xFileControl?(FaultCalls.real($0), $1, $2) ?? SQLITE_NOTFOUND
        }
        methods.xSectorSize = { FaultCalls.methods($0)?.xSectorSize?(FaultCalls.real($0)) ?? 4_096 }
        methods.xDeviceCharacteristics = {
            FaultCalls.methods($0)?.xDeviceCharacteristics?(FaultCalls.real($0)) ?? 0
        }
        methods.xShmMap = { FaultCalls.methods($0)?.xShmMap?(FaultCalls.real($0), $1, $2, $3, $4) ?? SQLITE_IOERR }
        methods.xShmLock = { FaultCalls.methods($0)?.xShmLock?(FaultCalls.real($0), $1, $2, $3) ?? SQLITE_IOERR }
        methods.xShmBarrier = { FaultCalls.methods($0)?.xShmBarrier?(FaultCalls.real($0)) }
        methods.xShmUnmap = { FaultCalls.methods($0)?.xShmUnmap?(FaultCalls.real($0), $1) ?? SQLITE_OK }
        // Nothing is mapped, so that every read comes by here.
        methods.xFetch = { _, _, _, place in
            place?.pointee = nil
            return SQLITE_OK
        }
        methods.xUnfetch = { _, _, _ in SQLITE_OK }
        let place: UnsafeMutablePointer<sqlite3_io_methods> = .allocate(capacity: 1)
        place.initialize(to: methods)
        return UnsafePointer(place)
    }()
}

private func openFile(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ file: FaultCalls.File?,
    _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let file: FaultCalls.File, let head: UnsafeMutablePointer<FaultCalls.Head> = FaultCalls.head(file),
        let real: FaultCalls.File = FaultCalls.real(file), let context: UnsafeMutableRawPointer = vfs?.pointee.pAppData,
        let usual: UnsafeMutablePointer<sqlite3_vfs> = sqlite3_vfs_find(nil)
    else { return SQLITE_CANTOPEN }
    file.pointee.pMethods = nil
    let owner: FaultVFS = Unmanaged<FaultVFS>.fromOpaque(context).takeUnretainedValue()
    let text: String = name.map { String(cString: $0) } ?? ""
    let code: Int32 = owner.outcome(.open, text, SQLITE_CANTOPEN)
    guard code == SQLITE_OK else { return code }
    real.pointee.pMethods = nil
    let result: Int32 = usual.pointee.xOpen(usual, name, real, flags, outFlags)
    guard result == SQLITE_OK else {
        if real.pointee.pMethods != nil { _ = real.pointee.pMethods.pointee.xClose(real) }
        return result
    }
    head.pointee.owner = context
    head.pointee.number = owner.opened(real, text)
    file.pointee.pMethods = FaultCalls.table
    return SQLITE_OK
}

private func deleteFile(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ syncFolder: Int32
) -> Int32 {
    guard let context: UnsafeMutableRawPointer = vfs?.pointee.pAppData, let name: UnsafePointer<CChar>,
        let usual: UnsafeMutablePointer<sqlite3_vfs> = sqlite3_vfs_find(nil)
    else { return SQLITE_IOERR }
    let owner: FaultVFS = Unmanaged<FaultVFS>.fromOpaque(context).takeUnretainedValue()
    let code: Int32 = owner.outcome(.delete, String(cString: name), SQLITE_IOERR | (10 << 8))
    return code == SQLITE_OK ? usual.pointee.xDelete(usual, name, syncFolder) : code
}

private func closeFile(_ file: FaultCalls.File?) -> Int32 {
    if let owner: FaultVFS = FaultCalls.owner(file), let number: Int = FaultCalls.head(file)?.pointee.number {
        owner.closed(number)
    }
    return FaultCalls.methods(file)?.xClose?(FaultCalls.real(file)) ?? SQLITE_OK
}

private func readFile(
    _ file: FaultCalls.File?, _ place: UnsafeMutableRawPointer?, _ count: Int32, _ offset: sqlite3_int64
) -> Int32 {
    let code: Int32 = FaultCalls.outcome(.read, file, SQLITE_IOERR | (1 << 8))
    guard code == SQLITE_OK else { return code }
    return FaultCalls.methods(file)?.xRead?(FaultCalls.real(file), place, count, offset) ?? SQLITE_IOERR
}
