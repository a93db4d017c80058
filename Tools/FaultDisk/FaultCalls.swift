internal import CSQLite
import ThicketSQLite

/// The C side of `FaultVFS`: function tables that SQLite calls.
enum FaultCalls {
    /// The memory that SQLite allocates per open file: this, followed by the default file system's own record.
    struct Head {
        var base: sqlite3_file
        var owner: UnsafeMutableRawPointer
        var number: Int
    }

    typealias File = UnsafeMutablePointer<sqlite3_file>

    /// Bytes of `Head`, rounded up so that the record after it is aligned.
    static let headBytes = (MemoryLayout<Head>.size + 15) / 16 * 16

    static func register(_ owner: FaultVFS) {
        guard let usual = sqlite3_vfs_find(nil) else { return }
        let made = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        made.initialize(to: usual.pointee)
        made.pointee.zName = UnsafePointer(strdupped(owner.name))
        made.pointee.szOsFile = Int32(headBytes) + usual.pointee.szOsFile
        made.pointee.pNext = nil
        // The registration lasts until the process ends, and so does the reference to the owner.
        made.pointee.pAppData = Unmanaged.passRetained(owner).toOpaque()
        made.pointee.xOpen = openFile
        made.pointee.xDelete = deleteFile
        made.pointee.xAccess = lookForFile
        Database.prepareLibrary()
        sqlite3_vfs_register(made, 0)
    }

