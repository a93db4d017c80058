import Synchronization
import Testing
@testable import ThicketPlatform
import ThicketProtocol
import ThicketSQLite

@testable import ThicketServer

/// One writer with its maintenance, two readers, checks and backups at the same time, each on its own thread.
@Suite("Store under concurrent use") struct StoreConcurrencyTests {
    private final class Progress: Sendable {
        let isDone = Atomic<Bool>(false)
        let reads = Atomic<Int>(0)
        /// Failures on the threads, which belong to no test.
        let failures = Mutex<[String]>([])

        func expect(_ holds: Bool, _ claim: String) {
            if !holds { failures.withLock { $0.append(claim) } }
        }

        /// Runs `body` on its own thread.
        func start(_ name: String, _ body: @escaping @Sendable () throws -> Void) -> OwnThread {
            OwnThread(name) {
                do {
                    try body()
                } catch {
                    self.expect(false, "\(name): \(error)")
                }
            }
        }
    }

    private static var settings: StoreSettings {
        var settings: StoreSettings = .testing
        settings.busyTimeoutMilliseconds = 10_000
        settings.passivePages = 40
        settings.restartPages = 120
        return settings
    }

    @Test("every read is one sound state while groups are committed, the log is cut and the file is copied")
    func together() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: Self.settings)
        let progress = Progress()
        let id: BucketID = try StoreDriver.id("a")
        let threads: [OwnThread] = [
            progress.start("writer") { try Self.write(store, id, progress) },
            progress.start("reader 1") { try Self.read(store, id, progress) },
            progress.start("reader 2") { try Self.read(store, id, progress) },
            progress.start("backup") { try Self.copy(store, folder, progress) },
        ]
        for thread in threads { thread.join() }
        #expect(progress.failures.withLock { $0 } == [])
        #expect(progress.reads.load(ordering: .relaxed) >= 2)
        let found: StoreFindings = try StoreCheck.run(store.path, settings: Self.settings)
        #expect(found.findings == [] && found.keptBodies > 0)
    }

    private static func write(_ store: SQLiteStore, _ id: BucketID, _ progress: Progress) throws {
        defer { progress.isDone.store(true, ordering: .releasing) }
        let driver = try StoreDriver(try store.makeWriter(), seed: 51)
        var retention = RetentionSettings()
        (retention.logAgeMin, retention.logChangesMin, retention.sweepInterval) = (5_000, 40, 1_000)
        (retention.segmentLogBytesMin, retention.segmentInterval) = (2_000, 1_000)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(retention)
        for _ in 0..<50 {
            try driver.run(8, in: [id], keys: 40)
            if let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
                _ = try driver.writer.apply(batch)
            }
        }
    }

    private static func read(_ store: SQLiteStore, _ id: BucketID, _ progress: Progress) throws {
        let reader: any StoreReader = try store.makeReader()
        repeat {
            progress.reads.add(1, ordering: .relaxed)
            guard let bucket: BucketRecord = try reader.bucket(id) else { continue }
            // The floor may have risen since; then both answers are nil.
            if let page = try reader.changes(
                in: bucket.row, after: bucket.floor, upTo: bucket.head, limit: 50, byteLimit: .max)
            {
                let gids: [GlobalID] = page.changes.map(\.gid)
                progress.expect(!gids.isEmpty && gids == gids.sorted(), "changes come in order")
            }
            let query = IndexQuery(bucket: bucket.row, current: bucket.head, limit: 100, withData: true)
            if let slice: IndexSlice = try reader.indexPage(query) {
                let isSound: Bool = slice.entries.allSatisfy { $0.gid <= bucket.head && $0.body != nil }
                progress.expect(isSound && slice.entries.count == slice.total, "an index is whole")
            }
        } while !progress.isDone.load(ordering: .acquiring)
    }

    private static func copy(_ store: SQLiteStore, _ folder: StoreFolder, _ progress: Progress) throws {
        for number: Int in 0..<3 {
            let copy: String = folder.path("copy-\(number).db")
            _ = try StoreBackup.run(from: store.path, to: copy, settings: settings)
            progress.expect(try StoreCheck.run(copy, settings: settings).isClean, "a copy is sound")
            progress.expect(try StoreCheck.run(store.path, settings: settings).isClean, "the store is sound")
        }
    }
}
