import ThicketProtocol

/// The thread that decides changes and writes them: it owns the `ShardCore` and with it the one store writer.
///
/// It takes everything that has queued while the last group was being written, decides it, and commits it as one group:
/// the slower the disk, the larger the groups. While it waits for work the loop may take its place for a few small
/// changes (`commitNow`).
final class ServerShard: Sendable {
    /// What is handed to the thread.
    enum Work: Sendable {
        case request(ShardRequest)
        /// Background work of the keeper, between two groups.
        indirect case maintain(MaintenanceBatch, done: @Sendable (Bool) -> Void)
        /// Other bounds from here on.
        indirect case settings(ShardSettings, ServerLimits)

        /// Bytes of changes that take about as long as one small change.
        private static let bytesOfOne = 4_096

        /// In small changes.
        var weight: Int {
            if case .request(.change(let change)) = self { return 1 + change.ticket.bytes / Self.bytesOfOne }
            return 1
        }
    }

    /// What comes back to the loop.
    struct Report: Sendable {
        let outcome: CommitOutcome
    }

    private let queue = FairQueue<Work> { $0.weight }
    private let runner: ShardRunner
    /// Gets one word when the store was opened, or could not be, for the first time.
    private let opened = WaitingRow<Bool>(bound: 1)
    private let thread: OwnThread
    private let decider: ServerDecider

    /// Longest wait for the store at the start: a file that somebody else locks must not keep health from being asked.
    private static let openingPatience = Duration.seconds(5)

    /// - Parameters:
    ///   - limits: what one user may have of the thread.
    ///   - report: called after each group, on the thread that committed it; `isHere` when that is the one of
    ///     `commitNow`.
    init(
        store: any Store, settings: ShardSettings, limits: ServerLimits, metrics: Metrics, health: Health, log: Log,
        report: @escaping @Sendable (_ report: Report, _ isHere: Bool) -> Void
    ) {
        let queue = self.queue
        let opened = self.opened
        let decider = ServerDecider(store: store, metrics: metrics, log: log) { result in
            queue.resume(result.submitted.ticket.tenant, with: .request(.decided(result)))
        }
        self.decider = decider
        let runner = ShardRunner(
            store: store, settings: settings, limits: limits, metrics: metrics, health: health, log: log,
            decider: decider, report: report)
        self.runner = runner
        thread = OwnThread("shard", stackBytes: 16 << 20) { runner.run(queue) { opened.add($0) } }
    }

    /// Waits until the store was tried for the first time, so that a server that says it listens takes changes at once.
    func awaitOpening() { _ = opened.takeAll(until: OwnThread.steadyTime() + Self.openingPatience) }

    /// Decides and commits changes on the calling thread, if they are few and small, the shard's has nothing to do, and
    /// commits have been quick of late. What they came to has then been reported.
    /// - Parameter beforehand: called once when it is as good as certain that they will be committed here.
    /// - Returns: false when nothing was done: `push` them.
    func commitNow(_ requests: [(lane: UInt32, work: Work)], beforehand: () -> Void = {}) -> Bool {
        guard requests.count <= InlineGate.changesMax else { return false }
        var changes = [ShardRequest]()
        for case (_, .request(let request)) in requests { changes.append(request) }
        guard changes.count == requests.count, InlineGate.admits(changes), queue.claim(changes.lazy.map(\.lane)) else {
            return false
        }
        let isDone = runner.commitNow(changes, queue, beforehand)
        queue.release(rousing: isDone && runner.hasWorkLeft)
        return isDone
    }

    /// Hands over changes, each in the lane of its user.
    func push(_ requests: [(lane: UInt32, work: Work)]) { queue.push(requests) }

    /// Hands over background work; `done` is told, on the shard's thread, whether it was written.
    func maintain(_ batch: MaintenanceBatch, done: @escaping @Sendable (Bool) -> Void) {
        queue.push([(ShardRequest.houseLane, .maintain(batch, done: done))])
    }

    /// Other bounds for the changes that are handed over from now on.
    func use(_ limits: ServerLimits) {
        queue.push([(ShardRequest.houseLane, .settings(ShardSettings(limits), limits))])
    }

    /// Finishes what has been handed over and ends.
    func finish() {
        queue.close()
        thread.join()
        decider.finish()
    }
}

