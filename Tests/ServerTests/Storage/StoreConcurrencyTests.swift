import Synchronization
import Testing
import ThicketProtocol
import ThicketSQLite

@testable import ThicketServer

/// One writer, several readers, the keeper, an audit and a backup at the same time, each on its own thread.
@Suite("Store under concurrent use") struct StoreConcurrencyTests {
    private final class Progress: Sendable {
        let isDone: Atomic<Bool> = .init(false)
        let reads: Atomic<Int> = .init(0)
        /// Work the keeper has planned, for the writer's thread.
        let planned: Mutex<[MaintenanceBatch]> = .init([])
    }

    private static var settings: StoreSettings {
        var settings: StoreSettings = .testing
        settings.busyTimeoutMilliseconds = 5_000
        settings.passivePages = 40
        settings.restartPages = 120
        return settings
    }

    @Test("every read is one sound state while groups are committed, the log is cut and the file is copied")
    func together() async throws {
        let folder: StoreFolder = .init()
        let settings: StoreSettings = Self.settings
        let store: SQLiteStore = try .init(path: folder.path("thicket.db"), settings: settings)
        let progress: Progress = .init()
        let id: BucketID = try StoreDriver.id("a")
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try Self.write(store, id, progress) }
            for _ in 0..<2 { group.addTask { try Self.read(store, id, progress) } }
            group.addTask {
                for number: Int in 0..<3 {
                    let copy: String = folder.path("copy-\(number).db")
                    _ = try StoreBackup.run(from: store.path, to: copy, settings: settings)
                    #expect(try StoreCheck.run(copy, settings: settings).findings == [])
                    #expect(try StoreCheck.run(store.path, settings: settings).findings == [])
                }
            }
            try await group.waitForAll()
        }
        #expect(progress.reads.load(ordering: .relaxed) > 0)
        let found: StoreFindings = try StoreCheck.run(store.path, settings: settings)
        #expect(found.findings == [] && found.keptBodies > 0)
    }

    private static func write(_ store: SQLiteStore, _ id: BucketID, _ progress: Progress) throws {
        defer { progress.isDone.store(true, ordering: .relaxed) }
        let driver: StoreDriver = try .init(try store.makeWriter(), seed: 51)
        var retention: RetentionSettings = .init()
        (retention.logAgeMin, retention.logChangesMin, retention.sweepInterval) = (5_000, 40, 1_000)
        (retention.segmentLogBytesMin, retention.segmentInterval) = (2_000, 1_000)
        let keeper: any StoreKeeper = try store.makeKeeper(retention)
        for _ in 0..<60 {
            try driver.run(8, in: [id], keys: 40)
            if let batch: MaintenanceBatch = try keeper.nextBatch(now: driver.now) {
                _ = try driver.writer.apply(batch)
            }
        }
    }

    private static func read(_ store: SQLiteStore, _ id: BucketID, _ progress: Progress) throws {
        let reader: any StoreReader = try store.makeReader()
        while !progress.isDone.load(ordering: .relaxed) {
            guard let bucket: BucketRecord = try reader.bucket(id) else { continue }
            // The floor may have risen since; then both answers are nil.
            if let page = try reader.changes(
                in: bucket.row, after: bucket.floor, upTo: bucket.head, limit: 50, byteLimit: .max)
            {
                #expect(!page.changes.isEmpty)
                #expect(page.changes.map(\.gid) == page.changes.map(\.gid).sorted())
            }
            let query: IndexQuery = .init(bucket: bucket.row, current: bucket.head, limit: 100, withData: true)
            if let slice: IndexSlice = try reader.indexPage(query) {
                #expect(slice.entries.allSatisfy { $0.gid <= bucket.head && $0.body != nil })
                #expect(slice.entries.count == slice.total)
            }
            progress.reads.add(1, ordering: .relaxed)
        }
    }
}
