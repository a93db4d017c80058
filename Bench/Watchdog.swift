import Glibc
import Synchronization
import ThicketReplay
import ThicketServer

/// Ends the program, with the servers and generators that it started, when a scenario takes longer than it said.
///
/// A scenario waits for sockets and processes in many places; one bound around all of it needs none of them to be right.
final class Watchdog: Sendable {
    /// Status of a program that was ended so.
    static let status: Int32 = 3

    private struct Watch {
        let scenario: String
        let minutes: Double
        let end: UInt64
    }

    private let watch: Mutex<Watch?> = .init(nil)

    /// Looks every fifth of a second for as long as the program runs.
    func start() {
        _ = OwnThread("watchdog") { [self] in
            while true {
                usleep(200_000)
                let overdue: Watch? = watch.withLock { $0.flatMap { nanoseconds() > $0.end ? $0 : nil } }
                if let overdue { Self.end(overdue) }
            }
        }
    }

    func begin(_ scenario: String, minutes: Double) {
        let end: UInt64 = nanoseconds() + UInt64(minutes * 60e9)
        watch.withLock { $0 = Watch(scenario: scenario, minutes: minutes, end: end) }
    }

    func finish() { watch.withLock { $0 = nil } }

    private static func end(_ watch: Watch) {
        Bench.fputsError(
            "bench: \(watch.scenario) has not ended after \(Bench.rounded(watch.minutes)) minutes: given up, and the "
                + "scenarios after it were not run (THICKET_BENCH_PATIENCE=3 gives all of them three times as long)")
        for process: pid_t in descendants() { kill(process, SIGKILL) }
        _exit(status)
    }

    /// All processes that this one started, and those that they did.
    private static func descendants() -> [pid_t] {
        var parents: [pid_t: pid_t] = [:]
        guard let folder: OpaquePointer = opendir("/proc") else { return [] }
        defer { closedir(folder) }
        while let entry: UnsafeMutablePointer<dirent> = readdir(folder) {
            let name: String = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard let process: pid_t = pid_t(name) else { continue }
            let text: String = ServerProcess.read("/proc/\(process)/stat")
            // The name in the middle may hold anything; behind it come the state and the parent.
            let fields: [Substring] = text[(text.lastIndex(of: ")") ?? text.endIndex)...].split(separator: " ")
            if fields.count > 2, let parent: pid_t = pid_t(fields[2]) { parents[process] = parent }
        }
        var found: [pid_t] = [getpid()]
        var place: Int = 0
        while place < found.count {
            found += parents.filter { $0.value == found[place] }.map(\.key)
            place += 1
        }
        return Array(found.dropFirst())
    }
}
