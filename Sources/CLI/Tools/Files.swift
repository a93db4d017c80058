internal import CThicketFiles
import ThicketCrypto
import ThicketPlatform

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The file system for commands. Writes are atomic.
///
/// Differences between systems are in CThicketFiles, and in the names of the times in `stat`.
enum Files {
    enum Contents: Equatable {
        case bytes([UInt8])
        case absent
        case failed(String)
    }

    /// Shows whether a file was changed: nanoseconds of the last write and of the last change of any kind, size and
    /// identity.
    struct Stamp: Sendable, Equatable {
        let written: Int64
        let changed: Int64
        let size: Int64
        let identity: UInt64
    }

    static func reason(_ code: Int32 = errno) -> String { String(cString: strerror(code)) }

    /// A regular file's content.
    static func read(_ path: String, bytesMax: Int) -> Contents {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return errno == ENOENT || errno == ENOTDIR ? .absent : .failed(reason()) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { return .failed(reason()) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .failed("it is no regular file") }
        return read(file, bytesMax: bytesMax)
    }

    /// The content of a file that belongs to this user and that no other user may read or write.
    static func readPrivate(_ path: String, bytesMax: Int) -> Contents {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return errno == ENOENT || errno == ENOTDIR ? .absent : .failed(reason()) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { return .failed(reason()) }
        guard status.st_mode & S_IFMT == S_IFREG else { return .failed("it is no regular file") }
        guard status.st_uid == geteuid() else { return .failed("it belongs to another user of this machine") }
        guard status.st_mode & 0o077 == 0 else {
            return .failed(
                "other users of this machine may read it (mode \(String(status.st_mode & 0o777, radix: 8))). "
                    + "'chmod 600' ends that; if another user may have read it, log in again")
        }
        return read(file, bytesMax: bytesMax)
    }

    enum SecretContents {
        case secret(SecureBytes)
        case failed(String)
    }

    /// The content of an open file or pipe up to its end, in memory that is wiped when it is freed.
    static func readSecret(_ file: Int32, bytesMax: Int) -> SecretContents {
        var (used, problem): (Int, String?) = (0, nil)
        // One byte more than permitted shows that the content is too long.
        let room = SecureBytes(count: bytesMax + 1) { room in
            while used < room.count {
                let count = systemRead(file, room.baseAddress.map { $0 + used }, room.count - used)
                if count < 0, errno == EINTR { continue }
                if count < 0 { problem = reason() }
                guard count > 0 else { return }
                used += count
            }
        }
        if let problem { return .failed(problem) }
        return used <= bytesMax ? .secret(room.part(0..<used)) : .failed("it is larger than \(bytesMax) bytes")
    }

