import Synchronization
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// Threads that read from the store. Each has its own store reader.
final class ServerReaders: Sendable {
    /// A read request with its answer.
    struct Answered: Sendable {
        let tenant: TenantID
        let request: ReadRequest
        let answer: ReadAnswer
    }

    /// Bounds that can change while the threads run.
    final class SharedLimits: Sendable {
        private let value: Mutex<ServerLimits>
        init(_ limits: ServerLimits) { value = Mutex(limits) }
        var current: ServerLimits { value.withLock { $0 } }
        func set(_ limits: ServerLimits) { value.withLock { $0 = limits } }
    }

    private let queue = FairQueue<ReadRequest>()
    private let limits: SharedLimits
    private let threads: [OwnThread]

    /// - Parameters:
    ///   - count: number of threads; at least one is started.
    ///   - report: called on a reader's thread after each answer.
    init(
        count: Int, store: any Store, limits: ServerLimits, metrics: Metrics, log: Log,
        report: @escaping @Sendable (Answered) -> Void
    ) {
        let queue = self.queue
        // With two or more readers, one user cannot occupy all of them.
        let share = max(1, count / 2)
        let pages = PageCache(bytesMax: limits.indexCacheBytes)
        let limits = SharedLimits(limits)
        self.limits = limits
        threads = (0..<max(1, count)).map { (number: Int) in
            OwnThread("reader-\(number)", stackBytes: 16 << 20) {
                ReaderRunner(
                    store: store, limits: limits, pages: pages, metrics: metrics, log: log, report: report
                ).run(queue, share: share)
            }
        }
    }

    /// Queues requests, each for its tenant.
    func push(_ requests: [(tenant: TenantID, work: ReadRequest)]) { queue.push(requests) }

    /// Sets the bounds for later reads.
    func use(_ limits: ServerLimits) { self.limits.set(limits) }

    /// Finishes the queued reads, then ends the threads.
    func finish() {
        queue.close()
        for thread in threads { thread.join() }
    }
}

/// Runs on a reader's thread.
private final class ReaderRunner {
    private let store: any Store
    private let limits: ServerReaders.SharedLimits
    private let pages: PageCache
    private let metrics: Metrics
    private let caches: (segments: Gauge, scans: Gauge, catchUps: Gauge, pages: Gauge)
    private let log: Log
    private let report: @Sendable (ServerReaders.Answered) -> Void
    private var executor: ReadExecutor?
    private static let niceness: Int32 = 5

    init(
        store: any Store, limits: ServerReaders.SharedLimits, pages: PageCache, metrics: Metrics, log: Log,
        report: @escaping @Sendable (ServerReaders.Answered) -> Void
    ) {
        self.store = store
        self.limits = limits
        self.pages = pages
        self.metrics = metrics
        let caches = metrics.cacheBytes
        self.caches = (
            caches.gauge(.segments), caches.gauge(.scans), caches.gauge(.catchUps), caches.gauge(.indexPages)
        )
        self.log = log
        self.report = report
    }

    func run(_ queue: FairQueue<ReadRequest>, share: Int) {
        // Acknowledgements take precedence when more threads are busy than cores exist.
        OwnThread.yieldToOthers(by: Self.niceness)
        let preemption = PreemptionTimer()
        while let (tenant, request) = queue.next(atOnce: share) {
            let begin = SystemClock.monotonic()
            let answer = preemption.working { self.answer(request) }
            metrics.readSeconds.observe(Int((SystemClock.monotonic() - begin) / 1_000))
            report(ServerReaders.Answered(tenant: tenant, request: request, answer: answer))
            // When a user has many short reads queued, few of them last long enough for the preemption timer to act. A
            // user that asks for one at a time would wait behind them.
            if queue.done(tenant) { OwnThread.yield() }
        }
    }

    private func answer(_ request: ReadRequest) -> ReadAnswer {
        // These need no store and must not wait for one.
        switch request.question {
        case .message(let message): return .message(message.read())
        case .body(let body): return .body(body.read())
        default: break
        }
        do throws(StoreError) {
            if executor == nil { executor = try open() }
            executor?.limits = limits.current
            let answer = executor?.answer(request) ?? .failed(StoreError(.closed, "no reader"))
            countMemory()
            if case .failed(let error) = answer { throw error }
            return answer
        } catch {
            log.error("store.read_failed", ["error": .text(error.description)])
            executor = nil
            return .failed(error)
        }
    }

    private func countMemory() {
        let memory = store.memory
        caches.segments.set(memory.segments)
        caches.scans.set(memory.scans)
        caches.catchUps.set(memory.catchUps)
        caches.pages.set(pages.bytes)
    }

    private func open() throws(StoreError) -> ReadExecutor {
        ReadExecutor(
            reader: try store.makeReader(), codec: ChangeVersionCodec(store.identity), limits: limits.current,
            pages: pages)
    }
}
