import CThicketSpawn
import Glibc

/// A real `thicketd` with a temporary data folder: for the demo, the benchmarks and tests that need to kill it.
public final class ServerProcess {
    /// The program's path; by default next to the running program.
    public let program: String
    /// The data folder.
    public let folder: String
    /// Stays the same over restarts, so that clients find the server again.
    public let port: UInt16
    /// The running process; nil when it is not running.
    public private(set) var process: pid_t?
    private let settings: [String]
    /// The server's standard error, separate from this program's: a reader that waits for the end of this program's
    /// standard error would also wait for a server that outlives this program.
    private var errors: UnsafeMutablePointer<FILE>?

    /// The server's address for clients.
    public var address: String { "http://127.0.0.1:\(port)" }

    /// Creates an empty data folder; the server is not started yet.
    ///
    /// - Parameters:
    ///   - settings: more flags for `thicketd serve`.
    ///   - parent: the folder in which the data folder is made.
    public init(
        program: String? = nil, settings: [String] = [], parent: String = "/tmp"
    ) throws(ServerProcessError) {
        if let program { self.program = program } else { self.program = try Self.sibling("thicketd") }
        self.settings = settings
        var template = Array("\(parent)/thicket-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw ServerProcessError("no temporary folder in \(parent): errno \(errno)")
        }
        folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        port = try Self.freePort()
    }

    deinit {
        kill()
        _ = try? Self.run(["/bin/rm", "-rf", folder])
    }

    /// Runs an administrative command on the data folder and returns what it printed.
    @discardableResult
    public func admin(_ arguments: [String]) throws(ServerProcessError) -> String {
        try Self.run([program] + arguments + ["--data", folder])
    }

