import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

/// If several accounts share a bucket, its operations name the signed list of readers that they were written under.
@Suite("Logs under lists of readers")
struct ReaderListLogTests {
    private static let place = SealedPlace(owner: "o", app: "a", bucket: "b", serverKey: "k")
    private var random = SeededRandom(seed: 67)

    private static func sealer(_ list: Int) -> ClearSealer {
        var sealer = ClearSealer()
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
        let length = device.object?["t"]?.stringValue?.utf16.count ?? 0
        let delta = TextDelta([.retain(length), .insert(Array(text.utf16))])
        try device.edit(ObjectDiff([(key: "t", operation: .text(delta))]))
        return try sealed(&device, under: list)
    }

    private mutating func sealed(_ device: inout SealedObject, under list: Int) throws -> [UInt8] {
        let made = device.seal(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(list))
        return try #require(made).sealed
    }

    private static func text(_ device: SealedObject) -> String? { device.object?["t"]?.stringValue }

    @Test("in a bucket of one account, neither operations nor snapshots name a list")
    mutating func privateBuckets() throws {
        var device = Self.device(1)
        let sealed = try typed("a", on: &device, under: 0)
        let clear = try #require(Self.sealer(0).open(sealed, kind: .operation, position: 0)).clear
        #expect(!String(decoding: clear, as: UTF8.self).contains("\"l\""))
        _ = device.receive(sealed, with: Self.sealer(0))
        #expect(device.log.list == 0)
        let snapshot = try JSONValue(parsing: SealedSnapshot.clearBytes(of: device.log), maxDepth: 600)
        #expect(snapshot["l"] == nil)
    }

    @Test(
        "an operation under an older list than the log's is void without an alarm, and its author sends it again"
    )
    mutating func olderList() throws {
        var (ann, ben) = (Self.device(1), Self.device(2))
        let first = try typed("a", on: &ann, under: 3)
        let late = try typed("b", on: &ben, under: 2)
        for sealed in [first, late] { _ = ann.receive(sealed, with: Self.sealer(3)) }
        #expect(Self.text(ann) == "xa" && ann.log.list == 3 && ann.log.position == 2)
        var reported = [SealedEvent]()
        for sealed in [first, late] { reported += ben.receive(sealed, with: Self.sealer(3)) }
        #expect(reported.count { if case .rebased = $0 { true } else { false } } == 1)
        #expect(!reported.contains { if case .integrity = $0 { true } else { false } })
        #expect(ben.log == ann.log && Self.text(ben).map { Set($0) } == ["x", "a", "b"])
        let again = try sealed(&ben, under: 3)
        _ = ann.receive(again, with: Self.sealer(3))
        _ = ben.receive(again, with: Self.sealer(3))
        #expect(ann.log == ben.log && Self.text(ann) == Self.text(ben) && ann.log.lastPositions.count == 2)
    }

    @Test("in a bucket of one account, devices continue to write after an operation that names a list")
    mutating func strayList() throws {
        var (ann, ben) = (Self.device(1), Self.device(2))
        let stray = try typed("a", on: &ben, under: (1 << 53) - 1)
        _ = ann.receive(stray, with: Self.sealer(0))
        let own = try typed("b", on: &ann, under: 0)
        _ = ann.receive(own, with: Self.sealer(0))
        #expect(ann.pending == nil && !ann.hasEdits)
        #expect(ann.log.object?["t"] == .string("xab"))
    }

    @Test("a void operation does not put the log under its list")
    mutating func voids() throws {
        var device = Self.device(1)
        let head = try #require(device.log.chain[0])
        let other = SealedOperation(
            base: 0, head: head, incarnation: 1, author: .init(rawValue: 2), list: 9, content: .tombstone)
        let sealed = Self.sealer(9).seal(
            other.clearBytes(), kind: .operation, id: random.bytes(16), position: 0, nonce: [])
        _ = device.receive(sealed, with: Self.sealer(9))
        #expect(device.log.position == 1 && device.log.list == 0)
    }

