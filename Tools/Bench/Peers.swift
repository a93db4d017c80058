import Glibc
import ThicketProtocol

/// Our server beside others, all driven by one foreign load generator in the same minutes.
///
/// The generator is not part of this repository: `THICKET_PEERS` names its folder (default `../shared/bench/peers`). It
/// restarts each server for each measure; ours gets a copy of a prepared folder with one app and a token per user.
struct Peers {
    private static let port = 7_800
    private static let users = 3_400
    private static let others: [String] = ["redis", "nats"]

    private let folder: String
    private let rounds: Int

    /// - Throws: what is missing, and how to get it.
    init() throws {
        folder = getenv("THICKET_PEERS").map { String(cString: $0) } ?? "../shared/bench/peers"
        rounds = getenv("THICKET_PEERS_ROUNDS").flatMap { Int(String(cString: $0)) } ?? 5
        for file: String in ["run_peers.sh", "servers.sh", "loadgen.c", "floor.c"] {
            guard access("\(folder)/\(file)", R_OK) == 0 else {
                throw BenchMissing(
                    "there is no \(folder)/\(file): the load generator is kept apart; name its folder in THICKET_PEERS")
            }
        }
        let needed: [(program: String, package: String)] = [
            ("gcc", "gcc libc6-dev libssl-dev"), ("redis-server", "redis-server"), ("nats-server", "nats-server"),
        ]
        let missing: [String] = needed.filter { !Self.isInstalled($0.program) }.map(\.package)
        guard missing.isEmpty else {
            throw BenchMissing(
                "these packages are missing: \(missing.joined(separator: " ")); ./dev setup --peers installs them")
        }
    }

    private static func isInstalled(_ program: String) -> Bool {
        let path: String = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin"
        return path.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }

    /// Runs all rounds, and ours once more alone with 9,999 connections for the slope.
    func run() throws -> [Figure] {
        let server: BenchServer = try BenchServer(
            tokens: (0..<Self.users).map { "tok-" + Self.padded($0) }, starts: false)
        let start: String = try startScript(server)
        var results = PeerResults()
        try drive(start, "\(rounds) 'floor-sync thicket \(Self.others.joined(separator: " "))'", into: &results)
        if getenv("BIG").map({ String(cString: $0) }) != "0" {
            try drive(start, "1 thicket", big: true, into: &results)
        }
        results.printTable()
        return results.goals()
    }

    /// `%05d`, as the generator fills it in.
    private static func padded(_ number: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: 5 - digits.count) + digits
    }

    private func startScript(_ server: BenchServer) throws -> String {
        let path: String = server.process.folder + "/start"
        let data: String = server.process.folder + "/template"
        guard let file: UnsafeMutablePointer<FILE> = fopen(path, "w") else { throw BenchError("cannot write \(path)") }
        fputs(
            """
            #!/bin/sh
            rm -rf '\(data).run' && cp -r '\(data)' '\(data).run' || exit 1
            exec '\(server.process.program)' serve --data '\(data).run' --listen 127.0.0.1:\(Self.port) --log-level error

            """, file)
        fclose(file)
        chmod(path, 0o755)
        mkdir(data, 0o700)
        for name: String in ["thicket.db", "thicket.db-wal", "log.key"] {
            let source: String = server.process.folder + "/" + name
            if access(source, R_OK) == 0 { rename(source, data + "/" + name) }
        }
        return path
    }

    private func drive(_ start: String, _ words: String, big: Bool = false, into results: inout PeerResults) throws {
        let command: String =
            "BIG=\(big ? "1" : "") THICKET_PORT=\(Self.port) THICKET_CMD='\(start)' "
            + "THICKET_ARGS='-a \(BenchServer.app) -t tok-%05d' bash '\(folder)/run_peers.sh' \(words)"
        guard let pipe: UnsafeMutablePointer<FILE> = popen(command, "r") else { throw BenchError("cannot run bash") }
        var line = [CChar](repeating: 0, count: 1 << 16)
        while fgets(&line, Int32(line.count), pipe) != nil {
            let text: String = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            guard text.hasPrefix("{"), case .object(let result)? = try? JSONValue(parsing: Array(text.utf8)) else {
                continue
            }
            results.add(result)
            if getenv("THICKET_PEERS_LINES") != nil { Bench.printLine(String(text.dropLast())) }
        }
        // Its status is that of the last server, which is killed.
        pclose(pipe)
        guard !results.isEmpty else { throw BenchError("run_peers.sh printed no result: see its messages above") }
    }
}

/// The figures of all servers and rounds.
struct PeerResults {
    private static let ours = "thicket"
    private static let floor = "floor-fdatasync"
    private static let redis = "redis-fsync-always"

    /// One column of the table.
    private struct Measure {
        let name: String
        let unit: String
        let measure: String
        let key: String
        var receivers: Double?
        /// Objects or connections.
        var size: Double?
    }

