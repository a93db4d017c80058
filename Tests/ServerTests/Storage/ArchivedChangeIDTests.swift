import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// The part of a bucket's ccids that is looked up in the store instead of held in memory.
@Suite("Archived ccids") struct ArchivedChangeIDTests {
    private func settings(perBlock: Int = 20, runs: Int = 4) -> RetentionSettings {
        var settings = RetentionSettings()
        (settings.changeIDsPerBlock, settings.changeIDsLooseMin) = (perBlock, perBlock)
        settings.changeIDRunsMax = runs
        settings.changeIDInterval = 1_000
        settings.bytesPerBatch = 1_000
        return settings
    }

    @discardableResult
    private func keep(_ maintenance: any StoreMaintenance, _ driver: StoreDriver) throws -> [MaintenanceBatch] {
        var batches: [MaintenanceBatch] = []
        driver.now += 10_000
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
            batches.append(batch)
            try #require(batches.count < 10_000, "maintenance never ends")
            _ = try driver.writer.apply(batch)
        }
        return batches
    }

    @Test("however long its log is, a bucket reads a short tail of ccids and knows every ccid")
    func shortTail() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 61)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings())
        let ids: [BucketID] = [try StoreDriver.id("a"), try StoreDriver.id("b")]
        for _ in 0..<12 {
            try driver.run(70, in: ids, keys: 3)
            for batch in try keep(maintenance, driver) {
                for merge in batch.changeIDMerges {
                    let bytes: Int = merge.blocks.reduce(0) { $0 + $1.block.count }
                    // Half of the bytes are old, up to the end of a block; four runs of 20 add the rest.
                    #expect(bytes <= 2_100)
                }
            }
            for id in ids {
                let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
                #expect(try driver.writer.changeIDTail(of: bucket.record.row).entries.count < 20)
                #expect(try driver.knownChanges(in: bucket.record) == Set(bucket.log.map(\.gid)))
                let strange: UInt64 = store.identity.hash(of: try ChangeID("never-seen"))
                #expect(try driver.writer.archivedChange(hash: strange, in: bucket.record) == nil)
            }
        }
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
        let database = try Database(path: store.path)
        #expect(try database.integer("SELECT count(*) FROM idset") ?? 0 > 10)
        #expect(try database.integer("SELECT count(*) FROM idrun") ?? 99 < 8)
    }

    @Test("a merge that is interrupted anywhere loses no ccid, and the next one finishes", arguments: 0..<6)
    func brokenMerge(_ stop: Int) throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 62)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(200, in: [id])
        try keep(try store.makeMaintenance(settings()), driver)
        try driver.run(100, in: [id])
        driver.now += 10_000
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings())
        var merges = 0
        while merges <= stop, let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
            merges += batch.changeIDMerges.count
            if merges <= stop { _ = try driver.writer.apply(batch) }
        }
        let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
        #expect(try driver.knownChanges(in: bucket.record) == Set(bucket.log.map(\.gid)))
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
        try keep(try store.makeMaintenance(settings()), driver)
        #expect(try driver.knownChanges(in: bucket.record) == Set(bucket.log.map(\.gid)))
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    @Test("blocks whose changes were all cut from the log are removed, and their ccids stay known")
    func cutRuns() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 68)
        var settings: RetentionSettings = settings(runs: 1_000)
        (settings.logAgeMin, settings.logChangesMin, settings.sweepInterval) = (0, 50, 1_000)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        let id: BucketID = try StoreDriver.id("a")
        for _ in 0..<8 {
            try driver.run(60, in: [id])
            for batch in try keep(maintenance, driver) {
                for cut in batch.cuts { driver.buckets[id]?.record.floor = cut.floor }
            }
            let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
            #expect(try driver.knownChanges(in: bucket.record) == Set(bucket.log.map(\.gid)))
        }
        let database = try Database(path: store.path)
        let (rows, runs): (Int64, Int64) = (
            try database.integer("SELECT count(*) FROM chg") ?? 0,
            try database.integer("SELECT count(*) FROM idrun") ?? 0
        )
        #expect(rows < 130, "the log was not cut")
        #expect(runs <= rows / 20 + 1, "\(runs) blocks of 20 for a log of \(rows) changes")
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    @Test("a run planned twice is applied once")
    func staleRun() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 63)
        try driver.run(50, in: [try StoreDriver.id("a")])
        let (one, two): (any StoreMaintenance, any StoreMaintenance) = (
            try store.makeMaintenance(settings()), try store.makeMaintenance(settings())
        )
        let first: MaintenanceBatch = try #require(try one.nextBatch(now: driver.now))
        let second: MaintenanceBatch = try #require(try two.nextBatch(now: driver.now))
        #expect(first == second && first.changeIDRuns.count == 1)
        #expect(try driver.writer.apply(first).map(\.archived) == [first.changeIDRuns[0].archived])
        #expect(try driver.writer.apply(second).isEmpty)
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    @Test("the check finds a missing archived ccid")
    func missing() throws {
        let folder = StoreFolder()
        do {
            let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
            let driver = try StoreDriver(try store.makeWriter(), seed: 64)
            try driver.run(90, in: [try StoreDriver.id("a")])
            try keep(try store.makeMaintenance(settings(runs: 99)), driver)
        }
        try folder.run("DELETE FROM idrun WHERE id = 2", in: "thicket.db")
        let found: StoreFindings = try StoreCheck.run(folder.path("thicket.db"), settings: .testing)
        #expect(found.findings == ["bucket 1, its ccids: 20 changes are not found by their ccid"])
    }

    @Test("a store of schema version 1 archives the ccids that it has")
    func migrated() throws {
        let folder = StoreFolder()
        var log: Set<GlobalID> = []
        let id: BucketID = try StoreDriver.id("a")
        let saved: [BucketID: StoreDriver.Bucket] = try {
            let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
            let driver = try StoreDriver(try store.makeWriter(), seed: 65)
            try driver.run(90, in: [id])
            log = Set(driver.buckets[id]?.log.map(\.gid) ?? [])
            return driver.buckets
        }()
        try folder.writeAllHeads(in: "thicket.db")
        try folder.run(
            """
            DROP TABLE idrun; DROP TABLE idset; ALTER TABLE bucket DROP COLUMN settled;
            ALTER TABLE bucket DROP COLUMN loose; ALTER TABLE app DROP COLUMN partner; DROP TABLE partner;
            DROP TABLE partner_key; DROP TABLE entity; DROP TABLE device; DROP TABLE denied;
            DROP TABLE app_key; DROP INDEX token_user;
            ALTER TABLE token DROP COLUMN expires; ALTER TABLE token DROP COLUMN device; DROP TABLE account;
            DROP TABLE bundle; DROP TABLE erasure; ALTER TABLE app DROP COLUMN passwords; DROP TABLE account_code;
            DROP TABLE locked_wrap; DROP TABLE entity_bundle; DROP TABLE node; DROP TABLE batch;
            DROP TABLE blob; DROP TABLE upload; DROP TABLE blob_use; DROP TABLE blob_gone;
            DROP TABLE tree_use; DROP TABLE inbox_policy; DROP TABLE guest;
            DROP TABLE key_entry; DROP TABLE key_log; DROP TABLE key_rotation; ALTER TABLE chg DROP COLUMN aud;
            ALTER TABLE bucket DROP COLUMN mode; ALTER TABLE ent DROP COLUMN born; DROP TABLE bucket_mode;
            ALTER TABLE app DROP COLUMN notes; DROP TABLE pro; DROP TABLE old_login;
            DROP TABLE profile; DROP TABLE credential; DROP TABLE login; DROP TABLE reset_code; PRAGMA user_version=1
            """, in: "thicket.db")
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 66)
        driver.buckets = saved
        let record: BucketRecord = try #require(saved[id]).record
        #expect(try driver.writer.changeIDTail(of: record.row).entries.count == 90)
        try keep(try store.makeMaintenance(settings()), driver)
        #expect(try driver.writer.changeIDTail(of: record.row).entries.count == 10)
        #expect(try driver.knownChanges(in: record) == log)
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    @Test("client names that no change uses are removed, a few at a time, and may come again")
    func clientNames() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 67)
        let id: BucketID = try StoreDriver.id("a")
        for number: Int in 0..<60 {
            try driver.put(try EntityKey("k"), ["n": .number(JSONNumber(Int64(number)))], in: id, client: "c-\(number)")
            driver.now += 1_000
        }
        try driver.commit()
        var settings: RetentionSettings = settings()
        (settings.logAgeMin, settings.logChangesMin, settings.rowsPerBatch) = (1_000, 10, 8)
        (settings.clientScanRows, settings.sweepInterval) = (3, 1_000)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        driver.now += 10_000
        var comesBack = false
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
            #expect(batch.unusedClients?.rows.count ?? 0 <= 8)
            if batch.unusedClients != nil, !comesBack {
                // Between the scan and the write, one of these clients writes again.
                try driver.put(try EntityKey("k"), ["n": "again"], in: id, client: "c-3")
                try driver.commit()
                comesBack = true
            }
            for move in try driver.writer.apply(batch) { driver.buckets[id]?.record.floor = move.floor }
        }
        let database = try Database(path: store.path)
        #expect(comesBack)
        #expect(try database.integer("SELECT count(*) FROM client") == 11)
        #expect(try database.integer("SELECT count(*) FROM client WHERE name = 'c-3'") == 1)
        try driver.put(try EntityKey("k"), ["n": "late"], in: id, client: "c-7")
        try driver.commit()
        let head: GlobalID = try #require(driver.buckets[id]).record.head
        #expect(try store.makeReader().change(head)?.clientID.text == "c-7")
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }
}