/// What the shard's thread does.
private final class ShardRunner: @unchecked Sendable {
    // Belongs to the shard's thread; to another one between a `claim` of the queue and its `release`.
    private let store: any Store
    private var settings: ShardSettings
    private var limits: ServerLimits
    private let metrics: Metrics
    private let caches: (objects: Gauge, buckets: Gauge, changeIDs: Gauge)
    private let health: Health
    private let log: Log
    private let decider: ServerDecider
    private let report: @Sendable (ServerShard.Report, Bool) -> Void
    private var core: ShardCore?
    private var gate: InlineGate
    /// Nanoseconds that the last commit took.
    private var commitNanoseconds: Int64 = 0
    /// When the first decision of the group began.
    private var groupBegun: Int64 = 0
    /// When a store that failed is tried again, nanoseconds.
    private var triesAgain: Int64 = 0
    /// What each user took of the thread, and which users there were.
    private var shares = LaneShares()
    private var waits = RecentWaits()
    private var costly = CostlyUsers()
    /// Groups that were written since work was last taken from the queue.
    private var commitsOfTurn = 0
    /// Objects that the core had forgotten because of their users' share.
    private var shareEvictions = 0
    /// The group is that of `commitNow`.
    private var isHere = false

    /// Changes taken from the queue at once; the core says when a group is full.
    private static let takenAtOnce = 4_096
    /// What a change costs to decide, about, nanoseconds.
    private static let decisionNanoseconds: Int64 = 25_000
    /// Seconds between two tries of a store that does not answer.
    private static let retrySeconds = 0.5

    init(
        store: any Store, settings: ShardSettings, limits: ServerLimits, metrics: Metrics, health: Health, log: Log,
        decider: ServerDecider, report: @escaping @Sendable (ServerShard.Report, Bool) -> Void
    ) {
        self.store = store
        self.settings = settings.decidingLongOnesElsewhere
        self.decider = decider
        self.limits = limits
        self.metrics = metrics
        let caches = metrics.cacheBytes
        self.caches = (caches.gauge(.objects), caches.gauge(.buckets), caches.gauge(.changeIDs))
        self.health = health
        self.log = log
        self.report = report
        gate = InlineGate(limits)
    }

    /// - Parameter opened: told once, after the first try, whether the store is open.
    func run(_ queue: FairQueue<ServerShard.Work>, opened: (Bool) -> Void) {
        opened(openCore() != nil)
        while true {
            let (share, weightMax) = share
            guard
                let batch = queue.take(
                    most: Self.takenAtOnce, share: share, weightMax: weightMax, waitingSeconds: patience)
            else { break }
            take(batch, queue)
        }
        while let core, core.hasBacklog, commit(core) {}
    }

    /// Seconds to wait for work.
    private var patience: Double {
        if core?.hasBacklog == true { return 0 }
        return health.isReady && core != nil ? 60 : max(0, Double(triesAgain - SystemClock.monotonic()) / 1e9)
    }

    /// The same for changes that the caller has and nobody else waits for, on the caller's thread.
    /// - Returns: false when that might take long, and nothing was done.
    func commitNow(
        _ changes: [ShardRequest], _ queue: FairQueue<ServerShard.Work>, _ beforehand: () -> Void
    ) -> Bool {
        guard gate.isOpen, health.isReady, let core else { return false }
        beforehand()
        guard core.beginCommit(of: changes) else { return false }
        isHere = true
        defer { isHere = false }
        metrics.commitsInline.add()
        take(changes.map { .request($0) }, queue)
        return true
    }

    /// Whether the thread has to look after something that nobody hands it: a store to try again.
    var hasWorkLeft: Bool { core?.hasBacklog == true || !health.isReady }

    /// Changes of one user in a group, and what they may weigh. Where the disk takes long, so many that deciding them
    /// takes no longer.
    private var share: (count: Int, weightMax: Int) {
        let worthIt = Int(commitNanoseconds / Self.decisionNanoseconds)
        guard shares.isShared(now: SystemClock.monotonic()) else {
            return (max(limits.changesPerUserTurn, worthIt), .max)
        }
        let most = max(min(limits.changesPerUserTurn, LaneShares.shareOfGroup), worthIt)
        return (most, most)
    }

