import ThicketCommandLine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A file that is written under another name in the same folder, and appears under its own name when it is whole and on
/// disk. Readers never see a part of it.
struct ClearFile: Sendable {
    let target: String
    private let draft: String
    private let file: Int32

    /// - Parameter content: names the content, so that a later run finds and replaces the draft of a run that was
    ///   killed.
    /// - Throws: `failure`, also while another command writes the same file.
    init(_ target: String, content: String) throws(Failure) {
        self.target = target
        let folder = Self.folder(of: target)
        draft = "\(folder)/\(Files.temporaryPrefix)\(content)"
        file = open(draft, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw Failure("cannot write beside \(target): \(Files.reason())") }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            _ = close(file)
            throw Failure("cannot write \(target): another command writes it")
        }
        guard ftruncate(file, 0) == 0 else { throw failed(errno) }
    }

    static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    private func failed(_ problem: Int32) -> Failure {
        unlink(draft)
        _ = close(file)
        return Failure("cannot write \(target): \(Files.reason(problem))")
    }

    /// Appends bytes. After a failure the draft is gone.
    func write(_ bytes: [UInt8]) throws(Failure) {
        guard Terminal.write(bytes, to: file) else { throw failed(errno) }
    }

    /// Gives the file its name.
    ///
    /// - Parameters:
    ///   - modified: milliseconds since 1970 that the file gets as the time of its last change; nil: now.
    ///   - replaces: an existing file is replaced; otherwise it is an error.
    func finish(modified: Int64?, replaces: Bool) throws(Failure) {
        let mask = umask(0)
        _ = umask(mask)
        _ = fchmod(file, (replaces ? Files.rights(target) : nil) ?? (0o666 & ~mask))
        if let modified {
            let time = timespec(
                tv_sec: Int(modified >= 0 ? modified / 1_000 : (modified - 999) / 1_000),
                tv_nsec: Int((modified % 1_000 + 1_000) % 1_000 * 1_000_000))
            _ = futimens(file, [time, time])
        }
        guard fsync(file) == 0 else { throw failed(errno) }
        let problem: Int32 = replaces ? (rename(draft, target) == 0 ? 0 : errno) : Files.renameNew(draft, target)
        guard problem == 0 else { throw failed(problem) }
        _ = close(file)
        try Files.sync(folder: Self.folder(of: target))
    }

    /// Gives the file up.
    func discard() {
        unlink(draft)
        _ = close(file)
    }
}
