import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// The promises of every store, tested on each.
@Suite("Store") struct StoreTests {
    @Test("every version of every object can be read as it was", arguments: StoreKind.allCases)
    func anyVersion(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 11)
        driver.policy.diffsMin = 3
        driver.policy.diffsMax = 9
        let ids: [BucketID] = [try StoreDriver.id("a"), try StoreDriver.id("b")]
        try driver.run(400, in: ids)
        let reader: any StoreReader = try store.makeReader()
        var bodies = 0
        for (id, bucket) in driver.buckets {
            let record: BucketRecord = try #require(try reader.bucket(id))
            #expect(record == bucket.record)
            for (key, object) in bucket.objects {
                #expect(try reader.entity(key, in: record.row) == object.record)
                let head: EntityHead = try #require(try reader.head(of: key, in: record.row))
                #expect(try head.body.map(parse) == object.body)
                if object.body != nil {
                    #expect(head.diffsSinceKeyframe == object.diffs)
                    #expect(head.diffBytesSinceKeyframe == object.diffBytes)
                }
                for version in object.versions {
                    let body: [UInt8]? = try reader.body(
                        of: key, version: version.number, in: record.row, upTo: record.head)
                    #expect(try body.map(parse) == version.body)
                    bodies += 1
                    #expect(
                        try reader.body(of: key, version: version.number, in: record.row, upTo: version.gid - 1) == nil)
                }
            }
        }
        #expect(bodies == 400)
    }

    @Test(
        "a history is complete and oldest first, and its base is the body at the version", arguments: StoreKind.allCases
    )
    func history(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 12)
        driver.policy.diffsMin = 3
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(200, in: [id], keys: 3)
        let row: BucketRow = try #require(try driver.writer.bucket(id)).row
        for (key, object) in try #require(driver.buckets[id]).objects {
            for (place, version) in object.versions.enumerated() {
                let history: EntityHistory = try #require(
                    try driver.writer.history(of: key, after: version.number, in: row, limit: 1_000))
                #expect(try history.base.map(parse) == version.body)
                #expect(history.changes.map(\.gid) == object.versions[(place + 1)...].map(\.gid))
            }
            let last: Int64 = object.record.version
            #expect(try driver.writer.history(of: key, after: last + 1, in: row, limit: 1_000) == nil)
            #expect(try driver.writer.history(of: key, after: 0, in: row, limit: 1_000) == nil)
            #expect(try driver.writer.history(of: key, after: 1, in: row, limit: object.versions.count - 2) == nil)
            // Few changes may still be many bytes. Both stores read their logs by the same code.
            if kind == .sqlite {
                let log: any LogSource = try #require(driver.writer as? any LogSource)
                #expect(try log.entityHistory(key, 1, row, limit: 1_000, bytesMax: 1) == nil)
            }
        }
        #expect(try driver.writer.history(of: EntityKey("nobody"), after: 1, in: row, limit: 10) == nil)
    }

    @Test("the log is read in order from any position, in pages of any size", arguments: StoreKind.allCases)
    func catchUp(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 13)
        let ids: [BucketID] = [try StoreDriver.id("a"), try StoreDriver.id("b"), try StoreDriver.id("c")]
        try driver.run(150, in: ids)
        let reader: any StoreReader = try store.makeReader()
        let bucket: StoreDriver.Bucket = try #require(driver.buckets[ids[1]])
        let row: BucketRow = bucket.record.row
        for after: GlobalID in [0, 1, bucket.log[3].gid, bucket.log[20].gid, bucket.record.head] {
            for (upTo, limit) in [(bucket.record.head, 7), (bucket.record.head, 1_000), (bucket.log[25].gid, 4)] {
                var found: [ChangeRecord] = []
                var place: GlobalID = after
                while let page = try reader.changes(in: row, after: place, upTo: upTo, limit: limit, byteLimit: 900) {
                    #expect(page.changes.count <= limit)
                    found += page.changes
                    guard page.hasMore, let last = page.changes.last else { break }
                    place = last.gid
                }
                #expect(found == bucket.log.filter { $0.gid > after && $0.gid <= upTo })
            }
        }
        #expect(try reader.changes(in: row, after: bucket.record.head + 1, upTo: 10_000, limit: 5, byteLimit: 5) == nil)
        #expect(try reader.changes(in: 99, after: 0, upTo: 10_000, limit: 5, byteLimit: 5) == nil)
    }

    @Test("an index scan is a snapshot at its current, newest change first", arguments: StoreKind.allCases)
    func index(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 14)
        let ids: [BucketID] = [try StoreDriver.id("a"), try StoreDriver.id("b")]
        try driver.run(120, in: ids, keys: 30)
        let reader: any StoreReader = try store.makeReader()
        let currents: [GlobalID] = try #require(driver.buckets[ids[0]]).log.enumerated()
            .filter { $0.offset % 11 == 3 }.map(\.element.gid)
        try driver.run(200, in: ids, keys: 30)
        let bucket: StoreDriver.Bucket = try #require(driver.buckets[ids[0]])
        for current in currents + [bucket.record.head, 0] {
            let wanted: [(EntityKey, StoreDriver.Version)] = driver.listing(ids[0], at: current)
            for (limit, withData, byteLimit) in [(1, false, 0), (7, true, 1 << 20), (500, true, 300), (9, false, 0)] {
                var query = IndexQuery(bucket: bucket.record.row, current: current, limit: limit)
                query.withData = withData
                query.byteLimit = byteLimit
                var found: [IndexEntry] = []
                while let page: IndexSlice = try reader.indexPage(query) {
                    // A request for the newest alone may be answered without a scan.
                    #expect(page.total == wanted.count || query.asksForNewest && page.total == 0)
                    #expect(page.entries.count <= limit)
                    #expect(!page.entries.isEmpty || wanted.isEmpty)
                    found += page.entries
                    query.before = page.next
                    if page.next == nil { break }
                }
                #expect(found.map(\.key) == wanted.map(\.0))
                #expect(found.map(\.version) == wanted.map(\.1.number))
                if withData { #expect(try found.map { try $0.body.map(parse) } == wanted.map(\.1.body)) }
            }
        }
        #expect(try reader.indexPage(.init(bucket: bucket.record.row, current: bucket.record.head + 1)) == nil)
        #expect(try reader.indexPage(.init(bucket: 77, current: 0)) == nil)
    }

    @Test("ccids of the whole log are known and confirmed in their rows", arguments: StoreKind.allCases)
    func changeIDs(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 15)
        let ids: [BucketID] = [try StoreDriver.id("a"), try StoreDriver.id("b")]
        try driver.run(60, in: ids)
        let bucket: StoreDriver.Bucket = try #require(driver.buckets[ids[0]])
        let entries: [ChangeIDEntry] = try driver.writer.changeIDTail(of: bucket.record.row).entries
        let wanted: Set<ChangeIDEntry> = Set(
            bucket.log.map { ChangeIDEntry(hash: store.identity.hash(of: $0.changeID), gid: $0.gid) })
        #expect(Set(entries) == wanted && entries.count == bucket.log.count)
        for change in bucket.log {
            #expect(try driver.writer.confirms(change.changeID, at: change.gid))
            #expect(try !driver.writer.confirms(ChangeID("other"), at: change.gid))
        }
    }

    @Test("a row that exists already refuses its whole group and nothing else", arguments: StoreKind.allCases)
    func refusedGroup(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 16)
        let id: BucketID = try StoreDriver.id("a")
        let first: ChangeRecord = try driver.put(EntityKey("k"), ["a": 1], in: id)
        try driver.commit()
        let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
        try driver.put(EntityKey("l"), ["a": 2], in: id)
        let bucket: StoreDriver.Bucket = try #require(driver.buckets[id])
        driver.batch.append(first, entity: try #require(bucket.objects[first.key]).record, bucket: bucket.record)
        let error: StoreError? = #expect(throws: StoreError.self) { try driver.commit() }
        #expect(error?.kind == .constraint)
        driver.forgetBatch(saved)
        #expect(try driver.writer.entity(EntityKey("l"), in: bucket.record.row) == nil)
        #expect(try driver.writer.bucket(id)?.head == first.gid)
        try driver.put(EntityKey("m"), ["a": 3], in: id)
        try driver.commit()
        #expect(try driver.writer.bucket(id)?.head == driver.buckets[id]?.record.head)
    }

    @Test("live keys come in byte order, in batches, without deleted objects", arguments: StoreKind.allCases)
    func liveKeys(_ kind: StoreKind) throws {
        let folder = StoreFolder()
        let store: any Store = try kind.make(folder)
        let driver = try StoreDriver(try store.makeWriter(), seed: 17)
        let id: BucketID = try StoreDriver.id("a")
        for name: String in ["b", "a", "B", "c", "a.1"] { try driver.put(EntityKey(name), ["n": 1], in: id) }
        try driver.put(EntityKey("b"), nil, in: id)
        try driver.commit()
        let row: BucketRow = try #require(try driver.writer.bucket(id)).row
        let first: [EntityKey] = try driver.writer.liveKeys(in: row, after: nil, limit: 3)
        #expect(first.map(\.text) == ["B", "a", "a.1"])
        #expect(try driver.writer.liveKeys(in: row, after: first.last, limit: 3).map(\.text) == ["c"])
    }

    private func parse(_ bytes: [UInt8]) throws -> JSONObject {
        try #require(try JSONValue(parsing: bytes).objectValue)
    }
}
