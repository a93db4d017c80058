import Testing
import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite

@testable import ThicketServer

/// Heads that are in the log and not yet in their table (decision 0008): readers see them, and they reach the table.
@Suite("Write-behind heads") struct WriteBehindHeadsTests {
    private let folder = StoreFolder()
    private var path: String { folder.path("thicket.db") }

    private func open(max: Int = 13) throws -> SQLiteStore {
        var settings: StoreSettings = .testing
        settings.writeBehindHeadsMax = max
        return try SQLiteStore(path: path, settings: settings)
    }

    private func row(_ key: String, in bucket: BucketRow = 1) throws -> GlobalID? {
        try Database(path: path).statement("SELECT gid FROM ent WHERE b = ?1 AND k = ?2").bind(1, bucket).bind(2, key)
            .first { $0.integer(0) }
    }

    private func mark() throws -> Int64? { try Meta.integer(Meta.heads, Database(path: path)) }

    private func findings() throws -> [String] { try StoreCheck.run(path, settings: .testing).findings }

    /// Every read of heads returns what was written.
    private func expectAll(_ driver: StoreDriver, _ store: SQLiteStore, _ place: SourceLocation = #_sourceLocation)
        throws
    {
        let reader: any StoreReader = try store.makeReader()
        for (id, bucket) in driver.buckets {
            let row: BucketRow = bucket.record.row
            for (key, object) in bucket.objects {
                #expect(try reader.entity(key, in: row) == object.record, sourceLocation: place)
                #expect(try driver.writer.entity(key, in: row) == object.record, sourceLocation: place)
            }
            let live: [(key: EntityKey, gid: GlobalID)] = bucket.objects.values.filter { $0.body != nil }
                .map { ($0.record.key, $0.record.gid) }
            let keys: [EntityKey] = live.map(\.key).sorted { $0.precedes($1) }
            #expect(try reader.liveKeys(in: row, after: nil, limit: 1_000) == keys, sourceLocation: place)
            var paged: [EntityKey] = []
            while true {
                let page: [EntityKey] = try reader.liveKeys(in: row, after: paged.last, limit: 3)
                if page.isEmpty { break }
                paged += page
            }
            #expect(paged == keys, sourceLocation: place)
            #expect(try driver.writer.liveCount(in: row) == live.count, sourceLocation: place)
            let oldest: [LiveEntity] = live.sorted { $0.gid < $1.gid }.prefix(4).map { .init(key: $0.key, gid: $0.gid) }
            #expect(try driver.writer.leastRecent(in: row, limit: 4) == oldest, sourceLocation: place)
            let query = IndexQuery(
                bucket: row, current: try #require(try reader.bucket(id)).head, before: nil, limit: 1_000,
                withData: true,
                byteLimit: 1 << 20)
            let entries: [GlobalID]? = try reader.indexPage(query)?.entries.map(\.gid)
            #expect(entries == live.map(\.gid).sorted(by: >), sourceLocation: place)
        }
    }

    @Test("a group writes only to the log, and every read returns its heads", arguments: [1, 5, 13, 10_000])
    func reading(max: Int) throws {
        let store: SQLiteStore = try open(max: max)
        let driver = try StoreDriver(try store.makeWriter(), seed: 5)
        for _ in 0..<25 {
            try driver.run(7, in: [try StoreDriver.id("a"), try StoreDriver.id("b")], keys: 40)
            try expectAll(driver, store)
        }
        #expect(try findings() == [])
        #expect(store.writeBehindHeadCount <= 2 * max + 2 * 175)
        if max == 10_000 { #expect(try mark() == 0 && row("note.1") == nil) }
    }

    @Test(
        "a full stretch of heads goes into the table with later groups; the mark follows when all of it is written"
    )
    func slices() throws {
        let store: SQLiteStore = try open(max: 6)
        let driver = try StoreDriver(try store.makeWriter(), seed: 5)
        let (id, body): (BucketID, JSONObject) = (try StoreDriver.id("a"), ["n": 1])
        for number: Int in 1...6 {
            try driver.put(EntityKey("note.\(number)"), body, in: id)
            try driver.commit()
        }
        #expect(try mark() == 0 && row("note.1") == nil && store.writeBehindHeadCount == 6)
        // The seventh change begins the next stretch; each change after it writes two heads of the first.
        for number: Int in 7...8 {
            try driver.put(EntityKey("note.\(number)"), body, in: id)
            try driver.commit()
        }
        #expect(try mark() == 0)
        #expect(try [row("note.1"), row("note.2"), row("note.3")] == [1, 2, nil])
        for number: Int in 9...10 {
            try driver.put(EntityKey("note.\(number)"), body, in: id)
            try driver.commit()
        }
        #expect(try mark() == 6 && row("note.6") == 6 && row("note.7") == nil && store.writeBehindHeadCount == 4)
        try expectAll(driver, store)
    }

    @Test("a start restores the heads that the table lacks from the log, the newest head of each object")
    func starting() throws {
        let driver = try StoreDriver(try open(max: 9).makeWriter(), seed: 8)
        driver.policy.diffsMin = 3
        for round: Int in 1...12 {
            try driver.run(11, in: [try StoreDriver.id("a"), try StoreDriver.id("b")], keys: 8)
            let store: SQLiteStore = try open(max: 1 + round % 5 * 4)
            #expect(store.writeBehindHeadCount > 0)
            driver.writer = try store.makeWriter()
            try expectAll(driver, store)
        }
        #expect(try findings() == [])
    }

    @Test("a read that fails once during a start leaves no object without its creation version")
    func births() throws {
        let id: BucketID = try StoreDriver.id("a")
        do {
            let store: SQLiteStore = try open(max: 1_000)
            let driver = try StoreDriver(try store.makeWriter(), seed: 3)
            for number: Int in 0..<40 { try driver.put(EntityKey("note.\(number)"), ["n": 1], in: id) }
            try driver.commit()
            var batch = MaintenanceBatch()
            batch.headsMax = 100
            _ = try driver.writer.apply(batch)
            for number: Int in 0..<40 { try driver.put(EntityKey("note.\(number)"), ["n": 2], in: id) }
            try driver.commit()
            #expect(store.writeBehindHeadCount == 40)
        }
        // As objects of a sealed bucket have it: the version of their creation.
        try folder.run(
            "UPDATE bucket SET mode = \(BucketMode.sealed.rawValue); UPDATE ent SET born = ver", in: "thicket.db")
        let disk = FaultVFS(name: "late-heads-births", syncsForReal: false)
        var (started, tries): (Int, Int) = (0, 0)
        repeat {
            let copy: StoreFolder = folder.copied()
            var settings: StoreSettings = .testing
            (settings.writeBehindHeadsMax, settings.vfs) = (1_000, disk.name)
            let before: Int = disk.calls(of: .read)
            disk.fail(FaultRule(.read, .io, skipping: tries, times: 1))
            var store: SQLiteStore? = try? SQLiteStore(path: copy.path("thicket.db"), settings: settings)
            let isOver: Bool = disk.calls(of: .read) - before <= tries
            disk.heal()
            started += store == nil ? 0 : 1
            store = try store ?? SQLiteStore(path: copy.path("thicket.db"), settings: settings)
            var batch = MaintenanceBatch()
            batch.headsMax = 100
            _ = try store?.makeWriter().apply(batch)
            let born: Int64? = try Database(path: copy.path("thicket.db")).integer(
                "SELECT count(*) FROM ent WHERE ver = born + 1")
            #expect(born == 40, "after \(tries) reads")
            tries += 1
            if isOver { break }
        } while tries < 1_000
        #expect(tries > 10 && started > 1)
    }

    @Test("a reader in an old transaction sees the heads of its time, however many stretches have come since")
    func old() throws {
        let store: SQLiteStore = try open(max: 3)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(20, in: [id], keys: 6)
        let then: [EntityKey: StoreDriver.Object] = try #require(driver.buckets[id]).objects
        let reader: SQLiteReader = try store.makeSQLiteReader()
        try reader.reading { () throws(StoreError) in
            // From here on the transaction has its snapshot.
            let head: GlobalID? = try reader.bucket(id)?.head
            #expect(throws: Never.self) { for _ in 0..<30 { try driver.run(9, in: [id], keys: 6) } }
            #expect(try reader.bucket(id)?.head == head)
            for (key, object) in then { #expect(try reader.entity(key, in: 1) == object.record) }
            #expect(try reader.liveKeys(in: 1, after: nil, limit: 100).count == then.values.count { $0.body != nil })
        }
        try expectAll(driver, store)
    }

    @Test("a group that the store refuses leaves no head behind")
    func refused() throws {
        let store: SQLiteStore = try open()
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(20, in: [id], keys: 6)
        let before: (count: Int, through: GlobalID) = store.late.all
        var batch = WriteBatch()
        let bucket: BucketRecord = try #require(driver.buckets[id]).record
        let change: ChangeRecord = try #require(driver.buckets[id]?.log.last)
        let head = EntityRecord(
            key: change.key, version: 99, gid: change.gid, keyframe: 0, isDeleted: false)
        // A position that is in use.
        batch.append(change, entity: head, bucket: bucket)
        #expect(throws: StoreError.self) { try driver.writer.commit(batch) }
        #expect(store.late.all == before)
        try expectAll(driver, store)
        try driver.run(20, in: [id], keys: 6)
        try expectAll(driver, store)
        #expect(try findings() == [])
    }

    @Test("after a second without changes maintenance writes the remaining heads to the table, piece by piece")
    func quiet() throws {
        let store: SQLiteStore = try open(max: 1_000)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        try driver.run(50, in: [try StoreDriver.id("a")], keys: 30)
        var retention = RetentionSettings()
        retention.rowsPerBatch = 7
        let maintenance: any StoreMaintenance = try store.makeMaintenance(retention)
        #expect(try maintenance.nextBatch(now: 10_000) == nil && maintenance.nextBatch(now: 10_999) == nil)
        var batches = 0
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 11_000) {
            #expect(batch.headsMax == 7)
            _ = try driver.writer.apply(batch)
            try expectAll(driver, store)
            batches += 1
        }
        #expect(batches >= 3 && store.writeBehindHeadCount == 0)
        #expect(try mark() == 50)
        #expect(try findings() == [])
    }

    @Test("a command beside the server may write heads, and older heads of the server do not replace them")
    func beside() throws {
        let store: SQLiteStore = try open(max: 10)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let id: BucketID = try StoreDriver.id("a")
        for number: Int in 1...15 {
            try driver.put(EntityKey("note.\(number % 7)"), ["n": JSONValue(integerLiteral: Int64(number))], in: id)
            try driver.commit()
        }
        try folder.writeAllHeads(in: "thicket.db")
        #expect(try mark() == 15 && row("note.1") == 15)
        for number: Int in 16...20 {
            try driver.put(EntityKey("other.\(number)"), ["n": 1], in: id)
            try driver.commit()
        }
        #expect(try row("note.1") == 15, "the stretch of changes 1 to 10 has been written since")
        try expectAll(driver, store)
        #expect(try findings() == [])
        driver.writer = try open().makeWriter()
        try driver.run(30, in: [id], keys: 6)
        #expect(try findings() == [])
    }

    @Test("a row that is cut from the log has its head in the table before")
    func cutting() throws {
        let store: SQLiteStore = try open(max: 1_000)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(80, in: [id], keys: 12)
        var retention = RetentionSettings()
        (retention.logChangesMin, retention.logAgeMin) = (0, 0)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(retention)
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now + 1_000_000) {
            _ = try driver.writer.apply(batch)
        }
        #expect(try Database(path: path).integer("SELECT count(*) FROM chg") ?? 80 < 80)
        #expect(try findings() == [])
        let again: SQLiteStore = try open()
        for (key, object) in try #require(driver.buckets[id]).objects {
            #expect(try again.makeReader().entity(key, in: 1) == object.record)
        }
    }

