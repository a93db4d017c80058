import Synchronization
import ThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// Decides and commits: on the shard's thread, or in its place on the thread that calls `commitNow`.
///
/// `@unchecked`: all state is used only under `turn`.
final class ShardRunner: @unchecked Sendable {
    /// Held by the thread that decides and commits. Everything below is protected by it.
    private let turn = Mutex<Void>(())
    private let store: any Store
    private var settings: ShardSettings
    private var limits: ServerLimits
    private let metrics: Metrics
    private let caches: (objects: Gauge, buckets: Gauge, changeIDs: Gauge)
    private let health: Health
    private let log: Log
    private let slowChangeWorker: SlowChangeWorker
    private let report: @Sendable (ServerShard.Report) -> Void
    private var core: ShardCore?
    private var gate: InlineGate
    /// Nanoseconds that the last commit took.
    private var commitNanoseconds: Int64 = 0
    /// When the first decision of the current group began, in nanoseconds.
    private var groupBegun: Int64 = 0
    /// When a failed store is tried again, in nanoseconds.
    private var triesAgain: Int64 = 0
    private var fairness = Fairness()
    /// Groups committed since work was last taken from the queue.
    private var commitsOfTurn = 0
    /// Number of objects that the core has evicted because of their users' quotas.
    private var shareEvictions = 0
    /// What `commitNow` has committed; nil while the shard's thread commits.
    private var inline: [ServerShard.Report]?

    /// The users' shares of the thread.
    private struct Fairness {
        /// What each user has used of the thread, and which users used it recently.
        var shares = TenantShares()
        var waits = RecentWaits()
        var penaltyBox = PenaltyBox()
    }

    /// Most changes taken from the queue at once; the core reports when a group is full.
    private static let takenAtOnce = 4_096
    /// Approximate time to decide a change, in nanoseconds.
    private static let decisionNanoseconds: Int64 = 25_000
    /// Seconds between two attempts on a store that does not answer.
    private static let retrySeconds = 0.5

    init(
        store: any Store, settings: ShardSettings, limits: ServerLimits, metrics: Metrics, health: Health, log: Log,
        slowChangeWorker: SlowChangeWorker, report: @escaping @Sendable (ServerShard.Report) -> Void
    ) {
        self.store = store
        self.settings = settings.decidingLongOnesElsewhere
        self.slowChangeWorker = slowChangeWorker
        self.limits = limits
        self.metrics = metrics
        let caches = metrics.cacheBytes
        self.caches = (caches.gauge(.objects), caches.gauge(.buckets), caches.gauge(.changeIDs))
        self.health = health
        self.log = log
        self.report = report
        gate = InlineGate(microseconds: limits.inlineCommitMicroseconds)
    }

    /// - Parameter opened: called once, after the first attempt, with whether the store is open.
    func run(_ queue: FairQueue<ServerShard.Work>, opened: (Bool) -> Void) {
        var patience = turn.withLock { _ in
            opened(openCore() != nil)
            return self.patience
        }
        while queue.awaitWork(seconds: patience) {
            patience = turn.withLock { _ in
                let (share, weightMax) = share
                process(queue.take(most: Self.takenAtOnce, share: share, weightMax: weightMax), queue)
                return self.patience
            }
        }
        turn.withLock { _ in
            while let core, core.hasBacklog, commit(core) {}
        }
    }

    /// Seconds to wait for work.
    private var patience: Double {
        if core?.hasBacklog == true { return 0 }
        return health.isReady && core != nil ? 60 : max(0, Double(triesAgain - SystemClock.monotonic()) / 1e9)
    }

    /// Takes and commits changes on the caller's thread while no other work is queued or in progress.
    /// - Returns: nil when that might take long; nothing was done then.
    func commitNow(
        _ changes: [ShardRequest], _ queue: FairQueue<ServerShard.Work>, _ beforehand: () -> Void
    ) -> [ServerShard.Report]? {
        let reports = turn.withLockIfAvailable { _ in
            commitHere(changes, queue, beforehand)
        }
        return reports ?? nil
    }

    private func commitHere(
        _ changes: [ShardRequest], _ queue: FairQueue<ServerShard.Work>, _ beforehand: () -> Void
    ) -> [ServerShard.Report]? {
        guard gate.isOpen, health.isReady, let core, queue.isIdle(for: changes.lazy.map(\.tenant)) else { return nil }
        beforehand()
        guard core.beginCommit(of: changes) else { return nil }
        metrics.commitsInline.add()
        inline = []
        process(changes.map { .request($0) }, queue)
        defer { inline = nil }
        // The thread sleeps, and has work that is not queued: the rest of a group, or a store to try again.
        if core.hasBacklog || !health.isReady { queue.rouse() }
        return inline
    }

