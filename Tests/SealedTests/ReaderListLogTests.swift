import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

/// Where several accounts share a bucket, operations name the signed list of readers that they were written under (decision 0067).
@Suite("Logs under lists of readers")
struct ReaderListLogTests {
    private static let place: SealedPlace = .init(owner: "o", app: "a", bucket: "b", serverKey: "k")
    private var random: SeededRandom = .init(seed: 67)

    private static func sealer(_ list: Int) -> ClearSealer {
        var sealer: ClearSealer = .init()
        sealer.listVersion = list
        return sealer
    }

    private static func device(_ author: UInt64) -> SealedObject {
        SealedObject(
            author: .init(rawValue: author),
            log: SealedLog(
                place: place, appKey: "note", incarnation: .init(repeating: 5, count: 16), object: ["t": "x"]))
    }

    private mutating func typed(_ text: String, on device: inout SealedObject, under list: Int) throws -> [UInt8] {
        let length: Int = device.object?["t"]?.stringValue?.utf16.count ?? 0
        let delta: TextDelta = .init([.retain(length), .insert(Array(text.utf16))])
        try device.edit(ObjectDiff([(key: "t", operation: .text(delta))]))
        return try sealed(&device, under: list)
    }

    private mutating func sealed(_ device: inout SealedObject, under list: Int) throws -> [UInt8] {
        let made: SealedObject.Pending? = device.seal(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(list))
        return try #require(made).sealed
    }

    private static func text(_ device: SealedObject) -> String? { device.object?["t"]?.stringValue }

    @Test("in a bucket of one account nothing names a list, neither operations nor snapshots")
    mutating func privateBuckets() throws {
        var device: SealedObject = Self.device(1)
        let sealed: [UInt8] = try typed("a", on: &device, under: 0)
        let clear: [UInt8] = try #require(Self.sealer(0).open(sealed, kind: .operation, position: 0)).clear
        #expect(!String(decoding: clear, as: UTF8.self).contains("\"l\""))
        _ = device.receive(sealed, with: Self.sealer(0))
        #expect(device.log.list == 0)
        let snapshot: JSONValue = try JSONValue(parsing: SealedSnapshot.clearBytes(of: device.log), maxDepth: 600)
        #expect(snapshot["l"] == nil)
    }

    @Test(
        "behind an operation under a newer list one under an older counts for nothing, without an alarm, and goes out again"
    )
    mutating func olderList() throws {
        var (ann, ben): (SealedObject, SealedObject) = (Self.device(1), Self.device(2))
        let first: [UInt8] = try typed("a", on: &ann, under: 3)
        let late: [UInt8] = try typed("b", on: &ben, under: 2)
        for sealed: [UInt8] in [first, late] { _ = ann.receive(sealed, with: Self.sealer(3)) }
        #expect(Self.text(ann) == "xa" && ann.log.list == 3 && ann.log.position == 2)
        var told: [SealedEvent] = []
        for sealed: [UInt8] in [first, late] { told += ben.receive(sealed, with: Self.sealer(3)) }
        #expect(told.count { if case .rebased = $0 { true } else { false } } == 1)
        #expect(!told.contains { if case .integrity = $0 { true } else { false } })
        #expect(ben.log == ann.log && Self.text(ben).map { Set($0) } == ["x", "a", "b"])
        let again: [UInt8] = try sealed(&ben, under: 3)
        _ = ann.receive(again, with: Self.sealer(3))
        _ = ben.receive(again, with: Self.sealer(3))
        #expect(ann.log == ben.log && Self.text(ann) == Self.text(ben) && ann.log.lastPositions.count == 2)
    }

    @Test("where something names a list in a bucket of one account, its devices go on writing")
    mutating func strayList() throws {
        var (ann, ben): (SealedObject, SealedObject) = (Self.device(1), Self.device(2))
        let stray: [UInt8] = try typed("a", on: &ben, under: (1 << 53) - 1)
        _ = ann.receive(stray, with: Self.sealer(0))
        let own: [UInt8] = try typed("b", on: &ann, under: 0)
        _ = ann.receive(own, with: Self.sealer(0))
        #expect(ann.pending == nil && !ann.hasEdits)
        #expect(ann.log.object?["t"] == .string("xab"))
    }

