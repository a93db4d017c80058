internal import ThicketCrypto

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Small files with a secret, readable by their owner only, read into memory that is wiped. They appear whole or not at
/// all.
enum PrivateFile {
    /// Upper bound of a file's size in bytes.
    static let bytesMax = 4_096

    /// Reads a file.
    ///
    /// - Parameter max: upper bound of the file's size in bytes.
    /// - Returns: nil when the file does not exist.
    /// - Throws: `store` when the file cannot be read, or other users can read it.
    static func read(_ path: String, max: Int = bytesMax) throws(ClientError) -> SecureBytes? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw failure(path, "cannot be read: \(reason(errno))")
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw failure(path, "is not a regular file")
        }
        guard status.st_uid == geteuid() else { throw failure(path, "belongs to another user of this machine") }
        guard status.st_mode & 0o077 == 0 else {
            throw failure(
                path,
                "is readable by other users of this machine (mode \(String(status.st_mode & 0o777, radix: 8))); "
                    + "fix this with 'chmod 600'")
        }
        guard status.st_size <= max else { throw failure(path, "is larger than \(max) bytes") }
        let size = Int(status.st_size)
        return try SecureBytes(count: size) { room throws(ClientError) in
            guard System.read(file, room) == size else { throw failure(path, "cannot be read: \(reason(errno))") }
        }
    }

    /// Creates or replaces the file, and returns when it is on disk.
    ///
    /// - Parameter isNew: an existing file is kept.
    static func write(_ bytes: SecureBytes, to path: String, isNew: Bool) throws(ClientError) {
        let draft = "\(path).\(RandomBytes.hex(4))"
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure(path, "cannot be made: \(reason(errno))") }
        defer { unlink(draft) }
        let isWritten = bytes.withUnsafeBytes { System.write(file, $0) } == bytes.count && fsync(file) == 0
        let problem = errno
        close(file)
        guard isWritten else { throw failure(path, "cannot be written: \(reason(problem))") }
        let isThere =
            isNew ? link(draft, path) == 0 || errno == EEXIST : System.rename(draft, path) == 0
        guard isThere else { throw failure(path, "cannot be made: \(reason(errno))") }
        syncFolder(of: path)
    }

    /// Flushes a new or changed name to disk. Best effort: some file systems do not allow a folder to be synced.
    static func syncFolder(of path: String) {
        let folder: Substring = path.lastIndex(of: "/").map { path[..<$0] } ?? "."
        let file = open(folder.isEmpty ? "/" : String(folder), O_RDONLY | O_CLOEXEC | O_DIRECTORY)
        guard file >= 0 else { return }
        _ = fsync(file)
        close(file)
    }

    static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }

    static func failure(_ path: String, _ what: String) -> ClientError { ClientError(.store, "\(path) \(what)") }
}

/// Wraps system calls whose names clash with the functions of this file.
private enum System {
    static func read(_ file: Int32, _ room: UnsafeMutableRawBufferPointer) -> Int {
        systemRead(file, room.baseAddress, room.count)
    }
    static func write(_ file: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        systemWrite(file, bytes.baseAddress, bytes.count)
    }
    static func rename(_ from: String, _ to: String) -> Int32 { systemRename(from, to) }
}

private func systemRead(_ file: Int32, _ room: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    room.map { read(file, $0, count) } ?? 0
}
private func systemWrite(_ file: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
    bytes.map { write(file, $0, count) } ?? 0
}
private func systemRename(_ from: String, _ to: String) -> Int32 { rename(from, to) }
