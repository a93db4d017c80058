internal import CSQLite

/// State shared by all files of one sealed database. Used by the thread that uses the database.
final class SealedStore {
    let cipher: any PageCipher
    /// The inner file system.
    let inner: UnsafeMutablePointer<sqlite3_vfs>
    private(set) var salt = [UInt8]()
    private(set) var sealer: (any PageSealer)?

    init(_ cipher: any PageCipher, _ inner: UnsafeMutablePointer<sqlite3_vfs>) {
        (self.cipher, self.inner) = (cipher, inner)
    }

    /// - Parameter found: the first bytes of the file; nil when it is empty.
    func open(salt found: [UInt8]?) {
        salt = found ?? cipher.makeSalt()
        sealer = cipher.sealer(salt: salt)
    }
}

/// An open file of a sealed database.
final class SealedFile {
    enum Kind {
        case database, log, journal
    }

    private let kind: Kind
    private let store: SealedStore
    private let real: UnsafeMutablePointer<sqlite3_file>
    /// Buffer for a page being written, or for a page of which a part is read.
    private let scratch: UnsafeMutableRawBufferPointer

    /// https://sqlite.org/fileformat2.html#the_write_ahead_log
    private static let logHeaderBytes: Int64 = 32
    private static let frameHeaderBytes: Int64 = 24
    /// Range of the frame header with the log's salt and the checksum.
    private static let hidden = 8..<24
    private static let pageBytes = Int64(SealedFileSystem.pageBytes)
    /// The header of a rollback journal fills at most one sector; pages would follow it.
    private static let journalBytesMax: Int64 = 4_096

    init(_ kind: Kind, _ store: SealedStore, _ real: UnsafeMutablePointer<sqlite3_file>) {
        (self.kind, self.store, self.real) = (kind, store, real)
        scratch = .allocate(byteCount: SealedFileSystem.pageBytes, alignment: 16)
    }

    deinit { scratch.deallocate() }

    private var methods: sqlite3_io_methods { real.pointee.pMethods.pointee }

    // MARK: - Reading

