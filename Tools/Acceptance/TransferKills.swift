import Glibc
import ThicketProcesses
import ThicketTestSupport

/// A content goes up to a server and down to another machine, while client and server are killed at random places. What
/// passes again after each kill is measured on the cable between them.
public struct TransferKills {
    public struct Settings: Sendable {
        public var mebibytes: Int = 200
        /// Kills of the upload, and as many of the download.
        public var kills: Int = 20
        public var seed: UInt64 = 1
        public init() {}
    }

    /// Bytes of a part: most that may pass again after a kill during an upload.
    private static let partBytes = RequestReader.partBytes
    /// Bytes of 16 chunks, in one request: most that may be asked for again after a kill during a download.
    private static let rangeBytes = 16 * (65_536 + 64)

    private let settings: Settings
    private let report: (String) -> Void
    private let stand: TreeStand
    private var random: SeededRandom
    private var result = AcceptanceResult()

    /// - Parameter report: gets a line for each kill.
    public init(_ settings: Settings, report: @escaping (String) -> Void = { _ in }) throws(ProcessError) {
        (self.settings, self.report) = (settings, report)
        random = SeededRandom(seed: settings.seed)
        stand = try TreeStand()
    }

    public mutating func run() throws(ProcessError) -> AcceptanceResult {
        try stand.signUp("home", "other")
        try stand.shell("head -c \(settings.mebibytes)M /dev/urandom >large && mkdir out")
        let start = Steady.milliseconds()
        try transfer("home", ["put", stand.path("large"), "large"], "PUT", limit: Self.partBytes)
        let middle = Steady.milliseconds()
        result.expect(try stand.tree("other", "ls") == "large\n", "the other machine does not list the content")
        try transfer("other", ["get", "large", stand.path("out/large")], "GET", limit: Self.rangeBytes)
        let end = Steady.milliseconds()
        try stand.shell("cmp large out/large && test $(ls -A out | wc -l) = 1")
        try stand.server.terminate()
        result.faults += try stand.checkFaults()
        result.summary += "up \(middle - start) ms, down \(end - middle) ms"
        return result
    }

    /// Runs the command again and again until it is done.
    private mutating func transfer(
        _ home: String, _ words: [String], _ method: String, limit: Int
    ) throws(ProcessError) {
        let total = settings.mebibytes << 20
        let before = stand.cable.record.interruptions
        // No kill in the last twentieth: the transfer could be over before it.
        var places = (0..<settings.kills).map { _ in Int.random(in: 1...total * 19 / 20, using: &random) }.sorted()
        var process = try stand.start(home, words)
        var starts = 1
        while true {
            let place = places.first
            let cable = stand.cable
            _ = Steady.waitFor(seconds: TreeStand.patience) {
                process.hasEnded || place.map { cable.record.fresh(method) >= $0 } == true ? true : nil
            }
            guard process.hasEnded || place != nil else { throw ProcessError("\(words): no end") }
            if process.hasEnded {
                let outcome = try process.finish()
                if outcome.code == 0 { break }
                // 5: the server was away for too long. Nothing else may end it.
                guard outcome.code == 5, starts < 100 else { throw ProcessError("\(words): \(outcome)") }
            } else {
                places.removeFirst()
                guard try kill(&process, method) else { continue }
            }
            process = try stand.start(home, words)
            starts += 1
        }
        result.expect(places.isEmpty, "\(method): the transfer ended \(places.count) kills too early")
        judge(method, before, limit)
    }

    /// - Returns: whether the client was killed, and not the server.
    private mutating func kill(_ process: inout ChildProcess, _ method: String) throws(ProcessError) -> Bool {
        let isClient = Bool.random(using: &random)
        if isClient {
            process.signal(SIGKILL)
            _ = try process.finish()
            stand.cable.countInterruption()
        } else {
            try stand.killServer()
        }
        let passed = stand.cable.record.fresh(method) >> 20
        report("\(method): \(isClient ? "client" : "server") killed when \(passed) MiB had passed in all")
        if !isClient { try stand.server.start() }
        return isClient
    }

    /// - Parameter before: kills before the transfer.
    private mutating func judge(_ method: String, _ before: Int, _ limit: Int) {
        let record = stand.cable.record
        let repeated = record.repeated(method)
        for (kill, bytes) in repeated where bytes > limit {
            result.faults.append("\(method): after kill \(kill) \(bytes) bytes passed again; at most \(limit) may")
        }
        result.expect(repeated.keys.allSatisfy { $0 > before }, "\(method): bytes passed twice before any kill")
        let fresh = record.fresh(method)
        result.expect(fresh >= settings.mebibytes << 20, "\(method): only \(fresh) bytes passed")
        let sum = repeated.values.reduce(0, +)
        result.summary +=
            "\(method) \(settings.mebibytes) MiB, \(settings.kills) kills: \(sum >> 10) KiB passed again, after one kill "
            + "\((repeated.values.max() ?? 0) >> 10) KiB at most; "
        if method == "PUT" { result.summary += "\(record.partsTwice) whole parts twice; " }
    }
}
