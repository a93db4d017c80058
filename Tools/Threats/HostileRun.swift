import Glibc
import ThicketProcesses

/// Thousands of mutated requests, tokens and frames against a live server, and the conditions meanwhile: no crash, no
/// 5xx answer, flat memory, and answers for the clients beside it (docs/decisions/0032).
public enum HostileRun {
    public struct Settings: Sendable {
        /// Connections of the attacker, each with one or several mutated requests.
        public var requests: Int = 100_000
        public var seed: UInt64 = 1
        /// The number of the first connection: with `requests` 1, a single one can be repeated.
        public var first: Int = 0
        /// MiB by which the server may be larger at the end than after the first fifth. Caches fill, and users, buckets
        /// and sessions are created; state kept for each request would exceed this bound.
        public var growthMax: Int = 24
        public init() {}
    }

    public struct Outcome: Sendable {
        public var faults: [String] = []
        /// Lines for a person.
        public var lines: [String] = []
    }

    /// - Parameter report: gets an occasional line.
    public static func run(_ settings: Settings, report: (String) -> Void = { _ in }) -> Outcome {
        do throws(ProcessError) {
            let house = try ThreatHouse(
                "hostile", ["--log-level", "warning", "--changes-wait", "1s", "--sockjs-patience", "1s"])
            return try attack(house, settings, report)
        } catch {
            return Outcome(faults: ["\(error)"])
        }
    }

    private static func attack(
        _ house: ThreatHouse, _ settings: Settings, _ report: (String) -> Void
    ) throws(ProcessError) -> Outcome {
        let corpus = try HostileCorpus(house)
        let witness = HostileWitness(port: house.port, token: corpus.witness)
        try witness.start()
        let load = HostileLoad(port: house.port)
        let begun = Steady.milliseconds()
        var early = 0
        for place in 0..<settings.requests {
            load.add(HostileCase(number: settings.first + place, seed: settings.seed, corpus: corpus))
            if place == settings.requests / 5 { early = resident(house.daemon.process.id) }
            if place % 20_000 == 19_999 { report(line(place + 1, begun, house, witness)) }
            if witness.current.fault != nil || !load.faults.isEmpty { break }
        }
        load.finish()
        witness.stop()
        let late = whenIdle(house.daemon.process.id, atMost: early + settings.growthMax << 20)
        var outcome = Outcome()
        outcome.lines = [
            line(settings.requests, begun, house, witness),
            "answers by status (0: none): "
                + load.statuses.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: ", "),
            "memory: \(early >> 20) MiB after a fifth, \(late >> 20) at the end (bound: \(settings.growthMax) MiB more)",
        ]
        outcome.faults = load.faults.map { "seed \(settings.seed), request \($0.number): \($0.text)" }
        if load.refusedConnections > 0 { outcome.faults.append("\(load.refusedConnections) connections were refused") }
        if let fault = witness.current.fault { outcome.faults.append("a client beside it: \(fault)") }
        if witness.current.rounds == 0 { outcome.faults.append("no client beside it was ever answered") }
        if late - early > settings.growthMax << 20 {
            outcome.faults.append("the server grew by \((late - early) >> 20) MiB")
        }
        outcome.faults += try ending(house)
        return outcome
    }

    /// Ends the server and checks its data.
    private static func ending(_ house: ThreatHouse) throws(ProcessError) -> [String] {
        var faults = [String]()
        let end = try house.daemon.terminate()
        if end.code != 0 {
            faults.append(
                "the server ended with \(end.code as Any), signal \(end.signal as Any): \(end.errors.suffix(2_000))")
        }
        let errors: [Substring] = end.errors.split(separator: "\n").filter { $0.contains("level=error") }
        if !errors.isEmpty { faults.append("\(errors.count) errors in the log, the first: \(errors[0])") }
        let check = try Daemon.command(house.folder.path, ["check"])
        if check.code != 0 { faults.append("thicketd check: \(check.output)\(check.errors)") }
        return faults
    }

    private static func line(_ count: Int, _ begun: Int64, _ house: ThreatHouse, _ witness: HostileWitness) -> String {
        let report = witness.current
        return "\(count) requests in \((Steady.milliseconds() - begun) / 1_000) s; the server has "
            + "\(resident(house.daemon.process.id) >> 20) MiB; clients beside it: \(report.rounds) rounds of three, slowest answer "
            + "\(report.slowest) ms"
    }

    /// Resident bytes after the server has had time for its remaining work: a starved server has much of it when the
    /// last connection is given up, and that memory is released later. Waits only until the bytes are within the bound.
    private static func whenIdle(_ id: pid_t, atMost bound: Int) -> Int {
        Steady.waitFor(seconds: pauseSeconds) { () -> Int? in
            let bytes = resident(id)
            return bytes <= bound ? bytes : nil
        } ?? resident(id)
    }

    /// Longest wait for memory to be released.
    private static let pauseSeconds = 20

    /// Resident bytes of a process; 0 if it has ended.
    private static func resident(_ id: pid_t) -> Int {
        guard let file = fopen("/proc/\(id)/statm", "r") else { return 0 }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 200)
        let count = fread(&bytes, 1, bytes.count, file)
        let words: [Substring] = String(decoding: bytes[..<count], as: UTF8.self).split(separator: " ")
        return words.count > 1 ? (Int(words[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
    }
}
