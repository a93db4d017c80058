import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

@Suite("A sealed object on one device")
struct ObjectTests {
    private static let sealer = ClearSealer()

    private static func object(_ content: JSONObject, author: UInt64 = 1) -> SealedObject {
        SealedObject(
            author: .init(rawValue: author),
            log: SealedLog(
                place: .init(owner: "o", app: "a", bucket: "b", serverKey: "k"), appKey: "key",
                incarnation: .init(repeating: 3, count: 16), object: content))
    }

    private static func diff(_ json: String) throws -> ObjectDiff { try ObjectDiff(JSONValue(parsing: json)) }

    private static func seal(_ object: inout SealedObject, id: UInt8 = 1) throws -> SealedObject.Pending {
        let made = object.seal(
            changeID: .init(repeating: id, count: 16), nonce: [], with: sealer)
        return try #require(made)
    }

    @Test("a member that is set and then removed inside a list is removed, also when nothing was sent in between")
    func composedInList() throws {
        var object = Self.object(["l": [["k": 1]]])
        try object.edit(Self.diff(#"{"l":{"o":"L","v":{"0":{"o":"O","v":{"k":{"o":"r","v":2}}}}}}"#))
        try object.edit(Self.diff(#"{"l":{"o":"L","v":{"0":{"o":"O","v":{"k":{"o":"-"}}}}}}"#))
        #expect(object.object == ["l": [[:]]] && object.isConsistent)
        let sealed: [UInt8] = try Self.seal(&object).sealed
        #expect(object.receive(sealed, with: Self.sealer) == [.acknowledged(.init(repeating: 1, count: 16))])
        #expect(object.log.object == ["l": [[:]]])
    }

    @Test("after all operations, two devices show their members in one order, that of the log")
    func order() throws {
        var (mine, theirs) = (Self.object([:]), Self.object([:], author: 2))
        try mine.edit(Self.diff(#"{"a":{"o":"+","v":1}}"#))
        let own = try Self.seal(&mine).sealed
        try theirs.edit(Self.diff(#"{"b":{"o":"+","v":2}}"#))
        let other = try Self.seal(&theirs, id: 2).sealed
        for operation in [other, own] {
            _ = mine.receive(operation, with: Self.sealer)
            _ = theirs.receive(operation, with: Self.sealer)
        }
        #expect(mine.object?.keys == ["b", "a"] && theirs.object?.keys == ["b", "a"])
        #expect(mine.log.object?.keys == ["b", "a"])
    }

    @Test("a device whose refused operation others have made, too, shows its members in the order of the log")
    func orderAfterRefusal() throws {
        var (mine, theirs) = (Self.object(["x": 1, "y": 2]), Self.object(["x": 1, "y": 2], author: 2))
        // Removed and set again, the member is the last one on this device; as one operation it stays in its place.
        try mine.edit(Self.diff(#"{"x":{"o":"-"}}"#))
        try mine.edit(Self.diff(#"{"x":{"o":"+","v":5}}"#))
        _ = try Self.seal(&mine)
        try theirs.edit(Self.diff(#"{"x":{"o":"r","v":5}}"#))
        _ = mine.receive(try Self.seal(&theirs, id: 2).sealed, with: Self.sealer)
        #expect(mine.object?.keys == ["y", "x"] && !mine.hasEdits)
        _ = mine.refuse()
        #expect(mine.object?.keys == ["x", "y"] && mine.log.object?.keys == ["x", "y"])
    }

    @Test("a device that adopts a snapshot shows its members in the order of the other devices")
    func orderBehindSnapshot() throws {
        var (mine, theirs) = (Self.object([:]), Self.object([:], author: 2))
        try mine.edit(Self.diff(#"{"a":{"o":"+","v":1}}"#))
        let own = try Self.seal(&mine).sealed
        try theirs.edit(Self.diff(#"{"b":{"o":"+","v":2}}"#))
        let other = try Self.seal(&theirs, id: 2).sealed
        for operation in [other, own] { _ = theirs.receive(operation, with: Self.sealer) }
        let snapshot = theirs.sealedSnapshot(id: .init(repeating: 7, count: 16), nonce: [], with: Self.sealer)
        _ = mine.adopt(SealedEntity(snapshots: [2: Base64.encodeURL(snapshot)]), with: Self.sealer)
        #expect(mine.object?.keys == ["b", "a"] && mine.pending == nil && mine.problem == nil)
    }

    @Test("only one change is in flight, and arriving operations and new edits do not change its bytes")
    func oneInFlight() throws {
        var (mine, theirs) = (
            Self.object(["t": "ab"]), Self.object(["t": "ab"], author: 2)
        )
        try mine.edit(Self.diff(#"{"t":{"o":"d","v":"+x\t=2"}}"#))
        let sent = try Self.seal(&mine)
        try mine.edit(Self.diff(#"{"t":{"o":"d","v":"=3\t+y"}}"#))
        let second = mine.seal(
            changeID: .init(repeating: 9, count: 16), nonce: [], with: Self.sealer)
        #expect(second == nil)
        try theirs.edit(Self.diff(#"{"t":{"o":"d","v":"-1\t=1"}}"#))
        let other = try Self.seal(&theirs, id: 2).sealed
        _ = mine.receive(other, with: Self.sealer)
        #expect(mine.object == ["t": "xby"] && mine.isConsistent)
        #expect(mine.pending?.sealed == sent.sealed && mine.pending?.changeID == sent.changeID)
        #expect(mine.receive(sent.sealed, with: Self.sealer) == [.acknowledged(sent.changeID)])
        #expect(mine.log.object == ["t": "xb"] && mine.object == ["t": "xby"])
    }

    @Test("a device keeps its own operation that became void and sends it again under another id")
    func voided() throws {
        var (mine, theirs) = (Self.object(["t": ""]), Self.object(["t": ""], author: 2))
        try mine.edit(Self.diff(#"{"t":{"o":"d","v":"+mine"}}"#))
        let sent = try Self.seal(&mine)
        for number: UInt8 in 0..<64 {
            let length = theirs.object?["t"]?.stringValue?.utf16.count ?? 0
            try theirs.edit(Self.diff(#"{"t":{"o":"d","v":"=\#(length)\t+z"}}"#))
            let sealed: [UInt8] = try Self.seal(&theirs, id: number + 10).sealed
            _ = theirs.receive(sealed, with: Self.sealer)
            _ = mine.receive(sealed, with: Self.sealer)
        }
        #expect(mine.receive(sent.sealed, with: Self.sealer) == [.rebased(sent.changeID)])
        #expect(mine.pending == nil && mine.hasEdits && mine.isConsistent)
        let again = try Self.seal(&mine, id: 2)
        #expect(again.base == 65 && again.sealed != sent.sealed)
        _ = mine.receive(again.sealed, with: Self.sealer)
        #expect(mine.log.object == ["t": .string("mine" + String(repeating: "z", count: 64))])
    }

    @Test("an object that another device deleted while it was edited here stays visible and must be created again")
    func recreation() throws {
        var (mine, theirs) = (Self.object(["n": 1]), Self.object(["n": 1], author: 2))
        try theirs.delete()
        let gone = try Self.seal(&theirs).sealed
        try mine.edit(Self.diff(#"{"n":{"o":"I","v":5}}"#))
        _ = mine.receive(gone, with: Self.sealer)
        #expect(mine.object == ["n": 6] && mine.log.object == nil && mine.needsRecreation)
        let made = mine.seal(
            changeID: .init(repeating: 4, count: 16), nonce: [], with: Self.sealer)
        #expect(made == nil)
        #expect(mine.keepingMine(incarnation: .init(repeating: 8, count: 16))?.object == ["n": 6])
    }

    @Test("an author compacts at its own position divisible by 64, any device after a wait if the tail exceeds 128")
    func compaction() {
        #expect(SealedObject.compaction(ownPosition: 64, tail: 64) == .now)
        #expect(SealedObject.compaction(ownPosition: 128, tail: 1) == .now)
        #expect(SealedObject.compaction(ownPosition: 65, tail: 65) == .none)
        #expect(SealedObject.compaction(ownPosition: nil, tail: 64) == .none)
        #expect(SealedObject.compaction(ownPosition: nil, tail: 128) == .none)
        #expect(SealedObject.compaction(ownPosition: nil, tail: 129) == .afterRandomWait)
    }

    @Test("a pending deletion of a surrogate pair survives a jump past the window in which its neighbour was deleted")
    func leapOverPairs() throws {
        var mine = Self.object(["t": "\u{20000}\u{20001}"])
        // This device deletes the second pair, the other device the first; then more follows than the window holds.
        try mine.edit(Self.diff(#"{"t":{"o":"d","v":"=2\t-2"}}"#))
        var theirs: SealedObject = Self.object(["t": "\u{20000}\u{20001}"], author: 2)
        try theirs.edit(Self.diff(#"{"t":{"o":"d","v":"-2\t=2"}}"#))
        for id: UInt8 in 0...80 {
            _ = theirs.receive(try Self.seal(&theirs, id: id).sealed, with: Self.sealer)
            try theirs.edit(to: ["t": "\u{20001}", "n": .number(JSONNumber(Int64(id)))])
        }
        let snapshot = theirs.sealedSnapshot(id: .init(repeating: 7, count: 16), nonce: [], with: Self.sealer)
        let events = mine.adopt(
            SealedEntity(snapshots: [theirs.log.position: Base64.encodeURL(snapshot)]), with: Self.sealer)
        #expect(mine.object?["t"] == "" && mine.isConsistent)
        #expect(!events.contains { if case .integrity = $0 { true } else { false } })
    }

    @Test("the kept state, the entity and the sealed bytes restore the same object")
    func restored() throws {
        var (mine, theirs) = (
            Self.object(["t": "ab", "n": 1]), Self.object(["t": "ab", "n": 1], author: 2)
        )
        let snapshot = Base64.encodeURL(
            mine.sealedSnapshot(id: .init(repeating: 7, count: 16), nonce: [], with: Self.sealer))
        try mine.edit(Self.diff(#"{"t":{"o":"d","v":"+x\t=2"}}"#))
        _ = try Self.seal(&mine)
        try mine.edit(Self.diff(#"{"n":{"o":"-"}}"#))
        try theirs.edit(Self.diff(#"{"t":{"o":"d","v":"-1\t=1"}}"#))
        let other = try Self.seal(&theirs, id: 2).sealed
        _ = mine.receive(other, with: Self.sealer)
        let json = try JSONValue(parsing: JSONValue.object(mine.kept.json).serialized())
        let kept = try #require(json.objectValue.flatMap { SealedKept($0) })
        #expect(kept == mine.kept)
        let (opened, _) = try SealedObject.open(
            SealedEntity(snapshots: [0: snapshot], tail: [Base64.encodeURL(other)]), author: mine.author,
            place: mine.log.place, with: Self.sealer)
        let again: SealedObject? = .restored(
            author: mine.author, log: opened.log, pending: mine.pending?.sealed, kept: kept, with: Self.sealer)
        #expect(again == mine)
    }
}
