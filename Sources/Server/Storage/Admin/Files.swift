import Glibc

/// Moves and syncs of whole files.
enum Files {
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Bytes of a file; 0 when there is none.
    static func size(_ path: String) -> Int64 {
        var info: stat = .init()
        return stat(path, &info) == 0 ? Int64(info.st_size) : 0
    }

    static func folder(of path: String) -> String {
        guard let slash: String.Index = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Puts a file or a folder's list of names on disk.
    static func sync(_ path: String) throws(StoreError) {
        let file: Int32 = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw failure("opening a file to sync it") }
        defer { close(file) }
        guard fsync(file) == 0 else { throw failure("syncing a file") }
    }

    /// Gives a synced file its name, in place of what had it, and returns when that is on disk.
    static func move(_ from: String, to: String) throws(StoreError) {
        guard rename(from, to) == 0 else { throw failure("renaming a file") }
        try sync(folder(of: to))
    }

    /// Makes an empty file that only its owner may read, if there is none: stores hold keys and what users wrote.
    static func createPrivate(_ path: String) throws(StoreError) {
        let file: Int32 = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure("making a file") }
        close(file)
    }

    static func remove(_ path: String) { unlink(path) }

    private static func failure(_ what: String) -> StoreError {
        let number: Int32 = errno
        let kind: StoreError.Kind =
            switch number {
            case ENOSPC, EDQUOT, EFBIG: .full
            case EIO: .io
            default: .unavailable
            }
        return StoreError(kind, "\(what): \(String(cString: strerror(number)))")
    }
}