    func read(_ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int32 {
        switch kind {
        case .journal: pass(room, offset)
        case .database: readDatabase(room, offset)
        case .log: readLog(room, offset)
        }
    }

    private func pass(_ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int32 {
        methods.xRead(real, room.baseAddress, Int32(room.count), offset)
    }

    private func readDatabase(_ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int32 {
        let within = offset % Self.pageBytes
        if within == 0, room.count == SealedFileSystem.pageBytes { return readPage(room, offset) }
        // SQLite reads parts of the first page before it knows the page size.
        guard within + Int64(room.count) <= Self.pageBytes else { return SealedFileSystem.notOpening }
        let result = readPage(scratch, offset - within)
        room.copyMemory(from: .init(rebasing: scratch[Int(within)..<Int(within) + room.count]))
        return result
    }

    private func readPage(_ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int32 {
        let result = pass(room, offset)
        guard result == SQLITE_OK, !room.isZero else { return result }
        guard open(room, PagePlace(isLog: false, offset: offset)) else { return SealedFileSystem.notOpening }
        return SQLITE_OK
    }

    private func readLog(_ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int32 {
        guard let part = FramePart(offset, room.count) else { return readHeaderPart(room, offset) }
        let result = pass(room, offset)
        guard result == SQLITE_OK else { return result }
        switch part {
        case .logHeader: break
        case .header: store.sealer?.show(Self.hiddenPart(of: room))
        case .page:
            guard open(room, PagePlace(isLog: true, offset: offset)) else { return SealedFileSystem.notOpening }
        case .frame:
            store.sealer?.show(Self.hiddenPart(of: room))
            let page = UnsafeMutableRawBufferPointer(rebasing: room[Int(Self.frameHeaderBytes)...])
            // SQLite reads whole frames to find the end of the valid log: a torn frame ends it, as a wrong checksum
            // would.
            if !open(page, PagePlace(isLog: true, offset: offset + Self.frameHeaderBytes)) { page.fill(0) }
        }
        return SQLITE_OK
    }

    /// Reads a checksum alone, which SQLite does when a transaction writes a page of the log again.
    private func readHeaderPart(_ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int32 {
        let within = (offset - Self.logHeaderBytes) % FramePart.frameBytes
        guard within >= 0, within + Int64(room.count) <= Self.frameHeaderBytes else {
            return SealedFileSystem.notOpening
        }
        let header = UnsafeMutableRawBufferPointer(rebasing: scratch[..<Int(Self.frameHeaderBytes)])
        let result = pass(header, offset - within)
        guard result == SQLITE_OK else { return result }
        store.sealer?.show(Self.hiddenPart(of: header))
        room.copyMemory(from: .init(rebasing: header[Int(within)..<Int(within) + room.count]))
        return SQLITE_OK
    }

    private func open(_ page: UnsafeMutableRawBufferPointer, _ place: PagePlace) -> Bool {
        let isFirst = !place.isLog && place.offset == 0
        let sealed =
            isFirst ? .init(rebasing: page[SealedFileSystem.saltBytes...]) : page
        guard let sealer = store.sealer, sealer.open(sealed, at: place) else { return false }
        if isFirst { page.copyBytes(from: SealedFileSystem.clearBeginning) }
        UnsafeMutableRawBufferPointer(rebasing: page[(page.count - SealedFileSystem.extraBytes)...]).fill(0)
        return true
    }

    // MARK: - Writing

    func write(_ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int32 {
        switch kind {
        case .journal:
            guard offset + Int64(bytes.count) <= Self.journalBytesMax else { return Self.refused }
            return pass(bytes, offset)
        case .database:
            guard offset % Self.pageBytes == 0, bytes.count == SealedFileSystem.pageBytes else { return Self.refused }
            return writePage(bytes, PagePlace(isLog: false, offset: offset))
        case .log:
            switch FramePart(offset, bytes.count) {
            case .logHeader: return pass(bytes, offset)
            case .header:
                let header = UnsafeMutableRawBufferPointer(rebasing: scratch[..<bytes.count])
                header.copyMemory(from: bytes)
                store.sealer?.hide(Self.hiddenPart(of: header))
                return pass(UnsafeRawBufferPointer(header), offset)
            case .page: return writePage(bytes, PagePlace(isLog: true, offset: offset))
            case .frame, nil: return Self.refused
            }
        }
    }

    /// Data that would reach the disk in clear is refused.
    private static let refused = SQLITE_IOERR | (3 << 8)

    private func pass(_ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int32 {
        methods.xWrite(real, bytes.baseAddress, Int32(bytes.count), offset)
    }

    private func writePage(_ bytes: UnsafeRawBufferPointer, _ place: PagePlace) -> Int32 {
        guard let sealer = store.sealer else { return Self.refused }
        let begin = !place.isLog && place.offset == 0 ? SealedFileSystem.saltBytes : 0
        if begin > 0 { scratch.copyBytes(from: store.salt) }
        sealer.seal(
            .init(rebasing: bytes[begin..<bytes.count - SealedFileSystem.extraBytes]), at: place,
            into: .init(rebasing: scratch[begin...]))
        return pass(UnsafeRawBufferPointer(scratch), place.offset)
    }

    private static func hiddenPart(of header: UnsafeMutableRawBufferPointer) -> UnsafeMutableRawBufferPointer {
        .init(rebasing: header[hidden])
    }

    /// The units in which SQLite reads and writes a log.
    private enum FramePart {
        case logHeader, header, page, frame

        static let frameBytes = SealedFile.frameHeaderBytes + SealedFile.pageBytes

        init?(_ offset: Int64, _ count: Int) {
            if offset < SealedFile.logHeaderBytes {
                guard offset + Int64(count) <= SealedFile.logHeaderBytes else { return nil }
                self = .logHeader
                return
            }
            switch ((offset - SealedFile.logHeaderBytes) % Self.frameBytes, Int64(count)) {
            case (0, SealedFile.frameHeaderBytes): self = .header
            case (0, Self.frameBytes): self = .frame
            case (SealedFile.frameHeaderBytes, SealedFile.pageBytes): self = .page
            default: return nil
            }
        }
    }
}

extension UnsafeMutableRawBufferPointer {
    fileprivate func fill(_ byte: UInt8) { _ = initializeMemory(as: UInt8.self, repeating: byte) }

    /// A page that was never written, in a longer file.
    fileprivate var isZero: Bool {
        // Sealed bytes are never zeros, so the first word usually decides.
        guard count >= 8, loadUnaligned(as: UInt64.self) == 0 else { return false }
        return allSatisfy { $0 == 0 }
    }
}
