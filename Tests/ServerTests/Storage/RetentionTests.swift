import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

@Suite("Retention and segments") struct RetentionTests {
    private func tiny() -> RetentionSettings {
        var settings = RetentionSettings()
        settings.logAgeMin = 40_000
        settings.logChangesMin = 25
        settings.versionsNewest = 4
        settings.versionsSparse = 3
        settings.changeIDAgeMin = 200_000
        settings.rowsPerBatch = 7
        settings.bytesPerBatch = 600
        settings.sweepInterval = 10_000
        settings.segmentBytes = 700
        settings.segmentLogBytesMin = 1_500
        settings.segmentInterval = 3_000
        (settings.changeIDsPerBlock, settings.changeIDsLooseMin) = (5, 5)
        settings.changeIDRunsMax = 3
        settings.changeIDInterval = 1_000
        settings.clientInterval = 5_000
        settings.clientScanRows = 11
        return settings
    }

    /// Applies every planned batch and checks its bounds.
    private func keep(_ maintenance: any StoreMaintenance, _ driver: StoreDriver, _ settings: RetentionSettings) throws
        -> Int
    {
        var batches = 0
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
            batches += 1
            try #require(batches < 10_000, "maintenance never ends")
            for cut in batch.cuts { #expect(cut.rows.count <= settings.rowsPerBatch) }
            for move in try driver.writer.apply(batch) {
                for (id, bucket) in driver.buckets where bucket.record.row == move.bucket {
                    #expect(move.floor >= bucket.record.floor && move.archived <= bucket.record.head)
                    driver.buckets[id]?.record.floor = move.floor
                }
            }
        }
        return batches
    }

