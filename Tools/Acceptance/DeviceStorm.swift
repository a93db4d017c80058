import Glibc
import ThicketProcesses
import ThicketTestSupport

/// Three devices of one user, each a process, change one tree at the same time, and are killed with the server. At the
/// end all have the same tree with the same contents, and no node is missing.
public struct DeviceStorm {
    public struct Settings: Sendable {
        public var mix: DeviceWork.Mix = .all
        /// Steps of each device in each round.
        public var steps: Int = 200
        /// Longest time of a round in milliseconds.
        public var roundMilliseconds: Int64 = 20_000
        /// After each round all devices are started again. Each round kills one device, every second one the server.
        public var rounds: Int = 3
        public var seed: UInt64 = 1
        public init() {}
    }

    private static let devices = ["one", "two", "three"]
    /// Most nodes that a device creates in a round before it is killed; in a round of 20 seconds it creates more.
    private static let createdMax = 12

    private let settings: Settings
    private let report: (String) -> Void
    private let stand: TreeStand
    private var random: SeededRandom
    private var created = Set<Substring>()
    private var removed = Set<Substring>()
    private var decisions = 0
    private var kills = 0
    private var result = AcceptanceResult()

    public init(_ settings: Settings, report: @escaping (String) -> Void = { _ in }) throws(ProcessError) {
        (self.settings, self.report) = (settings, report)
        random = SeededRandom(seed: settings.seed)
        stand = try TreeStand()
    }

    public mutating func run() async throws -> AcceptanceResult {
        let login = try await DeviceLogin(signingUpAt: stand)
        try login.write(stand.path("login"))
        for round in 1...settings.rounds { try playRound(round) }
        for device in Self.devices {
            try read(try start(device, "finish", 0).finish(seconds: TreeStand.patience))
            report("device \(device) has nothing that waits")
        }
        try compare()
        try stand.server.terminate()
        result.faults += try stand.checkFaults()
        result.summary =
            "\(settings.mix.rawValue): \(settings.rounds) rounds of 3 devices, \(kills) kills, \(created.count) nodes "
            + "created, \(removed.count) removed, \(decisions) decisions; " + result.summary
        return result
    }

    /// - Parameter task: `work`, `finish` or `digest`.
    private mutating func start(_ device: String, _ task: String, _ steps: Int) throws(ProcessError) -> ChildProcess {
        try ChildProcess(
            [
                Programs.beside("thicket-accept"), "device", "--folder", stand.path(""), "--name", device, "--task",
                task,
                "--mix", settings.mix.rawValue, "--steps", "\(steps)", "--milliseconds",
                "\(settings.roundMilliseconds)", "--seed", "\(random.next() >> 1)",
            ], variables: ["SWIFT_BACKTRACE": "enable=yes,color=no,interactive=no"])
    }

    private mutating func playRound(_ round: Int) throws(ProcessError) {
        var processes = [ChildProcess]()
        for device in Self.devices { processes.append(try start(device, "work", settings.steps)) }
        // A device is killed in the middle of its work: when it has printed some of its nodes.
        let killed = Int.random(in: 0..<processes.count, using: &random)
        let wanted = Int.random(in: 1...max(1, min(Self.createdMax, settings.steps / 8)), using: &random)
        if (try? processes[killed].wait(for: "created", times: wanted, seconds: TreeStand.patience)) != nil {
            processes[killed].signal(SIGKILL)
            kills += 1
        }
        if round % 2 == 0 {
            try stand.server.kill()
            kills += 1
            try stand.server.start()
        }
        for process in processes { try read(try process.finish(seconds: TreeStand.patience)) }
        report("round \(round): \(created.count) nodes created, \(removed.count) removed")
    }

    private mutating func read(_ outcome: ChildProcess.Outcome) throws(ProcessError) {
        guard outcome.code == 0 || outcome.signal == SIGKILL else {
            let end = outcome.code.map { "code \($0)" } ?? "signal \(outcome.signal ?? 0)"
            throw ProcessError(
                "seed \(settings.seed): a device ended with \(end): \(Self.lastLines(outcome.errors))\n"
                    + "it said last: \(Self.lastLines(outcome.output))")
        }
        // The last line of a killed device may be cut.
        let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        for line in lines {
            let words = line.split(separator: " ")
            switch words.first {
            case "created": created.insert(words[1])
            case "removed": removed.insert(words[1])
            case "decided": decisions += 1
            default: break
            }
        }
    }

    /// Most lines of a device that ended by itself; a backtrace has some dozens.
    private static let linesMax = 80

    private static func lastLines(_ text: String) -> String {
        text.split(separator: "\n").suffix(linesMax).joined(separator: "\n")
    }

    private mutating func compare() throws(ProcessError) {
        var texts = [String]()
        for device in Self.devices {
            let outcome = try start(device, "digest", 0).finish(seconds: TreeStand.patience)
            guard outcome.code == 0 else { throw ProcessError("\(device) has no digest: \(outcome)") }
            texts.append(outcome.output)
        }
        for (device, text) in zip(Self.devices, texts).dropFirst() where text != texts[0] {
            let others = Set(texts[0].split(separator: "\n"))
            let own = Set(text.split(separator: "\n"))
            result.faults.append(
                "device \(device) differs from the first: \(own.subtracting(others).prefix(5)), "
                    + "\(others.subtracting(own).prefix(5))")
        }
        let lines = texts[0].split(separator: "\n")
        let nodes = Set(lines.filter { $0.hasPrefix("node ") }.map { $0.split(separator: " ")[1] })
        let lost = created.subtracting(removed).subtracting(nodes)
        result.expect(lost.isEmpty, "seed \(settings.seed): nodes that no device removed are gone: \(lost.prefix(5))")
        result.expect(
            lines.last?.hasSuffix(" quarantined 0") == true, "records are quarantined: \(lines.last ?? "")")
        result.expect(nodes.count > 5, "only \(nodes.count) nodes are left: nothing is proven")
        result.summary = "\(nodes.count) nodes at the end, alike on all devices"
    }
}
