import ThicketCommandLine

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Standard input as a file: its length must be known before the content is sealed.
///
/// The file is in the profile's folder, for its owner only, and has no name: it ends with the program, however that
/// ends.
struct StandardInput: Sendable {
    private let descriptor: Int32

    /// What is read.
    var file: LocalFile { LocalFile(path: "/dev/fd/\(descriptor)") }

    /// Reads standard input to its end.
    init(besideProfileOf call: Call) throws(Failure) {
        guard let folder = try Account(call).folder else {
            throw Failure("the tree needs a profile: 'thicket login' makes one", .usage)
        }
        var template = Array("\(folder)/input-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else { throw Failure("standard input cannot be kept in \(folder): \(Files.reason())") }
        unlink(template)
        _ = fcntl(file, F_SETFD, FD_CLOEXEC)
        var chunk = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = read(STDIN_FILENO, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count != 0 else { break }
            guard count > 0, Terminal.write(Array(chunk[..<count]), to: file) else {
                let reason = Files.reason()
                Self.close(file)
                throw Failure("standard input cannot be kept: \(reason)")
            }
        }
        descriptor = file
    }

    func close() { Self.close(descriptor) }

    private static func close(_ file: Int32) { _ = systemClose(file) }
}

/// The system call, which the method of the type would shadow.
private func systemClose(_ file: Int32) -> Int32 { close(file) }
