import Glibc

/// A server's data folder: database, lock, control socket.
public struct DataFolder: Sendable {
    /// The path as given.
    public let path: String

    /// The database file; SQLite keeps `-wal` and `-shm` beside it.
    public var databasePath: String { path + "/thicket.db" }
    /// Locked by the folder's server while it runs; contains its process id as text.
    public var lockPath: String { path + "/lock" }
    /// The control socket of the running server (`thicketd ask`).
    public var controlPath: String { path + "/control.sock" }
    /// Key of the hash that hides ids in the log; kept so that lines of one user can be matched across restarts.
    public var logKeyPath: String { path + "/log.key" }

    /// Path of a file or folder from the settings: a name without a slash is inside the data folder.
    func place(of name: String) -> String { name.utf8.contains(0x2F) ? name : path + "/" + name }

    /// An existing folder, or a new one (with the folders above it, accessible only to the owner) when `creating`.
    public init(_ path: String, creating: Bool) throws(DataFolderError) {
        self.path = path
        var info = stat()
        if stat(path, &info) == 0 {
            guard info.st_mode & S_IFMT == S_IFDIR else { throw .init(path, "it is not a folder", .failure) }
            guard access(path, W_OK | X_OK) == 0 else {
                throw .init(path, "this user may not write to it: " + DataFolder.reason(errno), .failure)
            }
            return
        }
        guard errno == ENOENT else { throw .init(path, DataFolder.reason(errno), .failure) }
        guard creating else {
            throw .init(
                path, "there is no such folder; 'thicketd app create' and 'thicketd serve' make one", .failure)
        }
        try DataFolder.make(path)
    }

    /// Whether the database file exists.
    public var hasDatabase: Bool { access(databasePath, F_OK) == 0 }

    /// Takes the folder's lock.
    /// - Throws: at once, when a server or a restore holds it.
    public func lock() throws(DataFolderError) -> FolderLock {
        let file = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw .init(lockPath, "cannot be opened: " + DataFolder.reason(errno), .failure) }
        while flock(file, LOCK_EX | LOCK_NB) != 0 {
            if errno == EINTR { continue }
            let isLocked = errno == EWOULDBLOCK
            let reason = DataFolder.reason(errno)
            close(file)
            guard isLocked else { throw .init(lockPath, "cannot be locked: " + reason, .failure) }
            let holder = processID.map { " by process \($0)" } ?? ""
            throw .init(
                path,
                "the folder is in use\(holder); one server serves a folder. Stop that server, or name another "
                    + "folder with --data", .folderInUse)
        }
        ftruncate(file, 0)
        let text: [UInt8] = Array("\(getpid())\n".utf8)
        _ = write(file, text, text.count)
        return FolderLock(file: file)
    }

    /// The process id in the lock file.
    var processID: Int? {
        FileText.read(lockPath, bytesMax: 32).flatMap { (text: String) in Int(text.prefix { $0.isNumber }) }
    }

    private static func make(_ path: String) throws(DataFolderError) {
        var made = path.hasPrefix("/") ? "" : "."
        for part in path.split(separator: "/") {
            made += "/" + part
            guard mkdir(made, 0o700) == 0 || errno == EEXIST else {
                throw .init(path, "the folder cannot be made: " + reason(errno), .failure)
            }
        }
    }

    static func reason(_ number: Int32) -> String { String(cString: strerror(number)) }
}

/// Holds a data folder's lock until it is released or the process ends in any way.
public final class FolderLock: Sendable {
    private let file: Int32
    init(file: Int32) { self.file = file }
    deinit { close(file) }
}

/// Why a data folder cannot be used.
public struct DataFolderError: Error, Equatable, CustomStringConvertible {
    /// The folder or file.
    public let path: String
    /// The reason, for the operator.
    public let problem: String
    /// The class of the failure, as an exit code.
    let kind: Kind
    enum Kind: Equatable { case failure, folderInUse }

    init(_ path: String, _ problem: String, _ kind: Kind) {
        self.path = path
        self.problem = problem
        self.kind = kind
    }

    /// Path and reason in one line.
    public var description: String { "\(path): \(problem)" }
}

/// Small files as text.
enum FileText {
    /// nil when it cannot be read or is larger than `bytesMax`; `errno` has the reason (`EFBIG` for the size).
    static func read(_ path: String, bytesMax: Int) -> String? {
        readBytes(path, bytesMax: bytesMax).map { (bytes: [UInt8]) in String(decoding: bytes, as: UTF8.self) }
    }

    static func readBytes(_ path: String, bytesMax: Int) -> [UInt8]? {
        let file = path == "-" ? dup(0) : open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            if count < 0 {
                if errno == EINTR { continue }
                return nil
            }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= bytesMax else {
                errno = EFBIG
                return nil
            }
        }
    }
}
