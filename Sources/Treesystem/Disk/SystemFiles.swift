#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The file system of the operating system.
package struct SystemFiles: ContentFiles {
    package init() {}

    package func create(_ path: String) throws(ContentError) -> any ContentFile {
        let file = System.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw .number(errno) }
        return SystemFile(file)
    }

    package func open(_ path: String, writable: Bool) throws(ContentError) -> (any ContentFile)? {
        // Non-blocking: a source that is a pipe would otherwise wait for its writer.
        let flags = (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK
        let file = System.open(path, flags, 0)
        guard file >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw .number(errno)
        }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(file)
            throw .disk(EINVAL)
        }
        return SystemFile(file)
    }

    package func rename(_ path: String, to target: String) throws(ContentError) {
        guard System.rename(path, target) == 0 else { throw .number(errno) }
        // Best effort: some file systems do not allow a folder to be synced.
        let folder = target.lastIndex(of: "/").map { String(target[..<$0]) } ?? "."
        let file = System.open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY, 0)
        guard file >= 0 else { return }
        _ = fsync(file)
        close(file)
    }

    package func remove(_ path: String) throws(ContentError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw .number(errno) }
    }

    package func makeFolder(_ path: String) throws(ContentError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .number(errno) }
    }

    package func names(in folder: String) throws(ContentError) -> [String] {
        guard let stream = opendir(folder) else { throw .number(errno) }
        defer { closedir(stream) }
        var names = [String]()
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { room in
                String(decoding: room.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}

/// A file of the operating system.
private final class SystemFile: ContentFile {
    private let file: Int32

    init(_ file: Int32) { self.file = file }
    deinit { close(file) }

    func identity() throws(ContentError) -> FileIdentity {
        var status = stat()
        guard fstat(file, &status) == 0 else { throw .number(errno) }
        var identity = FileIdentity()
        identity.device = UInt64(truncatingIfNeeded: status.st_dev)
        identity.inode = UInt64(truncatingIfNeeded: status.st_ino)
        identity.size = UInt64(status.st_size)
        #if canImport(Darwin)
            (identity.modified, identity.changed) = (status.st_mtimespec.nanoseconds, status.st_ctimespec.nanoseconds)
        #else
            (identity.modified, identity.changed) = (status.st_mtim.nanoseconds, status.st_ctim.nanoseconds)
        #endif
        return identity
    }

    func read(at offset: UInt64, into room: UnsafeMutableRawBufferPointer) throws(ContentError) -> Int {
        var done = 0
        while done < room.count {
            let count = pread(file, room.baseAddress?.advanced(by: done), room.count - done, off_t(offset) + done)
            if count == 0 { break }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw .number(errno)
            }
            done += count
        }
        return done
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ContentError) {
        var done = 0
        while done < bytes.count {
            let count = pwrite(file, bytes.baseAddress?.advanced(by: done), bytes.count - done, off_t(offset) + done)
            guard count > 0 else {
                if errno == EINTR { continue }
                throw .number(errno)
            }
            done += count
        }
    }

    func truncate(to size: UInt64) throws(ContentError) {
        guard ftruncate(file, off_t(size)) == 0 else { throw .number(errno) }
    }

    func sync() throws(ContentError) { guard fsync(file) == 0 else { throw .number(errno) } }

    func release(_ range: Range<UInt64>) {
        #if !canImport(Darwin)
            _ = posix_fadvise(file, off_t(range.lowerBound), off_t(range.count), POSIX_FADV_DONTNEED)
        #endif
    }
}

extension timespec {
    fileprivate var nanoseconds: Int64 { Int64(tv_sec) * 1_000_000_000 + Int64(tv_nsec) }
}

/// Calls of the system whose names are those of methods here.
private enum System {
    static func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { systemOpen(path, flags, mode) }
    static func rename(_ path: String, _ target: String) -> Int32 { systemRename(path, target) }
}

private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
private func systemRename(_ path: String, _ target: String) -> Int32 { rename(path, target) }
