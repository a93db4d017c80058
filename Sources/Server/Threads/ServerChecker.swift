import ThicketPlatform
/// The thread that checks the database file at intervals while it is served, so that damage is found before the last
/// good backup is deleted.
final class ServerChecker: Sendable {
    private let done = BlockingQueue<Never>(bound: 0)
    private let thread: OwnThread

    /// Seconds from the start to the first check when the interval is longer: a start already causes many reads.
    private static let firstSeconds: Double = 3_600

    /// - Parameter seconds: interval between two checks; 0 disables them.
    init(store: any Store, seconds: Double, metrics: Metrics, log: Log) {
        let done = self.done
        thread = OwnThread("checker", stackBytes: 1 << 20) {
            guard seconds > 0, let store = store as? SQLiteStore else { return }
            var pause: Double = min(seconds, Self.firstSeconds)
            while true {
                _ = done.takeAll(until: SystemClock.steadyTime() + .seconds(pause))
                guard !done.isOver else { return }
                Self.check(store, metrics, log)
                pause = seconds
            }
        }
    }

    func finish() {
        done.close()
        thread.join()
    }

    private static func check(_ store: SQLiteStore, _ metrics: Metrics, _ log: Log) {
        let begin = SystemClock.monotonic()
        do throws(StoreError) {
            let findings = try store.quickFindings()
            let milliseconds = Int((SystemClock.monotonic() - begin) / 1_000_000)
            metrics.storeChecks.add()
            metrics.storeFindings.set(findings.count)
            if let first = findings.first {
                log.error("store.damaged", ["findings": .int(findings.count), "first": .text(first)])
            } else {
                log.info("store.checked", ["milliseconds": .int(milliseconds)])
            }
        } catch {
            log.error("store.check_failed", ["error": .text(error.description)])
        }
    }
}