    /// The content of an open file or pipe up to its end.
    static func read(_ file: Int32, bytesMax: Int) -> Contents {
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = systemRead(file, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .failed(reason()) }
            guard count > 0 else { return .bytes(bytes) }
            bytes += chunk[..<count]
            guard bytes.count <= bytesMax else { return .failed("it is larger than \(bytesMax) bytes") }
        }
    }

    /// Follows links; nil when the path is not a regular file.
    static func stamp(_ path: String) -> Stamp? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        #if canImport(Darwin)
            let (written, changed): (timespec, timespec) = (status.st_mtimespec, status.st_ctimespec)
        #else
            let (written, changed) = (status.st_mtim, status.st_ctim)
        #endif
        return Stamp(
            written: Int64(written.tv_sec) * 1_000_000_000 + Int64(written.tv_nsec),
            changed: Int64(changed.tv_sec) * 1_000_000_000 + Int64(changed.tv_nsec),
            size: Int64(status.st_size), identity: UInt64(status.st_ino))
    }

    /// What blocks a path where a file belongs, for a person; nil: the path is free, or a regular file.
    static func obstacle(_ path: String) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let isLink = status.st_mode & S_IFMT == S_IFLNK
        if isLink, stat(path, &status) != 0 {
            let problem = errno
            return problem == ENOENT || problem == ENOTDIR
                ? "it is a link that leads to nothing" : "it is a link that cannot be followed: \(reason(problem))"
        }
        let link = isLink ? "a link to " : ""
        return switch status.st_mode & S_IFMT {
        case S_IFREG: nil
        case S_IFDIR: "it is \(link)a folder; only files are taken"
        case S_IFIFO: "it is \(link)a named pipe; only files are taken"
        case S_IFSOCK: "it is \(link)a socket; only files are taken"
        default: "it is \(link)a device; only files are taken"
        }
    }

    /// The path of a file that is to be replaced: a link stays, and the file behind it is replaced.
    private static func target(_ path: String) -> String {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK, let real = realpath(path, nil) else {
            return path
        }
        defer { free(real) }
        return String(cString: real)
    }

    static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Names in a folder without `.` and `..`, unsorted; empty when it cannot be read. Names that are not UTF-8 are
    /// left out.
    static func names(in folder: String) -> [String] {
        guard let opened = opendir(folder) else { return [] }
        defer { closedir(opened) }
        var names = [String]()
        while let entry = readdir(opened) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { (bytes: UnsafeRawBufferPointer) in
                String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let name, name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Makes a folder for its owner only; an existing folder stays unchanged.
    static func makeFolder(_ path: String, mode: mode_t = 0o700) throws(Failure) {
        guard mkdir(path, mode) != 0 else { return }
        let problem = errno
        if problem == EEXIST, isFolder(path) { return }
        throw Failure("cannot make the folder \(path): \(reason(problem))")
    }

    /// Replaces a file by another in one step.
    ///
    /// - Parameters:
    ///   - isDurable: the content is on the disk when this returns. Otherwise a power loss may leave an empty file.
    ///   - followsLinks: a link stays, and the file behind it is replaced. Otherwise the file takes the link's place.
    static func replace(
        _ path: String, _ bytes: [UInt8], mode: mode_t, isDurable: Bool = true, followsLinks: Bool = false
    ) throws(Failure) {
        let path = followsLinks ? target(path) : path
        let temporary = try writeTemporary(beside: path, bytes, mode: mode, isDurable: isDurable)
        guard rename(temporary, path) == 0 else {
            let problem = errno
            unlink(temporary)
            throw Failure("cannot write \(path): \(reason(problem))")
        }
    }

    /// The access rights of the file at a path, following links; nil: it does not exist.
    static func rights(_ path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : nil
    }

    /// Makes a folder's list of files durable.
    static func sync(folder path: String) throws(Failure) {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw Failure("cannot open \(path): \(reason())") }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw Failure("cannot write \(path): \(reason())") }
    }

    /// Prefix of files that are being written; scans of folders ignore them.
    static let temporaryPrefix = ".thicket-"

    /// Writes a file with an unused name in the same folder.
    private static func writeTemporary(
        beside path: String, _ bytes: [UInt8], mode: mode_t, isDurable: Bool = true
    ) throws(Failure) -> String {
        let folder: Substring = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        var template = Array("\(folder)\(temporaryPrefix)XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else { throw Failure("cannot write beside \(path): \(reason())") }
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        let temporary = String(
            decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        fchmod(file, mode)
        var sent = 0
        var problem: Int32 = 0
        while sent < bytes.count, problem == 0 {
            let count = bytes.withUnsafeBytes { (all: UnsafeRawBufferPointer) in
                all.baseAddress.map { write(file, $0 + sent, all.count - sent) } ?? 0
            }
            if count < 0, errno != EINTR { problem = errno }
            if count > 0 { sent += count }
        }
        if problem == 0, isDurable, fsync(file) != 0 { problem = errno }
        if close(file) != 0, problem == 0 { problem = errno }
        guard problem == 0 else {
            unlink(temporary)
            throw Failure("cannot write \(path): \(reason(problem))")
        }
        return temporary
    }

    /// Removes a folder with its content; symbolic links are removed, not followed.
    static func removeTree(_ path: String) throws(Failure) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            for name in names(in: path) { try removeTree(path + "/" + name) }
            guard rmdir(path) == 0 else { throw Failure("cannot remove \(path): \(reason())") }
        } else if unlink(path) != 0 {
            throw Failure("cannot remove \(path): \(reason())")
        }
    }

    // MARK: - Files that other programs may change at any moment

    /// How a guarded step ended.
    enum Guarded: Equatable {
        case done
        /// The file is not as expected; nothing was changed.
        case changedMeanwhile
    }

    /// Milliseconds to wait for a program that is still writing to a file that was moved aside.
    static let writerPatience = 2_000

    /// The content of a file that was moved aside, where no program opens it any more, after the last writer has closed
    /// it; nil when that takes longer than `patience` milliseconds.
    private static func readAfterWriters(_ path: String, bytesMax: Int, patience: Int) -> Contents? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return .failed(reason()) }
        defer { close(file) }
        let end = (SystemClock.monotonic() / 1_000_000) + Int64(patience)
        while thicket_has_writer(file) != 0 {
            guard (SystemClock.monotonic() / 1_000_000) < end else { return nil }
            _ = poll(nil, 0, 5)
        }
        return read(file, bytesMax: bytesMax)
    }

    /// Replaces a file that holds `expected` (nil: no file exists) by `bytes`.
    ///
    /// The two files are exchanged in one step; the old one is checked afterwards, when no program writes to it any
    /// more. So nothing that a program writes at the same moment is lost, not even into a file that it opened before.
    /// Where the file system cannot exchange files, the file is checked immediately before.
    ///
    /// - Parameters:
    ///   - newMode: the mode of a file that did not exist.
    ///   - followsLinks: a link stays, and the file behind it is replaced.
    static func replace(
        _ path: String, expecting expected: [UInt8]?, _ bytes: [UInt8], bytesMax: Int, patience: Int = writerPatience,
        newMode: mode_t = 0o644, followsLinks: Bool = false
    ) throws(Failure) -> Guarded {
        let path = followsLinks ? target(path) : path
        switch read(path, bytesMax: bytesMax) {
        case .failed(let reason): throw Failure("cannot read \(path): \(reason)")
        case let found where found != (expected.map(Contents.bytes) ?? .absent): return .changedMeanwhile
        default: break
        }
        let temporary = try writeTemporary(beside: path, bytes, mode: rights(path) ?? newMode)
        guard let expected else {
            let problem = renameNew(temporary, path)
            if problem != 0 { unlink(temporary) }
            if problem == EEXIST { return .changedMeanwhile }
            guard problem == 0 else { throw Failure("cannot write \(path): \(reason(problem))") }
            return .done
        }
        let problem = thicket_rename_exchange(temporary, path)
        if problem == 0 {
            if readAfterWriters(temporary, bytesMax: bytesMax, patience: patience) == .bytes(expected) {
                unlink(temporary)
                return .done
            }
            // Another program wrote in between: the old file is put back. The new one is removed, unless another
            // program wrote to that as well.
            guard thicket_rename_exchange(temporary, path) == 0 else {
                throw Failure("\(path) was changed while it was written; one version is in \(temporary)")
            }
            guard readAfterWriters(temporary, bytesMax: bytesMax, patience: patience) == .bytes(bytes) else {
                throw Failure("\(path) was changed twice while it was written; one version is in \(temporary)")
            }
            unlink(temporary)
            return .changedMeanwhile
        }
        if problem == ENOENT {
            unlink(temporary)
            return .changedMeanwhile
        }
        guard rename(temporary, path) == 0 else {
            let problem = errno
            unlink(temporary)
            throw Failure("cannot write \(path): \(reason(problem))")
        }
        return .done
    }

    /// Removes a file that holds `expected`.
    static func remove(
        _ path: String, expecting expected: [UInt8], bytesMax: Int, patience: Int = writerPatience
    ) throws(Failure) -> Guarded {
        let aside = try writeTemporary(beside: path, [], mode: 0o600)
        guard rename(path, aside) == 0 else {
            let problem = errno
            unlink(aside)
            if problem == ENOENT { return .changedMeanwhile }
            throw Failure("cannot remove \(path): \(reason(problem))")
        }
        if readAfterWriters(aside, bytesMax: bytesMax, patience: patience) == .bytes(expected) {
            unlink(aside)
            return .done
        }
        let problem = renameNew(aside, path)
        guard problem == 0 else {
            throw Failure("\(path) was changed while it was removed; one version is in \(aside): \(reason(problem))")
        }
        return .changedMeanwhile
    }

    /// Renames a file, if the new name is free. 0, or an errno.
    static func renameNew(_ from: String, _ to: String) -> Int32 {
        let problem = thicket_rename_new(from, to)
        guard problem == EINVAL || problem == ENOSYS else { return problem }
        // The file system lacks this call: make a second name, then remove the first.
        guard link(from, to) == 0 else { return errno }
        unlink(from)
        return 0
    }
}

/// The system call, which a method of this type would shadow.
private func systemRead(_ file: Int32, _ bytes: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(file, bytes, count)
}
