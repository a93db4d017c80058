internal import ThicketSQLite

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Opens the file of a store sealed, and seals one that was kept in clear by an earlier version.
struct StoreSealing {
    let files: SealedFileSystem
    private let path: String
    private let vfs: String?

    /// Where a clear store is sealed to, until that is whole and takes its place.
    private var draft: String { path + ".sealing" }

    init(_ key: StoreKey, path: String, vfs: String?) throws(SQLiteError) {
        guard let files = SealedFileSystem(StoreCipher(key: key), over: vfs) else {
            throw SQLiteError(extended: 7, message: "out of memory")
        }
        (self.files, self.path, self.vfs) = (files, path, vfs)
    }

    /// What a sealed file needs that was just opened.
    func prepare(_ database: Database) throws(SQLiteError) {
        // Says nothing to a file that holds something already: there it was said.
        try database.reservePageEnds(SealedFileSystem.extraBytes)
        // What does not fit stays in memory too: there are no other files.
        try database.execute("PRAGMA temp_store=MEMORY")
    }

    /// Whether there is a store and it is sealed.
    static func isSealed(_ path: String) -> Bool {
        guard let beginning = beginning(of: path) else { return false }
        return beginning != SealedFileSystem.clearBeginning
    }

    /// nil: there is no file, or next to nothing in it.
    private static func beginning(of path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: SealedFileSystem.clearBeginning.count)
        return systemRead(file, &bytes, bytes.count) == bytes.count ? bytes : nil
    }

    /// Seals the file, if it is not. A crash leaves it either clear and whole, or sealed and whole.
    func sealClearStore(busyTimeoutMilliseconds: Int32) throws(SQLiteError) {
        guard Self.beginning(of: path) == SealedFileSystem.clearBeginning else { return }
        for name in [draft, draft + "-journal", draft + "-wal"] { unlink(name) }
        // Made first, so that it is for this user only.
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
        // Its log holds nothing any more, and closing removes that.
        try clear.checkpoint(.truncate)
        try clear.execute("PRAGMA temp_store=MEMORY")
        // Takes effect in the copy (https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html, RESERVE_BYTES).
        try clear.reservePageEnds(SealedFileSystem.extraBytes)
        let target = "\(Self.uri(draft))?vfs=\(files.name)"
        try clear.prepare("VACUUM INTO ?1").bind(1, target).run()
        // The mode is a page's change, whose journal would hold the page. A draft needs none.
        let sealed = try Database(path: draft, mode: .readWrite, sealed: files)
        for pragma in ["locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "journal_mode=WAL"] {
            try sealed.execute("PRAGMA \(pragma)")
        }
    }

    /// https://sqlite.org/uri.html
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
                let digits = String(byte, radix: 16, uppercase: true)
                text += byte < 16 ? "%0\(digits)" : "%\(digits)"
            }
        }
        return text
    }
}

private func systemRead(_ file: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(file, bytes, count)
}
