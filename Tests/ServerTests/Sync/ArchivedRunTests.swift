import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// Ccids that a group of changes archives itself, without maintenance.
@Suite("Ccids archived with a group") struct ArchivedRunTests {
    private static let length = 8

    private struct House {
        let folder = StoreFolder()
        let store: SQLiteStore
        let shard: TestShard

        init() throws {
            var settings: StoreSettings = .testing
            settings.changeIDRunLength = ArchivedRunTests.length
            store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings)
            shard = try TestShard(.warm, store: store)
        }

        func rows(_ table: String) throws -> Int64 {
            try Database(path: store.path).integer("SELECT count(*) FROM \(table)") ?? 0
        }

        var held: Int { shard.core.buckets[shard.bucket]?.changeIDs.count ?? 0 }
    }

    @Test("a bucket in use holds few ccids in memory, however many changes it has had, and knows them all")
    func archivedOnTheWay() throws {
        let house = try House()
        var held = 0
        for number: Int in 0..<100 {
            let answer: Answer = try house.shard.send(
                "k", sv: Int64(number),
                v: ["n": ["o": number == 0 ? "+" : "r", "v": .number(JSONNumber(Int64(number)))]],
                ccid: "c\(number)")
            #expect(answer.version == Int64(number + 1))
            held = max(held, house.held)
        }
        #expect(held <= Self.length + 1)
        #expect(try house.rows("idrun") == 99 / Int64(Self.length))
        for again: Bool in [false, true] {
            if again { try house.shard.restart() }
            for number: Int in 0..<100 {
                #expect(try house.shard.send("k", v: [:], ccid: "c\(number)") == .error(409), "c\(number)")
            }
        }
        #expect(try StoreCheck.run(house.store.path, settings: .testing).findings == [])
    }

    @Test("groups of changes in many buckets archive a few buckets each, and the others lose no ccid")
    func manyBuckets() throws {
        let house = try House()
        let buckets: [BucketID] = try (0..<10).map { (number) throws in
            try BucketID(app: AppID("app"), user: UserID("ann@example.com"), name: BucketName("b\(number)"))
        }
        for round: Int in 0..<5 {
            let changes: [SubmittedChange] = try buckets.flatMap { (bucket) throws in
                try (0..<20).map { (number) throws in
                    try house.shard.submission(
                        "k\(round)-\(number)", v: ["n": ["o": "+", "v": 1]],
                        ccid: "\(bucket.name.text)-\(round)-\(number)", bucket: bucket)
                }
            }
            let runs: Int64 = try house.rows("idrun")
            #expect(try house.shard.group(changes).allSatisfy { $0.code == nil })
            #expect(try house.rows("idrun") - runs <= 4)
        }
        #expect(try house.rows("idrun") > 8)
        try house.shard.restart()
        for bucket in buckets {
            for (round, number) in (0..<5).flatMap({ round in (0..<20).map { (round, $0) } }) {
                let again: SubmittedChange = try house.shard.submission(
                    "k\(round)-\(number)", v: [:], ccid: "\(bucket.name.text)-\(round)-\(number)", bucket: bucket)
                #expect(try house.shard.group([again]) == [.error(409)])
            }
        }
        #expect(try StoreCheck.run(house.store.path, settings: .testing).findings == [])
    }

    @Test("maintenance and groups archive the same bucket in turns: no ccid is lost, none archived twice")
    func withMaintenance() throws {
        let house = try House()
        var retention = RetentionSettings()
        (retention.changeIDsPerBlock, retention.changeIDsLooseMin, retention.changeIDInterval) = (5, 5, 1)
        retention.changeIDRunsMax = 3
        let maintenance: any StoreMaintenance = try house.store.makeMaintenance(retention)
        var now: Int64 = 0
        for number: Int in 0..<150 {
            _ = try house.shard.send("k\(number)", v: ["n": ["o": "+", "v": 1]], ccid: "c\(number)")
            now += 10
            // Planned before the next group, applied after it: the plan may be stale by then.
            guard number % 7 == 0, let planned: MaintenanceBatch = try maintenance.nextBatch(now: now) else { continue }
            _ = try house.shard.send("l\(number)", v: ["n": ["o": "+", "v": 1]], ccid: "d\(number)")
            _ = try house.shard.core.apply(planned)
        }
        for number: Int in 0..<150 {
            #expect(try house.shard.send("k\(number)", v: [:], ccid: "c\(number)") == .error(409), "c\(number)")
        }
        #expect(try house.rows("idset") > 0)
        #expect(try StoreCheck.run(house.store.path, settings: .testing).findings == [])
    }

    @Test("a refused group archives nothing, and the next group does")
    func refused() throws {
        let house = try House()
        for number: Int in 0..<Self.length {
            _ = try house.shard.send("k\(number)", v: ["n": ["o": "+", "v": 1]], ccid: "c\(number)")
        }
        try house.folder.run(
            "CREATE TRIGGER no BEFORE INSERT ON idrun BEGIN SELECT RAISE(FAIL, 'not now'); END", in: "thicket.db")
        #expect(try house.shard.send("x", v: ["n": ["o": "+", "v": 1]], ccid: "x").code != nil)
        #expect(try house.rows("chg") == Int64(Self.length))
        try house.folder.run("DROP TRIGGER no", in: "thicket.db")
        #expect(try house.shard.send("x", v: ["n": ["o": "+", "v": 1]], ccid: "x").version == 1)
        #expect(try house.rows("idrun") == 1)
        for number: Int in 0..<Self.length {
            #expect(try house.shard.send("k\(number)", v: [:], ccid: "c\(number)") == .error(409), "c\(number)")
        }
    }

    @Test("over a store without archived ccids all ccids stay in memory")
    func inMemory() throws {
        let shard = try TestShard()
        for number: Int in 0..<3_000 {
            _ = try shard.send("k\(number)", v: ["n": ["o": "+", "v": 1]], ccid: "c\(number)")
        }
        #expect(shard.core.buckets[shard.bucket]?.changeIDs.count == 3_000)
        #expect(try shard.send("k0", v: [:], ccid: "c0") == .error(409))
    }
}
