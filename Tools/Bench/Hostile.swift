import Glibc
import ThicketNet
import ThicketProtocol
import ThicketServer
import ThicketServerProcess

/// The changes of tenants during another tenant's attack: four users with one paced socket each, and a new server for
/// each attack. Quiet and attacked windows alternate, so that other load of the machine affects both; the attacker is
/// another process, started again for each of its windows.
///
/// In a third window of each round it attacks another server of the same build on the same machine. No server can keep
/// that effect from the tenants: it is the floor of the attack, the price of two cores.
///
/// The server has one core, and all other processes the others: in reality users and attackers have their own machines.
/// With `THICKET_HOSTILE_CORES=shared` all processes have all cores.
///
/// A change that is due while its predecessor waits counts from the moment at which it was due, so that a stall counts
/// for all changes in it. The attacker has the lowest priority: in reality it has its own machine, here it shares two
/// cores with the server. `THICKET_ATTACK` selects the attacks whose names contain it.
func hostile() throws -> [Figure] {
    if let attack: UnsafeMutablePointer<CChar> = getenv(HostileRun.attackVariable) {
        try HostileRun.attack(String(cString: attack))
        return []
    }
    let cores: [Int] = Cores.allowed()
    let isShared: Bool = getenv("THICKET_HOSTILE_CORES").map { String(cString: $0) } == "shared"
    let figures: Result<[Figure], any Error> = .init { try hostileFigures(cores: isShared ? [] : cores) }
    // Later scenarios have all cores again.
    if !cores.isEmpty { try Cores.pin(cores) }
    return try figures.get()
}

private func hostileFigures(cores: [Int]) throws -> [Figure] {
    let attacks: [HostileAttack] = try wantedAttacks()
    var figures: [Figure] = []
    Bench.printLine(
        "  the server has " + (cores.count > 1 ? "core \(cores[0]) for itself" : "the cores that all have"))
    Bench.printLine("  " + HostileRow.head)
    for attack in attacks {
        if cores.count > 1 { try Cores.pin(cores) }
        let row: HostileRow = try HostileRun(attack, cores: cores).run()
        Bench.printLine("  " + row.text)
        figures += row.figures
    }
    return figures
}

/// The attacks that `THICKET_ATTACK` selects; all without it.
private func wantedAttacks() throws -> [HostileAttack] {
    guard let wanted: String = getenv("THICKET_ATTACK").map({ String(cString: $0) }) else {
        return HostileAttack.allCases
    }
    let attacks: [HostileAttack] = HostileAttack.allCases.filter { $0.rawValue.contains(wanted) }
    guard !attacks.isEmpty else {
        let names: String = HostileAttack.allCases.map(\.rawValue).joined(separator: ", ")
        throw BenchError("THICKET_ATTACK is \"\(wanted)\", which is in the name of no attack: \(names)")
    }
    return attacks
}

/// One attack, on its own server.
final class HostileRun {
    static let attackVariable = "THICKET_BENCH_ATTACK"
    private static let tenants = 4
    /// Microseconds between two changes of one tenant.
    private static let paceMicroseconds: UInt64 = 8_000
    private static let rounds = 5
    private static let quietSeconds: Double = 2
    private static let attackSeconds: Double = 3
    /// Longest wait for the server to finish the work of a disconnected attacker.
    private static let pauseSeconds: Double = 60

    private let attack: HostileAttack
    private let server: BenchServer
    /// The server that is attacked in the third windows.
    private let other: BenchServer
    private let tenants: [HostileTenant]
    private var memoryMax = 0

    /// - Parameter cores: the first is for the server, the rest for the other processes; with one or none, all share
    ///   it.
    init(_ attack: HostileAttack, cores: [Int]) throws {
        self.attack = attack
        // The attacker has 9,000 sockets, and a process here has at most 20,000 descriptors.
        let areOwn: Bool = cores.count > 1
        if areOwn { try Cores.pin(Array(cores.prefix(1))) }
        let server: BenchServer = try Self.makeServer()
        self.server = server
        if areOwn { try Cores.pin(Array(cores.dropFirst())) }
        other = try Self.makeServer()
        tenants = try (0..<Self.tenants).map {
            try HostileTenant(port: server.process.port, token: server.tokens[$0], number: $0)
        }
    }

    private static func makeServer() throws -> BenchServer {
        try BenchServer(users: tenants + 1, settings: ["--connections-max", "6000"])
    }

    func run() throws -> HostileRow {
        // The tenants would have their own machines, too: a late wake-up here is not the server's delay.
        EventLoop.requestShortTimeSlice()
        for target: BenchServer in [server, other] {
            try attack.prepare(port: target.process.port, token: target.tokens[Self.tenants])
        }
        _ = try measure(seconds: 0.5)
        var (quiet, attacked, elsewhere): ([[Double]], [[Double]], [[Double]]) = ([], [], [])
        var memory: Int?
        let hits: [String: Int] = try hits()
        for _ in 0..<Self.rounds {
            quiet.append(try measure(seconds: Self.quietSeconds))
            // The memory of the first quiet window, before any attack.
            memory = memory ?? memoryMax
            attacked.append(try measure(while: server))
            elsewhere.append(try measure(while: other))
        }
        return HostileRow(
            attack: attack, quiet: quiet, attacked: attacked, elsewhere: elsewhere, memory: memoryMax - (memory ?? 0),
            hits: try self.hits().merging(hits, uniquingKeysWith: -))
    }

