import Glibc
import ThicketProtocol
import ThicketTestSupport

/// Kills a real server under load repeatedly, and proves after each restart that every acknowledged change is stored,
/// once, and that the stored data passes `thicketd check`.
public struct CrashTest {
    /// The parameters of a run; the same seed sends the same changes (the moments of the crashes differ).
    public struct Settings: Sendable {
        public var rounds: Int = 3
        public var seed: UInt64 = 1
        /// Authors; they share the buckets.
        public var writers: Int = 6
        public var buckets: Int = 3
        /// Additional authors of one sealed bucket; 0: no sealed bucket.
        public var sealedWriters: Int = 2
        /// Shortest and longest time from the first acknowledgement of a round to the crash, in milliseconds.
        public var loadMilliseconds: ClosedRange<Int> = 50...400
        /// Newest changes of a bucket that retention keeps; all others older than a second are removed.
        public var keptChanges: Int = 2_000
        /// Called with the data folder after each crash: a test of this test damages the data here.
        public var afterCrash: @Sendable (String) -> Void = { _ in }
        public init() {}
    }

    /// The result of a run.
    public struct Result: Sendable {
        public var rounds: Int = 0
        public var acknowledged: Int = 0
        /// Changes that were acknowledged and are not in the log after a restart.
        public var lost: Int = 0
        /// Changes that were sent again after a crash and known to the server.
        public var foundBefore: Int = 0
        /// Backups begun under load, and the completed ones: each was opened and checked.
        public var backupsBegun: Int = 0
        public var backups: Int = 0
        /// Log rows that retention had cut by the end.
        public var cut: Int = 0
        /// Segments in the store at the end: each was audited.
        public var segments: Int = 0
        /// All violations, in words.
        public var faults: [String] = []
        public init() {}
        /// One line for people to read.
        public var summary: String {
            "\(rounds) rounds of SIGKILL: \(acknowledged) changes acknowledged, \(lost) lost, \(foundBefore) sent again "
                + "and known; \(backups) of \(backupsBegun) backups under load finished, all checked; \(cut) log rows cut; "
                + "\(segments) segments at the end; \(faults.count) faults"
        }
    }

    private let settings: Settings
    private let report: (String) -> Void
    private let folder = TemporaryFolder("crash")
    private let copies = TemporaryFolder("crash-copies")
    private static let app = "crash"

    /// - Parameter report: gets a line for each round.
    public init(_ settings: Settings, report: @escaping (String) -> Void = { _ in }) {
        self.settings = settings
        self.report = report
    }

    /// Runs all rounds.
    public func run() throws(ProcessError) -> Result {
        var random = SeededRandom(seed: settings.seed)
        var result = Result()
        let token = try Daemon.token(folder.path, app: CrashTest.app, user: "crash@example.com")
        let buckets = (0..<settings.buckets).map { (number: Int) in "bucket-\(number)" }
        let sealed = "sealed"
        let readers = (buckets + (settings.sealedWriters > 0 ? [sealed] : [])).map { (bucket: String) in
            CrashReader(app: CrashTest.app, bucket: bucket, token: token, mayHaveGaps: true)
        }
        var writers = (0..<settings.writers).map { (number: Int) in
            CrashWriter(
                name: "writer-\(number)", app: CrashTest.app, bucket: buckets[number % buckets.count], token: token,
                seed: random.next())
        }
        for number in 0..<settings.sealedWriters {
            writers.append(
                CrashWriter(
                    name: "sealed-\(number)", app: CrashTest.app, bucket: sealed, token: token, seed: random.next(),
                    isSealed: true, makesShared: number == 0))
        }
        for round in 1...settings.rounds {
            let server = try start()
            for reader in readers { try reader.follow(port: server.port) }
            try judge(writers, readers, server, &result)
            for writer in writers { try writer.connect(port: server.port, round: round) }
            let backup = try beginBackup(&result)
            let load = Int.random(in: settings.loadMilliseconds, using: &random)
            try loadServer(writers, server, round, milliseconds: load, &random)
            // The last changes are somewhere between the socket and the disk at the crash.
            Steady.spin(microseconds: Int.random(in: 0...15_000, using: &random))
            try server.kill()
            for writer in writers {
                writer.turn(sends: false)  // answers that arrived before the crash count
                writer.drop()
            }
            settings.afterCrash(folder.path)
            try finish(backup, &result, round)
            try check(&result, round)
            result.rounds = round
            report("round \(round): killed after \(load) ms, \(total(writers)) acknowledged so far")
        }
        let logged = try settle(writers, readers, &result)
        result.acknowledged = total(writers)
        result.cut = max(0, result.acknowledged - logged)
        result.foundBefore = writers.reduce(0) { (sum: Int, writer: CrashWriter) in sum + writer.foundBefore }
        result.faults += writers.flatMap(\.faults) + readers.flatMap(\.faults) + Self.unproven(result)
        return result
    }

    /// Rounds after which every case must have happened.
    static let roundsMin = 20

    /// The cases that have not happened and are therefore not proven.
    public static func unproven(_ result: Result) -> [String] {
        guard result.rounds >= roundsMin else { return [] }
        let seen = [
            ("no backup under load came to its end", result.backups), ("retention cut nothing", result.cut),
            ("there is no segment in the store", result.segments),
            ("nothing that was sent again was known", result.foundBefore),
        ]
        return seen.compactMap { $0.1 == 0 ? "\($0.0): that it goes well is not proven" : nil }
    }