    private static let measures: [Measure] = [
        .init(name: "ack, 3 receivers", unit: "ms", measure: "fanout", key: "ack_ms_p50", receivers: 3),
        .init(name: "all 3 have it", unit: "ms", measure: "fanout", key: "deliver_all_ms_p50", receivers: 3),
        .init(name: "all 100 have it", unit: "ms", measure: "fanout", key: "deliver_all_ms_p50", receivers: 100),
        .init(name: "CPU a write, 3", unit: "µs", measure: "fanout", key: "server_cpu_us_per_write", receivers: 3),
        .init(name: "CPU a write, 100", unit: "µs", measure: "fanout", key: "server_cpu_us_per_write", receivers: 100),
        .init(name: "100×3: writes", unit: "1/s", measure: "pipe", key: "writes_per_s"),
        .init(name: "100×3: CPU a write", unit: "µs", measure: "pipe", key: "server_cpu_us_per_write"),
        .init(name: "cold 10,000", unit: "ms", measure: "cold", key: "ms_median", size: 10_000),
        .init(name: "catch-up 1,000", unit: "ms", measure: "catchup", key: "ms_median"),
        .init(name: "999 idle, each", unit: "KiB", measure: "idle", key: "kib_per_conn", size: 999),
        // Near 1 the generator is the limit.
        .init(name: "100×3: generator", unit: "cores", measure: "pipe", key: "gen_cpu_share"),
    ]

    private var results: [JSONObject] = []
    var isEmpty: Bool { results.isEmpty }

    mutating func add(_ result: JSONObject) { results.append(result) }

    private func samples(_ peer: String, _ measure: Measure) -> [Double] {
        results.compactMap { result in
            guard text(result, "peer") == peer, text(result, "measure") == measure.measure else { return nil }
            if let receivers: Double = measure.receivers, number(result, "receivers") != receivers { return nil }
            if let size: Double = measure.size, number(result, "objects") ?? number(result, "conns") != size {
                return nil
            }
            return number(result, measure.key)
        }
    }

    private func text(_ result: JSONObject, _ key: String) -> String {
        if case .string(let value)? = result[key] { return value }
        return ""
    }

    private func number(_ result: JSONObject, _ key: String) -> Double? {
        if case .number(let value)? = result[key] { return value.double }
        return nil
    }

    /// One line per measure, one column per server: median (lowest–highest).
    func printTable() {
        var peers: [String] = []
        for result in results where !peers.contains(text(result, "peer")) {
            peers.append(text(result, "peer"))
        }
        Bench.printLine("\n" + Bench.padded("", 24) + peers.map { Bench.padded($0, 26, left: true) }.joined())
        for measure in Self.measures {
            let cells: [String] = peers.map { peer in
                let values: [Double] = samples(peer, measure).sorted()
                guard let low: Double = values.first, let high: Double = values.last else {
                    return Bench.padded("failed", 26, left: true)
                }
                let cell: String = Bench.rounded(median(values)) + " (\(Bench.rounded(low))–\(Bench.rounded(high)))"
                return Bench.padded(cell, 26, left: true)
            }
            Bench.printLine(Bench.padded("\(measure.name), \(measure.unit)", 24) + cells.joined())
        }
    }

    /// Our figures, each with a goal from the medians of the other servers in the same run.
    func goals() -> [Figure] {
        var figures: [Figure] = Self.measures.map { measure in
            Figure(name: measure.name, samples: samples(Self.ours, measure), unit: measure.unit)
        }
        func middle(_ peer: String, _ place: Int) -> Double { median(samples(peer, Self.measures[place])) }
        // A goal whose peer is missing has no bound, and is not met.
        func bound(_ place: Int, redis share: Double, floor: Double? = nil) -> Figure.Goal {
            let redis: Double = share * middle(Self.redis, place)
            guard let floor else { return .atMost(redis) }
            let bare: Double = floor * middle(Self.floor, place)
            return .atMost(redis.isFinite && bare.isFinite ? max(redis, bare) : .nan)
        }
        figures[0].goal = bound(0, redis: 1, floor: 1.3)
        figures[2].goal = bound(2, redis: 0.5, floor: 1.3)
        figures[5].goal = .atLeast(1.2 * middle(Self.redis, 5))
        figures[6].goal = .atMost(20)
        figures[7].goal = bound(7, redis: 3)
        figures[8].goal = bound(8, redis: 1)
        figures.append(
            Figure(
                name: "100×3: generator, with Redis", samples: samples(Self.redis, Self.measures[10]), unit: "cores"))
        figures.append(
            Figure(
                name: "idle connection (slope 999 to 9,999)", value: idleSlope() ?? .nan, unit: "KiB",
                goal: .atMost(2)))
        return figures
    }

    private func idleSlope() -> Double? {
        func memory(_ connections: Double) -> Double? {
            let values: [Double] = results.compactMap { result in
                guard text(result, "peer") == Self.ours, text(result, "measure") == "idle",
                    number(result, "conns") == connections
                else { return nil }
                return number(result, "loaded_mib")
            }
            return values.isEmpty ? nil : median(values)
        }
        guard let few: Double = memory(999), let many: Double = memory(9_999) else { return nil }
        return (many - few) * 1_024 / 9_000
    }
}
