import Synchronization
import ThicketCrypto
import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite
import ThicketServer

/// Where a simulated server stores its changes, over all restarts of its process.
protocol ServerStorage: AnyObject {
    var identity: StoreIdentity { get }
    /// The process is dead: every handle fails until `restart`.
    var isDown: Bool { get }
    func makeWriter() throws(StoreError) -> any StoreWriter
    func makeReader() throws(StoreError) -> any StoreReader
    func makeBlobLedger() throws(StoreError) -> any BlobLedger
    /// nil: the store has no background work.
    func makeMaintenance() throws(StoreError) -> (any StoreMaintenance)?
    /// The process is killed.
    func crash()
    /// The next process starts.
    func restart() throws
    /// A write begins: faults from here until `endWrite` happen inside it.
    func beginWrite()
    func endWrite()
    /// What happened on its disk since the last call; nil: nothing, or it has no disk.
    func takeShape() -> UInt64?
    /// No faults from now on.
    func heal()
    /// The findings of an audit, one line each.
    func findings() -> [String]
    /// A copy of what is committed; nil where the storage has no backups.
    func backUp() throws -> [UInt8]?
    /// The process ends, and a copy replaces the store.
    func restore(_ copy: [UInt8]) throws
}

/// A store in memory, whose commits are refused or lost as a whole.
final class MemoryServerStorage: ServerStorage {
    private let store: MemoryStore
    private let faults: CommitFaults
    private let retention: RetentionSettings?

    init(_ scenario: Scenario, _ names: WorldNames, _ random: SimulationRandom) {
        let faults = CommitFaults(random, scenario.faults)
        self.faults = faults
        retention = scenario.retention
        store = MemoryStore(identity: .seeded(scenario.seed), faults: { faults.next($0) })
        for account in names.accounts {
            store.addApp(account.app)
            for token in account.tokens {
                store.addGrant(token.grant, tokenHash: Hash.sha256(Array(token.token.utf8)))
            }
        }
    }

    var identity: StoreIdentity { store.identity }
    var isDown: Bool { store.isDown }
    func makeWriter() throws(StoreError) -> any StoreWriter { try store.makeWriter() }
    func makeReader() throws(StoreError) -> any StoreReader { try store.makeReader() }
    func makeBlobLedger() throws(StoreError) -> any BlobLedger { try store.makeBlobLedger() }
    func makeMaintenance() throws(StoreError) -> (any StoreMaintenance)? {
        guard let retention else { return nil }
        return try store.makeMaintenance(retention)
    }
    func crash() { store.crash() }
    func restart() { store.restart() }
    func beginWrite() {}
    func endWrite() {}
    func takeShape() -> UInt64? { nil }
    func heal() { faults.end() }
    func findings() -> [String] { [] }
    func backUp() -> [UInt8]? { nil }
    func restore(_ copy: [UInt8]) {}
}

/// The real store on a disk that may fail or lose power at every call.
final class DiskServerStorage: ServerStorage {
    private let disk: SimulatedDisk
    private let settings: StoreSettings
    private let retention: RetentionSettings
    private var random: SimulationRandom
    private var refused: Int
    private var crashes: Int
    private var store: SQLiteStore
    /// Its restores only copy the file.
    private let restoresPlainly: Bool
    /// Skips the part of the log that a start would read for the table of heads.
    private let forgetsHeads: Bool
    var identity: StoreIdentity { store.identity }

    /// The range of file changes in which the crash is placed: a commit makes about ten to thirty.
    private static let changesMax = 30

    init(_ scenario: Scenario, _ names: WorldNames, _ random: SimulationRandom) throws {
        self.random = random
        disk = try SimulatedDisk(lies: scenario.mutant == .lyingDisk ? 7 : nil)
        settings = Self.settings(disk, &self.random)
        retention = Self.retention(scenario.retention, &self.random)
        restoresPlainly = scenario.mutant == .plainRestore
        forgetsHeads = scenario.mutant == .eagerHeads
        (refused, crashes) = (scenario.faults[.commitRefused], scenario.faults[.commitCrash])
        let path = disk.path(SQLiteStore.fileName)
        let admin = try StoreAdmin(path: path, settings: settings)
        for account in names.accounts {
            try admin.createApp(account.app, now: 0)
            try admin.importTokens(account.tokens, now: 0)
        }
        store = try SQLiteStore(path: path, settings: settings)
        try disk.makeDurable()
    }

    /// Small bounds, so that minutes cover what otherwise takes months.
    private static func settings(_ disk: SimulatedDisk, _ random: inout SimulationRandom) -> StoreSettings {
        let stream = Mutex<SimulationRandom>(random.split())
        var settings = StoreSettings()
        settings.vfs = disk.name
        // All connections belong to one thread: waiting for another one would be pointless.
        (settings.busyTimeoutMilliseconds, settings.restartWaitMilliseconds) = (0, 0)
        settings.cacheKiB = random.chance(500) ? 256 : 16
        settings.logReservedBytes = random.chance(500) ? 0 : 256 << 10
        settings.passivePages = 20 + random.below(60)
        settings.restartPages = settings.passivePages + random.below(120)
        // Heads are behind by a few changes or by all changes; no random number is drawn, so that older seeds stay the
        // same.
        settings.writeBehindHeadsMax = settings.passivePages % 3 == 0 ? 8_192 : 1 + settings.passivePages * 7 % 48
        // Half of the stores leave all of it to the maintenance.
        settings.changeIDRunLength = random.chance(500) ? 6 + random.below(40) : 1_000
        settings.random = { count in
            stream.withLock { stream in (0..<count).map { _ in UInt8(truncatingIfNeeded: stream.next()) } }
        }
        return settings
    }

