import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@testable import ThicketSealed

/// A value that gives way to an edit of this device is reported as a conflict, once, however the two were merged.
@Suite("Conflicts of an edit that waited")
struct GaveWayTests {
    private static let sealer = ClearSealer()

    private static func object(author: UInt64) -> SealedObject {
        SealedObject(
            author: .init(rawValue: author),
            log: SealedLog(
                place: .init(owner: "o", app: "a", bucket: "b", serverKey: "k"), appKey: "key",
                incarnation: .init(repeating: 3, count: 16), object: ["n": 0, "t": "", "l": [0]]))
    }

    private static func seal(_ object: inout SealedObject, _ id: UInt8) throws -> [UInt8] {
        let made = object.seal(
            changeID: .init(repeating: id, count: 16), nonce: [], with: sealer)
        return try #require(made).sealed
    }

    /// Another device makes an edit and receives its own operation; returns that operation.
    private static func theirs(_ object: inout SealedObject, _ diff: String, id: UInt8) throws -> [UInt8] {
        try object.edit(try ObjectDiff(JSONValue(parsing: diff)))
        let sealed = try seal(&object, id)
        _ = object.receive(sealed, with: sealer)
        return sealed
    }

    private static func set(_ value: Int) -> String { #"{"n":{"o":"r","v":\#(value)}}"# }

    private static func reported(_ events: [SealedEvent]) -> [SealedConflict] {
        events.compactMap { if case .conflict(let conflict) = $0 { conflict } else { nil } }
    }

    private static let twoToOne = [SealedConflict(path: ["n"], losing: 2, winning: 1)]

    @Test(
        "an unsent edit reports its conflict when the other edit arrives, not with later edits or its own ordering"
    )
    func waiting() throws {
        var (mine, other): (SealedObject, SealedObject) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let first = try Self.theirs(&other, Self.set(2), id: 20)
        #expect(Self.reported(mine.receive(first, with: Self.sealer)) == Self.twoToOne)
        #expect(mine.object?["n"] == 1 && mine.isConsistent)
        for (id, diff): (UInt8, String) in [(21, #"{"t":{"o":"d","v":"+x"}}"#), (22, #"{"o":{"o":"+","v":1}}"#)] {
            #expect(Self.reported(mine.receive(try Self.theirs(&other, diff, id: id), with: Self.sealer)).isEmpty)
        }
        let restored: SealedObject? = .restored(
            author: mine.author, log: mine.log, pending: nil, kept: mine.kept, with: Self.sealer)
        #expect(restored == mine)
        let sealed = try Self.seal(&mine, 1)
        #expect(Self.reported(mine.receive(sealed, with: Self.sealer)).isEmpty)
        #expect(Self.reported(other.receive(sealed, with: Self.sealer)).isEmpty && other.object?["n"] == 1)
    }

    @Test("an edit that prevails over several others in turn reports a conflict for each")
    func again() throws {
        var (mine, other) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        for value in 2...4 {
            let events = mine.receive(
                try Self.theirs(&other, Self.set(value), id: UInt8(value)), with: Self.sealer)
            #expect(
                Self.reported(events) == [
                    SealedConflict(path: ["n"], losing: .number(JSONNumber(Int64(value))), winning: 1)
                ])
        }
    }

    @Test("an edit in flight reports its conflict when it is ordered, from the log, on every device")
    func onItsWay() throws {
        var (mine, other) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let sealed = try Self.seal(&mine, 1)
        let first = try Self.theirs(&other, Self.set(2), id: 20)
        #expect(Self.reported(mine.receive(first, with: Self.sealer)).isEmpty)
        #expect(Self.reported(mine.receive(sealed, with: Self.sealer)) == Self.twoToOne)
        #expect(Self.reported(other.receive(sealed, with: Self.sealer)) == Self.twoToOne)
    }

    @Test("an edit in flight that becomes void and is sent again reports its conflict once, when it becomes void")
    func void() throws {
        var (mine, other) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let sealed = try Self.seal(&mine, 1)
        _ = mine.receive(try Self.theirs(&other, Self.set(2), id: 20), with: Self.sealer)
        for id: UInt8 in 0..<64 {
            let diff: String = #"{"t":{"o":"r","v":"\#(id)"}}"#
            #expect(Self.reported(mine.receive(try Self.theirs(&other, diff, id: 30 + id), with: Self.sealer)).isEmpty)
        }
        #expect(Self.reported(mine.receive(sealed, with: Self.sealer)) == Self.twoToOne)
        let again = try Self.seal(&mine, 2)
        #expect(Self.reported(mine.receive(again, with: Self.sealer)).isEmpty && mine.log.object?["n"] == 1)
    }

    @Test("an edit that a snapshot shows to have been ordered reports its conflict when the snapshot is read")
    func behindSnapshot() throws {
        var (mine, other) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let sealed = try Self.seal(&mine, 1)
        _ = try Self.theirs(&other, Self.set(2), id: 20)
        _ = other.receive(sealed, with: Self.sealer)
        let snapshot = other.sealedSnapshot(id: .init(repeating: 7, count: 16), nonce: [], with: Self.sealer)
        let events = mine.adopt(
            SealedEntity(snapshots: [2: Base64.encodeURL(snapshot)]), with: Self.sealer)
        #expect(Self.reported(events) == Self.twoToOne && mine.pending == nil && mine.problem == nil)
    }

    @Test("a merge that loses nothing reports no conflict: equal values, joined texts, sums, elements of lists")
    func nothingLost() throws {
        for (own, their) in [
            (Self.set(2), Self.set(2)), (#"{"t":{"o":"d","v":"+a"}}"#, #"{"t":{"o":"d","v":"+b"}}"#),
            (#"{"n":{"o":"I","v":1}}"#, #"{"n":{"o":"I","v":2}}"#),
            (#"{"l":{"o":"L","v":{"0":{"o":"+","v":1}}}}"#, #"{"l":{"o":"L","v":{"0":{"o":"-"}}}}"#),
        ] {
            var (mine, other) = (Self.object(author: 1), Self.object(author: 2))
            try mine.edit(ObjectDiff(JSONValue(parsing: own)))
            let events = mine.receive(try Self.theirs(&other, their, id: 20), with: Self.sealer)
            #expect(Self.reported(events).isEmpty, "\(own) \(their): \(events)")
        }
    }
}
