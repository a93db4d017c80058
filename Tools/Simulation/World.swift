import ThicketClient
import ThicketCrypto
import ThicketFaultDisk
import ThicketProtocol
import ThicketSealed
import ThicketServer
import ThicketTree
import ThicketTreeShape

/// One run: a server, its store, a network, clients and their people, all on one virtual clock.
///
/// Belongs to the thread that runs it; runs share nothing.
final class World {
    /// Most events of a storm, and of one day of one client; beyond it a run is ended, since it is in an endless cycle.
    private static let eventsMax: (storm: Int, clientDay: Int) = (400_000, 60_000)

    let scenario: Scenario
    let agenda = Agenda()
    var random: SimulationRandom
    var trace: Trace
    /// The violations; the first one ends the run.
    private(set) var problems = [String]()
    /// From here on no faults and no edits happen.
    private(set) var isCalm = false
    let names: WorldNames
    let ledger: Ledger
    private var madeServer: SimulatedServer?
    private(set) var people = [SimulatedClient]()
    private(set) var legacies = [LegacyClient]()
    let trees: TreeParty
    var lastConnection = 0
    var tally = Tally()
    /// By the account's number.
    var models: [Model]
    /// Sealed operations by their ccid, as a client first sent them.
    var sealings = [String: String]()
    /// Alarms of sealed objects wait for their users' choice.
    var hasAlarms = false
    /// The server continued from a backup.
    var isRestored = false
    /// Characters of texts that a user decided against after a restore, or that were reported as the losing side of a
    /// conflict.
    private(set) var givenUp = Set<UInt32>()
    /// Server keys of objects for which a user chose the local state.
    var replaced = Set<EntityKey>()
    /// Changes of `heads` that clients have sent.
    var headsWrites = 0
    /// When a client last sent a message other than a heartbeat or a change of `heads`, microseconds.
    var lastWork: Int64 = 0

    init(_ scenario: Scenario, sink: (@Sendable (String) -> Void)?) throws {
        self.scenario = scenario
        random = SimulationRandom(seed: scenario.seed)
        trace = Trace(sink: sink)
        names = try WorldNames(
            accounts: scenario.accounts, scenario.sealing, hasTrees: scenario.trees > 0, seed: scenario.seed)
        trees = TreeParty(accounts: scenario.accounts)
        models = names.accounts.map { Model(account: $0.number) }
        ledger = Ledger(names)
    }

    /// Microseconds.
    var now: Int64 { agenda.now }
    /// Milliseconds, the unit of clients.
    var milliseconds: Int64 { agenda.now / 1_000 }
    var peers: [Peer] { people + legacies + trees.devices }
    /// By the account's number.
    var treeRecords: [TreeRecords] {
        get { trees.records }
        _modify { yield &trees.records }
    }

    /// Exists from the beginning of the run.
    var server: SimulatedServer {
        guard let madeServer else { preconditionFailure("the run has not begun") }
        return madeServer
    }

    func after(_ delay: Int64, _ body: @escaping () -> Void) { agenda.at(agenda.now + max(delay, 0), body) }

    func problem(_ text: String) {
        problems.append("at \(agenda.now / 1_000) ms: \(text)")
        trace.record(now, "PROBLEM", 0, Array(text.utf8))
    }

    /// A device reports that a sealed object is not as it should be.
    func alarm(_ bucket: BucketName, _ report: IntegrityReport, of client: SimulatedClient) {
        guard isHonest(report.kind, in: bucket) else {
            return problem("client \(client.number): a false alarm: \(report.key): \(report.kind): \(report.detail)")
        }
        tally.alarms += 1
        hasAlarms = true
    }

    /// The same, found by a check of the object.
    func alarm(on place: EntityAddress, of client: SimulatedClient) {
        guard let word = client.blockade(place.bucket, place.key) else {
            return problem("client \(client.number): \(place.key.text) is read-only for no reason")
        }
        let isRemoval = word.utf8.elementsEqual(SealedIntegrity.removed.description.utf8)
        guard isHonest(isRemoval ? .removed : .rolledBack, in: place.bucket) else {
            return problem("client \(client.number): a false alarm: \(place.key.text): \(word)")
        }
        hasAlarms = true
    }

    /// Whether an honest server may be the reason: after a restore it shows older states, and objects that a client
    /// created again; and where the log was cut, nothing shows any more that a missing object was deleted, which
    /// happens in one bucket only.
    private func isHonest(_ kind: IntegrityReport.Kind, in bucket: BucketName) -> Bool {
        if isRestored, [.rolledBack, .forked, .removed].contains(kind) { return true }
        // If a user kept the local state against a removal, the other devices get an alarm about it.
        return scenario.retention != nil && kind == .removed && bucket == names.scratch
    }

