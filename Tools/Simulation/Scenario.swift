import ThicketServer
import ThicketTreeShape

/// What one seed plays: the participants, their actions, the faults, and how tight the bounds are.
struct Scenario: Sendable {
    let seed: UInt64
    let kind: Kind
    /// A bug that is built in, to check that it is found; nil: none.
    private(set) var mutant: Mutant?
    /// Users and apps that share only the server.
    var accounts: Int
    /// Clients of Thicket's library, and clients with the older libraries' rules.
    var clients: Int
    var legacies: Int
    /// Microseconds until all faults end.
    var duration: Int64
    /// Approximate microseconds between two actions of one person.
    var pace: Int64
    /// Index of the client whose token is read-only until the end; nil: none.
    var reader: Int?
    /// Objects into which Thicket's clients type, in the bucket in which nothing is removed.
    var texts: Int
    /// Whether characters are deleted, too.
    var deletes: Bool
    /// Which buckets are sealed.
    var sealing = SealingShare.none
    /// Sealed buckets were requested, not drawn.
    let isSealedByWish: Bool

    /// Devices with a tree, over all accounts; 0: none has one.
    var trees = 0
    /// Nodes of a tree above which users remove more than they create.
    var nodes = 50
    /// How many of 1,000 contents of a tree are too large for a record; 0: none.
    var blobs = 0
    /// Bytes of a part of an upload.
    private(set) var blobPartBytes = 8_192
    /// Seconds for which the server keeps a blob without a reference; for uploads twice as long.
    private(set) var orphanSeconds: Int64 = 60
    /// Trees were requested, not drawn.
    let hasTreesByWish: Bool

    var faults = FaultRates()
    /// Longest delay of a message in microseconds.
    var latency: Int64
    /// Most bytes that wait for a client that does not read, before it is dropped.
    var readerBytesMax: Int64

    /// Whether bounds may be smaller than their defaults.
    var isTight = true
    var limits: ServerLimits
    var shard: ShardSettings
    /// nil: the log is never cut.
    var retention: RetentionSettings?

    /// One virtual day in microseconds.
    static let day: Int64 = 86_400_000_000
    /// How many of 1,000 seeds play days and disks, if the kind is not given.
    private static let (daysPerMille, disksPerMille) = (30, 100)
    /// How many of 1,000 seeds have sealed buckets.
    private static let sealedPerMille = 250
    /// How many of 1,000 seeds with trees have blobs.
    private static let blobsPerMille = 500
    /// Fewest bytes of a part that the server accepts here.
    static let blobPartBytesMin = 4_096

    var isDays: Bool { kind == .days }
    /// All participants.
    var peers: Int { clients + legacies + trees }
    /// Microseconds between two random decisions about machines and connections; days have fewer.
    var weatherStep: Int64 { isDays ? 60_000_000 : 1_000_000 }

