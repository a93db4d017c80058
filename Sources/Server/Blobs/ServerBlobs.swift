import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// The blob workers: threads that hash, write and read blobs, and their ledgers. The network loop never waits for a
/// disk.
///
/// The queue has no bound of its own: each transfer has at most `BlobDesk.queuedBytesMax` in it, and the number of
/// transfers is bounded. Work of one user is done in order, by one worker at a time; users are served in turn.
final class ServerBlobs: Sendable {
    enum Work: Sendable {
        case begin(BlobTransfer)
        case piece(BlobTransfer, [UInt8], isLast: Bool)
        case next(BlobTransfer)
        case end(BlobTransfer)

        var transfer: BlobTransfer {
            switch self {
            case .begin(let transfer), .piece(let transfer, _, _), .next(let transfer), .end(let transfer): transfer
            }
        }
    }

    /// What a worker reports to the loop.
    enum Report: Sendable {
        case step(ConnectionID, BlobService.Step)
        /// A piece of the body was processed.
        case wrote(ConnectionID, Int)
        case piece(ConnectionID, BodyPiece)
        /// The answer in progress cannot be completed.
        case failed(ConnectionID)
    }

    /// One worker waits for the disk while the other hashes.
    private static let threadCount = 2
    private static let niceness: Int32 = 5

    private let queue = FairQueue<Work>()
    private let queued: Gauge
    private let threads: [OwnThread]

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - report: called on a worker.
    init(
        store: any Store, blobs: any BlobStore, metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (Report) -> Void
    ) {
        let queue = self.queue
        let queued = metrics.blobsQueued
        self.queued = queued
        threads = (0..<Self.threadCount).map { number in
            OwnThread("blob-\(number)", stackBytes: 1 << 20) {
                OwnThread.yieldToOthers(by: Self.niceness)
                let worker = Worker(store: store, blobs: blobs, metrics: metrics, log: log, now: now, report: report)
                while let (tenant, work) = queue.next(atOnce: 1) {
                    queued.subtract()
                    worker.perform(work)
                    queue.done(tenant)
                }
            }
        }
    }

    func push(_ work: Work) {
        queued.add()
        queue.push([(work.transfer.tenant, work)])
    }

    /// Finishes the queued work, then ends the threads.
    func finish() {
        queue.close()
        for thread in threads { thread.join() }
    }

    /// The body of a thread.
    private final class Worker {
        private let store: any Store
        private let blobs: any BlobStore
        private let metrics: Metrics
        private let log: Log
        private let now: @Sendable () -> Int64
        private let report: @Sendable (Report) -> Void
        private var service: BlobService?

        init(
            store: any Store, blobs: any BlobStore, metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64,
            report: @escaping @Sendable (Report) -> Void
        ) {
            (self.store, self.blobs, self.metrics, self.log) = (store, blobs, metrics, log)
            (self.now, self.report) = (now, report)
        }

        func perform(_ work: Work) {
            let transfer = work.transfer
            do throws(StoreError) {
                try perform(work, try opened())
            } catch {
                failed(work, error)
                service?.ended(transfer)
            }
        }

        private func opened() throws(StoreError) -> BlobService {
            if let service { return service }
            let service = BlobService(
                ledger: try store.makeBlobLedger(), store: blobs, metrics: metrics, log: log,
                random: RandomBytes.make)
            self.service = service
            return service
        }

        private func perform(_ work: Work, _ service: BlobService) throws(StoreError) {
            let id = work.transfer.connection
            switch work {
            case .begin(let transfer): report(.step(id, try service.begin(transfer, now: now())))
            case .piece(let transfer, let bytes, let isLast):
                let step = try service.received(bytes, isLast: isLast, transfer, now: now())
                report(.wrote(id, bytes.count))
                if let step { report(.step(id, step)) }
            case .next(let transfer):
                if let piece = try service.next(transfer) { report(.piece(id, piece)) }
            case .end(let transfer): service.ended(transfer)
            }
        }

        private func failed(_ work: Work, _ error: StoreError) {
            log.error("blobs.failed", ["error": .text(error.description)])
            metrics.blobsRefused.add(1, .storage)
            let id = work.transfer.connection
            switch work {
            case .begin, .piece: report(.step(id, .respond(BlobAnswer.of(error))))
            case .next: report(.failed(id))
            case .end: break
            }
        }
    }
}
