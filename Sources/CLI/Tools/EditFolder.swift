import Synchronization
import ThicketCommandLine
import ThicketPlatform

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The temporary folder of an edit: it is removed when a signal ends the program, and by the next edit after a
/// `SIGKILL`.
///
/// A lock on a file in the folder shows that its program is running: the kernel releases the lock with the process. A
/// folder without that file is never removed by another edit.
struct EditFolder: Sendable {
    static let prefix = "thicket-edit-"
    /// Name of the lock file.
    static let lockName = ".thicket-lock"
    /// Write end of the pipe that wakes the handler; -1: no folder is guarded.
    private static let writer = Atomic<Int32>(-1)

    let path: String
    private let lock: Int32

    init(in place: String = "/tmp") throws(Failure) {
        EditFolder.sweep(place)
        var template = Array("\(place)/\(EditFolder.prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure("no temporary folder can be made: \(Files.reason())") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        lock = open("\(path)/\(EditFolder.lockName)", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard lock >= 0, flock(lock, LOCK_EX) == 0 else {
            throw Failure("the temporary folder \(path) cannot be locked: \(Files.reason())")
        }
        EditFolder.guardFromSignals(path)
    }

    /// Keeps the folder for its owner: neither a signal nor another edit removes it.
    func keep() {
        EditFolder.writer.store(-1, ordering: .sequentiallyConsistent)
        unlink("\(path)/\(EditFolder.lockName)")
    }

    func remove() {
        EditFolder.writer.store(-1, ordering: .sequentiallyConsistent)
        EditFolder.removeTree(path)
    }

    /// A folder with clear text that cannot be removed is reported.
    private static func removeTree(_ path: String) {
        do throws(Failure) { try Files.removeTree(path) } catch {
            Terminal.writeError("thicket: \(error.text). What was edited may lie there in clear text: remove \(path)\n")
        }
    }

    /// Removes this user's folders whose program has ended.
    static func sweep(_ place: String) {
        for name in Files.names(in: place) where name.hasPrefix(prefix) {
            let folder = "\(place)/\(name)"
            var status = stat()
            guard lstat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid() else {
                continue
            }
            let file = open("\(folder)/\(lockName)", O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else { continue }
            if flock(file, LOCK_EX | LOCK_NB) == 0 { removeTree(folder) }
            close(file)
        }
    }

    /// Removes the folder on SIGTERM, SIGHUP and SIGINT (which is ignored while the editor runs), then ends the
    /// program.
    private static func guardFromSignals(_ path: String) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let reader = ends[0]
        OwnThread.detachedOrHere("cleanup") {
            var byte: UInt8 = 0
            while read(reader, &byte, 1) < 0, errno == EINTR {}
            removeTree(path)
            _ = signal(Int32(byte), SIG_DFL)
            kill(getpid(), Int32(byte))
        }
        writer.store(ends[1], ordering: .sequentiallyConsistent)
        for number in [SIGTERM, SIGHUP, SIGINT] { _ = signal(number, editEnded) }
    }

    /// A signal handler: only async-signal-safe calls.
    fileprivate static func wake(_ number: Int32) {
        let end = writer.load(ordering: .sequentiallyConsistent)
        guard end >= 0 else {
            _ = signal(number, SIG_DFL)
            raise(number)
            return
        }
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(end, &byte, 1)
    }
}

private func editEnded(_ number: Int32) { EditFolder.wake(number) }
