import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// Erasure of the data of users whose accounts have ended.
@Suite("Erasing users") struct StoreErasureTests {
    private let folder = StoreFolder()

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

    /// Rows of all tables that hold what users wrote.
    private static let tables: [String] = ["chg", "ent", "ver", "seg", "old_ccid", "idrun", "idset"]

    private func rows(_ database: Database) throws -> Int64 {
        try (Self.tables + ["bucket"]).reduce(0) { try $0 + (database.integer("SELECT count(*) FROM \($1)") ?? 0) }
    }

    private func end(_ user: String, _ database: Database) throws {
        try database.execute("INSERT INTO erasure (app, user, created) VALUES ('notes', '\(user)', 1)")
    }

    /// Ann's and Bob's buckets, with everything that maintenance makes of them.
    private func fill(_ store: SQLiteStore, seed: UInt64) throws -> StoreDriver {
        let driver = try StoreDriver(try store.makeWriter(), seed: seed)
        driver.policy.diffsMin = 4
        let ids: [BucketID] = try ["a", "b"].flatMap { name in
            try ["ann", "bob"].map { try StoreDriver.id(name, user: $0) }
        }
        for _ in 0..<2 {
            try driver.run(600, in: ids, keys: 60)
            driver.now += 10_000
            let maintenance: any StoreMaintenance = try store.makeMaintenance(tiny())
            while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
                for move in try driver.writer.apply(batch) {
                    for (id, bucket) in driver.buckets where bucket.record.row == move.bucket {
                        driver.buckets[id]?.record.floor = move.floor
                    }
                }
            }
        }
        try driver.run(40, in: ids, keys: 60)
        return driver
    }

    @Test(
        "all rows of an erased user go in small steps, also over crashes; others keep theirs, no position is reused",
        arguments: [(201, false), (202, true)] as [(UInt64, Bool)])
    func erases(seed: UInt64, crashes: Bool) throws {
        var store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver: StoreDriver = try fill(store, seed: seed)
        let database = try Database(path: store.path)
        for table in Self.tables where table != "idrun" {
            let buckets: Int64 = try database.integer("SELECT count(DISTINCT b) FROM \(table)") ?? 0
            #expect(buckets > 0, "nothing in \(table)")
        }
        let newest: GlobalID = try driver.writer.lastGlobalID()
        let settings: RetentionSettings = tiny()
        try end("ann", database)
        var maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        var steps = 0
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now), !batch.erasures.isEmpty {
            steps += 1
            try #require(steps < 10_000, "it never ends")
            let before: Int64 = try rows(database)
            _ = try driver.writer.apply(batch)
            #expect(before - (try rows(database)) <= Int64(batch.rowCount))
            if steps % 8 == 1 { #expect(try StoreCheck.run(store.path, settings: .testing).findings == []) }
            #expect(try driver.writer.lastGlobalID() >= newest)
            if crashes {
                store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
                driver.writer = try store.makeWriter()
                maintenance = try store.makeMaintenance(settings)
            }
        }
        #expect(steps > 20)
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
        #expect(try driver.writer.buckets(of: AppID("notes"), user: UserID("ann")).isEmpty)
        #expect(try database.integer("SELECT count(*) FROM erasure") == 0)
        for table in Self.tables {
            let strays: Int64? = try database.integer(
                "SELECT count(*) FROM \(table) WHERE b NOT IN (SELECT id FROM bucket)")
            #expect(strays == 0, "\(table)")
        }
        for name: String in ["a", "b"] {
            let id: BucketID = try StoreDriver.id(name, user: "bob")
            let record: BucketRecord = try #require(try driver.writer.bucket(id))
            #expect(record == driver.buckets[id]?.record)
            for (key, object) in try #require(driver.buckets[id]).objects {
                let head: EntityHead = try #require(try driver.writer.head(of: key, in: record.row))
                #expect(head.record == object.record)
                #expect(try head.body.map { try JSONValue(parsing: $0) } == object.body.map(JSONValue.object))
            }
        }
        try driver.run(20, in: [try StoreDriver.id("c", user: "bob")])
        #expect(try driver.writer.lastGlobalID() == newest + 20)
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    @Test(
        "a backup holds nothing that an erased user wrote, nor the user's client names; little is left in the file"
    )
    func overwritten() throws {
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 203)
        let (ann, bob): (BucketID, BucketID) = (
            try StoreDriver.id("a", user: "ann"), try StoreDriver.id("a", user: "bob")
        )
        for place: Int in 0..<200 {
            let text = String(repeating: "canary \(place) ", count: 1 + place % 40)
            try driver.put(try EntityKey("k\(place % 50)"), ["t": .string(text)], in: ann, client: "anns-phone")
            try driver.put(try EntityKey("k\(place % 50)"), ["t": .string("dull \(place)")], in: bob, client: "bobs")
            try driver.commit()
        }
        let database = try Database(path: store.path)
        // SQLite moves the log only for a connection that has read the file.
        #expect(try database.integer("SELECT count(*) FROM chg") == 400)
        try database.checkpoint(.truncate)
        let before: Int = try places("canary", "thicket.db")
        #expect(before > 2_000)
        try end("ann", database)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(tiny())
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
            _ = try driver.writer.apply(batch)
        }
        try database.checkpoint(.truncate)
        // Remains where SQLite moved rows.
        #expect(try places("canary", "thicket.db") < before / 4)
        #expect(try database.integer("SELECT count(*) FROM client") == 1)
        _ = try StoreBackup.run(from: store.path, to: folder.path("copy.db"), settings: .testing)
        #expect(try places("canary", "copy.db") == 0 && places("anns-phone", "copy.db") == 0)
        #expect(try places("dull", "copy.db") > 0 && places("bobs", "copy.db") > 0)
    }

    @Test(
        "the highest row of an erased user is not reused, also after a restart: a new bucket has a new identity",
        arguments: [false, true])
    func rowsAreGivenOnce(restarts: Bool) throws {
        var store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        var driver = try StoreDriver(try store.makeWriter(), seed: 204)
        let (ann, bob) = (try StoreDriver.id("a", user: "ann"), try StoreDriver.id("a", user: "bob"))
        for id in [ann, bob] {
            try driver.put(try EntityKey("k"), ["n": 1], in: id)
            try driver.commit()
        }
        let codec = ChangeVersionCodec(store.identity)
        var known: Set<String> = []
        var highest = try #require(driver.buckets[bob]?.record.row)
        #expect(highest > (try #require(driver.buckets[ann]?.record.row)))
        known.insert(codec.identity(of: bob, row: highest))
        // Twice: the record of the first erasure must not hide the second.
        for _ in 0..<2 {
            try end("bob", try Database(path: store.path))
            let maintenance = try store.makeMaintenance(tiny())
            while let batch = try maintenance.nextBatch(now: driver.now) { _ = try driver.writer.apply(batch) }
            #expect(try driver.writer.bucket(bob) == nil)
            if restarts { store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing) }
            driver = try StoreDriver(try store.makeWriter(), seed: 205)
            try driver.put(try EntityKey("k"), ["n": 1], in: bob)
            try driver.commit()
            let row = try #require(driver.buckets[bob]?.record.row)
            #expect(row > highest)
            #expect(known.insert(codec.identity(of: bob, row: row)).inserted, "another bucket under the old name")
            highest = row
        }
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    private func places(_ text: String, _ file: String) throws -> Int {
        let (bytes, wanted): ([UInt8], [UInt8]) = (try folder.bytes(file), Array(text.utf8))
        return bytes.indices.count { bytes[$0] == wanted[0] && bytes[$0...].starts(with: wanted) }
    }

    @Test("a change of an erased user that was in progress is refused with 401 and restores nothing")
    func lateChange() throws {
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let core = ShardCore(store: try store.makeWriter())
        let (ann, bob): (BucketID, BucketID) = (
            try StoreDriver.id("a", user: "ann"), try StoreDriver.id("a", user: "bob")
        )
        #expect(try change("c1", of: ann, core) == nil)
        #expect(try change("c1", of: bob, core) == nil)
        try end("ann", try Database(path: store.path))
        let maintenance: any StoreMaintenance = try store.makeMaintenance(RetentionSettings())
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1), !batch.erasures.isEmpty {
            _ = try core.apply(batch)
        }
        #expect(try change("c2", of: ann, core) == .unauthorized)
        #expect(try change("c2", of: bob, core) == nil)
        #expect(try core.store.bucket(ann) == nil)
        #expect(try core.store.bucket(bob)?.head == 3)
    }

    /// The code with which the change was refused; nil if it was applied.
    private func change(_ ccid: String, of bucket: BucketID, _ core: ShardCore) throws -> ErrorCode? {
        let text: String = #"{"clientid":"t","id":"k-\#(ccid)","o":"M","v":{"a":{"o":"+","v":1}},"ccid":"\#(ccid)"}"#
        let request = ChangeRequest(try JSONDocument(parsing: Array(text.utf8)[...]).root)
        _ = core.receive(
            .change(
                SubmittedChange(
                    origin: ChangeOrigin(connection: 1, channel: 0), bucket: bucket, clientID: try ClientID("t"),
                    library: .other, canWrite: true, request: request, now: 1)))
        let outcome: CommitOutcome = core.commit()
        for case .refused(let refused) in outcome.buckets.flatMap(\.events) { return refused.code }
        return nil
    }
}