    /// Measures while a server is attacked, and returns when that server is idle again.
    private func measure(while target: BenchServer) throws -> [Double] {
        let times: [Double]
        let attacker: pid_t = try start(against: target)
        do {
            defer { end(attacker) }
            times = try measure(seconds: Self.attackSeconds)
        }
        try awaitIdle(of: target)
        return times
    }

    private func end(_ attacker: pid_t) {
        Priority.raise(attacker)
        kill(attacker, SIGKILL)
        var status: Int32 = 0
        while waitpid(attacker, &status, 0) < 0, errno == EINTR {}
    }

    /// Waits until the server has closed the attacker's connections and reads, and has decided the changes that the
    /// attacker left in its queue. No tenant sends meanwhile: beside others a costly user would be throttled for
    /// minutes.
    private func awaitIdle(of target: BenchServer) throws {
        let end: UInt64 = nanoseconds() + UInt64(Self.pauseSeconds * 1e9)
        while nanoseconds() < end {
            try awaitAnswers(until: end)
            usleep(200_000)
            memoryMax = max(memoryMax, resident())
            guard let page: String = try? HostileTenant.metrics(port: target.process.port) else { continue }
            // The connection of this request counts, too.
            let others: Int = target === server ? Self.tenants : 0
            let isAlone: Bool = (value("thicket_connections", page) ?? .max) <= others + 1
            if isAlone, value("thicket_store_reads_queued", page) == 0, value("thicket_changes_queued", page) == 0 {
                return
            }
        }
        throw BenchError("\(attack.rawValue): the server has not let go of the attacker after \(Self.pauseSeconds) s")
    }

    /// Receives the tenants' outstanding answers.
    private func awaitAnswers(until end: UInt64) throws {
        while tenants.contains(where: { !$0.isIdle }), nanoseconds() < end {
            var polls: [pollfd] = tenants.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
            _ = poll(&polls, nfds_t(polls.count), 50)
            for tenant in tenants { try tenant.turn(sends: false) }
        }
    }

    /// The attacker: this program again, in another process.
    private func start(against target: BenchServer) throws -> pid_t {
        setenv(Self.attackVariable, "\(attack.rawValue)|\(target.process.port)|\(target.tokens[Self.tenants])", 1)
        defer { unsetenv(Self.attackVariable) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = [strdup("/proc/self/exe"), strdup("hostile"), nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let result: Int32 = posix_spawn(&process, "/proc/self/exe", &actions, nil, &words, environ)
        guard result == 0 else { throw BenchError("the attacker does not start: error \(result)") }
        return process
    }

    /// The body of the attacker's process.
    static func attack(_ order: String) throws {
        Priority.yieldToAll()
        signal(SIGPIPE, SIG_IGN)
        let words: [Substring] = order.split(separator: "|")
        guard words.count == 3, let attack: HostileAttack = HostileAttack(rawValue: String(words[0])),
            let port = UInt16(words[1])
        else { throw BenchError("an attack that is not understood: \(order)") }
        attack.run(
            port: port, token: String(words[2]), until: nanoseconds() + UInt64((attackSeconds + 5) * 1e9))
    }

    /// Milliseconds of each change of all tenants, sorted.
    private func measure(seconds: Double) throws -> [Double] {
        let begin: UInt64 = nanoseconds()
        let end: UInt64 = begin + UInt64(seconds * 1e9)
        var nextLook: UInt64 = begin
        for tenant in tenants {
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
            for tenant in tenants { try tenant.turn() }
        }
        return tenants.flatMap { $0.measuredTimes(at: nanoseconds()) }.sorted()
    }

    private func resident() -> Int {
        let text: String = ServerProcess.read("/proc/\(server.process.process ?? 0)/statm")
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * 4_096
    }

    /// How often each limit was hit so far, and the other metrics that the attack must move, by the sample's name.
    private func hits() throws -> [String: Int] {
        let page: String = try HostileTenant.metrics(port: server.process.port)
        var hits: [String: Int] = [:]
        for line in page.split(separator: "\n") {
            guard let space: String.Index = line.lastIndex(of: " ") else { continue }
            let name = String(line[..<space])
            guard name.hasPrefix(HostileAttack.limitMetric + "{") || attack.metrics.contains(name) else { continue }
            hits[name] = Int(line[line.index(after: space)...])
        }
        for name in attack.metrics where hits[name] == nil {
            throw BenchError("\(attack.rawValue): the server has no metric \(name)")
        }
        return hits
    }

    private func value(_ name: String, _ page: String) -> Int? {
        for line in page.split(separator: "\n") where line.hasPrefix(name + " ") {
            return Int(line.dropFirst(name.utf8.count + 1))
        }
        return nil
    }
}