    @Test("what counts for nothing puts no log under its list")
    mutating func voids() throws {
        var device: SealedObject = Self.device(1)
        let head: Head = try #require(device.log.chain[0])
        let other: SealedOperation = .init(
            base: 0, head: head, incarnation: 1, author: .init(rawValue: 2), list: 9, content: .tombstone)
        let sealed: [UInt8] = Self.sealer(9).seal(
            other.clearBytes(), kind: .operation, id: random.bytes(16), position: 0, nonce: [])
        _ = device.receive(sealed, with: Self.sealer(9))
        #expect(device.log.position == 1 && device.log.list == 0)
    }

    @Test("an operation that changes nothing puts a log under the newest list, once, and not where there is no object")
    mutating func marks() throws {
        var (ann, ben): (SealedObject, SealedObject) = (Self.device(1), Self.device(2))
        let made: SealedObject.Pending? = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        let mark: SealedObject.Pending = try #require(made)
        let twice: SealedObject.Pending? = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        #expect(twice == nil, "one is on its way")
        #expect(ann.receive(mark.sealed, with: Self.sealer(2)) == [.acknowledged(mark.changeID)])
        #expect(ben.receive(mark.sealed, with: Self.sealer(2)) == [])
        #expect(ann.log == ben.log && ann.log.list == 2 && ann.isConsistent && Self.text(ben) == "x")
        let again: SealedObject.Pending? = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        #expect(again == nil, "it stands there")
        try ann.delete()
        _ = ann.receive(try sealed(&ann, under: 2), with: Self.sealer(2))
        let gone: SealedObject.Pending? = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(3))
        #expect(gone == nil && ann.log.object == nil)
    }

    @Test("a snapshot says under which list its log stands; one that says less than is known is none")
    mutating func snapshots() throws {
        var (ann, ben): (SealedObject, SealedObject) = (Self.device(1), Self.device(2))
        for (number, list): (Int, Int) in [1, 4, 4].enumerated() {
            let sealed: [UInt8] = try typed("\(number)", on: &ann, under: list)
            _ = ann.receive(sealed, with: Self.sealer(list))
            if number < 2 { _ = ben.receive(sealed, with: Self.sealer(list)) }
        }
        let clear: [UInt8] = SealedSnapshot.clearBytes(of: ann.log)
        #expect(SealedSnapshot.list(clear: clear) == 4 && SealedSnapshot.list(clear: [0x7B]) == nil)
        #expect(SealedSnapshot.log(clear: clear, place: Self.place, position: 3) == ann.log)
        var false_: JSONObject = try #require(JSONValue(parsing: clear, maxDepth: 600).objectValue)
        false_["l"] = 3
        for (text, isGood): ([UInt8], Bool) in [(clear, true), (JSONValue.object(false_).serialized(), false)] {
            let snapshot: [UInt8] = Self.sealer(4).seal(
                text, kind: .snapshot, id: random.bytes(16), position: 3, nonce: [])
            var other: SealedObject = ben
            let events: [SealedEvent] = other.adopt(
                SealedEntity(snapshots: [3: Base64.encodeURL(snapshot)]), with: Self.sealer(4))
            #expect(events.contains(.integrity(.snapshotMismatch(at: 3))) == !isGood)
            #expect((other.log == ann.log) == isGood)
            // Who has all of it sees that it is another.
            var own: SealedObject = ann
            let told: [SealedEvent] = own.adopt(
                SealedEntity(snapshots: [3: Base64.encodeURL(snapshot)]), with: Self.sealer(4))
            #expect(told == (isGood ? [] : [.integrity(.snapshotMismatch(at: 3))]))
        }
    }

    @Test(
        "what is no version of a list is no operation and no snapshot",
        arguments: ["0", "-1", "1.5", "\"1\"", "9007199254740992"])
    func malformed(version: String) throws {
        let log: SealedLog = Self.device(1).log
        let operation: SealedOperation = .init(
            base: 0, head: try #require(log.chain[0]), incarnation: log.incarnationTag, author: .init(rawValue: 1),
            list: 77_777_777, content: .tombstone)
        let clear: String = .init(decoding: operation.clearBytes(), as: UTF8.self)
        #expect(try SealedOperation(clear: Array(clear.utf8)).list == 77_777_777)
        let wrong: String = clear.split(separator: "77777777").joined(separator: version)
        #expect(throws: SealedOperation.ReadingError.malformed) { _ = try SealedOperation(clear: Array(wrong.utf8)) }
        var snapshot: JSONObject = try #require(
            JSONValue(parsing: SealedSnapshot.clearBytes(of: log), maxDepth: 600).objectValue)
        snapshot["l"] = try JSONValue(parsing: version)
        #expect(
            SealedSnapshot.log(clear: JSONValue.object(snapshot).serialized(), place: Self.place, position: 0) == nil)
    }
}
