import ThicketServer

/// What one seed plays: who takes part, what they do, what goes wrong, how tight the bounds are.
struct Scenario: Sendable {
    let seed: UInt64
    let kind: Kind
    /// A bug that is built in, for the check that it is found; nil: none.
    private(set) var mutant: Mutant?
    /// Users and apps that share nothing but the server.
    var accounts: Int
    /// Clients of ours, and clients that keep the older libraries' rules.
    var clients: Int
    var legacies: Int
    /// Microseconds until everything heals.
    var duration: Int64
    /// Microseconds between two acts of one person, about.
    var pace: Int64
    /// Index of the client whose token may only read until the end; nil: none.
    var reader: Int?
    /// Objects our clients type into, in the bucket in which nothing is removed.
    var texts: Int
    /// Whether characters are deleted, too.
    var deletes: Bool
    /// Which buckets are sealed.
    var sealing = SealingShare.none
    /// Sealed buckets were asked for, and not drawn.
    let isSealedByWish: Bool

    var faults = FaultRates()
    /// Microseconds of the longest way of a message.
    var latency: Int64
    /// Bytes that wait for a client that does not read, before it is dropped.
    var readerBytesMax: Int64

    /// Whether bounds may be smaller than they are by default.
    var isTight = true
    var limits: ServerLimits
    var shard: ShardSettings
    /// nil: the log is never cut.
    var retention: RetentionSettings?

    /// One virtual day, microseconds.
    static let day: Int64 = 86_400_000_000
    /// Of 1,000 seeds that may be anything.
    private static let (daysPerMille, disksPerMille) = (30, 100)
    /// Of 1,000 seeds, those that have sealed buckets.
    private static let sealedPerMille = 250

    var isDays: Bool { kind == .days }
    /// Microseconds between two throws of the dice for machines and cables; days have fewer, as life has.
    var weatherStep: Int64 { isDays ? 60_000_000 : 1_000_000 }

    /// - Parameters:
    ///   - kind: what it plays; nil: the seed decides.
    ///   - isSealed: whether there must be sealed buckets; false: the seed decides.
    init(seed: UInt64, kind wished: Kind? = nil, isSealed: Bool = false) {
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
        // One quarter of the seeds goes well, so that the rules are met there, too.
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
        // All, or those that are late or meet something large: last, so that a seed plays what it did without.
        if random.chance(300) { shard.decidedHereMax = random.chance(500) ? -1 : 20_000 }
        // A stream of its own: with open buckets a seed plays what it did before there were others.
        var dice2 = SimulationRandom(seed: seed ^ 0x5ea1_ed00)
        let share = SealingShare(rawValue: 1 + dice2.below(3)) ?? .both
        isSealedByWish = isSealed
        guard dice2.chance(Self.sealedPerMille) || isSealed else { return }
        seal(share, isRough ? dice2.below(60) : 0)
    }

    /// Seals buckets. Clients that keep the older libraries' rules stay on an open one.
    /// - Parameter rate: of `Fault.clearWrite`.
    mutating func seal(_ share: SealingShare, _ rate: Int) {
        sealing = share == .both && legacies > 0 ? .notes : share
        faults[.clearWrite] = rate
        // Snapshots hold the last operations, too, and what they replaced.
        shard.documentBytesMax = max(shard.documentBytesMax, Self.snapshotBytesMax)
    }

    /// Bytes of a sealed snapshot in these scenarios, at most.
    private static let snapshotBytesMax = 400_000

    /// Builds a bug in, and what has to be there for it to show.
    mutating func build(in bug: Mutant?) {
        mutant = bug
        if bug?.needsAccounts == true, accounts < 2 { (accounts, clients) = (2, max(2, clients)) }
        if bug?.needsSealing == true, sealing == .none { seal(bug?.sealing ?? .notes, 30) }
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
        settings.emptyObjectsPerGroup = 1 + random.below(8)
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
    /// Minutes in which everybody types all the time; stores are in memory.
    case storm = "storms"
    /// Days of people who work now and then, sleep at night and leave their programs open; stores are in memory.
    case days
    /// A shorter storm over the real stores, server's and clients', on disks that crash in the middle of any write.
    case disks
}