    /// Starts the server and waits until it listens.
    public func start() throws(ServerProcessError) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw ServerProcessError("no pipe: errno \(errno)") }
        defer { for end in ends { close(end) } }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // For a server that is started again without having been ended here.
        forwardErrors()
        guard let errors: UnsafeMutablePointer<FILE> = tmpfile() else {
            throw ServerProcessError("no temporary file: errno \(errno)")
        }
        self.errors = errors
        do throws(ServerProcessError) {
            process = try Self.spawn(
                [program, "serve", "--data", folder, "--listen", "127.0.0.1:\(port)", "--log-level", "error"]
                    + settings,
                output: ends[1], errors: fileno(errors))
        } catch {
            forwardErrors()
            throw error
        }
        close(ends[1])
        ends.removeLast()
        try awaitListening(ends[0])
    }

    /// Longest time of an administrative command in seconds, after which it is killed.
    private static let commandSeconds = 180

    /// Longest wait for the line that says that the server listens, in seconds.
    private static let startSeconds = 30

    /// Waits for the first line on the server's standard output; it writes no other.
    private func awaitListening(_ output: Int32) throws(ServerProcessError) {
        var line = [UInt8]()
        let deadline: time_t = time(nil) + Self.startSeconds
        while !line.contains(UInt8(ascii: "\n")) {
            var polls = [pollfd(fd: output, events: Int16(POLLIN), revents: 0)]
            let left: time_t = max(deadline - time(nil), 0)
            let ready = poll(&polls, 1, Int32(left) * 1_000)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else {
                throw ServerProcessError("thicketd does not listen on port \(port) after \(Self.startSeconds) s")
            }
            var chunk = [UInt8](repeating: 0, count: 512)
            let count = Glibc.read(output, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let status = reap(SIGKILL)
                throw ServerProcessError("thicketd ended at once (status \(status)): \(takeErrors())")
            }
            line += chunk[..<count]
        }
    }

    /// Sends SIGKILL: no shutdown, no flush.
    public func kill() { end(SIGKILL) }

    /// Sends SIGTERM and waits for the end.
    ///
    /// - Returns: the wait status; 0 after a clean end.
    @discardableResult
    public func terminate() -> Int32 { end(SIGTERM) }

    @discardableResult
    private func end(_ signal: Int32) -> Int32 {
        let status = reap(signal)
        forwardErrors()
        return status
    }

    private func reap(_ signal: Int32) -> Int32 {
        guard let process else { return 0 }
        self.process = nil
        Glibc.kill(process, signal)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    /// Forwards the server's standard error.
    private func forwardErrors() {
        let said: [UInt8] = Array(takeErrors().utf8)
        _ = write(STDERR_FILENO, said, said.count)
    }

    private func takeErrors() -> String {
        guard let errors else { return "" }
        self.errors = nil
        defer { fclose(errors) }
        lseek(fileno(errors), 0, SEEK_SET)
        return Self.readAll(fileno(errors))
    }

    /// CPU seconds that the server has used, user and system, to the nanosecond: the kernel's clock of that process. 0
    /// when it is not running.
    public func cpuSeconds() -> Double {
        var clock: clockid_t = 0
        var time = timespec()
        guard let process, clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Proportional resident memory in bytes.
    public func memoryBytes() -> Int { Self.memoryBytes(of: process ?? 0) }

    /// Proportional resident memory of a process in bytes; 0 when this user may not read it.
    public static func memoryBytes(of process: pid_t) -> Int {
        for line in read("/proc/\(process)/smaps_rollup").split(separator: "\n")
        where line.hasPrefix("Pss:") {
            return (line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 1_024
        }
        return 0
    }

    /// A small file of the system, such as those in `/proc`; empty when it cannot be read.
    public static func read(_ path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes[0..<count], as: UTF8.self)
    }

    /// The path of a program next to the running one.
    public static func sibling(_ name: String) throws(ServerProcessError) -> String {
        var path = [CChar](repeating: 0, count: 4_096)
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        guard count > 0 else { throw ServerProcessError("/proc/self/exe is not readable: errno \(errno)") }
        let own = String(decoding: path[0..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
        let sibling = "\(own[..<(own.lastIndex(of: "/") ?? own.startIndex)])/\(name)"
        guard access(sibling, X_OK) == 0 else {
            throw ServerProcessError("there is no \(name) beside \(own): build it first")
        }
        return sibling
    }

    private static func spawn(
        _ arguments: [String], output: Int32? = nil, errors: Int32? = nil
    ) throws(ServerProcessError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let output { posix_spawn_file_actions_adddup2(&actions, output, 1) }
        if output == nil { posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) }
        if let errors { posix_spawn_file_actions_adddup2(&actions, errors, 2) }
        let refused = thicket_keep_three(&actions)
        guard refused == 0 else { throw ServerProcessError("cannot start \(arguments[0]): errno \(refused)") }
        var process: pid_t = 0
        let pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        let result = posix_spawn(&process, arguments[0], &actions, nil, pointers, environ)
        guard result == 0 else { throw ServerProcessError("cannot start \(arguments[0]): errno \(result)") }
        return process
    }

    /// Runs a command to its end. Its standard error is shown only when it fails, since keys are printed only once.
    private static func run(_ arguments: [String]) throws(ServerProcessError) -> String {
        guard let errors: UnsafeMutablePointer<FILE> = tmpfile() else {
            throw ServerProcessError("no temporary file: errno \(errno)")
        }
        defer { fclose(errors) }
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw ServerProcessError("no pipe: errno \(errno)") }
        defer { close(ends[0]) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let process: pid_t
        do {
            process = try spawn(arguments, output: ends[1], errors: fileno(errors))
        } catch {
            close(ends[1])
            throw error
        }
        close(ends[1])
        let deadline: time_t = time(nil) + commandSeconds
        let output = readAll(ends[0], until: deadline)
        let isLate = time(nil) >= deadline
        if isLate { Glibc.kill(process, SIGKILL) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else {
            rewind(errors)
            let said = output + readAll(fileno(errors))
            let what = isLate ? "did not end within \(commandSeconds) s" : "failed (status \(status))"
            throw ServerProcessError("'\(arguments.dropFirst().joined(separator: " "))' \(what): \(said)")
        }
        return output
    }

    /// Reads to the end, or until a deadline (`time`).
    private static func readAll(_ descriptor: Int32, until deadline: time_t = .max) -> String {
        var text = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            var polls = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
            guard time(nil) < deadline else { break }
            if poll(&polls, 1, 1_000) <= 0 { continue }
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            text += chunk[0..<count]
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        address.sin_port = port.bigEndian
        return address
    }

    private static func freePort() throws(ServerProcessError) -> UInt16 {
        let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(probe) }
        var address = address(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(probe, $0, size) | getsockname(probe, $0, &size)
            }
        }
        guard result == 0 else { throw ServerProcessError("no free port on 127.0.0.1: errno \(errno)") }
        return UInt16(bigEndian: address.sin_port)
    }

}

/// Why a server could not be started or a command failed.
public struct ServerProcessError: Error, CustomStringConvertible {
    /// The reason as a sentence.
    public let description: String
    init(_ description: String) { self.description = description }
}
