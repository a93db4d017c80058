import CThicketSpawn
import Glibc
import Synchronization

/// A program that this process started, with its output.
///
/// Used by one thread at a time; ends with its owner.
public final class ChildProcess {
    /// The end of a program and its output.
    public struct Outcome: Sendable {
        /// Exit code; nil when a signal ended it.
        public var code: Int32?
        public var signal: Int32?
        public var output: String
        public var errors: String
    }

    public let id: pid_t
    private let output: Int32
    private let errors: Int32
    private var outputBytes: [UInt8] = []
    private var errorBytes: [UInt8] = []
    private var isOver = false

    /// Starts a program.
    /// - Parameters:
    ///   - words: the program's path, then its arguments.
    ///   - input: the contents of standard input.
    ///   - variables: added to this process' own, without those that begin with `THICKET_`. A recorded run
    ///     (`THICKET_SEALS`) is recorded in `thicket`, too.
    public init(_ words: [String], input: String = "", variables: [String: String] = [:]) throws(ProcessError) {
        let recorded = ChildProcess.recorded(words, variables)
        guard let (id, output, errors) = ChildProcess.start(words, input, recorded) else {
            throw ProcessError("cannot start \(words.first ?? "nothing"): \(String(cString: strerror(errno)))")
        }
        (self.id, self.output, self.errors) = (id, output, errors)
    }

    private static func recorded(_ words: [String], _ variables: [String: String]) -> [String: String] {
        guard words.first == Programs.thicket, let file = getenv("THICKET_SEALS") else {
            return variables
        }
        return ["THICKET_SEALS": String(cString: file)].merging(variables) { $1 }
    }

    deinit {
        if !isOver {
            kill(id, SIGKILL)
            waitpid(id, nil, 0)
        }
        close(output)
        close(errors)
    }

    /// Runs a program to its end.
    /// - Parameter seconds: after this time the program is killed and an error thrown.
    public static func run(
        _ words: [String], input: String = "", variables: [String: String] = [:], seconds: Int = 180
    ) throws(ProcessError) -> Outcome {
        try ChildProcess(words, input: input, variables: variables).finish(seconds: seconds)
    }

    /// Waits for the end, and reads all output meanwhile.
    public func finish(seconds: Int = 180) throws(ProcessError) -> Outcome {
        let deadline = Steady.milliseconds() + Int64(seconds) * 1_000
        var open = [output, errors]
        while !open.isEmpty {
            guard Steady.milliseconds() < deadline else {
                kill(id, SIGKILL)
                throw ProcessError("process \(id) did not end within \(seconds) s; it said: \(texts)")
            }
            read(&open, waitingUntil: deadline)
        }
        // The output may end before the program does.
        var status: Int32 = 0
        while waitpid(id, &status, WNOHANG) == 0 {
            guard Steady.milliseconds() < deadline else {
                kill(id, SIGKILL)
                throw ProcessError("process \(id) closed its output and did not end within \(seconds) s: \(texts)")
            }
            _ = poll(nil, 0, 1)
        }
        isOver = true
        let signal = status & 0x7F
        return Outcome(
            code: signal == 0 ? status >> 8 & 0xFF : nil, signal: signal == 0 ? nil : signal,
            output: String(decoding: outputBytes, as: UTF8.self), errors: String(decoding: errorBytes, as: UTF8.self))
    }

    /// The first line of its output.
    public func firstLine(seconds: Int = 120) throws(ProcessError) -> String {
        let deadline = Steady.milliseconds() + Int64(seconds) * 1_000
        var open = [output, errors]
        while true {
            if let end = outputBytes.firstIndex(of: 0x0A) {
                return String(decoding: outputBytes[..<end], as: UTF8.self)
            }
            guard open.contains(output), Steady.milliseconds() < deadline else {
                throw ProcessError("process \(id) said nothing within \(seconds) s or ended; it said: \(texts)")
            }
            read(&open, waitingUntil: deadline)
        }
    }

    /// Waits until its output or its errors hold a text at least `times` times.
    public func wait(for text: String, times: Int = 1, seconds: Int = 120) throws(ProcessError) {
        let deadline = Steady.milliseconds() + Int64(seconds) * 1_000
        var open = [output, errors]
        while true {
            let said = [outputBytes, errorBytes].map { String(decoding: $0, as: UTF8.self) }
            if said.contains(where: { $0.ranges(of: text).count >= times }) { return }
            guard !open.isEmpty, Steady.milliseconds() < deadline else {
                throw ProcessError(
                    "process \(id) did not say '\(text)' \(times) times within \(seconds) s; it said: \(texts)")
            }
            read(&open, waitingUntil: deadline)
        }
    }