    /// A user has decided against this text: its content was seen and given up.
    func giveUp(_ object: JSONObject?) { giveUp(losing: object.map { .object($0) }) }

    /// A user was notified of a conflict's losing value. Characters that the winning value has, too, are not lost.
    func giveUp(losing: JSONValue?, winning: JSONValue? = nil) {
        givenUp.formUnion(Self.scalars(losing).subtracting(Self.scalars(winning)))
    }

    private static func scalars(_ value: JSONValue?) -> Set<UInt32> {
        Set((value?.stringValue ?? value?["t"]?.stringValue ?? "").unicodeScalars.map(\.value))
    }

    func record(_ what: StaticString, _ who: Int, _ bytes: [UInt8] = []) { trace.record(now, what, who, bytes) }

    /// What happened on a disk (`DiskHistory.takeShape`).
    func record(_ what: StaticString, _ who: Int, shape: UInt64?) {
        if let shape { record(what, who, Array(String(shape, radix: 16).utf8)) }
    }

    /// True with the rate of a fault, and never in the calm phase.
    func befalls(_ fault: Fault) -> Bool {
        guard befalls(scenario.faults[fault]) else { return false }
        tally.faults[fault] += 1
        return true
    }

    /// As `befalls`, for faults that are counted when they happen.
    func isStruck(by fault: Fault) -> Bool { befalls(scenario.faults[fault]) }

    func befalls(_ perMille: Int) -> Bool { !isCalm && perMille > 0 && random.chance(perMille) }

    private var eventsMax: Int {
        let days: Int64 = scenario.duration / Scenario.day * Int64(scenario.peers)
        return World.eventsMax.storm + World.eventsMax.clientDay * Int(days)
    }

    // MARK: - The run

    /// Plays the scenario to its end.
    func run() throws {
        // People and world refer to each other: without this the world would stay in memory, with its disks.
        defer {
            agenda.clear()
            // A peer and its link refer to each other, too.
            for peer in peers { peer.link = nil }
            (people, legacies, madeServer) = ([], [], nil)
            trees.devices = []
        }
        madeServer = try SimulatedServer(self)
        server.start()
        for number in 0..<scenario.clients {
            people.append(try SimulatedClient(joining: self, as: number, of: account(number)))
        }
        for number in 0..<scenario.legacies {
            let number = scenario.clients + number
            legacies.append(LegacyClient(self, number, account(number)))
        }
        for number in 0..<scenario.trees { try addDevice(of: account(number)) }
        for person in people { person.begin() }
        for legacy in legacies { legacy.begin() }
        for device in trees.devices { device.begin() }
        Weather(self).begin()
        play(until: scenario.duration)
        isCalm = true
        record("calm", 0)
        server.heal()
        for peer in peers { peer.heal() }
        Rest(self).check()
    }

    /// Adds clients with an empty store, one for each account.
    func addFreshClients() throws {
        for account in names.accounts {
            let number = people.count + legacies.count
            let fresh = try SimulatedClient(joining: self, as: number, of: account)
            people.append(fresh)
            fresh.begin()
        }
        guard scenario.trees > 0 else { return }
        for account in names.accounts { try addDevice(of: account).begin() }
    }

    @discardableResult
    private func addDevice(of account: Account) throws -> TreeDevice {
        let number = people.count + legacies.count + trees.devices.count
        let device = try TreeDevice(joining: self, as: number, of: account)
        trees.devices.append(device)
        return device
    }

    /// The account of a client that exists from the beginning, by the client's number.
    private func account(_ number: Int) -> Account { names.accounts[number % names.accounts.count] }

    /// Advances the time; stops early at the first violation.
    func play(until limit: Int64) {
        while problems.isEmpty, agenda.step(until: limit) {
            guard trace.events < eventsMax else {
                return problem("\(trace.events) events: it goes round in circles")
            }
        }
    }
}

