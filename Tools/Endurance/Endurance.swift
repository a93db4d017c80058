import Glibc
import Synchronization
import ThicketClient
import ThicketProcesses
import ThicketTestSupport

/// Hours of mixed load on a real server: sessions of our library and plain sockets of older clients edit the same
/// objects, go and come back, while the server is ended, killed, backed up, and retention cuts what is old. At the end
/// everybody holds the same, and neither memory nor files have grown without bound.
public struct Endurance: Sendable {
    /// How it is run. The same seed edits alike; the moments differ.
    public struct Settings: Sendable {
        /// Length of the load; the comparison at the end comes on top.
        public var seconds: Double = 7_200
        public var seed: UInt64 = 1
        /// Each has two buckets, one session with a file, one in memory, and one plain socket for each bucket.
        public var users: Int = 3
        /// Seconds between two lines.
        public var lineSeconds: Double = 60
        /// Pause of one member between two edits.
        public var pauseMilliseconds: ClosedRange<Int> = 10...120
        public init() {}

        /// Seconds between two restarts: a life is long enough to show growth, and every tenth of a run has an end.
        var lifeSeconds: Double { min(600, max(1.4, seconds / 12)) }
        /// From here on there is no restart. The last half of a long run is one life: what grows too slowly for ten minutes shows
        /// in it.
        var lastRestart: Double { seconds * (isLong ? 0.5 : 0.97) }
        var isLong: Bool { seconds >= EnduranceBound.longSeconds }
        var backupSeconds: Double { min(900, max(2, seconds / 8)) }
        /// Changes stay in the log so long: short, so that clients come back to find their position cut.
        var logSeconds: Int { min(120, max(1, Int(seconds / 40))) }
        /// Longest time that a member is away; below the age of a ccid.
        var awaySeconds: Double { min(30, max(0.2, seconds / 30)) }
    }

    /// Bytes of the write-ahead log at most: the writer makes it begin anew at 64 MiB, and backups hold it.
    static let walMax: Int = 192 << 20
    static let app: String = "endure"
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
    /// - Returns: what must not be, in words; empty after a good run. The last line of the report sums up.
    public func run() async -> [String] {
        let tally: EnduranceTally = .init()
        do {
            let folder: TemporaryFolder = .init("endure")
            let host: EnduranceHost = try .init(folder: folder.path, settings: settings)
            let tokens: [String] = try await host.begin()
            let members: [any EnduringMember] = try await makeMembers(folder.path, host.port, tokens, tally)
            await load(members, host, tally)
            await compare(members, host.port, tokens, tally)
            await host.end(tally)
            for member: any EnduringMember in members { await member.leave() }
            report(await host.summary(tally))
        } catch {
            tally.fault("\(error)")
        }
        return tally.faults
    }

    private func makeMembers(
        _ folder: String, _ port: UInt16, _ tokens: [String], _ tally: EnduranceTally
    ) async throws -> [any EnduringMember] {
        var members: [any EnduringMember] = []
        for (user, token): (Int, String) in tokens.enumerated() {
            for place: StoreLocation in [.file("\(folder)/client-\(user).db"), .memory] {
                let number: Int = members.count
                members.append(
                    try await SessionMember(
                        number: number, user: user, port: port, token: token, place: place, settings: settings,
                        tally: tally))
            }
            for bucket: String in Self.buckets {
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
            for member: any EnduringMember in members { group.addTask { await member.live() } }
            group.addTask { await host.disturb(tally) }
            let (host, tally, report): (EnduranceHost, EnduranceTally, @Sendable (String) -> Void) =
                (host, tally, self.report)
            group.addTask { await host.watch(tally, report) }
            await tally.pause(seconds: settings.seconds)
            tally.isOver.store(true, ordering: .relaxed)
        }
    }

    /// Waits until all is quiet, then holds everybody's buckets against those of new clients.
    private func compare(
        _ members: [any EnduringMember], _ port: UInt16, _ tokens: [String], _ tally: EnduranceTally
    ) async {
        for member: any EnduringMember in members {
            do { try await member.settle() } catch { tally.fault("\(member.name) does not come to rest: \(error)") }
        }
        guard tally.faults.isEmpty else { return }
        for (user, token): (Int, String) in tokens.enumerated() {
            do {
                let fresh: SessionMember = try await .init(
                    number: 1_000 + user, user: user, port: port, token: token, place: .memory, settings: settings,
                    tally: tally)
                try await fresh.settle()
                for bucket: String in Self.buckets {
                    let reader: WireMember = .init(
                        number: 2_000 + user, user: user, port: port, token: token, bucket: bucket,
                        settings: settings, tally: tally)
                    try await reader.settle()
                    let truth: [String: String] = try await reader.content(of: bucket) ?? [:]
                    tally.objects.add(truth.count, ordering: .relaxed)
                    for member: any EnduringMember in members + [fresh] where member.user == user {
                        guard let mine: [String: String] = try await member.content(of: bucket) else { continue }
                        if let flaw: String = difference(mine, truth) {
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
        for key: String in Set(mine.keys).union(truth.keys).sorted() {
            let (here, there): (String, String) = (mine[key] ?? "nothing", truth[key] ?? "nothing")
            guard here.utf8.elementsEqual(there.utf8) else {
                return "\(key) is \(here.prefix(120)), the server has \(there.prefix(120))"
            }
        }
        return nil
    }
}

/// Somebody who edits.
protocol EnduringMember: Sendable {
    var name: String { get }
    var user: Int { get }
    /// Edits, goes and comes back until the tally says it is over.
    func live() async
    /// Sends what is unsent and waits until everything has come.
    func settle() async throws
    /// Version and object of each key; nil for a bucket that it does not hold.
    func content(of bucket: String) async throws -> [String: String]?
    func leave() async
}

/// What all members count together.
final class EnduranceTally: Sendable {
    let isOver: Atomic<Bool> = .init(false)
    let edits: Atomic<Int> = .init(0)
    /// Times that members went away and came back.
    let absences: Atomic<Int> = .init(0)
    /// Edits that the server refused for good, as after a position was cut.
    let refusals: Atomic<Int> = .init(0)
    let objects: Atomic<Int> = .init(0)
    private let found: Mutex<[String]> = .init([])

    var goesOn: Bool { !isOver.load(ordering: .relaxed) }
    var faults: [String] { found.withLock { $0 } }
    func fault(_ text: String) { found.withLock { if $0.count < 100 { $0.append(text) } } }
    func edited() { edits.add(1, ordering: .relaxed) }

    /// Sleeps, but not far beyond the end.
    func pause(seconds: Double) async {
        let end: ContinuousClock.Instant = .now + .seconds(seconds)
        while goesOn, .now < end {
            try? await Task.sleep(for: min(.milliseconds(250), end - .now))
        }
    }

    /// Sleeps, also at the end.
    func sleep(milliseconds: Int) async { try? await Task.sleep(for: .milliseconds(milliseconds)) }
}
