import Testing
import ThicketFaultDisk
@testable import ThicketPlatform
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// How long one step of maintenance may hold the shard's thread, counted in rows and bytes.
@Suite("Steps of maintenance") struct MaintenanceStepTests {
    private func tiny() -> RetentionSettings {
        var settings = RetentionSettings()
        (settings.logAgeMin, settings.logChangesMin) = (1_000, 60)
        (settings.versionsNewest, settings.versionsSparse) = (6, 2)
        (settings.rowsPerBatch, settings.bytesPerBatch) = (24, 3_000)
        (settings.segmentBytes, settings.segmentLogBytesMin, settings.segmentInterval) = (1_500, 1_000, 1_000)
        settings.changeIDsLooseMin = 10
        (settings.changeIDsPerBlock, settings.changeIDRunsMax, settings.changeIDInterval) = (10, 6, 1_000)
        (settings.sweepInterval, settings.clientInterval, settings.clientScanRows) = (1_000, 1_000, 10)
        return settings
    }

    /// Rows and their ccids, and the versions of one object, which is always included.
    private func rowsMax(_ settings: RetentionSettings) -> Int {
        2 * settings.rowsPerBatch + 2 * Int(settings.versionsNewest + settings.versionsSparse)
    }

    /// A merge reads half a batch of blocks and all of its runs, and writes what it read; one body is always included.
    private func bytesMax(_ settings: RetentionSettings) -> Int {
        let runs: Int = settings.changeIDRunsMax * settings.changeIDsPerBlock * ChangeIDBlock.entryBytes
        let block: Int = settings.changeIDsPerBlock * ChangeIDBlock.entryBytes
        return max(2 * (settings.bytesPerBatch / 2 + block + runs), 2 * settings.bytesPerBatch + settings.segmentBytes)
    }

    @Test("each step of maintenance is as small after many changes as after few", arguments: [81, 82] as [UInt64])
    func steps(_ seed: UInt64) throws {
        let settings: RetentionSettings = tiny()
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: seed)
        driver.policy.diffsMin = 4
        let ids: [BucketID] = [try StoreDriver.id("a"), try StoreDriver.id("b")]
        var kinds: Set<String> = []
        var merged = 0
        for changes: Int in [1_200, 60] {
            try driver.run(changes, in: ids, keys: 60)
            driver.now += 10_000
            let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
            var steps = 0
            while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
                steps += 1
                try #require(steps < 10_000, "maintenance never ends")
                #expect(batch.rowCount <= rowsMax(settings), "\(batch.rowCount) rows in one step")
                #expect(batch.byteCount <= bytesMax(settings), "\(batch.byteCount) bytes in one step")
                let database = try Database(path: store.path)
                let before: Int64 = try rows(database)
                for move in try driver.writer.apply(batch) {
                    for (id, bucket) in driver.buckets where bucket.record.row == move.bucket {
                        driver.buckets[id]?.record.floor = move.floor
                    }
                }
                // The counted rows are the removed rows: no uncounted range is removed.
                #expect(before - (try rows(database)) <= Int64(batch.rowCount))
                #expect(
                    try database.integer("SELECT max(n) FROM (SELECT count(*) AS n FROM idrun GROUP BY b)") ?? 0
                        <= 2 * Int64(settings.changeIDRunsMax))
                if !batch.cuts.isEmpty { kinds.insert("cut") }
                if !batch.segments.isEmpty { kinds.insert("segments") }
                if !batch.changeIDRuns.isEmpty { kinds.insert("run") }
                merged += batch.changeIDMerges.count
            }
            for id in ids {
                let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
                #expect(try driver.knownChanges(in: bucket.record) == Set(bucket.log.map(\.gid)))
            }
        }
        #expect(kinds == ["cut", "segments", "run"] && merged > 4)
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    private func rows(_ database: Database) throws -> Int64 {
        try database.integer(
            """
            SELECT (SELECT count(*) FROM chg) + (SELECT count(*) FROM seg) + (SELECT count(*) FROM idrun)
                + (SELECT count(*) FROM idset) + (SELECT count(*) FROM ver) + (SELECT count(*) FROM client)
                + (SELECT count(*) FROM old_ccid)
            """) ?? 0
    }

    @Test("a merge step that the disk refuses is reported to maintenance as failed")
    func refusedPiece() throws {
        let folder = StoreFolder()
        let disk = FaultVFS(name: "merge-refused")
        var storeSettings: StoreSettings = .testing
        storeSettings.vfs = disk.name
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: storeSettings)
        let driver = try StoreDriver(try store.makeWriter(), seed: 83)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(1_500, in: [id])
        let metrics = Metrics()
        let health = Health()
        let shard = ServerShard(
            store: store, settings: ShardSettings(), limits: ServerLimits(), metrics: metrics, health: health,
            log: .silent
        ) { _ in }
        shard.awaitOpening()
        let answers = BlockingQueue<Bool>(bound: 1)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(tiny())
        driver.now += 10_000
        var batch: MaintenanceBatch? = try maintenance.nextBatch(now: driver.now)
        while let next: MaintenanceBatch = batch, next.changeIDMerges.isEmpty {
            shard.maintain(next) { answers.add($0) }
            #expect(answers.takeAll() == [true])
            batch = try maintenance.nextBatch(now: driver.now)
        }
        disk.fail(FaultRule(.write, .full, times: 1, suffix: "-wal"))
        shard.maintain(try #require(batch)) { answers.add($0) }
        #expect(answers.takeAll() == [false], "maintenance is notified and plans again")
        shard.finish()
    }
}
