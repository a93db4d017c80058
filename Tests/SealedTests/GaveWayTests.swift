import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@testable import ThicketSealed

/// What an edit of this device prevails over is told, once, whichever way the two have met.
@Suite("What gives way to an edit that waited")
struct GaveWayTests {
    private static let sealer: ClearSealer = .init()

    private static func object(author: UInt64) -> SealedObject {
        SealedObject(
            author: .init(rawValue: author),
            log: SealedLog(
                place: .init(owner: "o", app: "a", bucket: "b", serverKey: "k"), appKey: "key",
                incarnation: .init(repeating: 3, count: 16), object: ["n": 0, "t": "", "l": [0]]))
    }

    private static func seal(_ object: inout SealedObject, _ id: UInt8) throws -> [UInt8] {
        let made: SealedObject.Pending? = object.seal(
            changeID: .init(repeating: id, count: 16), nonce: [], with: sealer)
        return try #require(made).sealed
    }

    /// Another device sets a member; its operation as it is ordered.
    private static func theirs(_ object: inout SealedObject, _ diff: String, id: UInt8) throws -> [UInt8] {
        try object.edit(try ObjectDiff(JSONValue(parsing: diff)))
        let sealed: [UInt8] = try seal(&object, id)
        _ = object.receive(sealed, with: sealer)
        return sealed
    }

    private static func set(_ value: Int) -> String { #"{"n":{"o":"r","v":\#(value)}}"# }

    private static func told(_ events: [SealedEvent]) -> [SealedConflict] {
        events.compactMap { if case .conflict(let conflict) = $0 { conflict } else { nil } }
    }

    private static let twoToOne: [SealedConflict] = [SealedConflict(path: ["n"], losing: 2, winning: 1)]

    @Test(
        "an edit that was not sent yet: when the other comes, and neither when more comes nor when it is ordered itself"
    )
    func waiting() throws {
        var (mine, other): (SealedObject, SealedObject) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let first: [UInt8] = try Self.theirs(&other, Self.set(2), id: 20)
        #expect(Self.told(mine.receive(first, with: Self.sealer)) == Self.twoToOne)
        #expect(mine.object?["n"] == 1 && mine.isConsistent)
        for (id, diff): (UInt8, String) in [(21, #"{"t":{"o":"d","v":"+x"}}"#), (22, #"{"o":{"o":"+","v":1}}"#)] {
            #expect(Self.told(mine.receive(try Self.theirs(&other, diff, id: id), with: Self.sealer)).isEmpty)
        }
        let restored: SealedObject? = .restored(
            author: mine.author, log: mine.log, pending: nil, kept: mine.kept, with: Self.sealer)
        #expect(restored == mine)
        let sealed: [UInt8] = try Self.seal(&mine, 1)
        #expect(Self.told(mine.receive(sealed, with: Self.sealer)).isEmpty)
        #expect(Self.told(other.receive(sealed, with: Self.sealer)).isEmpty && other.object?["n"] == 1)
    }

    @Test("one after the other gives way, and each is told")
    func again() throws {
        var (mine, other): (SealedObject, SealedObject) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        for value: Int in 2...4 {
            let events: [SealedEvent] = mine.receive(
                try Self.theirs(&other, Self.set(value), id: UInt8(value)), with: Self.sealer)
            #expect(
                Self.told(events) == [
                    SealedConflict(path: ["n"], losing: .number(JSONNumber(Int64(value))), winning: 1)
                ])
        }
    }

    @Test("an edit on its way: when it is ordered, by the log, to everybody")
    func onItsWay() throws {
        var (mine, other): (SealedObject, SealedObject) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let sealed: [UInt8] = try Self.seal(&mine, 1)
        let first: [UInt8] = try Self.theirs(&other, Self.set(2), id: 20)
        #expect(Self.told(mine.receive(first, with: Self.sealer)).isEmpty)
        #expect(Self.told(mine.receive(sealed, with: Self.sealer)) == Self.twoToOne)
        #expect(Self.told(other.receive(sealed, with: Self.sealer)) == Self.twoToOne)
    }

    @Test("an edit on its way that counts for nothing, and goes out again: when that is known, and not again")
    func void() throws {
        var (mine, other): (SealedObject, SealedObject) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let sealed: [UInt8] = try Self.seal(&mine, 1)
        _ = mine.receive(try Self.theirs(&other, Self.set(2), id: 20), with: Self.sealer)
        for id: UInt8 in 0..<64 {
            let diff: String = #"{"t":{"o":"r","v":"\#(id)"}}"#
            #expect(Self.told(mine.receive(try Self.theirs(&other, diff, id: 30 + id), with: Self.sealer)).isEmpty)
        }
        #expect(Self.told(mine.receive(sealed, with: Self.sealer)) == Self.twoToOne)
        let again: [UInt8] = try Self.seal(&mine, 2)
        #expect(Self.told(mine.receive(again, with: Self.sealer)).isEmpty && mine.log.object?["n"] == 1)
    }

    @Test("an edit that a snapshot shows to have been ordered: when that is read")
    func behindSnapshot() throws {
        var (mine, other): (SealedObject, SealedObject) = (Self.object(author: 1), Self.object(author: 2))
        try mine.edit(ObjectDiff(JSONValue(parsing: Self.set(1))))
        let sealed: [UInt8] = try Self.seal(&mine, 1)
        _ = try Self.theirs(&other, Self.set(2), id: 20)
        _ = other.receive(sealed, with: Self.sealer)
        let snapshot: [UInt8] = other.sealedSnapshot(id: .init(repeating: 7, count: 16), nonce: [], with: Self.sealer)
        let events: [SealedEvent] = mine.adopt(
            SealedEntity(snapshots: [2: Base64.encodeURL(snapshot)]), with: Self.sealer)
        #expect(Self.told(events) == Self.twoToOne && mine.pending == nil && mine.problem == nil)
    }

    @Test("what nothing was lost of tells nothing: equal values, texts that are joined, sums, elements of lists")
    func nothingLost() throws {
        for (own, their): (String, String) in [
            (Self.set(2), Self.set(2)), (#"{"t":{"o":"d","v":"+a"}}"#, #"{"t":{"o":"d","v":"+b"}}"#),
            (#"{"n":{"o":"I","v":1}}"#, #"{"n":{"o":"I","v":2}}"#),
            (#"{"l":{"o":"L","v":{"0":{"o":"+","v":1}}}}"#, #"{"l":{"o":"L","v":{"0":{"o":"-"}}}}"#),
        ] {
            var (mine, other): (SealedObject, SealedObject) = (Self.object(author: 1), Self.object(author: 2))
            try mine.edit(ObjectDiff(JSONValue(parsing: own)))
            let events: [SealedEvent] = mine.receive(try Self.theirs(&other, their, id: 20), with: Self.sealer)
            #expect(Self.told(events).isEmpty, "\(own) \(their): \(events)")
        }
    }
}
