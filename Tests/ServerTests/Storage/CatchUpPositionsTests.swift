import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// Where the pages of a catch-up begin is decided by the length of what is sent, so in the middle of what was read before;
/// the way along the bucket's log is gone once all the same.
@Suite("Positions of catch-ups") struct CatchUpPositionsTests {
    private let folder: StoreFolder = .init()
    private let store: SQLiteStore
    private let bucket: BucketRecord
    /// Of all changes of the bucket.
    private let positions: [GlobalID]

    init() throws {
        store = try .init(path: folder.path("thicket.db"), settings: .testing)
        let driver: StoreDriver = try .init(try store.makeWriter(), seed: 71)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(120, in: [id, try StoreDriver.id("b")], keys: 12)
        bucket = try #require(driver.buckets[id]).record
        // A store of its own knows nothing yet, and forgets what it finds.
        let fresh: any StoreReader = try SQLiteStore(path: store.path, settings: .testing).makeReader()
        positions = try #require(
            try fresh.changes(in: bucket.row, after: 0, upTo: bucket.head, limit: 1_000, byteLimit: .max)
        ).changes.map(\.gid)
    }

    private func page(_ reader: any StoreReader, after: GlobalID, limit: Int) throws -> ChangePage {
        try #require(
            try reader.changes(in: bucket.row, after: after, upTo: bucket.head, limit: limit, byteLimit: .max))
    }

    @Test("pages that begin in the middle of the one before have the same changes, and no second walk along the log")
    func middle() throws {
        #expect(positions.count > 40)
        let reader: any StoreReader = try store.makeReader()
        let bytes: Int = positions.count * MemoryLayout<GlobalID>.size
        for start: Int in stride(from: 0, to: positions.count - 12, by: 5) {
            let after: GlobalID = start == 0 ? 0 : positions[start - 1]
            if start > 0 {
                let place: WalkCache.CatchUpPlace = .init(bucket: bucket.row, upTo: bucket.head)
                #expect(store.walks.catchUp(place, after: after).map(Array.init) == Array(positions[start...]))
            }
            let found: ChangePage = try page(reader, after: after, limit: 10)
            #expect(found.changes.map(\.gid) == Array(positions[start..<(start + 10)]) && found.hasMore)
            // All of them, kept once, however many pages are asked for.
            #expect(store.walks.memory.catchUps == bytes)
        }
        #expect(try !page(reader, after: positions[positions.count - 3], limit: 10).hasMore)
        #expect(store.walks.memory.catchUps == 0)
    }

    @Test("a client that is further behind is told all that it missed, and so is one that is not so far behind")
    func several() throws {
        let reader: any StoreReader = try store.makeReader()
        #expect(try page(reader, after: positions[29], limit: 5).changes.map(\.gid) == Array(positions[30..<35]))
        #expect(try page(reader, after: positions[9], limit: 5).changes.map(\.gid) == Array(positions[10..<15]))
        #expect(try page(reader, after: positions[19], limit: 5).changes.map(\.gid) == Array(positions[20..<25]))
        #expect(try page(reader, after: positions[0], limit: 5).changes.map(\.gid) == Array(positions[1..<6]))
        #expect(store.walks.memory.catchUps == (positions.count - 1) * MemoryLayout<GlobalID>.size)
    }

    @Test("positions between two of the bucket's changes are looked up like those of a change")
    func between() {
        let known: WalkCache.CatchUp = .init(after: 10, positions: [12, 15, 20])
        #expect(known.positions(after: 9) == nil)
        #expect(known.positions(after: 10) == [12, 15, 20])
        #expect(known.positions(after: 13) == [15, 20])
        #expect(known.positions(after: 15) == [20])
        #expect(known.positions(after: 20)?.isEmpty == true)
    }
}
