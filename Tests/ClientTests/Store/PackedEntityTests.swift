import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketSealed

@testable import ThicketClient

@Suite("Objects of sealed buckets in a file")
struct PackedEntityTests {
    private static let snapshot: String = "AQEAAAAAAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBka"
    private static let operation: String = "AQIAAAAA_-8"

    private var object: JSONObject {
        SealedEntity(snapshots: [64: Self.snapshot, 0: "AA"], tail: [Self.operation, "", "BQ"]).object
    }

    @Test("a sealed object comes back as it was, and takes a quarter less")
    func roundTrip() throws {
        let packed: [UInt8] = try #require(PackedEntity.pack(object))
        #expect(PackedEntity.unpack(packed) == object)
        let large: JSONObject = SealedEntity(snapshots: [5: String(repeating: Self.snapshot, count: 40)]).object
        let bytes: Int = try #require(PackedEntity.pack(large)).count
        #expect(bytes * 4 < large.serialized().count * 3 + 100)
        #expect(PackedEntity.unpack(try #require(PackedEntity.pack(large))) == large)
    }

    @Test(
        "what would not come back the same is not packed",
        arguments: [
            #"{"z":1,"s":{"0":"AB"},"d":[]}"#, #"{"z":1,"s":{"0":"A A"},"d":[]}"#, #"{"z":1,"s":{"0":"AA=="},"d":[]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":["A"]}"#, #"{"z":2,"s":{"0":"AA"},"d":[]}"#, #"{"z":1,"s":{"0":"AA"},"d":[1]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":[],"t":0}"#, #"{"z":1,"s":{},"d":[]}"#, #"{"text":"AA"}"#,
        ])
    func notPacked(text: String) throws {
        #expect(PackedEntity.pack(try #require(try JSONValue(parsing: Array(text.utf8)).objectValue)) == nil)
    }

    @Test("cut, longer or otherwise damaged bytes are no object")
    func damaged() throws {
        let packed: [UInt8] = try #require(PackedEntity.pack(object))
        for count: Int in 0..<packed.count { #expect(PackedEntity.unpack(Array(packed[..<count])) == nil) }
        #expect(PackedEntity.unpack(packed + [0]) == nil)
        var huge: [UInt8] = packed
        for place: Int in 1..<5 { huge[place] = 0xFF }
        #expect(PackedEntity.unpack(huge) == nil)
        #expect(throws: ClientError.self) { try EditCodec.object(Array(packed.dropLast())) }
    }

    @Test("a store keeps objects of sealed buckets packed, others as they came, and reads both")
    func store() throws {
        let folder: TemporaryFolder = try TemporaryFolder()
        let path: String = folder.file("store.db")
        let store: SQLiteLocalStore = try SQLiteLocalStore(path: path)
        let bucket: BucketName = try BucketName("b")
        func address(_ key: String) throws -> EntityAddress { EntityAddress(bucket: bucket, key: try EntityKey(key)) }
        let ghost: Ghost = Ghost(version: 3, object: object)
        var batch: LocalBatch = LocalBatch()
        batch.buckets = [BucketRecord(name: bucket, isSealed: true)]
        batch.entities = [
            EntityWrite(
                try address("sealed"), EntityRecord(ghost: ghost, isLive: true, name: "mine"), [.ghost, .marks]),
            EntityWrite(try address("open"), EntityRecord(ghost: ghost, isLive: true), [.ghost, .marks]),
        ]
        let packed: [UInt8] = try #require(PackedEntity.pack(object))
        batch.arrivals = [
            NewObject(
                try address("arrived"), version: 3, walk: 0, body: .value(.object(object)), packed: packed, name: "too")
        ]
        try store.commit(batch)
        for key: String in ["sealed", "open", "arrived"] {
            #expect(try store.entity(address(key))?.ghost == ghost)
        }
        store.close()
        let file: Database = try Database(path: path)
        let marks: Statement = try file.statement(
            "SELECT hex(substr(object, 1, 1)) FROM ghost JOIN entity ON entity.id = ghost.id ORDER BY key")
        var found: [String] = []
        while try marks.step() { found.append(marks.text(0)) }
        #expect(found == ["01", "7B", "01"])
    }
}
