import Glibc
import Synchronization
import ThicketClient
import ThicketProcesses
import ThicketTestSupport

/// Hours of mixed load on a real server: sessions of our library and plain sockets of older clients edit the same
/// objects, disconnect and reconnect, while the server is ended, killed, backed up, and retention cuts old changes. At
/// the end all clients hold the same, and neither memory nor files have grown without bound.
public struct Endurance: Sendable {
    /// The parameters of a run. The same seed makes the same edits, at other moments.
    public struct Settings: Sendable {
        /// Length of the load, without the comparison at the end.
        public var seconds: Double = 7_200
        public var seed: UInt64 = 1
        /// Each user has two buckets, one session with a file, one in memory, and one plain socket for each bucket.
        public var users: Int = 3
        /// Seconds between two lines of the report.
        public var lineSeconds: Double = 60
        /// Pause of one member between two edits.
        public var pauseMilliseconds: ClosedRange<Int> = 10...120
        public init() {}

        /// Seconds between two restarts: long enough to show growth, and every tenth of a run contains a restart.
        var restartSeconds: Double { min(600, max(1.4, seconds / 12)) }
        /// The time of the last restart. The last half of a long run is without one, so that it shows growth that is
        /// too slow for ten minutes.
        var lastRestart: Double { seconds * (isLong ? 0.5 : 0.97) }
        var isLong: Bool { seconds >= EnduranceBound.longSeconds }
        var backupSeconds: Double { min(900, max(2, seconds / 8)) }
        /// Seconds that changes stay in the log: short, so that reconnecting clients find their position cut.
        var logSeconds: Int { min(120, max(1, Int(seconds / 40))) }
        /// Longest absence of a member; below the age of a ccid.
        var awaySeconds: Double { min(30, max(0.2, seconds / 30)) }
    }

    /// Bytes of the write-ahead log at most: the writer restarts it at 64 MiB, and backups delay that.
    static let walMax = 192 << 20
    static let app = "endure"
    static let buckets: [String] = ["notes", "things"]

    private let settings: Settings
    private let report: @Sendable (String) -> Void

    /// - Parameter report: gets a line a minute.
    public init(_ settings: Settings, report: @escaping @Sendable (String) -> Void = { _ in }) {
        self.settings = settings
        self.report = report
    }

    /// Runs to the end.
    ///
    /// - Returns: the violations, in words; empty after a good run. The last line of the report sums up.
    public func run() async -> [String] {
        let tally = EnduranceTally()
        do {
            let folder = TemporaryFolder("endure")
            let host = try EnduranceHost(folder: folder.path, settings: settings)
            let tokens = try await host.begin()
            let members = try await makeMembers(folder.path, host.port, tokens, tally)
            await load(members, host, tally)
            await compare(members, host.port, tokens, tally)
            await host.end(tally)
            for member in members { await member.leave() }
            report(await host.summary(tally))
        } catch {
            tally.fault("\(error)")
        }
        return tally.faults
    }

    private func makeMembers(
        _ folder: String, _ port: UInt16, _ tokens: [String], _ tally: EnduranceTally
    ) async throws -> [any EnduringMember] {
        var members = [any EnduringMember]()
        for (user, token) in tokens.enumerated() {
            for place: StoreLocation in [.file("\(folder)/client-\(user).db"), .memory] {
                let number = members.count
                members.append(
                    try await SessionMember(
                        number: number, user: user, port: port, token: token, place: place, settings: settings,
                        tally: tally))
            }
            for bucket in Self.buckets {
                members.append(
                    WireMember(
                        number: members.count, user: user, port: port, token: token, bucket: bucket,
                        settings: settings, tally: tally))
            }
        }
        return members
    }

    private func load(_ members: [any EnduringMember], _ host: EnduranceHost, _ tally: EnduranceTally) async {
        await withTaskGroup(of: Void.self) { group in
            for member in members { group.addTask { await member.live() } }
            group.addTask { await host.disturb(tally) }
            let (host, tally, report) =
                (host, tally, self.report)
            group.addTask { await host.watch(tally, report) }
            await tally.pause(seconds: settings.seconds)
            tally.isOver.store(true, ordering: .relaxed)
        }
    }

    /// Waits until all members are quiet, then compares their buckets with those of new clients.
    private func compare(
        _ members: [any EnduringMember], _ port: UInt16, _ tokens: [String], _ tally: EnduranceTally
    ) async {
        for member in members {
            do { try await member.settle() } catch { tally.fault("\(member.name) does not come to rest: \(error)") }
        }
        guard tally.faults.isEmpty else { return }
        for (user, token) in tokens.enumerated() {
            do {
                let fresh = try await SessionMember(
                    number: 1_000 + user, user: user, port: port, token: token, place: .memory, settings: settings,
                    tally: tally)
                try await fresh.settle()
                for bucket in Self.buckets {
                    let reader = WireMember(
                        number: 2_000 + user, user: user, port: port, token: token, bucket: bucket,
                        settings: settings, tally: tally)
                    try await reader.settle()
                    let truth = try await reader.content(of: bucket) ?? [:]
                    tally.objects.add(truth.count, ordering: .relaxed)
                    for member in members + [fresh] where member.user == user {
                        guard let mine = try await member.content(of: bucket) else { continue }
                        if let flaw = difference(mine, truth) {
                            tally.fault("\(member.name), user \(user), \(bucket): \(flaw)")
                        }
                    }
                    await reader.leave()
                }
                await fresh.leave()
            } catch {
                tally.fault("a new client of user \(user): \(error)")
            }
        }
    }

    private func difference(_ mine: [String: String], _ truth: [String: String]) -> String? {
        for key in Set(mine.keys).union(truth.keys).sorted() {
            let (here, there) = (mine[key] ?? "nothing", truth[key] ?? "nothing")
            guard here.utf8.elementsEqual(there.utf8) else {
                return "\(key) is \(here.prefix(120)), the server has \(there.prefix(120))"
            }
        }
        return nil
    }
}

/// A client that edits.
protocol EnduringMember: Sendable {
    var name: String { get }
    var user: Int { get }
    /// Edits, disconnects and reconnects until the tally reports the end.
    func live() async
    /// Sends all unsent edits and waits until everything has arrived.
    func settle() async throws
    /// Version and object of each key; nil for a bucket that it does not hold.
    func content(of bucket: String) async throws -> [String: String]?
    func leave() async
}

/// The common counters of all members.
final class EnduranceTally: Sendable {
    let isOver = Atomic<Bool>(false)
    let edits = Atomic<Int>(0)
    /// Number of absences of members.
    let absences = Atomic<Int>(0)
    /// Edits that the server refused for good, as after a position was cut.
    let refusals = Atomic<Int>(0)
    let objects = Atomic<Int>(0)
    private let found = Mutex<[String]>([])

    var isRunning: Bool { !isOver.load(ordering: .relaxed) }
    var faults: [String] { found.withLock { $0 } }
    func fault(_ text: String) { found.withLock { if $0.count < 100 { $0.append(text) } } }
    func edited() { edits.add(1, ordering: .relaxed) }

    /// Sleeps, but not far beyond the end.
    func pause(seconds: Double) async {
        let end = ContinuousClock.Instant.now + .seconds(seconds)
        while isRunning, .now < end {
            try? await Task.sleep(for: min(.milliseconds(250), end - .now))
        }
    }

    /// Sleeps, also at the end.
    func sleep(milliseconds: Int) async { try? await Task.sleep(for: .milliseconds(milliseconds)) }
}
