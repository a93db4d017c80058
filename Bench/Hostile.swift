import Glibc
import ThicketProtocol
import ThicketReplay

/// Another tenant's changes while one behaves badly: four users, one paced socket each, on a server of their own for
/// each attack, quiet first and then attacked from another process.
///
/// A change that is due while the one before it waits counts from the moment it was due, so that a stall counts for all
/// that fell into it. The
/// attacker has the lowest priority: he brings his own machine, here he shares two cores with the server.
func hostile() throws -> [Figure] {
    if let attack: UnsafeMutablePointer<CChar> = getenv(HostileRun.attackVariable) {
        try HostileRun.attack(String(cString: attack))
        return []
    }
    let wanted: String? = getenv("THICKET_ATTACK").map { String(cString: $0) }
    var figures: [Figure] = []
    Bench.printLine("  " + HostileRow.head)
    for attack: HostileAttack in HostileAttack.allCases where wanted == nil || attack.rawValue.contains(wanted ?? "") {
        let row: HostileRow = try HostileRun(attack).run()
        Bench.printLine("  " + row.text)
        figures += row.figures
    }
    return figures
}

/// What one attack came to.
struct HostileRow {
    static let head: String =
        Bench.padded("attack", 20) + "  quiet p50    p99 ms | under attack p99 ms  ratio |   memory MiB | limit hits"
    let attack: HostileAttack
    let quiet: [Double]
    let attacked: [Double]
    let memory: Int
    let hits: Int

    private var ratio: Double { quantile(attacked, 0.99) / max(quantile(quiet, 0.99), 1e-9) }
    /// Issue: p99 at most twice the quiet one, 64 MiB more memory at most, and the limit is seen to have acted.
    private var isMet: Bool { ratio <= 2 && memory <= 64 << 20 && hits > 0 }

    var text: String {
        func number(_ value: Double, _ width: Int) -> String {
            Bench.padded(Bench.rounded(value), width, left: true)
        }
        return Bench.padded(attack.rawValue, 20) + number(quantile(quiet, 0.5), 11) + number(quantile(quiet, 0.99), 10)
            + number(quantile(attacked, 0.99), 24) + number(ratio, 8) + number(Double(memory) / 1_048_576, 15)
            + Bench.padded("\(hits)", 13, left: true) + (isMet ? "  met" : "  NOT MET") + " (\(attacked.count) changes)"
    }

    var figures: [Figure] {
        [
            Figure(name: "\(attack.rawValue): quiet p99", value: quantile(quiet, 0.99), unit: "ms"),
            Figure(name: "\(attack.rawValue): p99 under attack", value: quantile(attacked, 0.99), unit: "ms"),
            Figure(name: "\(attack.rawValue): ratio of p99 (goal ≤ 2)", value: ratio, unit: ""),
            Figure(
                name: "\(attack.rawValue): memory growth (goal ≤ 64)", value: Double(memory) / 1_048_576, unit: "MiB"),
            Figure(name: "\(attack.rawValue): limit hits (goal > 0)", value: Double(hits), unit: ""),
        ]
    }
}

/// One attack on a server of its own.
final class HostileRun {
    static let attackVariable: String = "THICKET_BENCH_ATTACK"
    private static let tenants: Int = 4
    /// Microseconds between two changes of one tenant.
    private static let paceMicroseconds: UInt64 = 8_000
    private static let quietSeconds: Double = 3
    private static let attackSeconds: Double = 6

    private let attack: HostileAttack
    private let server: BenchServer
    private let tenants: [HostileTenant]
    private var memoryMax: Int = 0

    init(_ attack: HostileAttack) throws {
        self.attack = attack
        // The attacker has 9,000 sockets, the descriptors of a process here end at 20,000.
        let server: BenchServer = try BenchServer(users: Self.tenants + 1, settings: ["--connections-max", "6000"])
        self.server = server
        tenants = try (0..<Self.tenants).map {
            try HostileTenant(port: server.process.port, token: server.tokens[$0], number: $0)
        }
    }

    func run() throws -> HostileRow {
        try attack.prepare(port: server.process.port, token: server.tokens[Self.tenants])
        _ = try measure(seconds: 0.5)
        let quiet: [Double] = try measure(seconds: Self.quietSeconds)
        let (memory, hits): (Int, Int) = (resident(), hits())
        memoryMax = memory
        let attacker: pid_t = try start()
        defer {
            kill(attacker, SIGKILL)
            var status: Int32 = 0
            waitpid(attacker, &status, 0)
        }
        let attacked: [Double] = try measure(seconds: Self.attackSeconds)
        return HostileRow(
            attack: attack, quiet: quiet, attacked: attacked, memory: memoryMax - memory, hits: self.hits() - hits)
    }

    /// The attacker: this program again, in a process of its own.
    private func start() throws -> pid_t {
        setenv(Self.attackVariable, "\(attack.rawValue)|\(server.process.port)|\(server.tokens[Self.tenants])", 1)
        defer { unsetenv(Self.attackVariable) }
        var actions: posix_spawn_file_actions_t = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = [strdup("/proc/self/exe"), strdup("hostile"), nil]
        defer { for word: UnsafeMutablePointer<CChar>? in words { free(word) } }
        var process: pid_t = 0
        let result: Int32 = posix_spawn(&process, "/proc/self/exe", &actions, nil, &words, environ)
        guard result == 0 else { throw BenchError("the attacker does not start: error \(result)") }
        return process
    }

