#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Holds a file store for one session: a lock file beside it, locked as long as this exists.
///
/// The lock is the kernel's, so it goes with the process, however that ends. The file itself stays.
final class StoreLock {
    private let descriptor: Int32

    /// - Throws: `storeInUse` when another session has it, here or in another process; `store` when the file cannot be
    ///   made.
    init(path: String) throws(ClientError) {
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw ClientError(.store, "cannot make \(path): \(String(cString: strerror(errno)))") }
        guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
            let problem = errno
            close(opened)
            guard problem == EWOULDBLOCK else {
                throw ClientError(.store, "cannot lock \(path): \(String(cString: strerror(problem)))")
            }
            throw ClientError(.storeInUse, "another session, here or in another process, has this store open (\(path))")
        }
        descriptor = opened
    }

    deinit {
        // By word, not only by closing: a child that another thread is just starting holds a copy of the descriptor
        // until it becomes its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
