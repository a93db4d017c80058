import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// The thread that decides changes and writes them. It owns the `ShardCore` and with it the only store writer.
///
/// It takes everything that was queued while the last group was being written, decides it and commits it as one group:
/// the slower the disk, the larger the groups. While it waits for work, the loop may commit a few small changes itself
/// (`commitNow`): one lock protects everything that deciding and committing use, and work is taken from the queue only
/// under that lock, so the order of a tenant's changes does not depend on which thread commits them.
final class ServerShard: Sendable {
    /// Work for the thread.
    enum Work: Sendable {
        case request(ShardRequest)
        /// Background work of the maintenance thread, done between two groups.
        indirect case maintain(MaintenanceBatch, done: @Sendable (Bool) -> Void)
        /// Removal of nodes whose burn time has come by `now` (milliseconds since 1970), in a group of its own; `done`
        /// receives whether more are due.
        indirect case burn(now: Int64, done: @Sendable (Bool) -> Void)
        /// New bounds for the work that follows.
        indirect case settings(ShardSettings, ServerLimits)

        /// Bytes of changes that take about as long as one small change.
        private static let bytesOfOne = 4_096

        /// In units of a small change.
        var weight: Int {
            if case .request(.change(let change)) = self { return 1 + change.reservation.bytes / Self.bytesOfOne }
            return 1
        }
    }

    /// What the shard reports to the loop.
    struct Report: Sendable {
        let outcome: CommitOutcome
    }

    private let queue = FairQueue<Work> { $0.weight }
    private let runner: ShardRunner
    /// Receives one value after the first attempt to open the store, successful or not.
    private let opened = BlockingQueue<Bool>(bound: 1)
    private let thread: OwnThread
    private let slowChangeWorker: SlowChangeWorker

    /// Longest wait for the store at the start: a file that another process locks must not make the health checks
    /// unreachable.
    private static let openingPatience = Duration.seconds(5)

    /// - Parameters:
    ///   - limits: what one user may have of the thread.
    ///   - report: called on the shard's thread after each group that it committed.
    init(
        store: any Store, settings: ShardSettings, limits: ServerLimits, metrics: Metrics, health: Health, log: Log,
        report: @escaping @Sendable (Report) -> Void
    ) {
        let queue = self.queue
        let opened = self.opened
        let slowChangeWorker = SlowChangeWorker(store: store, metrics: metrics, log: log) { result in
            queue.resume(result.submitted.reservation.tenant, with: .request(.decided(result)))
        }
        self.slowChangeWorker = slowChangeWorker
        let runner = ShardRunner(
            store: store, settings: settings, limits: limits, metrics: metrics, health: health, log: log,
            slowChangeWorker: slowChangeWorker, report: report)
        self.runner = runner
        thread = OwnThread("shard", stackBytes: 16 << 20) { runner.run(queue) { opened.add($0) } }
    }

    /// Waits for the first attempt to open the store, so that a server that reports that it listens accepts changes at
    /// once.
    func awaitOpening() { _ = opened.takeAll(until: SystemClock.steadyTime() + Self.openingPatience) }

    /// Decides and commits changes on the calling thread if they are few and small, the shard's thread is idle, and
    /// recent commits were quick.
    /// - Parameter beforehand: called once when it is almost certain that the changes will be committed here.
    /// - Returns: what was committed, after everything that was reported before; nil when nothing was done: the caller
    ///   must `push` the changes.
    func commitNow(_ requests: [(tenant: TenantID, work: Work)], beforehand: () -> Void = {}) -> [Report]? {
        guard requests.count <= InlineGate.changesMax else { return nil }
        var changes = [ShardRequest]()
        for case (_, .request(let request)) in requests { changes.append(request) }
        guard changes.count == requests.count, InlineGate.admits(changes) else { return nil }
        return runner.commitNow(changes, queue, beforehand)
    }

    /// Queues changes, each for its tenant.
    func push(_ requests: [(tenant: TenantID, work: Work)]) { queue.push(requests) }

    /// Queues background work; `done` is called on the shard's thread and receives whether the work was written.
    func maintain(_ batch: MaintenanceBatch, done: @escaping @Sendable (Bool) -> Void) {
        queue.push([(ShardRequest.internalWork, .maintain(batch, done: done))])
    }

    /// Queues one part of the removal of burned nodes; `done` is called on the shard's thread.
    func burn(now: Int64, done: @escaping @Sendable (Bool) -> Void) {
        queue.push([(ShardRequest.internalWork, .burn(now: now, done: done))])
    }

    /// Sets the bounds for changes queued from now on.
    func use(_ limits: ServerLimits) {
        queue.push([(ShardRequest.internalWork, .settings(ShardSettings(limits), limits))])
    }

    /// Finishes the queued work, then ends the threads.
    func finish() {
        queue.close()
        thread.join()
        slowChangeWorker.finish()
    }
}