    private func take(_ batch: [ServerShard.Work], _ queue: FairQueue<ServerShard.Work>) {
        for case .settings(let settings, let limits) in batch where core == nil {
            self.settings = settings.decidingLongOnesElsewhere
            self.limits = limits
            gate = InlineGate(limits)
        }
        guard let core = core ?? openCore() else { return refuse(batch) }
        var requests = 0
        let taken = ThreadMoment()
        groupBegun = taken.time
        commitsOfTurn = 0
        defer { settleShares(since: taken, queue) }
        var meter = CostMeter(limits)
        // Lanes whose work of this batch was put back.
        var left = Set<UInt32>()
        for (index, work) in batch.enumerated() {
            switch work {
            case .request(let request):
                let lane = request.lane
                if left.contains(lane) { continue }
                requests += 1
                shares.count(lane)
                if let long = core.receive(request) {
                    left.insert(lane)
                    queue.hold(lane, puttingBack: Self.rest(of: batch, after: index, lane))
                    decider.decide(long)
                }
                if let rest = rest(of: lane, costing: meter.lap()) ?? elsewhere(request), isShared(with: lane) {
                    metrics.limitHits.add(1, .costlyChanges)
                    let isLeft = !left.insert(lane).inserted
                    queue.rest(lane, until: rest, puttingBack: isLeft ? [] : Self.rest(of: batch, after: index, lane))
                }
                guard core.isFull else { continue }
                commit(core)
                requests = 0
                meter.begin()
            case .maintain(let maintenance, let done):
                if requests > 0 { commit(core) }
                requests = 0
                done(maintain(maintenance, core))
                meter.begin()
            case .settings(let settings, let limits):
                if requests > 0 { commit(core) }
                requests = 0
                self.settings = settings.decidingLongOnesElsewhere
                self.limits = limits
                core.use(self.settings)
                gate = InlineGate(limits)
                meter = CostMeter(limits)
            }
        }
        if requests > 0 || core.hasBacklog { commit(core) }
        // It may have come back before that, to wait no longer than until then.
        if batch.isEmpty && !health.isReady && SystemClock.monotonic() >= triesAgain { probe(core) }
    }

    /// What is not begun of a lane.
    private static func rest(of batch: [ServerShard.Work], after index: Int, _ lane: UInt32) -> [ServerShard.Work] {
        batch[(index + 1)...].filter { if case .request(let request) = $0 { request.lane == lane } else { false } }
    }

    /// Until when the author of a change rests that was costly to decide here.
    private func rest(of lane: UInt32, costing cost: Int64?) -> Int64? {
        // As on the loop: what somebody did who was alone is not remembered.
        guard let cost, isShared(with: lane) else { return nil }
        return costly.rest(of: lane, cost: cost, factor: limits.costlyRestFactor, now: SystemClock.monotonic())
    }

    /// Until when the author of a change rests that was decided elsewhere, so that it took a part of that thread, too.
    private func elsewhere(_ request: ShardRequest) -> Int64? {
        guard case .decided(let result) = request, result.nanoseconds >= Int64(limits.costlyMicroseconds) * 1_000
        else { return nil }
        return SystemClock.monotonic() + result.nanoseconds * Self.elsewhereRestFactor
    }

    /// Of the thread that decides what takes long a user has a twentieth, while others want this one: with a quarter,
    /// such changes kept the cores busier than the others' acknowledgements bear.
    private static let elsewhereRestFactor: Int64 = 19

    /// Whether anybody else wants the thread. Nobody rests for something costly who is alone.
    private func isShared(with lane: UInt32) -> Bool {
        shares.hasOther(than: lane, now: SystemClock.monotonic())
    }

    /// The users of what was taken from the queue have had the thread since then; whoever takes more than its part of
    /// it rests.
    private func settleShares(since taken: ThreadMoment, _ queue: FairQueue<ServerShard.Work>) {
        let now = ThreadMoment()
        let used = waits.used(
            computed: now.processor - taken.processor, passed: now.time - taken.time, commits: commitsOfTurn)
        shares.settle(used: used, percent: limits.threadPercentPerUser, now: now.time) { lane, rest in
            metrics.limitHits.add(1, .shardShare)
            queue.rest(lane, until: rest)
        }
    }

    @discardableResult
    private func openCore() -> ShardCore? {
        do {
            let core = ShardCore(store: try store.makeWriter(), settings: settings)
            self.core = core
            health.canCommit()
            return core
        } catch {
            log.error("store.unavailable", ["error": .text(error.description)])
            cannotCommit(error.description)
            return nil
        }
    }

    /// Commits one group and tells the loop.
    /// - Returns: whether it was committed.
    @discardableResult
    private func commit(_ core: ShardCore) -> Bool {
        let begin = SystemClock.monotonic()
        let outcome = core.commit()
        let end = SystemClock.monotonic()
        commitNanoseconds = end - begin
        // What a group's changes leave in memory is some 250 KiB; the next one's has room then.
        if !isHere { EventLoop.padHeap() }
        if outcome.appliedCount > 0 {
            gate.note(changes: outcome.appliedCount, nanoseconds: end - groupBegun)
            commitsOfTurn += 1
        }
        groupBegun = end
        count(outcome, microseconds: Int(commitNanoseconds / 1_000))
        let memory = core.memory
        metrics.bucketsLive.set(memory.buckets)
        caches.objects.set(memory.entityBytes)
        caches.buckets.set(memory.bucketBytes)
        caches.changeIDs.set(memory.changeIDBytes)
        if memory.shareEvictions > shareEvictions {
            metrics.limitHits.add(memory.shareEvictions - shareEvictions, .userObjects)
        }
        shareEvictions = memory.shareEvictions
        report(ServerShard.Report(outcome: outcome), isHere)
        let garbage = core.takeGarbage()
        if !garbage.isEmpty { decider.release(garbage) }
        return outcome.failure == nil
    }