    /// Whether it has ended, by itself or by a signal; `finish` still returns the outcome.
    public var hasEnded: Bool {
        var info = siginfo_t()
        return waitid(P_PID, id_t(id), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo == SIGCHLD
    }

    /// Sends a signal.
    public func signal(_ number: Int32) { kill(id, number) }

    private var texts: String {
        String(decoding: outputBytes, as: UTF8.self) + String(decoding: errorBytes.suffix(4_000), as: UTF8.self)
    }

    private func read(_ open: inout [Int32], waitingUntil deadline: Int64) {
        var polls = open.map { (file: Int32) in pollfd(fd: file, events: Int16(POLLIN), revents: 0) }
        let wait = min(1_000, max(0, deadline - Steady.milliseconds()))
        guard poll(&polls, nfds_t(polls.count), Int32(wait)) > 0 else { return }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        for entry in polls where entry.revents != 0 {
            let count = Glibc.read(entry.fd, &chunk, chunk.count)
            if count <= 0 {
                if count < 0, errno == EINTR { continue }
                open.removeAll { $0 == entry.fd }
            } else if entry.fd == output {
                outputBytes += chunk[..<count]
            } else {
                errorBytes += chunk[..<count]
            }
        }
    }

    /// A pipe that already holds the input: if it were written after the start, a program that ends without reading
    /// would end this process, too (`SIGPIPE`). More than any pipe holds is put into a file without a name.
    private static func opened(with bytes: [UInt8]) -> Int32? {
        if bytes.count <= pipeBytes {
            guard let (read, write) = makePipe() else { return nil }
            if !bytes.isEmpty { _ = Glibc.write(write, bytes, bytes.count) }
            close(write)
            return read
        }
        var name = Array("/tmp/thicket-input-XXXXXX".utf8CString)
        let file = mkstemp(&name)
        guard file >= 0, fcntl(file, F_SETFD, FD_CLOEXEC) == 0 else { return nil }
        unlink(name)
        guard pwrite(file, bytes, bytes.count, 0) == bytes.count else { return nil }
        return file
    }

    /// The capacity of any pipe (`PIPE_BUF`); the pipes of a user with many may hold no more.
    private static let pipeBytes = 4_096

    private static func start(
        _ words: [String], _ input: String, _ variables: [String: String]
    ) -> (pid_t, Int32, Int32)? {
        guard let inputRead = opened(with: Array(input.utf8)), let (outRead, outWrite) = makePipe(),
            let (errorRead, errorWrite) = makePipe()
        else { return nil }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, inputRead, 0)
        posix_spawn_file_actions_adddup2(&actions, outWrite, 1)
        posix_spawn_file_actions_adddup2(&actions, errorWrite, 2)
        guard thicket_keep_three(&actions) == 0 else { return nil }
        var arguments = words.map { (word: String) in strdup(word) } + [nil]
        var environment = merged(variables).map { strdup($0) } + [nil]
        defer { (arguments + environment).forEach { (text: UnsafeMutablePointer<CChar>?) in free(text) } }
        var id: pid_t = 0
        let result = posix_spawn(&id, words.first ?? "", &actions, nil, &arguments, &environment)
        [inputRead, outWrite, errorWrite].forEach { (end: Int32) in close(end) }
        guard result == 0 else {
            errno = result
            return nil
        }
        return (id, outRead, errorRead)
    }

    static func merged(_ variables: [String: String]) -> [String] {
        var entries = [String]()
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            // Of a duplicate name, the first would count.
            let name = String(text.prefix { $0 != "=" })
            if !text.hasPrefix("THICKET_"), variables[name] == nil { entries.append(text) }
            next += 1
        }
        return entries + variables.map { (name: String, value: String) in "\(name)=\(value)" }
    }

    private static func makePipe() -> (read: Int32, write: Int32)? {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }
}

/// A failure of a process or a connection, for the reader of the test's output.
public struct ProcessError: Error, CustomStringConvertible {
    public let description: String
    public init(_ description: String) { self.description = description }
}

/// A monotonic clock.
public enum Steady {
    public static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Polls for an effect of another process; nil if it has not appeared within the time.
    public static func waitFor<Value>(seconds: Int = 120, _ look: () -> Value?) -> Value? {
        let deadline = milliseconds() + Int64(seconds) * 1_000
        while true {
            if let value = look() { return value }
            guard milliseconds() < deadline else { return nil }
            _ = poll(nil, 0, 2)
        }
    }

    /// Waits a short time in a busy loop, to the microsecond.
    static func spin(microseconds: Int) {
        var start = timespec()
        clock_gettime(CLOCK_MONOTONIC, &start)
        var now = start
        while (now.tv_sec - start.tv_sec) * 1_000_000 + (now.tv_nsec - start.tv_nsec) / 1_000 < microseconds {
            clock_gettime(CLOCK_MONOTONIC, &now)
        }
    }
}