    @Test("an object that changes often does not lengthen the log that a start has to read")
    func often() throws {
        let store: SQLiteStore = try open(max: 20)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let (id, key): (BucketID, EntityKey) = (try StoreDriver.id("a"), try EntityKey("hot"))
        for group: Int64 in 1...30 {
            for number: Int64 in 1...10 {
                try driver.put(key, ["n": JSONValue(integerLiteral: 10 * group + number)], in: id)
            }
            try driver.commit()
        }
        #expect(try #require(try mark()) >= 260)
        try expectAll(driver, store)
        #expect(try findings() == [])
    }

    @Test(
        "heads that the table refuses do not affect other changes until very many wait; then changes are refused"
    )
    func untaken() throws {
        let store: SQLiteStore = try open(max: 8)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let id: BucketID = try StoreDriver.id("a")
        // Like a page that cannot be read.
        try folder.run(
            """
            CREATE TRIGGER broken BEFORE INSERT ON ent WHEN NEW.k = 'note.0'
            BEGIN SELECT RAISE(ABORT, 'this object takes no head'); END
            """, in: "thicket.db")
        for number: Int in 0..<100 {
            try driver.put(EntityKey("note.\(number)"), ["n": 1], in: id)
            try driver.commit()
        }
        #expect(try mark() == 0)
        try expectAll(driver, store)
        #expect(try findings() == [])
        var taken = 0
        while taken < 200 {
            try driver.put(EntityKey("more.\(taken)"), ["n": 1], in: id)
            do { try driver.commit() } catch { break }
            taken += 1
        }
        // The first stretch of 8, and then as many changes as 16 stretches have.
        #expect(100 + taken == 8 + 16 * 8 + 1)
        try folder.run("DROP TRIGGER broken", in: "thicket.db")
        try driver.commit()
        try driver.run(100, in: [id])
        #expect(try #require(try mark()) >= 137)
        try expectAll(driver, store)
        #expect(try findings() == [])
    }

