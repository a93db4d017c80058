import Glibc
import ThicketNet
import ThicketServer

/// `openssl s_server` with the certificate of one of our servers, and `openssl s_time`, which drives both.
final class TLSPeer {
    static let program = "/usr/bin/openssl"

    enum Kind {
        case p256, rsa
        var name: String { self == .p256 ? "P-256" : "RSA 2048" }
        var words: [String] { self == .p256 ? ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] : ["rsa:2048"] }
    }

    struct Run {
        let perSecond: Double
        /// The server's CPU time per connection.
        let cpuMicroseconds: Double
    }

    let port: UInt16
    private(set) var process: pid_t = 0

    init(_ kind: Kind, _ target: TLSTarget) throws {
        guard let files: TLSFiles = target.files else { throw BenchError("the target has no certificate") }
        port = target.server.process.port &+ 1
        process = try Self.spawn([
            "s_server", "-accept", "127.0.0.1:\(port)", "-cert", files.certificate, "-key", files.key, "-quiet", "-www",
            "-num_tickets", "1",
        ]).process
        for _ in 0..<200 {
            if let socket: Int32 = try? LoadSocket.connection(port: port) {
                close(socket)
                return
            }
            poll(nil, 0, 25)
        }
        throw BenchError("openssl s_server does not listen on port \(port)")
    }

    deinit { Self.end(process) }

    /// A certificate for this machine with its key, in a folder under /tmp that its user removes.
    static func certificate(_ kind: Kind) throws -> TLSFiles {
        var template: [CChar] = Array("/tmp/thicket-tls-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BenchError("no temporary folder: errno \(errno)") }
        let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        let files = TLSFiles(certificate: folder + "/certificate.pem", key: folder + "/key.pem")
        let made = try spawn(
            ["req", "-x509", "-newkey"] + kind.words + [
                "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", files.key, "-out", files.certificate,
            ])
        _ = try text(made)
        return files
    }

    /// Full handshakes, one after another, for a number of seconds.
    func time(_ port: UInt16, _ server: pid_t?, _ seconds: Int) throws -> Run {
        let before: Double = Self.cpuSeconds(server)
        let start: UInt64 = nanoseconds()
        let said: String = try Self.text(
            try Self.spawn(["s_time", "-connect", "127.0.0.1:\(port)", "-new", "-time", "\(seconds)", "-tls1_3"]))
        let elapsed: Double = Double(nanoseconds() - start) / 1e9
        // "4321 connections in 1.23s; …"
        let words: [Substring] = said.split(whereSeparator: { $0 == " " || $0 == "\n" })
        guard let place: Int = words.firstIndex(of: "connections"), place > 0,
            let count: Double = Double(words[place - 1]),
            count > 0
        else { throw BenchError("openssl s_time said: \(said)") }
        return Run(perSecond: count / elapsed, cpuMicroseconds: (Self.cpuSeconds(server) - before) / count * 1e6)
    }

    /// Programs that shake hands without end, in the scheduling class that any other thread displaces.
    final class Flood {
        private var processes: [pid_t] = []

        init(_ port: UInt16, count: Int) throws {
            for _ in 0..<count {
                let process: pid_t = try TLSPeer.spawn([
                    "s_time", "-connect", "127.0.0.1:\(port)", "-new", "-time", "600", "-tls1_3",
                ]).process
                Priority.lower(process)
                processes.append(process)
            }
        }

        func stop() {
            for process in processes {
                Priority.raise(process)
                TLSPeer.end(process)
            }
            processes = []
        }

        deinit { stop() }
    }

    // MARK: Programs

    private static func cpuSeconds(_ process: pid_t?) -> Double {
        var clock: clockid_t = 0
        var time = timespec()
        guard let process, clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else {
            return .nan
        }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static func spawn(_ words: [String]) throws -> (process: pid_t, output: Int32) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw BenchError("no pipe: errno \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Threads that tasks share block most signals: without its alarm `openssl speed` would never end.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let pointers: [UnsafeMutablePointer<CChar>?] = ([program] + words).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var process: pid_t = 0
        let result: Int32 = posix_spawn(&process, program, &actions, &attributes, pointers, environ)
        close(ends[1])
        guard result == 0 else { throw BenchError("openssl cannot be started: errno \(result)") }
        return (process, ends[0])
    }

    /// The output of a program after its end.
    static func text(_ run: (process: pid_t, output: Int32)) throws -> String {
        defer { close(run.output) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count: Int = read(run.output, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            bytes += chunk[..<count]
        }
        var status: Int32 = 0
        while waitpid(run.process, &status, 0) < 0, errno == EINTR {}
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func end(_ process: pid_t) {
        guard process > 0 else { return }
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }
}
