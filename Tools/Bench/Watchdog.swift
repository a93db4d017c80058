import Glibc
import ThicketPlatform
import ThicketServer
import ThicketServerProcess

/// Runs each scenario in its own process and ends it, with the servers and generators that it started, if it exceeds
/// its time limit. The scenarios after it run all the same.
///
/// A scenario waits for sockets and processes in many places; one bound around all of it does not depend on any of
/// them.
enum Watchdog {
    /// How a scenario ended.
    enum End {
        case done
        /// The machine lacks something that the scenario needs.
        case notMeasured
        case failed
        case givenUp
    }

    /// Set for the process of a scenario: it runs that scenario and watches nothing.
    private static let variable = "THICKET_BENCH_SCENARIO"
    /// Status of a scenario's process that lacks something.
    static let notMeasuredStatus: Int32 = 4
    /// Microseconds between two checks of the process.
    private static let pause: UInt32 = 20_000

    /// Whether this is the process of one scenario, or one that such a process started.
    static var isChild: Bool { getenv(variable) != nil }

    /// Runs this program again with one scenario; returns when it has ended, after this number of minutes at the
    /// latest.
    static func run(_ scenario: String, minutes: Double) -> End {
        let end: UInt64 = nanoseconds() + UInt64(minutes * 60e9)
        guard let child: pid_t = start(scenario) else { return .failed }
        var status: Int32 = 0
        while true {
            let ended: pid_t = waitpid(child, &status, WNOHANG)
            if ended == child { break }
            guard ended == 0 || errno == EINTR else { return .failed }
            if nanoseconds() > end {
                killTree(of: child)
                while waitpid(child, &status, 0) < 0, errno == EINTR {}
                Bench.fputsError(
                    "bench: \(scenario) has not ended after \(Bench.rounded(minutes)) minutes: given up "
                        + "(THICKET_BENCH_PATIENCE=3 gives each scenario three times as long)")
                return .givenUp
            }
            usleep(pause)
        }
        if status & 0x7F != 0 { Bench.fputsError("bench: \(scenario) was ended by signal \(status & 0x7F)") }
        return status == 0 ? .done : status == notMeasuredStatus << 8 ? .notMeasured : .failed
    }

    /// Ends the process of a scenario, and all that it started, when its parent has ended.
    static func endWithParent() {
        let parent: pid_t = getppid()
        _ = OwnThread("parent") {
            while getppid() == parent { usleep(200_000) }
            for process in descendants(of: getpid()) { kill(process, SIGKILL) }
            _exit(1)
        }
    }

    private static func start(_ scenario: String) -> pid_t? {
        setenv(variable, "1", 1)
        defer { unsetenv(variable) }
        var words: [UnsafeMutablePointer<CChar>?] = [strdup(CommandLine.arguments[0]), strdup(scenario), nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let result: Int32 = posix_spawn(&process, "/proc/self/exe", nil, nil, &words, environ)
        guard result == 0 else {
            Bench.fputsError("bench: \(scenario) does not start: error \(result)")
            return nil
        }
        return process
    }

    /// Stops all of them first: a stopped process starts no others.
    private static func killTree(of process: pid_t) {
        var stopped: Set<pid_t> = []
        while case let running = Set([process] + descendants(of: process)).subtracting(stopped), !running.isEmpty {
            for process in running { kill(process, SIGSTOP) }
            stopped.formUnion(running)
        }
        for process in stopped { kill(process, SIGKILL) }
    }

    /// All descendants of this process.
    private static func descendants(of process: pid_t) -> [pid_t] {
        var parents: [pid_t: pid_t] = [:]
        for process in numbers(in: "/proc") {
            let text: String = ServerProcess.read("/proc/\(process)/stat")
            // The name in the middle may hold anything; behind it come the state and the parent.
            let fields: [Substring] = text[(text.lastIndex(of: ")") ?? text.endIndex)...].split(separator: " ")
            if fields.count > 2, let parent: pid_t = pid_t(fields[2]) { parents[process] = parent }
        }
        var found: [pid_t] = [process]
        var place = 0
        while place < found.count {
            found += parents.filter { $0.value == found[place] }.map(\.key)
            place += 1
        }
        return Array(found.dropFirst())
    }

    /// The processes that `/proc` lists, or the threads of one of them.
    static func numbers(in path: String) -> [pid_t] {
        guard let folder: OpaquePointer = opendir(path) else { return [] }
        defer { closedir(folder) }
        var numbers: [pid_t] = []
        while let entry: UnsafeMutablePointer<dirent> = readdir(folder) {
            let name: String = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if let number: pid_t = pid_t(name) { numbers.append(number) }
        }
        return numbers
    }
}