    private static func strdupped(_ text: String) -> UnsafeMutablePointer<CChar> {
        let bytes = text.utf8CString
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
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

    /// SQLite's code for a failed I/O call of kind `number` (https://sqlite.org/rescode.html).
    static func failed(_ number: Int32) -> Int32 { SQLITE_IOERR | (number << 8) }

    /// Counts the call and decides its outcome.
    static func verdict(_ operation: FaultRule.Operation, _ file: File?, _ code: Int32) -> FaultRule.Verdict {
        guard let owner = owner(file), let number = head(file)?.pointee.number else {
            return .fails(code)
        }
        // Calls of a connection opened before the crash do not count for the restarted machine.
        guard let name = owner.nameOfLiving(number) else { return .fails(code) }
        return owner.verdict(operation, name, code)
    }

    /// Runs `body` unless the call is to fail.
    static func unlessFailing(
        _ operation: FaultRule.Operation, _ file: File?, _ number: Int32, _ body: () -> Int32?
    ) -> Int32 {
        verdict(operation, file, failed(number)).code ?? body() ?? SQLITE_IOERR
    }

    /// Runs `body` on the file's record; returns `code` after a crash.
    static func onRecord(_ file: File?, _ code: Int32, _ body: (OpenFile) -> Int32) -> Int32 {
        guard let owner = owner(file), let number = head(file)?.pointee.number else { return code }
        return owner.withFile(number, body) ?? code
    }

    // Initialized once and never modified.
    nonisolated(unsafe) static let table = {
        var methods = sqlite3_io_methods()
        methods.iVersion = 3
        methods.xClose = closeFile
        methods.xRead = readFile
        methods.xWrite = writeFile
        methods.xTruncate = { file, size in
            FaultCalls.unlessFailing(.truncate, file, 6) {
                FaultCalls.onRecord(file, FaultCalls.failed(6)) { $0.truncate(size) }
            }
        }
        methods.xSync = { file, flags in
            FaultCalls.unlessFailing(.sync, file, 4) {
                FaultCalls.onRecord(file, FaultCalls.failed(4)) { $0.sync(flags) }
            }
        }
        methods.xFileSize = { file, size in
            FaultCalls.unlessFailing(.look, file, 7) {
                FaultCalls.methods(file)?.xFileSize?(FaultCalls.real(file), size)
            }
        }
        methods.xLock = { file, level in
            FaultCalls.unlessFailing(.lock, file, 15) { FaultCalls.methods(file)?.xLock?(FaultCalls.real(file), level) }
        }
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
        methods.xShmMap = { file, region, bytes, grows, place in
            FaultCalls.unlessFailing(.map, file, 21) {
                FaultCalls.methods(file)?.xShmMap?(FaultCalls.real(file), region, bytes, grows, place)
            }
        }
        methods.xShmLock = { file, offset, count, flags in
            // Releasing a lock never fails, because SQLite ignores the result.
            guard flags & SQLITE_SHM_UNLOCK == 0 else {
                return FaultCalls.methods(file)?.xShmLock?(FaultCalls.real(file), offset, count, flags) ?? SQLITE_OK
            }
            return FaultCalls.unlessFailing(.lock, file, 20) {
                FaultCalls.methods(file)?.xShmLock?(FaultCalls.real(file), offset, count, flags)
            }
        }
        methods.xShmBarrier = { FaultCalls.methods($0)?.xShmBarrier?(FaultCalls.real($0)) }
        methods.xShmUnmap = { FaultCalls.methods($0)?.xShmUnmap?(FaultCalls.real($0), $1) ?? SQLITE_OK }
        // Memory mapping is disabled, so that every read passes through this table.
        methods.xFetch = { _, _, _, place in
            place?.pointee = nil
            return SQLITE_OK
        }
        methods.xUnfetch = { _, _, _ in SQLITE_OK }
        let place = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        place.initialize(to: methods)
        return UnsafePointer(place)
    }()
}

private func openFile(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ file: FaultCalls.File?,
    _ flags: Int32, _ outFlags: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let file, let head = FaultCalls.head(file),
        let real = FaultCalls.real(file), let context = vfs?.pointee.pAppData,
        let usual = sqlite3_vfs_find(nil)
    else { return SQLITE_CANTOPEN }
    file.pointee.pMethods = nil
    let owner = Unmanaged<FaultVFS>.fromOpaque(context).takeUnretainedValue()
    let text = name.map { String(cString: $0) } ?? ""
    if let code = owner.verdict(.open, text, SQLITE_CANTOPEN).code { return code }
    real.pointee.pMethods = nil
    let result = usual.pointee.xOpen(usual, name, real, flags, outFlags)
    guard result == SQLITE_OK else {
        if real.pointee.pMethods != nil { _ = real.pointee.pMethods.pointee.xClose(real) }
        return result
    }
    head.pointee.owner = context
    head.pointee.number = owner.opened(real, text)
    if !text.isEmpty { owner.history?.record(.open, text) }
    file.pointee.pMethods = FaultCalls.table
    return SQLITE_OK
}

private func deleteFile(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ syncFolder: Int32
) -> Int32 {
    guard let context = vfs?.pointee.pAppData, let name,
        let usual = sqlite3_vfs_find(nil)
    else { return SQLITE_IOERR }
    let owner = Unmanaged<FaultVFS>.fromOpaque(context).takeUnretainedValue()
    let text = String(cString: name)
    if let code = owner.verdict(.delete, text, FaultCalls.failed(10)).code { return code }
    owner.history?.record(.delete, text)
    if syncFolder != 0 { owner.history?.record(.syncNames, text) }
    return usual.pointee.xDelete(usual, name, syncFolder)
}

private func lookForFile(
    _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ name: UnsafePointer<CChar>?, _ flags: Int32,
    _ answer: UnsafeMutablePointer<Int32>?
) -> Int32 {
    guard let context = vfs?.pointee.pAppData,
        let usual = sqlite3_vfs_find(nil)
    else { return SQLITE_IOERR }
    let owner = Unmanaged<FaultVFS>.fromOpaque(context).takeUnretainedValue()
    let text = name.map { String(cString: $0) } ?? ""
    return owner.verdict(.look, text, FaultCalls.failed(13)).code ?? usual.pointee.xAccess(usual, name, flags, answer)
}

private func closeFile(_ file: FaultCalls.File?) -> Int32 {
    if let owner = FaultCalls.owner(file), let number = FaultCalls.head(file)?.pointee.number {
        owner.closed(number)
    }
    return FaultCalls.methods(file)?.xClose?(FaultCalls.real(file)) ?? SQLITE_OK
}

private func readFile(
    _ file: FaultCalls.File?, _ place: UnsafeMutableRawPointer?, _ count: Int32, _ offset: sqlite3_int64
) -> Int32 {
    func read(_ count: Int32) -> Int32 {
        FaultCalls.methods(file)?.xRead?(FaultCalls.real(file), place, count, offset) ?? SQLITE_IOERR
    }
    switch FaultCalls.verdict(.read, file, FaultCalls.failed(1)) {
    case .done: return read(count)
    case .fails(let code), .dies(let code): return code
    case .isCutShort(let code):
        _ = read(count / 2)
        return code
    }
}

private func writeFile(
    _ file: FaultCalls.File?, _ data: UnsafeRawPointer?, _ count: Int32, _ offset: sqlite3_int64
) -> Int32 {
    guard let data else { return SQLITE_IOERR }
    func write(_ count: Int32) -> Int32 {
        FaultCalls.onRecord(file, FaultCalls.failed(3)) { $0.write(data, count, offset) }
    }
    switch FaultCalls.verdict(.write, file, FaultCalls.failed(3)) {
    case .done: return write(count)
    case .fails(let code): return code
    case .dies(let code):
        guard let owner = FaultCalls.owner(file), let number = FaultCalls.head(file)?.pointee.number
        else { return code }
        let name = owner.fileName(number)
        if !name.isEmpty {
            owner.history?.recordWrite(UnsafeRawBufferPointer(start: data, count: Int(count)), at: Int(offset), name)
        }
        return code
    case .isCutShort(let code):
        _ = write(count / 2)
        return code
    }
}
