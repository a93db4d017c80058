import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketSealed

@testable import ThicketClient

@Suite("Objects of sealed buckets in a file")
struct PackedEntityTests {
    private static let snapshot = "AQEAAAAAAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBka"
    private static let operation = "AQIAAAAA_-8"

    private var object: JSONObject {
        SealedEntity(snapshots: [64: Self.snapshot, 0: "AA"], tail: [Self.operation, "", "BQ"]).object
    }

    @Test("a packed sealed object is restored as it was, and a large one is a quarter smaller")
    func roundTrip() throws {
        let packed = try #require(PackedEntity.pack(object))
        #expect(PackedEntity.unpack(packed) == object)
        let large = SealedEntity(snapshots: [5: String(repeating: Self.snapshot, count: 40)]).object
        let bytes = try #require(PackedEntity.pack(large)).count
        #expect(bytes * 4 < large.serialized().count * 3 + 100)
        #expect(PackedEntity.unpack(try #require(PackedEntity.pack(large))) == large)
    }

    @Test(
        "an object that would not be restored byte for byte is not packed",
        arguments: [
            #"{"z":1,"s":{"0":"AB"},"d":[]}"#, #"{"z":1,"s":{"0":"A A"},"d":[]}"#, #"{"z":1,"s":{"0":"AA=="},"d":[]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":["A"]}"#, #"{"z":2,"s":{"0":"AA"},"d":[]}"#, #"{"z":1,"s":{"0":"AA"},"d":[1]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":[],"t":0}"#, #"{"z":1,"s":{},"d":[]}"#, #"{"text":"AA"}"#,
        ])
    func notPacked(text: String) throws {
        #expect(PackedEntity.pack(try #require(try JSONValue(parsing: Array(text.utf8)).objectValue)) == nil)
    }

    /// The packed form of a message.
    private func packed(_ text: String) throws -> PackedEntity.Packed? {
        let node = try JSONDocument(parsing: Array(text.utf8)).root
        return SealedOutline(node).flatMap { outline in node.withDocument { PackedEntity.pack(outline, of: $0) } }
    }

    @Test("an object in a message packs to the same bytes, and its values are found in them")
    func fromMessage() throws {
        for tail in [[], [Self.operation], [Self.operation, "", "BQ", "BQU", "BQUF"]] {
            for snapshots in [[0: Self.snapshot], [64: Self.snapshot, 0: "AA", 7: "AAA"], [9: ""]] {
                let entity = SealedEntity(snapshots: snapshots, tail: tail)
                let text = JSONValue.object(entity.object).serializedText
                let found = try #require(try packed(text))
                #expect(found.bytes == PackedEntity.pack(entity.object))
                #expect(Array(found.bytes[found.newest]) == SealedObject.bytes(of: try #require(entity.newest).text))
                #expect(found.tail.map { Array(found.bytes[$0]) } == tail.map { SealedObject.bytes(of: $0) })
            }
        }
        let unordered = #"{"d":["BQ"],"s":{"64":"AQ","7":"Ag","128":"Aw","0":"BA"},"z":1.0}"#
        let object = try #require(try JSONValue(parsing: unordered).objectValue)
        let found = try #require(try packed(unordered))
        #expect(found.bytes == PackedEntity.pack(object) && Array(found.bytes[found.newest]) == [3])
    }

    @Test(
        "an object in a message is not packed where the object would not be, nor with escapes",
        arguments: [
            #"{"z":1,"s":{"0":"AB"},"d":[]}"#, #"{"z":1,"s":{"0":"A A"},"d":[]}"#, #"{"z":1,"s":{"0":"AA=="},"d":[]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":["A"]}"#, #"{"z":2,"s":{"0":"AA"},"d":[]}"#, #"{"z":1,"s":{"0":"AA"},"d":[1]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":[],"t":0}"#, #"{"z":1,"s":{},"d":[]}"#, #"{"text":"AA"}"#, "[]", "1", "{}",
            #"{"z":1,"s":{"00":"AA"},"d":[]}"#, #"{"z":1,"s":{"0":1},"d":[]}"#, #"{"z":1,"s":["AA"],"d":[]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":{}}"#, #"{"z":"1","s":{"0":"AA"},"d":[]}"#,
            #"{"z":1,"s":{"0":"AB","1":"AA"},"d":[]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":["AB"]}"#, #"{"z":1,"s":{"0":"\u0041A"},"d":[]}"#,
            #"{"z":1,"s":{"0":"AA"},"d":["\u0041A"]}"#,
        ])
    func notFromMessage(text: String) throws {
        let isPacked = try packed(text) != nil
        #expect(!isPacked)
    }

    @Test("more snapshots than an object may have are not packed")
    func tooManySnapshots() throws {
        for (count, isPacked) in [(SealedLimits.snapshotsMax, true), (SealedLimits.snapshotsMax + 1, false)] {
            let named = (0..<count).map { #""\#($0)":"AA""# }.joined(separator: ",")
            #expect((try packed(#"{"z":1,"s":{\#(named)},"d":[]}"#) != nil) == isPacked)
        }
    }

    @Test("cut, extended or otherwise damaged bytes are not unpacked")
    func damaged() throws {
        let packed = try #require(PackedEntity.pack(object))
        for count in 0..<packed.count { #expect(PackedEntity.unpack(Array(packed[..<count])) == nil) }
        #expect(PackedEntity.unpack(packed + [0]) == nil)
        var huge = packed
        for place in 1..<5 { huge[place] = 0xFF }
        #expect(PackedEntity.unpack(huge) == nil)
        #expect(throws: ClientError.self) { try EditCodec.object(Array(packed.dropLast())) }
    }

    @Test("a store packs objects of sealed buckets, stores others as they came, and reads both")
    func store() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("store.db")
        let store = try SQLiteLocalStore(path: path)
        let bucket = try BucketName("b")
        func address(_ key: String) throws -> EntityAddress { EntityAddress(bucket: bucket, key: try EntityKey(key)) }
        let ghost = Ghost(version: 3, object: object)
        var batch = LocalBatch()
        batch.buckets = [BucketRecord(name: bucket, isSealed: true)]
        batch.entities = [
            EntityWrite(
                try address("sealed"), EntityRecord(ghost: ghost, isLive: true, name: "mine"), [.ghost, .marks]),
            EntityWrite(try address("open"), EntityRecord(ghost: ghost, isLive: true), [.ghost, .marks]),
        ]
        let packed = try #require(PackedEntity.pack(object))
        batch.arrivals = [
            NewObject(
                try address("arrived"), version: 3, scanID: 0, body: .value(.object(object)), packed: packed,
                name: "too")
        ]
        try store.commit(batch)
        for key in ["sealed", "open", "arrived"] {
            #expect(try store.entity(address(key))?.ghost == ghost)
        }
        store.close()
        let file = try Database(path: path)
        let marks = try file.statement(
            "SELECT hex(substr(object, 1, 1)) FROM ghost JOIN entity ON entity.id = ghost.id ORDER BY key")
        var found = [String]()
        while try marks.step() { found.append(marks.text(0)) }
        #expect(found == ["01", "7B", "01"])
    }
}
