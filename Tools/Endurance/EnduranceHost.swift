import Glibc
import ThicketProcesses
import ThicketTestSupport

/// The server under load: ends it, kills it, backs it up, and monitors its resources.
actor EnduranceHost {
    /// The measurements of one moment.
    struct Sample {
        let second: Double
        /// Resident bytes of the server and of this process, which runs all clients.
        let server: Int
        let clients: Int
        let database: Int
        let log: Int
        let stores: Int
        let descriptors: Int
    }

    nonisolated let port: UInt16
    private let folder: String
    private let settings: Endurance.Settings
    private var daemon: Daemon?
    private var random: SeededRandom
    private let begun = ContinuousClock.Instant.now
    private var samples = [Sample]()
    private var ends = 0
    private var kills = 0
    private var backups = 0
    /// Log rows that retention cut, in earlier runs of the server and in this one.
    private var cutBefore = 0
    private var cutNow = 0

    init(folder: String, settings: Endurance.Settings) throws {
        (self.folder, self.settings) = (folder, settings)
        random = SeededRandom(seed: settings.seed ^ 0x5EED)
        let daemon = try Daemon(folder: folder, Self.words(settings))
        (self.daemon, port) = (daemon, daemon.port)
    }

    /// Short retention, so that it cuts all the time.
    private static func words(_ settings: Endurance.Settings) -> [String] {
        [
            "--log-level", "error", "--log-age-min", "\(settings.logSeconds)s", "--log-changes-min", "100",
            "--versions-newest", "5", "--versions-sparse", "5", "--change-id-age-min",
            "\(max(60, 4 * settings.logSeconds))s", "--drain-timeout", "2s",
        ]
    }

    /// - Returns: a token for each user.
    func begin() throws -> [String] {
        try (0..<settings.users).map { (user: Int) in
            try Daemon.token(folder, app: Endurance.app, user: "user\(user)@example.com")
        }
    }

    // MARK: Disturbances

    func disturb(_ tally: EnduranceTally) async {
        var nextBackup = settings.backupSeconds / 2
        var nextEnd = settings.restartSeconds
        while tally.isRunning {
            await tally.pause(seconds: 0.2)
            let now = elapsed
            do {
                if now >= nextBackup {
                    nextBackup = now + settings.backupSeconds
                    try await backUp()
                }
                if now >= nextEnd, now < settings.lastRestart {
                    nextEnd = now + settings.restartSeconds
                    try await restart(tally)
                }
            } catch {
                return tally.fault("\(error)")
            }
        }
    }

    private func restart(_ tally: EnduranceTally) async throws {
        look()
        guard let daemon else { return }
        self.daemon = nil
        if (ends + kills) % 2 == 0 {
            ends += 1
            let outcome = try daemon.terminate()
            if outcome.code != 0 { tally.fault("SIGTERM ended it with \(outcome)") }
        } else {
            kills += 1
            try daemon.kill()
        }
        (cutBefore, cutNow) = (cutBefore + cutNow, 0)
        await tally.sleep(milliseconds: Int.random(in: 0...600, using: &random))
        self.daemon = try Daemon(folder: folder, Self.words(settings), port: port)
    }

    private func backUp() async throws {
        let path = "\(folder)/backup.db"
        unlink(path)
        let folder = folder
        // Outside of the actor: the server is monitored meanwhile.
        try await Task.detached {
            _ = try Daemon.command(folder, ["backup", path], succeeding: true)
        }.value
        backups += 1
    }

    // MARK: Monitoring

    private var elapsed: Double { begun.duration(to: .now) / .seconds(1) }

    func watch(_ tally: EnduranceTally, _ report: @Sendable (String) -> Void) async {
        var (lastLine, lastEdits) = (elapsed, 0)
        while tally.isRunning {
            await tally.pause(seconds: min(1, settings.seconds / 20))
            look()
            let now = elapsed
            guard now - lastLine >= settings.lineSeconds, let sample = samples.last else { continue }
            let edits = tally.edits.load(ordering: .relaxed)
            report(line(sample, rate: Double(edits - lastEdits) / (now - lastLine), tally))
            (lastLine, lastEdits) = (now, edits)
        }
    }

    private func line(_ sample: Sample, rate: Double, _ tally: EnduranceTally) -> String {
        "minute \(Int((sample.second / 60).rounded())): \(Int(rate)) edits/s, server \(Self.mib(sample.server)), "
            + "clients \(Self.mib(sample.clients)), database \(Self.mib(sample.database)), log \(Self.mib(sample.log)), "
            + "client stores \(Self.mib(sample.stores)), \(sample.descriptors) descriptors, \(ends) ends, "
            + "\(kills) kills, \(backups) backups, \(tally.absences.load(ordering: .relaxed)) absences, \(cutBefore + cutNow) rows cut"
    }

    private func look() {
        guard let id = daemon?.process.id else { return }
        samples.append(
            Sample(
                second: elapsed, server: Self.resident("/proc/\(id)/status"),
                clients: Self.resident("/proc/self/status"),
                database: Self.size("\(folder)/thicket.db"), log: Self.size("\(folder)/thicket.db-wal"),
                stores: (0..<settings.users).reduce(0) { (sum: Int, user: Int) in
                    let path = "\(folder)/client-\(user).db"
                    return sum + Self.size(path) + Self.size(path + "-wal")
                }, descriptors: Self.count("/proc/\(id)/fd")))
        cutNow = max(cutNow, Self.metric("thicket_store_retention_rows_total", port: port))
    }

    /// Ends the server, checks its data, and judges the measurements.
    func end(_ tally: EnduranceTally) {
        look()
        do throws(ProcessError) {
            if let outcome = try daemon?.terminate(), outcome.code != 0 {
                tally.fault("the last SIGTERM ended it with \(outcome)")
            }
            daemon = nil
            let check = try Daemon.command(folder, ["check"])
            if check.code != 0 { tally.fault("thicketd check: \(check.output) \(check.errors)") }
        } catch {
            tally.fault("\(error)")
        }
        judge(tally)
    }

    private func judge(_ tally: EnduranceTally) {
        // On a busy machine a few seconds are too few to see growth, or for all disturbances to happen.
        guard settings.seconds >= 60 else { return }
        bounded("memory of the server", tally, \.server, from: 0.15...0.35, by: .memory)
        if settings.isLong {
            bounded("memory of the server in its last life", tally, \.server, from: 0.6...0.65, by: .memory)
        }
        bounded("memory of the clients", tally, \.clients, from: 0.15...0.35, by: .memory)
        bounded("database", tally, \.database, from: 0.4...0.6, by: .database)
        bounded("client stores", tally, \.stores, from: 0.4...0.6, by: .stores)
        bounded("descriptors", tally, \.descriptors, from: 0.15...0.35, by: .descriptors)
        let log = peak(\.log, in: 0...1)
        if log > Endurance.walMax { tally.fault("the write-ahead log grew to \(Self.mib(log))") }
        if cutBefore + cutNow == 0 { tally.fault("retention cut nothing: the run proves little") }
        if ends == 0 || kills == 0 || backups == 0 {
            tally.fault("it was too short for a restart, a kill and a backup")
        }
    }

    private func peak(_ what: KeyPath<Sample, Int>, in part: ClosedRange<Double>) -> Int {
        let inside = samples.filter { part.contains(min(1, $0.second / settings.seconds)) }
        return inside.map { $0[keyPath: what] }.max() ?? 0
    }

    private func bounded(
        _ name: String, _ tally: EnduranceTally, _ what: KeyPath<Sample, Int>, from part: ClosedRange<Double>,
        by bound: EnduranceBound
    ) {
        let (before, after) = (peak(what, in: part), peak(what, in: 0.8...1))
        guard !bound.admits(after, after: before, seconds: settings.seconds) else { return }
        tally.fault("\(name) grew from \(before) to \(after), which is not bounded")
    }

    func summary(_ tally: EnduranceTally) -> String {
        let (early, late) = (peak(\.server, in: 0.15...0.35), peak(\.server, in: 0.8...1))
        let young =
            settings.isLong ? "\(Self.mib(peak(\.server, in: 0.6...0.65))) when its last life was young, " : ""
        let edits = tally.edits.load(ordering: .relaxed)
        return "\(Int(settings.seconds)) s: \(edits) edits, \(ends) ends, \(kills) kills, \(backups) backups, "
            + "\(tally.absences.load(ordering: .relaxed)) absences, \(cutBefore + cutNow) log rows cut, "
            + "\(tally.refusals.load(ordering: .relaxed)) edits refused; server \(Self.mib(early)) at a quarter, "
            + young + "\(Self.mib(late)) at the end; database \(Self.mib(peak(\.database, in: 0.4...0.6))) at half, "
            + "\(Self.mib(peak(\.database, in: 0.8...1))) at the end; \(tally.objects.load(ordering: .relaxed)) objects "
            + "alike with all; \(tally.faults.count) faults"
    }

    // MARK: Reading the machine

    private static func mib(_ bytes: Int) -> String { "\(tenths(bytes) / 10).\(tenths(bytes) % 10) MiB" }
    private static func tenths(_ bytes: Int) -> Int { (bytes * 10) >> 20 }

    private static func size(_ path: String) -> Int {
        var info = stat()
        return stat(path, &info) == 0 ? Int(info.st_size) : 0
    }

    private static func resident(_ path: String) -> Int {
        guard let file = fopen(path, "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        while fgets(&line, 256, file) != nil {
            let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            guard text.hasPrefix("VmRSS:") else { continue }
            return (text.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
        }
        return 0
    }

    private static func count(_ path: String) -> Int {
        guard let folder = opendir(path) else { return 0 }
        defer { closedir(folder) }
        var count = -2
        while readdir(folder) != nil { count += 1 }
        return max(0, count)
    }

    private static func metric(_ name: String, port: UInt16) -> Int {
        guard let page = try? PlainHTTP.get("/metrics", port: port) else { return 0 }
        for line in page.split(separator: "\n") where line.hasPrefix(name + " ") {
            return Int(line.dropFirst(name.count + 1)) ?? 0
        }
        return 0
    }
}