    @Test("a mark, which changes nothing, puts a log under the newest list, once, and not if the object is deleted")
    mutating func marks() throws {
        var (ann, ben) = (Self.device(1), Self.device(2))
        let made = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        let mark = try #require(made)
        let twice = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        #expect(twice == nil, "a mark is in flight")
        #expect(ann.receive(mark.sealed, with: Self.sealer(2)) == [.acknowledged(mark.changeID)])
        #expect(ben.receive(mark.sealed, with: Self.sealer(2)) == [])
        #expect(ann.log == ben.log && ann.log.list == 2 && ann.isConsistent && Self.text(ben) == "x")
        let again = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        #expect(again == nil, "the log is under that list")
        try ann.delete()
        _ = ann.receive(try sealed(&ann, under: 2), with: Self.sealer(2))
        let gone = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(3))
        #expect(gone == nil && ann.log.object == nil)
    }

    @Test("a snapshot states the list of its log, and one with an older list than is known is rejected")
    mutating func snapshots() throws {
        var (ann, ben) = (Self.device(1), Self.device(2))
        for (number, list) in [1, 4, 4].enumerated() {
            let sealed = try typed("\(number)", on: &ann, under: list)
            _ = ann.receive(sealed, with: Self.sealer(list))
            if number < 2 { _ = ben.receive(sealed, with: Self.sealer(list)) }
        }
        let clear = SealedSnapshot.clearBytes(of: ann.log)
        #expect(SealedSnapshot.list(clear: clear) == 4 && SealedSnapshot.list(clear: [0x7B]) == nil)
        #expect(SealedSnapshot.log(clear: clear, place: Self.place, position: 3) == ann.log)
        var false_ = try #require(JSONValue(parsing: clear, maxDepth: 600).objectValue)
        false_["l"] = 3
        for (text, isGood) in [(clear, true), (JSONValue.object(false_).serialized(), false)] {
            let snapshot = Self.sealer(4).seal(
                text, kind: .snapshot, id: random.bytes(16), position: 3, nonce: [])
            var other = ben
            let events = other.adopt(
                SealedEntity(snapshots: [3: Base64.encodeURL(snapshot)]), with: Self.sealer(4))
            #expect(events.contains(.integrity(.snapshotMismatch(at: 3))) == !isGood)
            #expect((other.log == ann.log) == isGood)
            // A device with the whole log sees that the snapshot differs.
            var own = ann
            let reported = own.adopt(
                SealedEntity(snapshots: [3: Base64.encodeURL(snapshot)]), with: Self.sealer(4))
            #expect(reported == (isGood ? [] : [.integrity(.snapshotMismatch(at: 3))]))
        }
    }

    @Test(
        "an operation or a snapshot with an invalid list version is rejected",
        arguments: ["0", "-1", "1.5", "\"1\"", "9007199254740992"])
    func malformed(version: String) throws {
        let log = Self.device(1).log
        let operation = SealedOperation(
            base: 0, head: try #require(log.chain[0]), incarnation: log.incarnationTag, author: .init(rawValue: 1),
            list: 77_777_777, content: .tombstone)
        let clear = String(decoding: operation.clearBytes(), as: UTF8.self)
        #expect(try SealedOperation(clear: Array(clear.utf8)).list == 77_777_777)
        let wrong = clear.split(separator: "77777777").joined(separator: version)
        #expect(throws: SealedOperation.ReadingError.malformed) { _ = try SealedOperation(clear: Array(wrong.utf8)) }
        var snapshot = try #require(
            JSONValue(parsing: SealedSnapshot.clearBytes(of: log), maxDepth: 600).objectValue)
        snapshot["l"] = try JSONValue(parsing: version)
        #expect(
            SealedSnapshot.log(clear: JSONValue.object(snapshot).serialized(), place: Self.place, position: 0) == nil)
    }
}