    /// - Parameters:
    ///   - kind: what it plays; nil: the seed decides.
    ///   - isSealed: sealed buckets are required; false: the seed decides.
    ///   - hasTrees: trees are required; false: the seed decides.
    init(seed: UInt64, kind wished: Kind? = nil, isSealed: Bool = false, hasTrees: Bool = false) {
        self.seed = seed
        var random = SimulationRandom(seed: seed ^ 0x5ce7_a210)
        let dice = random.below(1_000)
        let drawn: Kind =
            dice < Self.daysPerMille ? .days : dice < Self.daysPerMille + Self.disksPerMille ? .disks : .storm
        let kind = wished ?? drawn
        self.kind = kind
        let isDays = kind == .days
        clients = isDays ? 2 + random.below(7) : 1 + random.below(4)
        legacies = random.chance(350) ? 1 + random.below(2) : 0
        duration = isDays ? random.between(1, 4) * Self.day : random.between(30, kind == .disks ? 90 : 240) * 1_000_000
        accounts = random.chance(300) ? 2 + random.below(WorldNames.accountsMax - 1) : 1
        if accounts > 1 { clients += accounts - 1 }
        pace = isDays ? random.between(3_000, 8_000) * 1_000 : random.between(100, 3_000) * 1_000
        reader = random.chance(150) && clients > 1 ? 1 : nil
        texts = 1 + random.below(3)
        deletes = random.chance(500)
        // A quarter of the seeds has no faults, so that the rules are checked in that case, too.
        let isRough = random.chance(750)
        func rate(_ most: Int, _ random: inout SimulationRandom) -> Int {
            isRough && random.chance(600) ? random.below(most + 1) : 0
        }
        faults[.serverKill] = rate(60, &random)
        faults[.commitRefused] = rate(40, &random)
        faults[.commitCrash] = rate(30, &random)
        faults[.slowRead] = rate(200, &random)
        faults[.slowReader] = rate(40, &random)
        faults[.clientKill] = rate(kind == .disks ? 30 : 15, &random)
        faults[.clientStore] = rate(15, &random)
        faults[.cut] = rate(150, &random)
        faults[.lostDial] = rate(40, &random)
        faults[.partition] = rate(80, &random)
        faults[.doubledRequest] = rate(40, &random)
        faults[.doubledAnswer] = rate(40, &random)
        faults[.serverRestore] = kind == .disks ? rate(40, &random) : 0
        readerBytesMax = random.between(2_000, 60_000)
        latency = random.between(2, random.chance(500) ? 40 : 2_000) * 1_000
        limits = Self.limits(&random)
        shard = Self.shard(&random)
        retention = random.chance(400) ? Self.retention(&random) : nil
        // All changes, or those that are late or meet a large object. Drawn last, so that older seeds stay the same
        // otherwise.
        if random.chance(300) { shard.decidedHereMax = random.chance(500) ? -1 : 20_000 }
        // A separate random stream: a seed with open buckets plays what it did before sealed buckets existed.
        var dice2 = SimulationRandom(seed: seed ^ 0x5ea1_ed00)
        let share = SealingShare(rawValue: 1 + dice2.below(3)) ?? .both
        (isSealedByWish, hasTreesByWish) = (isSealed, hasTrees)
        var dice3 = SimulationRandom(seed: seed ^ 0x7ee5_0000)
        // Its first number is not used any more; older seeds stay the same.
        _ = dice3.next()
        if hasTrees { plant(2 + dice3.below(3), isRough ? 60 : 0, &dice3) }
        guard dice2.chance(Self.sealedPerMille) || isSealed else { return }
        seal(share, isRough ? dice2.below(60) : 0)
    }

    /// Seals buckets. Clients with the older libraries' rules keep an open one.
    /// - Parameter rate: of `Fault.clearWrite`.
    mutating func seal(_ share: SealingShare, _ rate: Int) {
        sealing = share == .both && legacies > 0 ? .notes : share
        faults[.clearWrite] = rate
        // Snapshots also contain the last operations, and what they replaced.
        shard.documentBytesMax = max(shard.documentBytesMax, Self.snapshotBytesMax)
    }

    /// Most bytes of a sealed snapshot in these scenarios.
    private static let snapshotBytesMax = 400_000

    /// Adds devices with trees. Few other clients take part, since the two share only the server.
    private mutating func plant(_ count: Int, _ rate: Int, _ random: inout SimulationRandom) {
        trees = max(count, accounts)
        (clients, legacies) = (accounts, 0)
        nodes = 4 + random.below(random.chance(500) ? 8 : 60)
        (faults[.lostCall], faults[.doubledCall]) = (random.below(rate + 1), random.below(rate + 1))
        // A group of the shard holds whole batches, however large they are.
        shard.documentBytesMax = max(shard.documentBytesMax, TreeLimits.recordBytesMax)
        if random.chance(Self.blobsPerMille) { blobs = 100 + random.below(400) }
        blobPartBytes = Self.blobPartBytesMin + random.below(8_000)
        orphanSeconds = random.between(40, 120)
    }