    /// The body of the attacker's process.
    static func attack(_ order: String) throws {
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
        signal(SIGPIPE, SIG_IGN)
        let words: [Substring] = order.split(separator: "|")
        guard words.count == 3, let attack: HostileAttack = HostileAttack(rawValue: String(words[0])),
            let port: UInt16 = UInt16(words[1])
        else { throw BenchError("an attack that is not understood: \(order)") }
        attack.run(
            port: port, token: String(words[2]), until: nanoseconds() + UInt64((attackSeconds + 5) * 1e9))
    }

    /// Milliseconds of each change of all tenants, sorted.
    private func measure(seconds: Double) throws -> [Double] {
        let begin: UInt64 = nanoseconds()
        let end: UInt64 = begin + UInt64(seconds * 1e9)
        var nextLook: UInt64 = begin
        for tenant: HostileTenant in tenants {
            tenant.begin(at: begin + UInt64(tenant.number) * 2_000_000, pace: Self.paceMicroseconds * 1_000)
        }
        while nanoseconds() < end {
            let now: UInt64 = nanoseconds()
            if now >= nextLook {
                memoryMax = max(memoryMax, resident())
                nextLook = now + 100_000_000
            }
            var polls: [pollfd] = tenants.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            let due: UInt64 = tenants.map { $0.nextDue }.min() ?? now
            let wait: UInt64 = min(due > now ? due - now : 0, 50_000_000)
            _ = poll(&polls, nfds_t(polls.count), Int32((wait + 999_999) / 1_000_000))
            for tenant: HostileTenant in tenants { try tenant.turn() }
        }
        return tenants.flatMap { $0.takeTimes(at: nanoseconds()) }.sorted()
    }

    private func resident() -> Int {
        let text: String = ServerProcess.read("/proc/\(server.process.process ?? 0)/statm")
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }

    /// How often the limits of this attack were met so far.
    private func hits() -> Int {
        let page: String = (try? HostileTenant.metrics(port: server.process.port)) ?? ""
        var sum: Int = 0
        for line: Substring in page.split(separator: "\n") {
            for name: String in attack.metrics where line.hasPrefix(name + " ") {
                sum += Int(line.dropFirst(name.utf8.count + 1)) ?? 0
            }
        }
        return sum
    }
}

/// A well-behaved user: one change at a time, at a steady pace.
final class HostileTenant {
    let number: Int
    private let socket: LoadSocket
    private let scratch: UnsafeMutableRawBufferPointer = .allocate(byteCount: 1 << 16, alignment: 64)
    private var version: Int = 0
    private var isWaiting: Bool = false
    private var due: UInt64 = 0
    private var pace: UInt64 = 0
    /// From when the change that is on its way counts; 0: from when it is sent.
    private var begun: UInt64 = 0
    private var times: [Double] = []

    init(port: UInt16, token: String, number: Int) throws {
        self.number = number
        socket = try LoadSocket(port: port, app: BenchServer.app)
        socket.send(HostileAttack.hello(token, "tenant-\(number)", bucket: "b"))
    }

    deinit { scratch.deallocate() }

    var descriptor: Int32 { socket.descriptor }
    var nextDue: UInt64 { isWaiting ? .max : due }

    func begin(at time: UInt64, pace: UInt64) {
        (due, self.pace, times) = (isWaiting ? due : time, pace, [])
    }

    func turn() throws {
        let goesOn: Bool = try socket.drain(scratch) { bytes in
            guard isWaiting, contains(bytes, "\"ccids\"") else { return }
            isWaiting = false
            version += 1
            let now: UInt64 = nanoseconds()
            times.append(Double(now - begun) / 1e6)
            due += pace
            begun = due < now ? due : 0
        }
        guard goesOn else { throw BenchError("the server closed the connection of tenant \(number)") }
        guard !isWaiting, nanoseconds() >= due else { return }
        isWaiting = true
        if begun == 0 { begun = nanoseconds() }
        let field: String =
            version == 0
            ? "\"t\":{\"o\":\"+\",\"v\":\"\(String(repeating: "x", count: 200))\"},\"n\":{\"o\":\"+\",\"v\":0}"
            : "\"n\":{\"o\":\"r\",\"v\":\(version)}"
        let source: String = version == 0 ? "" : "\"sv\":\(version),"
        socket.send(
            "0:c:{\"id\":\"k\",\"o\":\"M\",\(source)\"v\":{\(field)},\"ccid\":\"t\(number)-\(version)\"}")
    }

    /// What was measured, with all that is due and has no answer yet.
    func takeTimes(at now: UInt64) -> [Double] {
        var all: [Double] = times
        var late: UInt64 = isWaiting ? begun : now
        while late < now {
            all.append(Double(now - late) / 1e6)
            late += pace
        }
        return all
    }

    /// The server's page of metrics.
    static func metrics(port: UInt16) throws -> String {
        let socket: HostileSocket = .init(port: port, number: 0)
        guard socket.connectPlain() else { throw BenchError("no metrics: connection refused") }
        let request: [UInt8] = Array("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8)
        _ = Glibc.send(socket.descriptor, request, request.count, Int32(MSG_NOSIGNAL))
        var answer: [UInt8] = []
        var chunk: [UInt8] = .init(repeating: 0, count: 1 << 16)
        while true {
            let count: Int = recv(socket.descriptor, &chunk, chunk.count, 0)
            guard count > 0 else { return String(decoding: answer, as: UTF8.self) }
            answer += chunk[..<count]
        }
    }
}
