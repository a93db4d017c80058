import Testing
import ThicketProtocol

@testable import ThicketServer

@Suite("Options of buckets")
struct BucketOptionsTests {
    @Test(
        "once the log is cut, a bucket with a smaller version_max keeps fewer versions readable",
        arguments: StoreKind.allCases)
    func versions(kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 3)
        let options: BucketID = try #require(BucketOptions.bucket(of: try AppID("notes")))
        let (few, many): (BucketID, BucketID) = (try StoreDriver.id("few"), try StoreDriver.id("many"))
        try driver.put(try EntityKey("few"), ["version_max": 2, "version10_max": 1, "capacity": 7], in: options)
        try driver.put(try EntityKey("many"), ["version_max": "x", "version10_max": -1], in: options)
        for number: Int64 in 1...40 {
            for bucket: BucketID in [few, many] {
                try driver.put(try EntityKey("k"), ["n": .number(JSONNumber(number))], in: bucket)
            }
        }
        try driver.commit()
        var settings = RetentionSettings()
        (settings.logAgeMin, settings.logChangesMin, settings.versionsNewest, settings.versionsSparse) = (0, 1, 20, 1)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: driver.now + 1_000_000) {
            _ = try driver.writer.apply(batch)
        }
        let reader: any StoreReader = try store.makeReader()
        let kept: (BucketID) throws -> [Int64] = { bucket in
            let row: BucketRow = try #require(try reader.bucket(bucket)?.row)
            return try (1...40).filter { version in
                try reader.body(of: try EntityKey("k"), version: version, in: row, upTo: .max) != nil
            }
        }
        #expect(try kept(few) == [31, 39, 40])
        #expect(try kept(many) == [11] + Array(21...40))
    }

    @Test(
        "changes of all users' buckets of one name are read in the order of the log, in pages",
        arguments: StoreKind.allCases)
    func all(kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 4)
        var expected: [String] = []
        for number: Int in 0..<30 {
            let user: String = ["ann", "bob", "eve"][number % 3]
            let bucket: String = number % 5 == 0 ? "other" : "notes"
            try driver.put(
                try EntityKey("k\(number)"), ["n": .number(JSONNumber(Int64(number)))],
                in: try StoreDriver.id(bucket, user: user))
            if bucket == "notes" { expected.append("\(user) k\(number)") }
        }
        try driver.commit()
        let reader: any StoreReader = try store.makeReader()
        let (app, name): (AppID, BucketName) = (try AppID("notes"), try BucketName("notes"))
        var seen: [String] = []
        var after: GlobalID = 0
        while true {
            let page: WidePage = try reader.changes(ofAll: name, in: app, after: after, limit: 7, byteLimit: 1 << 20)
            #expect(page.changes.count <= 7 && page.through >= after)
            seen += page.changes.map { "\($0.user.text) \($0.change.key.text)" }
            after = page.through
            if page.isAtEnd { break }
        }
        #expect(seen == expected)
        #expect(try reader.floor(ofAll: name, in: app) == 0)
        #expect(try reader.changes(ofAll: name, in: app, after: 0, limit: 100, byteLimit: 1).changes.count == 1)
        #expect(try reader.changes(ofAll: name, in: try AppID("x"), after: 0, limit: 9, byteLimit: 9).changes.isEmpty)
    }
}