    /// Bounds on one user's part of a group: the number of changes and their weight. On a slow disk the number grows
    /// until deciding the changes takes as long as a commit.
    private var share: (count: Int, weightMax: Int) {
        let worthIt = Int(commitNanoseconds / Self.decisionNanoseconds)
        guard fairness.shares.isShared(now: SystemClock.monotonic()) else {
            return (max(limits.changesPerUserTurn, worthIt), .max)
        }
        let most = max(min(limits.changesPerUserTurn, TenantShares.shareOfGroup), worthIt)
        return (most, most)
    }

    private func process(_ batch: [ServerShard.Work], _ queue: FairQueue<ServerShard.Work>) {
        for case .settings(let settings, let limits) in batch where core == nil { use(settings, limits) }
        guard let core = core ?? openCore() else { return refuse(batch) }
        let taken = ThreadMoment()
        groupBegun = taken.time
        commitsOfTurn = 0
        defer { chargeShares(since: taken, queue) }
        var host = Batch(runner: self, core: core, queue: queue, work: batch)
        core.run(batch, for: &host)
        // The wait may have ended early, before `triesAgain`; then the probe is not due yet.
        if batch.isEmpty && !health.isReady && SystemClock.monotonic() >= triesAgain { probe(core) }
    }

    /// One batch on its way through the core.
    private struct Batch: ShardHost {
        let runner: ShardRunner
        let core: ShardCore
        let queue: FairQueue<ServerShard.Work>
        let work: [ServerShard.Work]
        var meter: CostMeter
        /// Tenants whose work in this batch was put back.
        var left = Set<TenantID>()

        init(runner: ShardRunner, core: ShardCore, queue: FairQueue<ServerShard.Work>, work: [ServerShard.Work]) {
            (self.runner, self.core, self.queue, self.work) = (runner, core, queue, work)
            meter = CostMeter(costlyMicroseconds: runner.limits.costlyMicroseconds)
        }

        func request(in work: ServerShard.Work) -> ShardRequest? {
            if case .request(let request) = work { request } else { nil }
        }

        func begins(_ request: ShardRequest) -> Bool {
            guard !left.contains(request.tenant) else { return false }
            runner.fairness.shares.count(request.tenant)
            return true
        }

        mutating func received(_ request: ShardRequest, at index: Int, deferred: DeferredChange?) {
            let tenant = request.tenant
            if let deferred {
                left.insert(tenant)
                queue.hold(tenant, puttingBack: rest(after: index, tenant))
                runner.slowChangeWorker.decide(deferred)
            }
            let until = runner.throttle(of: tenant, costing: meter.lap()) ?? runner.elsewhere(request)
            guard let until, runner.isShared(with: tenant) else { return }
            runner.metrics.limitHits.add(1, .costlyChanges)
            let isLeft = !left.insert(tenant).inserted
            queue.throttle(tenant, until: until, puttingBack: isLeft ? [] : rest(after: index, tenant))
        }

        /// The tenant's requests after `index`, which have not begun.
        private func rest(after index: Int, _ tenant: TenantID) -> [ServerShard.Work] {
            work[(index + 1)...].filter { request(in: $0)?.tenant == tenant }
        }

        mutating func commit(requests: Int) -> Bool {
            runner.commit(core)
            meter.begin()
            return true
        }

        mutating func perform(_ work: ServerShard.Work) {
            switch work {
            case .request: break
            case .maintain(let maintenance, let done): done(runner.maintain(maintenance, core))
            case .burn(let now, let done):
                let hasMore = core.burn(now: now)
                done(runner.commit(core) && hasMore)
            case .settings(let settings, let limits):
                runner.use(settings, limits)
                core.use(runner.settings)
                meter = CostMeter(costlyMicroseconds: limits.costlyMicroseconds)
            }
            meter.begin()
        }
    }

    private func use(_ settings: ShardSettings, _ limits: ServerLimits) {
        self.settings = settings.decidingLongOnesElsewhere
        self.limits = limits
        gate = InlineGate(microseconds: limits.inlineCommitMicroseconds)
    }

    /// The time until which a tenant is throttled whose change was costly to decide on this thread.
    private func throttle(of tenant: TenantID, costing cost: Int64?) -> Int64? {
        // As on the loop: costly work of a user that was alone is not remembered.
        guard let cost, isShared(with: tenant) else { return nil }
        return fairness.penaltyBox.throttle(
            of: tenant, cost: cost, factor: limits.costlyThrottleFactor, now: SystemClock.monotonic())
    }

