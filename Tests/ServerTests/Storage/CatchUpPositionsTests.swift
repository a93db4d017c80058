import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// The length of what is sent decides where the next page of a catch-up begins, which may be inside the page read
/// before; the bucket's log is scanned only once all the same.
@Suite("Positions of catch-ups") struct CatchUpPositionsTests {
    private let folder = StoreFolder()
    private let store: SQLiteStore
    private let bucket: BucketRecord
    /// Positions of all changes of the bucket.
    private let positions: [GlobalID]

    init() throws {
        store = try .init(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 71)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(120, in: [id, try StoreDriver.id("b")], keys: 12)
        bucket = try #require(driver.buckets[id]).record
        // A separate store has no cache yet, and its cache is dropped with it.
        let fresh: any StoreReader = try SQLiteStore(path: store.path, settings: .testing).makeReader()
        positions = try #require(
            try fresh.changes(in: bucket.row, after: 0, upTo: bucket.head, limit: 1_000, byteLimit: .max)
        ).changes.map(\.gid)
    }

    private func page(_ reader: any StoreReader, after: GlobalID, limit: Int) throws -> ChangePage {
        try #require(
            try reader.changes(in: bucket.row, after: after, upTo: bucket.head, limit: limit, byteLimit: .max))
    }

    @Test("pages that begin inside the page before have the same changes, without a second scan of the log")
    func middle() throws {
        #expect(positions.count > 40)
        let reader: any StoreReader = try store.makeReader()
        let bytes: Int = positions.count * MemoryLayout<GlobalID>.size
        for start in stride(from: 0, to: positions.count - 12, by: 5) {
            let after: GlobalID = start == 0 ? 0 : positions[start - 1]
            if start > 0 {
                let place = ReaderCache.CatchUpPlace(bucket: bucket.row, upTo: bucket.head)
                #expect(store.readerCache.catchUp(place, after: after).map(Array.init) == Array(positions[start...]))
            }
            let found: ChangePage = try page(reader, after: after, limit: 10)
            #expect(found.changes.map(\.gid) == Array(positions[start..<(start + 10)]) && found.hasMore)
            // All positions, kept once, however many pages are read.
            #expect(store.readerCache.memory.catchUps == bytes)
        }
        #expect(try !page(reader, after: positions[positions.count - 3], limit: 10).hasMore)
        #expect(store.readerCache.memory.catchUps == 0)
    }

    @Test("a client further behind and a client less far behind both get all changes that they missed")
    func several() throws {
        let reader: any StoreReader = try store.makeReader()
        #expect(try page(reader, after: positions[29], limit: 5).changes.map(\.gid) == Array(positions[30..<35]))
        #expect(try page(reader, after: positions[9], limit: 5).changes.map(\.gid) == Array(positions[10..<15]))
        #expect(try page(reader, after: positions[19], limit: 5).changes.map(\.gid) == Array(positions[20..<25]))
        #expect(try page(reader, after: positions[0], limit: 5).changes.map(\.gid) == Array(positions[1..<6]))
        #expect(store.readerCache.memory.catchUps == (positions.count - 1) * MemoryLayout<GlobalID>.size)
    }

    @Test("a position between two of the bucket's changes is looked up like that of a change")
    func between() {
        let known = ReaderCache.CatchUp(after: 10, positions: [12, 15, 20])
        #expect(known.positions(after: 9) == nil)
        #expect(known.positions(after: 10) == [12, 15, 20])
        #expect(known.positions(after: 13) == [15, 20])
        #expect(known.positions(after: 15) == [20])
        #expect(known.positions(after: 20)?.isEmpty == true)
    }
}
