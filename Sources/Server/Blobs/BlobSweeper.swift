import ThicketPlatform

/// The thread that sweeps blobs: once a minute what is due, and at the start and once a day all files without a row.
final class BlobSweeper: Sendable {
    private static let pauseSeconds: Double = 60
    /// Sweeps between two searches for files without a row.
    private static let searchEvery = 1_440
    private static let niceness: Int32 = 10

    private let done = BlockingQueue<Never>(bound: 0)
    private let thread: OwnThread

    /// - Parameter now: milliseconds since 1970.
    init(store: any Store, blobs: any BlobStore, metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64) {
        let done = self.done
        thread = OwnThread("blob-sweep", stackBytes: 1 << 20) {
            OwnThread.yieldToOthers(by: Self.niceness)
            var ledger: (any BlobLedger)?
            var count = 0
            while !done.isOver {
                do throws(StoreError) {
                    let current: any BlobLedger
                    if let ledger { current = ledger } else { current = try store.makeBlobLedger() }
                    ledger = current
                    let sweep = BlobSweep(ledger: current, store: blobs)
                    record(try sweep.run(now: now()), metrics)
                    if count % Self.searchEvery == 0 {
                        metrics.blobsCollected.add(try sweep.removeUnknown(), .unknown)
                    }
                    let total = try current.total()
                    metrics.blobs.set(total.count)
                    metrics.blobBytes.set(Int(total.bytes))
                    metrics.blobUploads.set(total.openCount)
                    count += 1
                } catch {
                    log.warning("blobs.sweep_failed", ["error": .text(error.description)])
                    ledger = nil
                }
                _ = done.takeAll(until: SystemClock.steadyTime() + .seconds(Self.pauseSeconds))
            }
        }
    }

    func finish() {
        done.close()
        thread.join()
    }
}

private func record(_ report: BlobSweep.Report, _ metrics: Metrics) {
    metrics.blobsCollected.add(report.uploads, .upload)
    metrics.blobsCollected.add(report.orphans, .orphan)
    metrics.blobsCollected.add(report.files, .file)
}
