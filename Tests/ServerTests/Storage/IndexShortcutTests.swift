import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// Index pages made with cached state of the bucket: the same as those made from the file alone.
@Suite("Index pages from cached state") struct IndexShortcutTests {
    /// Bodies of earlier pages, as the cache of pages returns them.
    private final class Remembered: BodyCache {
        var bodies: [GlobalID: [UInt8]] = [:]
        private(set) var given = 0
        func body(of gid: GlobalID) -> [UInt8]? {
            if bodies[gid] != nil { given += 1 }
            return bodies[gid]
        }
    }

    private func scan(
        _ reader: any StoreReader, _ query: IndexQuery, known: Remembered? = nil
    ) throws -> [IndexEntry] {
        var query: IndexQuery = query
        var entries: [IndexEntry] = []
        while true {
            let found: IndexSlice? =
                if let known { try reader.indexPage(query, known: known) } else { try reader.indexPage(query) }
            let page: IndexSlice = try #require(found)
            entries += page.entries
            for entry in page.entries { known?.bodies[entry.gid] = entry.body }
            guard let next: GlobalID = page.next else { return entries }
            query.before = next
        }
    }

    @Test(
        "an index scan updated from the one before, with cached bodies, lists the same as a scan of all objects",
        arguments: [91, 92, 93] as [UInt64])
    func forward(_ seed: UInt64) throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: seed)
        let id: BucketID = try StoreDriver.id("a")
        let reader: any StoreReader = try store.makeReader()
        let known = Remembered()
        for round: Int in 0..<25 {
            // Now and then so many changes that all objects are scanned again.
            let count: Int = round % 9 == 8 ? 400 : round % 4 * 9 + 1
            try driver.run(count, in: [id], keys: 40)
            try driver.run(count, in: [id, try StoreDriver.id("b")], keys: 40)
            let head: GlobalID = try #require(driver.buckets[id]).record.head
            let row: BucketRow = try #require(driver.buckets[id]).record.row
            for current: GlobalID in [head, max(head - 5, 1)] {
                let query = IndexQuery(bucket: row, current: current, limit: 7, withData: true)
                let mine: [IndexEntry] = try scan(reader, query, known: known)
                // A separate store has no cache yet.
                let fresh = try SQLiteStore(path: store.path, settings: .testing)
                #expect(mine == (try scan(try fresh.makeReader(), query)))
                #expect(mine.map(\.version) == driver.listing(id, at: current).map(\.1.number))
                let glance = IndexQuery(bucket: row, current: current, limit: 1)
                let newest: IndexSlice = try #require(try fresh.makeReader().indexPage(glance))
                #expect(newest.entries.map(\.gid) == mine.prefix(1).map(\.gid))
                #expect((newest.next == nil) == (mine.count <= 1))
            }
        }
        #expect(known.given > 300)
    }

    @Test("the newest object of a bucket is found without a scan of all objects")
    func glance() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 94)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(400, in: [id], keys: 50)
        let bucket: BucketRecord = try #require(driver.buckets[id]).record
        let slice: IndexSlice? = try store.makeReader().indexPage(
            .init(bucket: bucket.row, current: bucket.head, limit: 1))
        #expect(slice?.total == 0 && slice?.entries.count == 1 && slice?.next == slice?.entries.first?.gid)
    }

    @Test("a page made from cached pages has the same bytes as one made from the store")
    func pages() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 95)
        let id: BucketID = try StoreDriver.id("a")
        let codec = ChangeVersionCodec(store.identity)
        let executor = ReadExecutor(reader: try store.makeReader(), codec: codec, limits: ServerLimits())
        let text = String(repeating: "a long text ", count: 200)
        for number: Int in 0..<30 { try driver.put(try EntityKey("k\(number)"), ["t": .string(text)], in: id) }
        try driver.commit()
        for round: Int in 0..<4 {
            try driver.put(try EntityKey("k\(round * 3)"), ["t": .string(text), "n": .string("\(round)")], in: id)
            try driver.commit()
            let bucket: BucketRecord = try #require(driver.buckets[id]).record
            let query = IndexQuery(bucket: bucket.row, current: bucket.head, limit: 100, withData: true)
            let request = ReadRequest(
                origin: ReadOrigin(connection: ConnectionID(slot: 1, serial: 1), channel: 0, generation: 0),
                question: .index(query, tag: codec.tag(of: id)))
            let plain = ReadExecutor(
                reader: try SQLiteStore(path: store.path, settings: .testing).makeReader(), codec: codec,
                limits: ServerLimits())
            guard case .index(let frame, true) = executor.answer(request),
                case .index(let expected, true) = plain.answer(request)
            else {
                Issue.record("no page")
                return
            }
            #expect(frame.bytes == expected.bytes)
        }
    }
}