    private func total(_ writers: [CrashWriter]) -> Int {
        writers.reduce(0) { (sum: Int, writer: CrashWriter) in sum + writer.acknowledged.count }
    }

    /// Lets the writers write until some milliseconds after the first new acknowledgement. Occasionally a writer loses
    /// its connection with answers unread, and starts again.
    private func loadServer(
        _ writers: [CrashWriter], _ server: Daemon, _ round: Int, milliseconds: Int, _ random: inout SeededRandom
    ) throws(ProcessError) {
        let before = total(writers)
        let patience = Steady.milliseconds() + 120_000
        var end = Int64.max
        while Steady.milliseconds() < end {
            for writer in writers {
                writer.turn(sends: true)
                if random.next() % 200 == 0 {
                    writer.drop()
                    try writer.connect(port: server.port, round: round)
                }
            }
            if end == .max, total(writers) > before { end = Steady.milliseconds() + Int64(milliseconds) }
            guard Steady.milliseconds() < patience else { throw ProcessError("nothing was acknowledged within 120 s") }
            WireSocket.wait(writers.compactMap(\.socket), milliseconds: 5)
        }
    }

    /// The last start: all unanswered changes are sent again and answered; then logs and indexes are compared.
    /// - Returns: changes in the log at the end.
    private func settle(
        _ writers: [CrashWriter], _ readers: [CrashReader], _ result: inout Result
    ) throws(ProcessError) -> Int {
        let server = try start()
        for writer in writers { try writer.connect(port: server.port, round: settings.rounds + 1) }
        let patience = Steady.milliseconds() + 120_000
        while writers.contains(where: { !$0.unanswered.isEmpty }) {
            for writer in writers { writer.turn(sends: false) }
            guard Steady.milliseconds() < patience else {
                result.faults.append("changes sent again were not answered within 120 s")
                break
            }
            WireSocket.wait(writers.compactMap(\.socket), milliseconds: 5)
        }
        for writer in writers { writer.drop() }
        for reader in readers {
            try reader.follow(port: server.port)
            try reader.compareWithIndex(port: server.port)
        }
        try judge(writers, readers, server, &result)
        let outcome = try server.terminate()
        if outcome.code != 0 { result.faults.append("SIGTERM: \(outcome)") }
        return try check(&result, settings.rounds + 1)
    }

    private func judge(
        _ writers: [CrashWriter], _ readers: [CrashReader], _ server: Daemon, _ result: inout Result
    ) throws(ProcessError) {
        for reader in readers {
            var missing = Set<String>()
            for writer in writers where writer.bucket.utf8.elementsEqual(reader.bucket.utf8) {
                missing.formUnion(writer.acknowledged.subtracting(reader.seen))
            }
            if reader.hasGap, !missing.isEmpty { missing = try reader.unknown(missing, port: server.port) }
            result.lost += missing.count
            for ccid in missing.sorted().prefix(5) {
                result.faults.append("\(ccid) was acknowledged and is lost")
            }
        }
    }

    /// A server whose retention cuts at every start.
    private func start() throws(ProcessError) -> Daemon {
        try Daemon(
            folder: folder.path,
            [
                "--log-level", "warning", "--log-age-min", "1s", "--log-changes-min", "\(settings.keptChanges)",
                "--versions-newest", "10", "--versions-sparse", "5",
            ])
    }

    // MARK: Backups

    /// Copies the store while changes are made; it continues when the server is killed.
    private func beginBackup(_ result: inout Result) throws(ProcessError) -> ChildProcess {
        result.backupsBegun += 1
        return try ChildProcess(
            [Programs.thicketd, "backup", copies.path + "/thicket.db", "--data", folder.path])
    }

    /// Checks that a backup that reports success is sound, with heads, chains and segments.
    private func finish(_ backup: ChildProcess, _ result: inout Result, _ round: Int) throws(ProcessError) {
        guard try backup.finish().code == 0 else { return }
        result.backups += 1
        let outcome = try Daemon.command(copies.path, ["check"])
        if outcome.code != 0 {
            result.faults.append("round \(round): the backup: \(outcome.output.prefix(2_000))\(outcome.errors)")
        }
        for name in ["", "-wal", "-shm"] { unlink(copies.path + "/thicket.db" + name) }
    }

    /// - Returns: changes in the log.
    @discardableResult
    private func check(_ result: inout Result, _ round: Int) throws(ProcessError) -> Int {
        let outcome = try Daemon.command(folder.path, ["check"])
        if outcome.code != 0 {
            result.faults.append("round \(round): thicketd check: \(outcome.output.prefix(2_000))\(outcome.errors)")
        }
        // "clean: 3 buckets, 120 objects, 600 changes, 7 keyframes, 2 segments"
        let words: [Substring] = outcome.output.split { $0 == " " || $0 == "\n" }
        func number(before word: Substring) -> Int {
            guard let place = words.firstIndex(of: word), place > 0 else { return 0 }
            return Int(words[place - 1]) ?? 0
        }
        result.segments = number(before: "segments")
        return number(before: "changes,")
    }
}
