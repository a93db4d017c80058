import Glibc
import Synchronization
import ThicketPlatform
import ThicketProtocol

/// The maintenance thread: it plans the removals of the two retentions and new segments, with its own reader. The shard
/// applies the plan between two groups, so that the store has one writer.
final class MaintenanceWorker: Sendable {
    /// Seconds between two checks after one without work: under load the write-ahead log grows by tens of MiB per
    /// second.
    private static let pauseSeconds: Double = 1
    private static let niceness: Int32 = 10
    /// Seconds between two log lines about heads that were not written: each check tries again.
    private static let logSeconds: Int64 = 60

    /// Retention settings, which can change while the thread runs.
    private final class Settings: Sendable {
        let value: Mutex<RetentionSettings>
        init(_ settings: RetentionSettings) { value = Mutex(settings) }
    }

    /// Milliseconds between two sweeps for nodes whose burn time has come.
    private static let burnMilliseconds: Int64 = 60_000

    /// Receives one value when the shard has written a batch.
    private let done = BlockingQueue<Bool>(bound: 1)
    private let settings: Settings
    private let thread: OwnThread

    init(store: any Store, settings: RetentionSettings, shard: ServerShard, metrics: Metrics, log: Log) {
        let done = self.done
        let settings = Settings(settings)
        self.settings = settings
        thread = OwnThread("keeper", stackBytes: 8 << 20) {
            Self.run(store: store, settings: settings, shard: shard, metrics: metrics, log: log, done: done)
        }
    }

    /// Sets the retentions from the next check on.
    func use(_ settings: RetentionSettings) { self.settings.value.withLock { $0 = settings } }

    func finish() {
        done.close()
        thread.join()
    }

    private static func run(
        store: any Store, settings: Settings, shard: ServerShard, metrics: Metrics, log: Log, done: BlockingQueue<Bool>
    ) {
        OwnThread.yieldToOthers(by: niceness)
        var maintenance: (any StoreMaintenance)?
        var failures = HeadFailures()
        var nextBurn = Int64.min
        var known = settings.value.withLock { $0 }
        while true {
            let fresh = settings.value.withLock { $0 }
            if fresh != known { (maintenance, known) = (nil, fresh) }
            do throws(StoreError) {
                let current: any StoreMaintenance
                if let maintenance { current = maintenance } else { current = try store.makeMaintenance(known) }
                maintenance = current
                if let batch = try current.nextBatch(now: SystemClock.unixMilliseconds()) {
                    shard.maintain(batch) { done.add($0) }
                    let isWritten = done.takeAll().first ?? false
                    guard !done.isOver else { return }
                    if isWritten { continue }
                    // The plan assumed that the batch was written: a later piece would remove what an earlier one was
                    // meant to keep.
                    if !batch.isHeadsOnly { maintenance = nil }
                }
            } catch {
                log.warning("store.keeper_failed", ["error": .text(error.description)])
                maintenance = nil
            }
            burn(&nextBurn, shard, done)
            guard !done.isOver else { return }
            measure(store, metrics)
            logFailures(&failures, store, log)
            _ = done.takeAll(until: SystemClock.steadyTime() + .seconds(pauseSeconds))
            guard !done.isOver else { return }
        }
    }

    /// Removes nodes whose burn time has come, in parts, between which the shard does other work.
    private static func burn(_ next: inout Int64, _ shard: ServerShard, _ done: BlockingQueue<Bool>) {
        let now = SystemClock.unixMilliseconds()
        guard now >= next || next - now > burnMilliseconds else { return }
        next = now + burnMilliseconds
        var hasMore = true
        while hasMore, !done.isOver {
            shard.burn(now: now) { done.add($0) }
            hasMore = done.takeAll().first ?? false
        }
    }

    /// How many failures to write heads were seen, and when the next one may be logged.
    private struct HeadFailures {
        var seen = 0
        var logsAgain = Int64.min
    }

    /// Logs that heads were not written, at most once a minute.
    private static func logFailures(_ failures: inout HeadFailures, _ store: any Store, _ log: Log) {
        guard let (count, last) = (store as? SQLiteStore)?.headFailures, count > failures.seen else {
            return
        }
        failures.seen = count
        let now = SystemClock.monotonic()
        // A lasting problem produces more failures after the pause.
        guard now >= failures.logsAgain else { return }
        log.error("store.heads_failed", ["error": .text(last), "next": "run 'thicketd check'"])
        failures.logsAgain = now + logSeconds * 1_000_000_000
    }

    /// Records the sizes of the files.
    private static func measure(_ store: any Store, _ metrics: Metrics) {
        guard let store = store as? SQLiteStore else { return }
        metrics.storeWriteBehindHeads.set(store.writeBehindHeadCount)
        let path = store.path
        var info = stat()
        if stat(path, &info) == 0 { metrics.storeBytes.set(Int(info.st_size)) }
        if stat(path + "-wal", &info) == 0 { metrics.storeWALBytes.set(Int(info.st_size)) }
    }
}