    @Test("an unreadable row at the end of the log is a finding of the check, beside all others")
    func unreadable() throws {
        let driver = try StoreDriver(try open(max: 1_000).makeWriter(), seed: 3)
        try driver.run(30, in: [try StoreDriver.id("a"), try StoreDriver.id("b")])
        try folder.run(
            "UPDATE chg SET k = '' WHERE gid = 20; UPDATE bucket SET floor = 1000 WHERE id = 2", in: "thicket.db")
        let found: [String] = try findings()
        #expect(found.contains { $0.contains("change 20") } && found.contains { $0.contains("bucket 2: the floor") })
        #expect(throws: StoreError.self) { try open() }
    }

    @Test("heads of an erased user never come back, and heads that cannot be written do not hinder the erasure")
    func erasing() throws {
        let store: SQLiteStore = try open(max: 30)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let (ann, bob): (BucketID, BucketID) = (
            try StoreDriver.id("a", user: "ann"), try StoreDriver.id("a", user: "bob")
        )
        for _ in 0..<10 { try driver.run(10, in: [ann, bob], keys: 30) }
        let row: BucketRow = try #require(driver.buckets[ann]).record.row
        try folder.run(
            """
            INSERT INTO erasure (app, user, created) VALUES ('notes', 'ann', 1);
            CREATE TRIGGER broken BEFORE INSERT ON ent WHEN NEW.b <> \(row) BEGIN SELECT RAISE(ABORT, 'none'); END
            """, in: "thicket.db")
        var retention = RetentionSettings()
        retention.rowsPerBatch = 9
        let maintenance: any StoreMaintenance = try store.makeMaintenance(retention)
        var steps = 0
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1_000), !batch.erasures.isEmpty {
            _ = try driver.writer.apply(batch)
            try driver.put(EntityKey("others.\(steps)"), ["n": 1], in: bob)
            try driver.commit()
            steps += 1
        }
        #expect(steps > 3)
        driver.buckets[ann] = nil
        try folder.run("DROP TRIGGER broken", in: "thicket.db")
        for number: Int in 0..<300 {
            try driver.put(EntityKey("more.\(number)"), ["n": 1], in: bob)
            try driver.commit()
        }
        #expect(store.headFailures.count > 0)
        #expect(try Database(path: path).integer("SELECT count(*) FROM ent WHERE b = \(row)") == 0)
        #expect(try #require(try mark()) > 300)
        try expectAll(driver, store)
        #expect(try findings() == [])
        try expectAll(driver, try open())
    }
}
