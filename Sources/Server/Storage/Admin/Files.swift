import Glibc

/// A file system call that the store makes itself, outside of SQLite.
public enum FileCall: Sendable, Hashable {
    /// Creating a file.
    case create
    /// Syncing a file or folder.
    case sync
    /// Renaming a file, or adding a hard link to it.
    case move
    /// Deleting a file.
    case remove
    /// Writing bytes of a blob.
    case write
}

/// Moves and syncs of whole files.
struct Files: Sendable {
    /// Fault injection: called before each call, with the file's path. Returns the errno with which the call fails, or
    /// 0 to run it.
    private let fault: @Sendable (FileCall, String) -> Int32

    init(_ settings: StoreSettings) { fault = settings.fileFault }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Bytes of a file; 0 when it does not exist.
    static func size(_ path: String) -> Int64 {
        var info = stat()
        return stat(path, &info) == 0 ? Int64(info.st_size) : 0
    }

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Syncs a file, or the directory entries of a folder, to disk.
    func sync(_ path: String) throws(StoreError) {
        try ask(.sync, path, "syncing a file")
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Self.failure("opening a file to sync it") }
        defer { close(file) }
        guard fsync(file) == 0 else { throw Self.failure("syncing a file") }
    }

    /// Renames a synced file, replacing the target, and returns when the rename is durable.
    func move(_ from: String, to: String) throws(StoreError) {
        try ask(.move, from, "renaming a file")
        guard rename(from, to) == 0 else { throw Self.failure("renaming a file") }
        try sync(Self.folder(of: to))
    }

    /// Adds a second name (hard link) to a small file, so that the content survives when another file takes the first
    /// name. Returns when the link is durable.
    /// - Parameter name: the candidate names, numbered from 1.
    /// - Returns: the name; the last existing one if that file has the same content.
    func keep(_ path: String, as name: (Int) -> String) throws(StoreError) -> String {
        var number = 1
        while Self.exists(name(number)) { number += 1 }
        if number > 1, Self.isSame(path, name(number - 1)) { return name(number - 1) }
        try ask(.move, path, "naming a file")
        guard link(path, name(number)) == 0 else { throw Self.failure("naming a file") }
        try sync(Self.folder(of: path))
        return name(number)
    }

    private static func isSame(_ path: String, _ other: String) -> Bool {
        guard let bytes = FileText.readBytes(path, bytesMax: smallBytesMax) else { return false }
        return bytes == FileText.readBytes(other, bytesMax: smallBytesMax)
    }

    /// Largest file, in bytes, that `keep` compares; a larger one counts as different.
    private static let smallBytesMax = 4_096

    /// Creates an empty file that only its owner may read, if it does not exist: stores hold keys and user content.
    func createPrivate(_ path: String) throws(StoreError) {
        try ask(.create, path, "making a file")
        let file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure("making a file") }
        close(file)
    }

    /// Deletes a file if it exists.
    func remove(_ path: String) throws(StoreError) {
        try ask(.remove, path, "removing a file")
        guard unlink(path) == 0 || errno == ENOENT else { throw Self.failure("removing a file") }
    }

    /// Deletes a file, ignoring errors; for files that cause no harm if they remain.
    func discard(_ path: String) { try? remove(path) }

    /// The errno with which a test lets the call fail; 0: it runs.
    func injected(_ call: FileCall, _ path: String) -> Int32 { fault(call, path) }

    func ask(_ call: FileCall, _ path: String, _ what: String) throws(StoreError) {
        errno = fault(call, path)
        guard errno == 0 else { throw Self.failure(what) }
    }

    static func failure(_ what: String) -> StoreError {
        let number = errno
        let kind: StoreError.Kind =
            switch number {
            case ENOSPC, EDQUOT, EFBIG: .full
            case EIO: .io
            default: .unavailable
            }
        return StoreError(kind, "\(what): \(String(cString: strerror(number)))")
    }
}