    /// Builds a bug in, and the conditions under which it shows.
    mutating func build(in bug: Mutant?) {
        mutant = bug
        if bug?.needsAccounts == true, accounts < 2 { (accounts, clients) = (2, max(2, clients)) }
        if bug?.needsSealing == true, sealing == .none { seal(bug?.sealing ?? .notes, 30) }
        if bug?.needsTrees == true, trees == 0 {
            var random = SimulationRandom(seed: seed ^ 0x7ee5_0001)
            plant(2 + random.below(3), 60, &random)
        }
        if bug?.needsBlobs == true {
            (blobs, faults[.serverKill]) = (max(blobs, 400), max(faults[.serverKill], 40))
        }
        // In a small tree devices often move the same nodes.
        if bug == .noCycleCheck { nodes = 5 }
        if bug == .eagerHeads { faults[.serverKill] = max(faults[.serverKill], 40) }
        if bug == .plainRestore { faults[.serverRestore] = max(faults[.serverRestore], 40) }
    }

    private static func limits(_ random: inout SimulationRandom) -> ServerLimits {
        var limits = ServerLimits()
        if random.chance(500) { limits.tailChangesMax = random.below(12) }
        if random.chance(300) { limits.tailBytesMax = random.below(4_000) }
        if random.chance(200) { limits.tailBytesTotalMax = random.below(8_000) }
        if random.chance(500) { limits.catchUpPageChanges = 1 + random.below(8) }
        if random.chance(200) { limits.catchUpPageBytes = 1 + random.below(2_000) }
        if random.chance(200) { limits.readsPerConnectionMax = 2 + random.below(8) }
        if random.chance(150) { limits.changesQueuedMax = 1 + random.below(8) }
        if random.chance(100) { limits.messagesPerSecond = 5 + random.below(50) }
        if limits.messagesPerSecond < 100 { limits.messagesBurst = 20 + random.below(50) }
        return limits
    }

    private static func shard(_ random: inout SimulationRandom) -> ShardSettings {
        var settings = ShardSettings()
        settings.documentBytesMax = 24_000
        if random.chance(400) { settings.groupChangesMax = 1 + random.below(4) }
        if random.chance(300) { settings.entityCacheBytes = random.below(6_000) }
        if random.chance(200) { settings.bucketCacheBytes = random.below(4_000) }
        if random.chance(400) { settings.recentChangesMax = random.below(6) }
        if random.chance(200) { settings.recentBytesMax = random.below(2_000) }
        if random.chance(150) { settings.rebaseChangesMax = 1 + random.below(30) }
        settings.clearedObjectsPerGroup = 1 + random.below(8)
        if random.chance(500) {
            settings.keyframes.diffsMin = 1 + random.below(8)
            settings.keyframes.diffsMax = settings.keyframes.diffsMin + random.below(30)
        }
        return settings
    }

    private static func retention(_ random: inout SimulationRandom) -> RetentionSettings {
        var settings = RetentionSettings()
        settings.logAgeMin = random.between(0, 20_000)
        settings.logChangesMin = random.below(30)
        settings.versionsNewest = random.between(1, 10)
        settings.versionsSparse = random.between(0, 4)
        settings.rowsPerBatch = 1 + random.below(20)
        settings.sweepInterval = random.between(500, 20_000)
        return settings
    }
}

/// Which buckets of a run are sealed.
enum SealingShare: Int, Sendable {
    case none, notes, scratch, both

    var hasNotes: Bool { self == .notes || self == .both }
    var hasScratch: Bool { self == .scratch || self == .both }
}

/// What a seed plays.
public enum Kind: String, Sendable, CaseIterable {
    /// Minutes in which all people type all the time; stores are in memory.
    case storm = "storms"
    /// Days of people that work now and then, sleep at night and leave their programs open; stores are in memory.
    case days
    /// A shorter storm with the real stores of server and clients, on disks that crash in the middle of any write.
    case disks
}
