import Glibc

/// A call to the disk that the store makes itself, beside SQLite's.
public enum FileCall: Sendable, Hashable {
    case create
    case sync
    case move
    case remove
}

/// Moves and syncs of whole files.
struct Files: Sendable {
    /// Asked before each call, with the file's path: an errno with which it fails; 0: it is done.
    private let fault: @Sendable (FileCall, String) -> Int32

    init(_ settings: StoreSettings) { fault = settings.fileFault }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Bytes of a file; 0 when there is none.
    static func size(_ path: String) -> Int64 {
        var info = stat()
        return stat(path, &info) == 0 ? Int64(info.st_size) : 0
    }

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Puts a file or a folder's list of names on disk.
    func sync(_ path: String) throws(StoreError) {
        try ask(.sync, path, "syncing a file")
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Self.failure("opening a file to sync it") }
        defer { close(file) }
        guard fsync(file) == 0 else { throw Self.failure("syncing a file") }
    }

    /// Gives a synced file its name, in place of what had it, and returns when that is on disk.
    func move(_ from: String, to: String) throws(StoreError) {
        try ask(.move, from, "renaming a file")
        guard rename(from, to) == 0 else { throw Self.failure("renaming a file") }
        try sync(Self.folder(of: to))
    }

    /// Gives a small file a second name, which it keeps when its own goes to another one, and returns when that is on
    /// disk.
    /// - Parameter name: the names that it may have, from 1 on.
    /// - Returns: the name; the last one again when what has that is the same.
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

    /// Bytes of a file that is kept under a second name.
    private static let smallBytesMax = 4_096

    /// Makes an empty file that only its owner may read, if there is none: stores hold keys and what users wrote.
    func createPrivate(_ path: String) throws(StoreError) {
        try ask(.create, path, "making a file")
        let file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Self.failure("making a file") }
        close(file)
    }

    /// Takes a file away, if it is there.
    func remove(_ path: String) throws(StoreError) {
        try ask(.remove, path, "removing a file")
        guard unlink(path) == 0 || errno == ENOENT else { throw Self.failure("removing a file") }
    }

    /// Takes a file away whose staying harms nobody.
    func discard(_ path: String) { try? remove(path) }

    private func ask(_ call: FileCall, _ path: String, _ what: String) throws(StoreError) {
        errno = fault(call, path)
        guard errno == 0 else { throw Self.failure(what) }
    }

    private static func failure(_ what: String) -> StoreError {
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