    private func count(_ outcome: CommitOutcome, microseconds: Int) {
        if let failure = outcome.failure {
            metrics.commitFailures.add()
            if health.isReady { log.error("store.commit_failed", ["error": .text(failure)]) }
            cannotCommit(failure)
        } else if outcome.appliedCount > 0 {
            metrics.commits.add()
            metrics.commitSeconds.observe(microseconds)
            metrics.commitGroupChanges.observe(outcome.appliedCount)
            metrics.changesApplied.add(outcome.appliedCount)
            metrics.changesRebased.add(outcome.rebasedCount)
            metrics.keyframes.add(outcome.keyframeCount)
            if !health.isReady { log.info("store.commits_again") }
            health.canCommit()
        }
        guard outcome.refusedCount > 0 else { return }
        for bucket in outcome.buckets {
            for case .refused(let refused) in bucket.events {
                metrics.changesRefused.add(1, refused.code)
                if let fault = refused.sealedFault { metrics.sealedRefused.add(1, fault) }
                if refused.code == .tooLarge { metrics.limitHits.add(1, .objectBytes) }
            }
        }
    }

    private func cannotCommit(_ reason: String) {
        triesAgain = SystemClock.monotonic() + Int64(Self.retrySeconds * 1e9)
        health.cannotCommit(reason)
    }

    private func maintain(_ batch: MaintenanceBatch, _ core: ShardCore) -> Bool {
        let begin = SystemClock.monotonic()
        defer { metrics.maintenanceSeconds.observe(Int((SystemClock.monotonic() - begin) / 1_000)) }
        do {
            _ = try core.apply(batch)
            metrics.versionsCut.add(batch.cuts.reduce(0) { $0 + $1.rows.count })
            return true
        } catch {
            // The keeper tells of heads, which it tries again each second.
            if !batch.isHeadsOnly || !error.mayBeOfOneTable {
                log.warning("store.maintenance_failed", ["error": .text(error.description)])
            }
            return false
        }
    }

    /// Finds out whether a store that failed works again, so that readiness does not wait for the next change.
    private func probe(_ core: ShardCore) {
        do {
            try core.probe()
            log.info("store.commits_again")
            health.canCommit()
        } catch {
            cannotCommit(error.description)
        }
    }

    /// Without a store every change is answered 503.
    private func refuse(_ batch: [ServerShard.Work]) {
        var outcome = CommitOutcome()
        outcome.failure = "the store cannot be opened"
        for work in batch {
            switch work {
            case .request(.change(let submitted)):
                outcome.refuse(submitted, .unavailable)
                outcome.settled.append(submitted.ticket)
            case .request(.seal(let request)):
                outcome.buckets.append(
                    BucketOutcome(bucket: request.bucket, row: nil, published: nil, events: [], mode: .unknown))
            case .request(.decided(let result)):
                outcome.refuse(result.submitted, .unavailable)
                outcome.settled.append(result.submitted.ticket)
            case .request(.forget): break
            case .maintain(_, let done): done(false)
            case .settings: break
            }
        }
        if !outcome.isEmpty { report(ServerShard.Report(outcome: outcome), false) }
    }
}

extension ShardRequest {
    /// The lane of work that is no user's.
    static let houseLane: UInt32 = 0

    /// Whose turn it takes.
    var lane: UInt32 {
        switch self {
        case .change(let submitted): submitted.ticket.tenant
        case .seal(let request): request.lane
        case .decided(let result): result.submitted.ticket.tenant
        case .forget: Self.houseLane
        }
    }
}

extension ShardSettings {
    /// What takes a millisecond is decided on another thread.
    fileprivate var decidingLongOnesElsewhere: ShardSettings {
        var settings = self
        settings.decidedHereMax = 1 << 20
        return settings
    }
}

extension CommitOutcome {
    /// Adds a refusal that no bucket was asked for.
    fileprivate mutating func refuse(_ submitted: SubmittedChange, _ code: ErrorCode) {
        let request = submitted.request
        let refused = RefusedOutcome(
            origin: submitted.origin, clientID: submitted.clientID, key: request.key, code: code,
            changeIDs: request.ccid.isEmpty ? [] : [request.ccid], detail: failure ?? "")
        buckets.append(
            BucketOutcome(bucket: submitted.bucket, row: nil, published: 0, events: [.refused(refused)]))
        refusedCount += 1
    }
}
