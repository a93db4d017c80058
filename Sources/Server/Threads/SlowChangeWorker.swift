import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// The thread that decides changes that would occupy the shard's thread too long, and frees values that are slow to
/// free.
///
/// A user has at most one change here, because its later changes wait for that one. So the queue needs no bound of its
/// own.
final class SlowChangeWorker: Sendable {
    /// What is handed to the thread.
    enum Work: Sendable {
        case decide(DeferredChange)
        /// Large values that are not used any more. Dropping the last references frees their memory, piece by piece.
        case release([any Sendable])
    }

    private let queue = FairQueue<Work>()
    private let thread: OwnThread

    /// Gives way to threads that produce acknowledgements when more threads are busy than cores exist.
    private static let niceness: Int32 = 5

    /// - Parameter report: receives each result; called on this thread.
    init(
        store: any Store, metrics: Metrics, log: Log,
        report: @escaping @Sendable (DeferredChange.Result) -> Void
    ) {
        let queue = self.queue
        thread = OwnThread("decider", stackBytes: 16 << 20) {
            OwnThread.yieldToOthers(by: Self.niceness)
            var reader: (any StoreReader)?
            let preemption = PreemptionTimer()
            while let (tenant, work) = queue.next(atOnce: 1) {
                if case .decide(let long) = work {
                    let begin = SystemClock.threadTime()
                    reader = reader ?? Self.open(store, log)
                    var result = preemption.working { long.decide(reading: reader) }
                    result.nanoseconds = SystemClock.threadTime() - begin
                    metrics.deferredChangeSeconds.observe(Int(result.nanoseconds / 1_000))
                    report(result)
                }
                queue.done(tenant)
            }
        }
    }

    func decide(_ long: DeferredChange) { queue.push([(long.submitted.reservation.tenant, .decide(long))]) }

    func release(_ values: [any Sendable]) { queue.push([(ShardRequest.internalWork, .release(values))]) }

    /// Finishes the queued work, then ends the thread.
    func finish() {
        queue.close()
        thread.join()
    }

    /// nil when the store cannot be read now: a change that needs the store is then decided on the shard's thread.
    private static func open(_ store: any Store, _ log: Log) -> (any StoreReader)? {
        do {
            return try store.makeReader()
        } catch {
            log.warning("store.read_failed", ["error": .text(error.description)])
            return nil
        }
    }
}
