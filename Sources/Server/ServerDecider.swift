import ThicketProtocol

/// The thread that decides what would keep the shard's too long, and lets go of what takes long to let go of.
///
/// A user has one change here at most: the user's next ones wait for it. So it has no bound of its own.
final class ServerDecider: Sendable {
    /// What is handed to the thread.
    enum Work: Sendable {
        case decide(LongDecision)
        /// Large values that nobody needs any more: with the last reference to them their memory is given back, piece
        /// by piece.
        case release([any Sendable])
    }

    private let queue = FairQueue<Work>()
    private let thread: OwnThread

    /// Acknowledgements of others go first where there are more threads than cores.
    private static let niceness: Int32 = 5

    /// - Parameter report: gets each result; called on the thread.
    init(
        store: any Store, metrics: Metrics, log: Log,
        report: @escaping @Sendable (LongDecision.Result) -> Void
    ) {
        let queue = self.queue
        thread = OwnThread("decider", stackBytes: 16 << 20) {
            OwnThread.yieldToOthers(by: Self.niceness)
            var reader: (any StoreReader)?
            let pacer = Pacer()
            while let (lane, work) = queue.next(atOnce: 1) {
                if case .decide(let long) = work {
                    let begin = SystemClock.threadTime()
                    reader = reader ?? Self.open(store, log)
                    var result = pacer.working { long.decide(reading: reader) }
                    result.nanoseconds = SystemClock.threadTime() - begin
                    metrics.longDecisionSeconds.observe(Int(result.nanoseconds / 1_000))
                    report(result)
                }
                queue.done(lane)
            }
        }
    }

    func decide(_ long: LongDecision) { queue.push([(long.submitted.ticket.tenant, .decide(long))]) }

    func release(_ values: [any Sendable]) { queue.push([(ShardRequest.houseLane, .release(values))]) }

    /// Finishes what has been handed over and ends.
    func finish() {
        queue.close()
        thread.join()
    }

    /// nil when the store cannot be read now: what needs it is then decided where it is written.
    private static func open(_ store: any Store, _ log: Log) -> (any StoreReader)? {
        do {
            return try store.makeReader()
        } catch {
            log.warning("store.read_failed", ["error": .text(error.description)])
            return nil
        }
    }
}