    @Test(
        "retention loses no object, no readable version, no listed state, no rebase and no ccid",
        arguments: StoreKind.allCases, [31, 32, 33] as [UInt64])
    func nothingLost(_ kind: StoreKind, _ seed: UInt64) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: seed)
        driver.policy.diffsMin = 4
        let settings: RetentionSettings = tiny()
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        let reader: any StoreReader = try store.makeReader()
        let ids: [BucketID] = [try StoreDriver.id("a"), try StoreDriver.id("b")]
        for _ in 0..<6 {
            try driver.run(50, in: ids, keys: 6)
            driver.now += 9_000
            _ = try keep(maintenance, driver, settings)
            for id in ids {
                try audit(try #require(driver.buckets[id]), id, driver, reader, settings)
            }
        }
        for id in ids { #expect(try #require(driver.buckets[id]).record.floor > 0) }
        if kind == .sqlite {
            let found: StoreFindings = try StoreCheck.run(folder.path("thicket.db"), settings: .testing)
            #expect(found.findings == [])
            #expect(found.changes < 250 && found.keptBodies > 0)
        }
    }

    private func audit(
        _ bucket: StoreDriver.Bucket, _ id: BucketID, _ driver: StoreDriver, _ reader: any StoreReader,
        _ settings: RetentionSettings
    ) throws {
        let record: BucketRecord = try #require(try reader.bucket(id))
        #expect(record == bucket.record)
        let cut: [ChangeRecord] = bucket.log.filter { $0.gid <= record.floor }
        #expect(bucket.log.count - cut.count >= min(settings.logChangesMin, bucket.log.count))
        #expect(cut.allSatisfy { $0.timestamp <= driver.now - settings.logAgeMin })
        try auditObjects(bucket, record, reader, settings)
        try auditScans(bucket, id, driver, reader)
        let page: ChangePage = try #require(
            try reader.changes(in: record.row, after: record.floor, upTo: record.head, limit: 10_000, byteLimit: .max))
        #expect(page.changes == bucket.log.filter { $0.gid > record.floor })
        if record.floor > 0 {
            #expect(
                try reader.changes(in: record.row, after: record.floor - 1, upTo: .max, limit: 1, byteLimit: 1) == nil)
            #expect(try reader.indexPage(.init(bucket: record.row, current: record.floor - 1)) == nil)
        }
        let known: Set<GlobalID> = try driver.knownChanges(in: record)
        for change in bucket.log where change.timestamp > driver.now - settings.changeIDAgeMin {
            #expect(known.contains(change.gid))
        }
    }

    private func auditObjects(
        _ bucket: StoreDriver.Bucket, _ record: BucketRecord, _ reader: any StoreReader, _ settings: RetentionSettings
    ) throws {
        for (key, object) in bucket.objects {
            let head: EntityHead = try #require(try reader.head(of: key, in: record.row))
            #expect(head.record == object.record)
            #expect(try head.body.map(parse) == object.body)
            for (place, version) in object.versions.enumerated() {
                let body: [UInt8]? = try reader.body(of: key, version: version.number, in: record.row, upTo: .max)
                if settings.keeps(version.number, head: object.record.version) || version.gid > record.floor {
                    #expect(try body.map(parse) == version.body)
                } else if let body {
                    #expect(try parse(body) == version.body)
                }
                // A version that was current at the floor or came later can still be rebased from.
                let endsAt: GlobalID = place + 1 == object.versions.count ? .max : object.versions[place + 1].gid
                let stoodAtFloor: Bool = version.gid > record.floor || endsAt > record.floor
                guard place % 5 == 0 || (version.gid <= record.floor && stoodAtFloor) else { continue }
                let history: EntityHistory? = try reader.history(
                    of: key, after: version.number, in: record.row, limit: 1_000)
                if stoodAtFloor {
                    #expect(try history?.base.map(parse) == version.body)
                    #expect(history?.changes.map(\.gid) == object.versions[(place + 1)...].map(\.gid))
                } else {
                    #expect(history == nil)
                }
            }
        }
    }

    private func auditScans(
        _ bucket: StoreDriver.Bucket, _ id: BucketID, _ driver: StoreDriver, _ reader: any StoreReader
    ) throws {
        let later: [GlobalID] = bucket.log.map(\.gid).filter { $0 > bucket.record.floor }
        for current: GlobalID in [bucket.record.floor, later[later.count / 2], bucket.record.head] {
            let wanted: [(EntityKey, StoreDriver.Version)] = driver.listing(id, at: current)
            let page: IndexSlice = try #require(
                try reader.indexPage(
                    .init(bucket: bucket.record.row, current: current, limit: 1_000, withData: true)))
            #expect(page.entries.map(\.key) == wanted.map(\.0))
            #expect(page.entries.map(\.version) == wanted.map(\.1.number))
            #expect(try page.entries.map { try $0.body.map(parse) } == wanted.map(\.1.body))
        }
    }

    @Test("hashes of ccids are removed when they expire, and not before", arguments: StoreKind.allCases)
    func forgetting(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 35)
        let settings: RetentionSettings = tiny()
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(100, in: [id])
        driver.now += 100_000
        _ = try keep(maintenance, driver, settings)
        #expect(try driver.knownChanges(in: try #require(driver.buckets[id]).record).count == 100)
        driver.now += 300_000
        _ = try keep(maintenance, driver, settings)
        let record: BucketRecord = try #require(driver.buckets[id]).record
        #expect(try driver.knownChanges(in: record).count == settings.logChangesMin)
    }

    @Test("an object whose deletion was cut from the log continues from its version", arguments: StoreKind.allCases)
    func deletedLongAgo(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 38)
        let settings: RetentionSettings = tiny()
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        let (id, key): (BucketID, EntityKey) = (try StoreDriver.id("a"), try EntityKey("gone"))
        try driver.put(key, ["a": 1], in: id)
        try driver.put(key, nil, in: id)
        try driver.run(60, in: [id])
        driver.now += 100_000
        _ = try keep(maintenance, driver, settings)
        let row: BucketRow = try #require(driver.buckets[id]).record.row
        #expect(try driver.writer.change(2) == nil)
        #expect(
            try driver.writer.history(of: key, after: 2, in: row, limit: 9) == EntityHistory(base: nil, changes: []))
        try driver.put(key, ["b": 2], in: id)
        try driver.commit()
        #expect(try driver.writer.entity(key, in: row)?.version == 3)
        let history: EntityHistory? = try driver.writer.history(of: key, after: 2, in: row, limit: 9)
        #expect(history?.base == nil && history?.changes.count == 1)
        #expect(try driver.writer.body(of: key, version: 3, in: row, upTo: .max).map(parse) == ["b": 2])
    }

    @Test("a batch planned before another cut is skipped", arguments: StoreKind.allCases)
    func staleBatch(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 36)
        let settings: RetentionSettings = tiny()
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(100, in: [id])
        driver.now += 100_000
        var batches: [MaintenanceBatch] = []
        for _ in 0..<2 {
            let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
            while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now) {
                guard !batch.cuts.isEmpty else { continue }
                batches.append(batch)
                break
            }
        }
        #expect(try driver.writer.apply(batches[0]).map(\.floor) == [batches[0].cuts[0].floor])
        #expect(try driver.writer.apply(batches[1]).isEmpty)
    }

    @Test("segments return correct bodies for a cold index and follow changes")
    func segments() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 37)
        let settings: RetentionSettings = tiny()
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        let id: BucketID = try StoreDriver.id("a")
        var built = 0
        for round: Int in 0..<12 {
            try driver.run(round == 0 ? 300 : 30, in: [id], keys: 90)
            driver.now += 3_000
            built += try keep(maintenance, driver, settings)
            let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
            let reader: SQLiteReader = try store.makeSQLiteReader()
            try auditScans(bucket, id, driver, reader)
            var held = 0
            for (_, version) in driver.listing(id, at: bucket.record.head) {
                guard let body: [UInt8] = try reader.segmentBody(version.gid, bucket.record.row) else { continue }
                #expect(try parse(body) == version.body)
                held += 1
            }
            #expect(held > 40)
        }
        #expect(built > 10)
        let found: StoreFindings = try StoreCheck.run(store.path, settings: .testing)
        #expect(found.findings == [])
        // About 90 bodies of some 100 bytes each, in segments of 700: not many times that.
        #expect((10...60).contains(found.segments))
    }

    @Test("a reader that has seen a segment finds its replacement as a fresh reader does")
    func segmentsAgain() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 41)
        let settings: RetentionSettings = tiny()
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        let id: BucketID = try StoreDriver.id("a")
        let old: SQLiteReader = try store.makeSQLiteReader()
        for round: Int in 0..<12 {
            try driver.run(round == 0 ? 300 : 30, in: [id], keys: 90)
            driver.now += 3_000
            _ = try keep(maintenance, driver, settings)
            // Without a cache of what the other readers have read.
            let outsider = try SQLiteStore(path: store.path, settings: .testing)
            let fresh: SQLiteReader = try outsider.makeSQLiteReader()
            let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
            for (key, version) in driver.listing(id, at: bucket.record.head) {
                let expected: [UInt8]? = try fresh.segmentBody(version.gid, bucket.record.row)
                #expect(try old.segmentBody(version.gid, bucket.record.row) == expected, "\(key) in round \(round)")
            }
        }
    }

    @Test("a segment that one reader has read is not read again by another")
    func segmentsShared() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 43)
        let settings: RetentionSettings = tiny()
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(300, in: [id], keys: 90)
        _ = try keep(try store.makeMaintenance(settings), driver, settings)
        let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
        func bodies(_ store: SQLiteStore) throws -> [[UInt8]] {
            let reader: SQLiteReader = try store.makeSQLiteReader()
            return try driver.listing(id, at: bucket.record.head).compactMap { _, version in
                try reader.segmentBody(version.gid, bucket.record.row)
            }
        }
        let first: [[UInt8]] = try bodies(store)
        #expect(first.count > 40)
        try Database(path: store.path, mode: .readWrite).execute("UPDATE seg SET content = zeroblob(8)")
        #expect(try bodies(store) == first)
        #expect(try bodies(SQLiteStore(path: store.path, settings: .testing)).isEmpty)
    }

    @Test("the newest 60 versions stay readable, and 100 older ones whose number is 1 modulo 10")
    func versionRule() {
        let settings = RetentionSettings()
        let kept: [Int64] = (1...5_000).filter { settings.keeps($0, head: 5_000) }
        #expect(kept.count == 160)
        #expect(kept.suffix(60) == Array(4_941...5_000)[...])
        #expect(kept.prefix(100).allSatisfy { $0 % 10 == 1 } && kept.first == 3_941)
        #expect((1...30).allSatisfy { settings.keeps($0, head: 30) })
    }

    private func parse(_ bytes: [UInt8]) throws -> JSONObject {
        try #require(try JSONValue(parsing: bytes).objectValue)
    }
}