    private static func retention(
        _ wished: RetentionSettings?, _ random: inout SimulationRandom
    ) -> RetentionSettings {
        var settings = wished ?? RetentionSettings()
        settings.segmentBytes = 1_000 + random.below(8_000)
        settings.segmentLogBytesMin = 2_000 + random.below(16_000)
        settings.segmentInterval = random.between(500, 5_000)
        settings.changeIDsPerBlock = 8 + random.below(40)
        settings.changeIDsLooseMin = settings.changeIDsPerBlock
        settings.changeIDRunsMax = 2 + random.below(4)
        settings.changeIDInterval = random.between(500, 5_000)
        settings.clientInterval = random.between(5_000, 60_000)
        return settings
    }

    var isDown: Bool { disk.isCrashed }
    func makeWriter() throws(StoreError) -> any StoreWriter { try store.makeWriter() }
    func makeReader() throws(StoreError) -> any StoreReader { try store.makeReader() }
    func makeBlobLedger() throws(StoreError) -> any BlobLedger { try store.makeBlobLedger() }
    func makeMaintenance() throws(StoreError) -> (any StoreMaintenance)? { try store.makeMaintenance(retention) }
    func crash() { disk.crash() }

    func restart() throws {
        // Nothing has happened yet before the first start.
        if disk.isCrashed {
            let losses = DiskModel.Loss.allCases
            try disk.restart(losses[random.below(losses.count)], &random)
            // This disk has no faults before it is written to again.
            if forgetsHeads { try forgetHeads() }
        }
        store = try SQLiteStore(path: disk.path(SQLiteStore.fileName), settings: settings)
    }

    /// As if the mark had been written before the heads to which it refers.
    private func forgetHeads() throws {
        let database = try Database(path: disk.path(SQLiteStore.fileName), mode: .readWrite, vfs: disk.name)
        try database.execute(
            "UPDATE meta SET v = max(v, (SELECT coalesce(max(gid), 0) FROM chg)) WHERE k = 'heads'")
    }

    func beginWrite() {
        if crashes > 0, random.chance(crashes) { return disk.crash(atChange: 1 + random.below(Self.changesMax)) }
        guard refused > 0, random.chance(refused) else { return }
        let failures: [FaultRule.Failure] = [.io, .full, .short]
        disk.fail(
            FaultRule(
                random.chance(300) ? .sync : .change, failures[random.below(3)],
                skipping: random.below(random.chance(500) ? 2 : Self.changesMax), times: 1))
    }

    func endWrite() { if !disk.isCrashed { disk.heal() } }
    func takeShape() -> UInt64? { disk.takeShape() }

    func heal() {
        (refused, crashes) = (0, 0)
        endWrite()
    }

    func backUp() throws -> [UInt8]? {
        let path = disk.path("backup")
        _ = try StoreBackup.run(from: store.path, to: path, settings: settings)
        defer { disk.remove("backup") }
        return try SimulatedDisk.read(path)
    }

    func restore(_ copy: [UInt8]) throws {
        let name = SQLiteStore.fileName
        // The server ended cleanly or was killed: its data is intact.
        let old = disk.files(after: .nothing, &random)
        if restoresPlainly {
            try disk.restart(with: [name: copy])
        } else {
            try disk.restart(with: old.merging(["backup": copy]) { $1 })
            var plain = settings
            plain.vfs = nil
            let report = try StoreRestore.run(
                from: disk.path("backup"), to: disk.path(name), settings: plain)
            disk.remove("backup")
            if let replaced = report.replaced.flatMap({ $0.split(separator: "/").last.map(String.init) }) {
                for end in ["", "-wal"] { disk.remove(replaced + end) }
            }
            try disk.makeDurable()
        }
        store = try SQLiteStore(path: disk.path(name), settings: settings)
    }

    func findings() -> [String] {
        do {
            return try StoreCheck.run(store.path, settings: settings).findings
        } catch {
            return ["the store cannot be audited: \(error)"]
        }
    }
}

extension Account {
    /// A token that may write, and one that may read.
    fileprivate var tokens: [ImportedToken] {
        [(token, false), (readToken, true)].map { (token, isReadOnly) in
            ImportedToken(grant: TokenGrant(app: app, user: user, isReadOnly: isReadOnly), token: token)
        }
    }
}

/// Decides about commits in memory.
private final class CommitFaults: Sendable {
    private let state: Mutex<(random: SimulationRandom, refused: Int, crash: Int)>

    init(_ random: SimulationRandom, _ rates: FaultRates) {
        state = Mutex((random, rates[.commitRefused], rates[.commitCrash]))
    }

    func end() { state.withLock { ($0.refused, $0.crash) = (0, 0) } }

    func next(_ point: CommitPoint) -> CommitFault {
        state.withLock { state in
            if state.crash > 0, state.random.chance(state.crash) {
                return state.random.chance(500) ? .crashBefore : .crashAfter
            }
            guard state.refused > 0, state.random.chance(state.refused) else { return .none }
            switch state.random.below(3) {
            case 0: return .fail(StoreError(.io, "a simulated disk"))
            case 1: return point.changes > 0 ? .fail(StoreError(.constraint, "a simulated row")) : .none
            default: return .fail(StoreError(.full, "a simulated disk"))
            }
        }
    }
}