/// How often each event happened, for the summary of a run.
struct Tally: Sendable, Equatable {
    var edits = 0
    var applied = 0
    var refusals = [Int: Int]()
    var faults = FaultCounts()
    var scans = 0
    var logCuts = 0
    /// Deferred changes.
    var decidedElsewhere = 0
    var messages = 0
    /// In sealed buckets: operations, snapshots other than those of creations, alarms that an honest server can cause.
    var operations = 0
    var compactions = 0
    var alarms = 0
    /// Changes that users made in trees, nodes that the server confirmed, and conflicts.
    var treeChanges = 0
    var treePushes = 0
    var treeConflicts = 0
    var batches = 0
    var batchesRepeated = 0
    var batchesRefused = 0
    /// Contents in blobs: uploads, those that went on after an interruption, their parts, downloads, and orphans.
    var blobsUploaded = 0
    var blobsResumed = 0
    var blobParts = 0
    var blobsDownloaded = 0
    var blobsCollected = 0

    mutating func add(_ other: Tally) {
        edits += other.edits
        applied += other.applied
        refusals.merge(other.refusals, uniquingKeysWith: +)
        faults.add(other.faults)
        scans += other.scans
        logCuts += other.logCuts
        decidedElsewhere += other.decidedElsewhere
        messages += other.messages
        operations += other.operations
        compactions += other.compactions
        alarms += other.alarms
        treeChanges += other.treeChanges
        treePushes += other.treePushes
        treeConflicts += other.treeConflicts
        batches += other.batches
        batchesRepeated += other.batchesRepeated
        batchesRefused += other.batchesRefused
        blobsUploaded += other.blobsUploaded
        blobsResumed += other.blobsResumed
        blobParts += other.blobParts
        blobsDownloaded += other.blobsDownloaded
        blobsCollected += other.blobsCollected
    }
}

/// A user of an app that shares nothing with any other account.
struct Account: Sendable {
    let number: Int
    let app: AppID
    let user: UserID

    var token: String { "write-token-\(number)" }
    var readToken: String { "read-token-\(number)" }
}

/// The names in a run.
struct WorldNames: Sendable {
    let accounts: [Account]
    /// Nothing is removed in this bucket, so everything typed must exist at the end.
    let notes: BucketName
    /// Anything may happen in this bucket.
    let scratch: BucketName
    /// Keys of the sealed buckets: their secrets are random, and all clients of an account have them.
    private var keys = [BucketID: SealedBucketKeys]()
    /// The bucket of the tree; nil: no account has a tree.
    let tree: BucketName?
    private let seed: UInt64

    /// Two users of one app, then the first one's name in another app; all with the same buckets and keys.
    init(accounts count: Int, _ sealing: SealingShare, hasTrees: Bool, seed: UInt64) throws {
        self.seed = seed
        tree = hasTrees ? try BucketName("tree") : nil
        let owners: [(app: String, user: String)] = [
            ("app", "ann@example.com"), ("app", "bob@example.com"), ("other", "ann@example.com"),
        ]
        accounts = try owners.prefix(max(1, count)).enumerated().map { (number, owner) in
            Account(number: number, app: try AppID(owner.app), user: try UserID(owner.user))
        }
        notes = try BucketName("notes")
        scratch = try BucketName("scratch")
        var random = SimulationRandom(seed: seed ^ 0x5ec2_e700)
        let sealed = (sealing.hasNotes ? [notes] : []) + (sealing.hasScratch ? [scratch] : [])
        for account in accounts {
            for bucket in sealed {
                let secret = SecureBytes(copying: (0..<32).map { _ in UInt8(random.below(256)) })
                keys[id(bucket, of: account)] = try SealedBucketKeys(
                    owner: account.user.text, app: account.app.text, bucket: bucket.text, secrets: [0: secret])
            }
        }
    }

    /// nil: an open bucket.
    func keys(_ id: BucketID) -> SealedBucketKeys? { keys[id] }
    func keys(_ bucket: BucketName, of account: Account) -> SealedBucketKeys? { keys[id(bucket, of: account)] }
    func isSealed(_ bucket: BucketName) -> Bool { keys.keys.contains { $0.name == bucket } }

    /// Most accounts of a run.
    static let accountsMax = 3

    var buckets: [BucketName] { [notes, scratch] }
    var ids: [BucketID] {
        accounts.flatMap { account in (buckets + [tree].compactMap { $0 }).map { id($0, of: account) } }
    }

    /// The keys of an account's tree, which all of its devices have.
    func treeKeys(of account: Account) -> TreeKeys {
        var random = SimulationRandom(seed: seed ^ 0x7ee5_ec2e &+ UInt64(account.number))
        let secret = SecureBytes(copying: (0..<32).map { _ in UInt8(random.below(256)) })
        return TreeKeys(secret: secret, tree: TreePlace(app: account.app, owner: account.user))
    }

    func id(_ bucket: BucketName, of account: Account) -> BucketID {
        BucketID(app: account.app, user: account.user, name: bucket)
    }
}