    /// The time until which a tenant is throttled whose change another thread decided: it used a part of that thread.
    private func elsewhere(_ request: ShardRequest) -> Int64? {
        guard case .decided(let result) = request, result.nanoseconds >= Int64(limits.costlyMicroseconds) * 1_000
        else { return nil }
        return SystemClock.monotonic() + result.nanoseconds * Self.elsewhereThrottleFactor
    }

    /// While other users want the shard's thread, a user gets a twentieth of `SlowChangeWorker`'s time. With a quarter,
    /// slow changes kept the cores busier than the acknowledgements of other users allow.
    private static let elsewhereThrottleFactor: Int64 = 19

    /// Whether another user wants the thread. A user that is alone is not throttled for costly work.
    private func isShared(with tenant: TenantID) -> Bool {
        fairness.shares.hasOther(than: tenant, now: SystemClock.monotonic())
    }

    /// Charges the thread's time since `taken` to the users of the work taken then. A user that exceeds its share is
    /// throttled.
    private func chargeShares(since taken: ThreadMoment, _ queue: FairQueue<ServerShard.Work>) {
        let now = ThreadMoment()
        let used = fairness.waits.used(
            computed: now.processor - taken.processor, passed: now.time - taken.time, commits: commitsOfTurn)
        fairness.shares.charge(used: used, percent: limits.threadPercentPerUser, now: now.time) { tenant, until in
            metrics.limitHits.add(1, .shardShare)
            queue.throttle(tenant, until: until)
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

    /// Commits one group and reports it.
    /// - Returns: whether it was committed.
    @discardableResult
    private func commit(_ core: ShardCore) -> Bool {
        let begin = SystemClock.monotonic()
        let outcome = core.commit()
        let end = SystemClock.monotonic()
        commitNanoseconds = end - begin
        // A group's changes leave about 250 KiB in memory; this reserves room for those of the next group.
        if inline == nil { EventLoop.padHeap() }
        if outcome.appliedCount > 0 {
            gate.record(changes: outcome.appliedCount, nanoseconds: end - groupBegun)
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
        if inline == nil { report(ServerShard.Report(outcome: outcome)) }
        inline?.append(ServerShard.Report(outcome: outcome))
        let garbage = core.takeGarbage()
        if !garbage.isEmpty { slowChangeWorker.release(garbage) }
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
        if outcome.batchCount > 0 { metrics.treeBatches.add(outcome.batchCount) }
        if outcome.burnedCount > 0 { metrics.treeBurned.add(outcome.burnedCount) }
        guard outcome.refusedCount > 0 else { return }
        for bucket in outcome.buckets {
            for case .refused(let refused) in bucket.events {
                metrics.changesRefused.add(1, refused.code)
                if let fault = refused.sealedFault { metrics.sealedRefused.add(1, fault) }
                if let tree = refused.tree { metrics.treeRefused.add(1, tree.reason) }
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
            // The maintenance thread reports failures to write heads; it retries each second.
            if !batch.isHeadsOnly || !error.mayBeOfOneTable {
                log.warning("store.maintenance_failed", ["error": .text(error.description)])
            }
            return false
        }
    }

    /// Checks whether a failed store works again, so that readiness does not wait for the next change.
    private func probe(_ core: ShardCore) {
        do {
            try core.probe()
            log.info("store.commits_again")
            health.canCommit()
        } catch {
            cannotCommit(error.description)
        }
    }

    /// Answers every change with code 503 while the store is not open.
    private func refuse(_ batch: [ServerShard.Work]) {
        var outcome = CommitOutcome()
        outcome.failure = "the store cannot be opened"
        for work in batch {
            switch work {
            case .request(.change(let submitted)):
                outcome.refuse(submitted, .unavailable)
                outcome.released.append(submitted.reservation)
            case .request(.chooseMode(let request)):
                outcome.buckets.append(
                    BucketOutcome(bucket: request.bucket, row: nil, published: nil, events: [], mode: .unknown))
            case .request(.decided(let result)):
                outcome.refuse(result.submitted, .unavailable)
                outcome.released.append(result.submitted.reservation)
            case .request(.forget): break
            case .maintain(_, let done), .burn(_, let done): done(false)
            case .settings: break
            }
        }
        if !outcome.isEmpty { report(ServerShard.Report(outcome: outcome)) }
    }
}

extension ShardSettings {
    /// Settings under which changes that take a millisecond or more are decided on another thread.
    fileprivate var decidingLongOnesElsewhere: ShardSettings {
        var settings = self
        settings.decidedHereMax = 1 << 20
        return settings
    }
}

extension CommitOutcome {
    /// Adds a refusal for which no bucket was read.
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
