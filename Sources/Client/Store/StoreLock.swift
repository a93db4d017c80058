#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Reserves a file store for one session, by a lock file beside it that is locked while this object exists.
///
/// The kernel holds the lock, so it ends with the process in any case. The lock file is not deleted.
final class StoreLock {
    private let descriptor: Int32

    /// - Parameter waits: whether to wait for the lock, which then must be held for short times only.
    /// - Throws: `storeInUse` when another session, in this process or another, holds the lock; `store` when the file
    ///   cannot be made.
    init(path: String, waits: Bool = false) throws(ClientError) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw ClientError(.store, "cannot make \(path): \(String(cString: strerror(errno)))") }
        var problem: Int32
        repeat {
            problem = flock(opened, waits ? LOCK_EX : LOCK_EX | LOCK_NB) == 0 ? 0 : errno
        } while problem == EINTR
        guard problem == 0 else {
            close(opened)
            guard problem == EWOULDBLOCK else {
                throw ClientError(.store, "cannot lock \(path): \(String(cString: strerror(problem)))")
            }
            throw ClientError(.storeInUse, "another session, here or in another process, has this store open (\(path))")
        }
        descriptor = opened
    }

    deinit {
        // Unlocks explicitly, because closing may not be enough: a child process that another thread is just starting
        // holds a copy of the descriptor until it executes its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
