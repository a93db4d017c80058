import ThicketPlatform
internal import ThicketSQLite

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Opens the file of a store sealed, and seals an unsealed file of an earlier version.
struct StoreSealing {
    let files: SealedFileSystem
    private let path: String
    private let vfs: String?

    /// The path of the sealed copy until it is complete and replaces the unsealed store.
    private var draft: String { path + ".sealing" }

    init(_ key: StoreKey, path: String, vfs: String?) throws(SQLiteError) {
        guard let files = SealedFileSystem(StoreCipher(key: key), over: vfs) else {
            throw SQLiteError(extended: 7, message: "out of memory")
        }
        (self.files, self.path, self.vfs) = (files, path, vfs)
    }

    /// Configures a sealed file that was just opened.
    func prepare(_ database: Database) throws(SQLiteError) {
        // Has no effect on a file with content, which has been configured before.
        try database.reservePageEnds(SealedFileSystem.extraBytes)
        // Temporary data stays in memory too, because a temporary file would not be sealed.
        try database.execute("PRAGMA temp_store=MEMORY")
    }

    /// Whether a store exists and is sealed.
    static func isSealed(_ path: String) -> Bool {
        guard let beginning = beginning(of: path) else { return false }
        return beginning != SealedFileSystem.clearBeginning
    }

    /// nil when the file does not exist or is too short.
    private static func beginning(of path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: SealedFileSystem.clearBeginning.count)
        return systemRead(file, &bytes, bytes.count) == bytes.count ? bytes : nil
    }

    /// Seals the file if it is not sealed. A crash leaves it either unsealed and complete, or sealed and complete.
    func sealClearStore(busyTimeoutMilliseconds: Int32) throws(SQLiteError) {
        guard Self.beginning(of: path) == SealedFileSystem.clearBeginning else { return }
        for name in [draft, draft + "-journal", draft + "-wal"] { unlink(name) }
        // Created first, so that only this user can read it.
        let made = open(draft, O_RDWR | O_CREAT | O_CLOEXEC | O_EXCL, 0o600)
        guard made >= 0 else { throw SQLiteError(extended: 14, message: "cannot make \(draft)") }
        defer {
            close(made)
            unlink(draft)
        }
        try copy(busyTimeoutMilliseconds)
        guard fsync(made) == 0, rename(draft, path) == 0 else {
            throw SQLiteError(extended: 10, message: "cannot write \(draft): \(PrivateFile.reason(errno))")
        }
        PrivateFile.syncFolder(of: path)
    }

    private func copy(_ busyTimeoutMilliseconds: Int32) throws(SQLiteError) {
        let clear = try Database(
            path: Self.uri(path), mode: .readWrite, busyTimeoutMilliseconds: busyTimeoutMilliseconds, vfs: vfs,
            isURI: true)
        try clear.execute("PRAGMA locking_mode=EXCLUSIVE")
        // Empties the write-ahead log, which closing then removes.
        try clear.checkpoint(.truncate)
        try clear.execute("PRAGMA temp_store=MEMORY")
        // Takes effect in the copy (https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html, RESERVE_BYTES).
        try clear.reservePageEnds(SealedFileSystem.extraBytes)
        let target = "\(Self.uri(draft))?vfs=\(files.name)"
        try clear.prepare("VACUUM INTO ?1").bind(1, target).run()
        // Setting the mode changes a page, and a journal on disk would hold that page. A draft needs no such journal.
        let sealed = try Database(path: draft, mode: .readWrite, sealed: files)
        for pragma in ["locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "journal_mode=WAL"] {
            try sealed.execute("PRAGMA \(pragma)")
        }
    }

    /// Encodes a path as a URI (https://sqlite.org/uri.html).
    private static func uri(_ path: String) -> String {
        var text = "file:"
        for byte in path.utf8 {
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_")
            if isPlain {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = [UInt8(ascii: "%"), Hex.upperDigit(byte >> 4), Hex.upperDigit(byte & 15)]
                text += String(decoding: digits, as: UTF8.self)
            }
        }
        return text
    }
}

private func systemRead(_ file: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(file, bytes, count)
}
