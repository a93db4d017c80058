import ThicketCrypto
import ThicketTreesystem

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A regular file on this machine that is copied to a tree or compared with a node.
struct LocalFile: Sendable {
    let path: String

    /// Bytes that are read at a time.
    private static let pieceBytes = 1 << 18

    /// What `stat` says.
    struct Facts: Sendable, Equatable {
        let size: UInt64
        /// Milliseconds since 1970.
        let modified: Int64
        let identity: Files.Stamp
    }

    /// - Throws: `notFound` for a missing file, `usage` for one that cannot be read or is not a regular file.
    func facts() throws(Failure) -> Facts {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let problem = errno
            let isAbsent = problem == ENOENT || problem == ENOTDIR
            throw Failure(
                isAbsent ? "there is no file \(path)" : "\(path) cannot be read: \(Files.reason(problem))",
                isAbsent ? .notFound : .usage)
        }
        if let obstacle = Files.obstacle(path) { throw Failure("\(path): \(obstacle)", .usage) }
        guard let stamp = Files.stamp(path) else { throw Failure("\(path) is not a regular file", .usage) }
        return Facts(
            size: UInt64(clamping: stamp.size), modified: Self.milliseconds(stamp.written), identity: stamp)
    }

    /// Rounds down, also before 1970.
    private static func milliseconds(_ nanoseconds: Int64) -> Int64 {
        nanoseconds >= 0 ? nanoseconds / 1_000_000 : (nanoseconds - 999_999) / 1_000_000
    }

    /// Reads the whole file for its digest.
    ///
    /// - Throws: `failure` when it changes meanwhile.
    func tag() throws(Failure) -> FileTag {
        let before = try facts()
        var hash = SHA256()
        var size: UInt64 = 0
        try read { bytes in
            hash.update(bytes)
            size += UInt64(bytes.count)
            return !Task.isCancelled
        }
        if Task.isCancelled { throw .interrupted }
        guard size == before.size, try facts() == before else { throw Failure("\(path) changes while it is read") }
        return FileTag(digest: hash.digest(), size: size, modified: before.modified)
    }

    /// Hands all bytes to `body`, in pieces, until it returns false.
    func read(_ body: (UnsafeRawBufferPointer) -> Bool) throws(Failure) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw Failure("\(path) cannot be read: \(Files.reason())", .usage) }
        defer { close(file) }
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 64)
        defer { room.deallocate() }
        var offset = off_t(0)
        while true {
            // By offset: the path of a descriptor may share the place at which it is read.
            let count = pread(file, room.baseAddress, room.count, offset)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("\(path) cannot be read: \(Files.reason())", .usage) }
            guard count > 0, body(UnsafeRawBufferPointer(rebasing: room[..<count])) else { return }
            offset += off_t(count)
        }
    }
}

/// What a folder of this machine holds, as far as it can be copied to a tree.
struct LocalFolder: Sendable {
    /// An entry that is copied.
    struct Entry: Sendable {
        let name: String
        let isFolder: Bool
    }

    /// In byte order.
    let entries: [Entry]
    /// What is left out, with the reason.
    let problems: [(name: String, reason: String)]

    /// - Throws: `failure` when the folder cannot be read.
    init(_ path: String) throws(Failure) {
        guard let folder = opendir(path) else { throw Failure("\(path) cannot be read: \(Files.reason())") }
        defer { closedir(folder) }
        var (entries, problems) = ([Entry](), [(name: String, reason: String)]())
        while let entry = readdir(folder) {
            let bytes = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            guard let name = String(validating: bytes, as: UTF8.self) else {
                problems.append((String(decoding: bytes, as: UTF8.self), "its name is not UTF-8"))
                continue
            }
            if same(name, ".") || same(name, "..") { continue }
            if name.hasPrefix(Files.temporaryPrefix) {
                problems.append((name, "it is a file that another 'thicket' command writes or was writing"))
                continue
            }
            switch Self.kind(of: path + "/" + name) {
            case .success(let isFolder): entries.append(Entry(name: name, isFolder: isFolder))
            case .failure(let problem): problems.append((name, problem.text))
            }
        }
        self.entries = entries.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        self.problems = problems.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }

    private static func kind(of path: String) -> Result<Bool, Failure> {
        var status = stat()
        guard lstat(path, &status) == 0 else { return .failure(Failure(Files.reason())) }
        return switch status.st_mode & S_IFMT {
        case S_IFREG: .success(false)
        case S_IFDIR: .success(true)
        case S_IFLNK: .failure(Failure("it is a symbolic link; links are not copied"))
        case S_IFIFO: .failure(Failure("it is a named pipe; only files and folders are copied"))
        case S_IFSOCK: .failure(Failure("it is a socket; only files and folders are copied"))
        default: .failure(Failure("it is a device; only files and folders are copied"))
        }
    }
}
