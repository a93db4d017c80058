import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

@Suite("A draft of a sealed object meets what somebody else has made under its key")
struct YieldTests {
    private static let sealer: ClearSealer = .init()
    private static let place: SealedPlace = .init(owner: "o", app: "a", bucket: "b", serverKey: "k")

    private static func object(_ content: JSONObject, author: UInt64 = 1, incarnation: UInt8 = 3) -> SealedObject {
        SealedObject(
            author: .init(rawValue: author),
            log: SealedLog(
                place: place, appKey: "key", incarnation: .init(repeating: incarnation, count: 16), object: content))
    }

    /// What somebody shows who has kept theirs: `shown`, made of `base`.
    private static func kept(_ base: JSONObject, shown: JSONObject) throws -> SealedObject {
        var object: SealedObject = object(base)
        try object.edit(to: shown)
        object.keepMine()
        object.hasReplaced()
        return object
    }

    /// What conflicts tell: path, what gave way, what stands.
    private static func conflicts(_ events: [SealedEvent]) -> [SealedConflict] {
        events.compactMap { if case .conflict(let conflict) = $0 { conflict } else { nil } }
    }

    private static func entity(_ object: SealedObject) -> SealedEntity {
        let snapshot: [UInt8] = object.sealedSnapshot(id: .init(repeating: 7, count: 16), nonce: [], with: sealer)
        return SealedEntity(snapshots: [object.log.position: Base64.encodeURL(snapshot)])
    }

    private static let page: String = "The rain had stopped, and the street was full of people who carried umbrellas. "

    @Test("two people keep theirs of one text: everything that either has is there, once, and nothing gave way")
    func joined() throws {
        var mine: SealedObject = try Self.kept(
            ["t": .string(Self.page), "n": 1], shown: ["t": .string(Self.page + "Mine."), "n": 1])
        let theirs: SealedObject = Self.object(
            ["t": .string("Theirs. " + Self.page), "n": 1], author: 2, incarnation: 4)
        let events: [SealedEvent] = mine.yield(to: theirs)
        #expect(mine.object == ["t": .string("Theirs. " + Self.page + "Mine."), "n": 1])
        #expect(Self.conflicts(events).isEmpty && mine.isConsistent && mine.draftBase == nil)
        // It goes out as an edit of the text, over which others may type.
        let sealed: SealedObject.Pending? = mine.seal(
            changeID: .init(repeating: 1, count: 16), nonce: [], with: Self.sealer)
        guard case .members(let members)? = sealed?.edit, members.count == 1, case .text = members[0].edit else {
            Issue.record("\(String(describing: sealed?.edit))")
            return
        }
    }

    @Test("what was agreed and is missing in theirs, which was made of an older state, comes back")
    func older() throws {
        let agreed: String = Self.page + "This was agreed. "
        var mine: SealedObject = try Self.kept(["t": .string(agreed)], shown: ["t": .string(agreed + "Mine.")])
        let events: [SealedEvent] = mine.yield(
            to: Self.object(["t": .string(Self.page + "Theirs.")], author: 2, incarnation: 4))
        let text: String = try #require(mine.object?["t"]?.stringValue)
        for part: String in [Self.page, "This was agreed. ", "Mine.", "Theirs."] {
            #expect(text.contains(part), "\(text)")
        }
        #expect(text.count >= agreed.count + "Mine.".count && Self.conflicts(events).isEmpty)
    }

    @Test("what two people wrote at one place stands one behind the other: both can be read, and no letters are mixed")
    func legible() throws {
        let base: String = Self.page
        let mine: String = "I walked home alone that evening, along the canal."
        let theirs: String = "We took the last bus to the harbour and waited there."
        var object: SealedObject = try Self.kept(["t": .string(base)], shown: ["t": .string(base + mine)])
        let events: [SealedEvent] = object.yield(
            to: Self.object(["t": .string(base + theirs)], author: 2, incarnation: 4))
        #expect(object.object == ["t": .string(base + theirs + mine)])
        #expect(Self.conflicts(events).isEmpty && object.isConsistent)
    }

    @Test("two texts that were written anew on both sides are both there, whole")
    func rewritten() throws {
        let mine: String = "Nothing of what stood here before is true any more; this is how it was."
        let theirs: String = "All of it has been crossed out by somebody, who wrote these other words instead."
        var object: SealedObject = try Self.kept(["t": .string(Self.page)], shown: ["t": .string(mine)])
        _ = object.yield(to: Self.object(["t": .string(theirs)], author: 2, incarnation: 4))
        #expect(object.object == ["t": .string(theirs + mine)])
    }

    @Test("characters of more than one unit are not cut where texts are joined")
    func wholeCharacters() throws {
        let base: String = Self.page + "😀"
        for (mine, theirs): (String, String) in [("😁", "😂"), ("👩‍👩‍👧", "👩‍👩‍👦"), ("e\u{301}", "e\u{300}")] {
            var object: SealedObject = try Self.kept(["t": .string(base)], shown: ["t": .string(Self.page + mine)])
            _ = object.yield(to: Self.object(["t": .string(Self.page + theirs)], author: 2, incarnation: 4))
            #expect(object.object == ["t": .string(Self.page + theirs + mine)], "\(mine) \(theirs)")
        }
    }

    @Test(
        "a member that was deleted here stays deleted where the other has left it alone; what the other changed stands")
    func deletedMembers() throws {
        let base: JSONObject = ["a": 1, "gone": 1, "theirs": 1, "o": ["x": 1, "y": 1]]
        var mine: SealedObject = try Self.kept(base, shown: ["a": 2, "o": ["y": 1]])
        let theirs: JSONObject = ["a": 1, "gone": 1, "theirs": 2, "new": 1, "o": ["x": 1, "y": 1]]
        let events: [SealedEvent] = mine.yield(to: Self.object(theirs, author: 2, incarnation: 4))
        #expect(mine.object == ["a": 2, "theirs": 2, "new": 1, "o": ["y": 1]])
        #expect(Self.conflicts(events) == [SealedConflict(path: ["theirs"], losing: nil, winning: 2)])
        // A new object has deleted nothing.
        var fresh: SealedObject = .absent(author: .init(rawValue: 1), place: Self.place, appKey: "key")
        try fresh.create(["a": 2])
        _ = fresh.yield(to: Self.object(theirs, author: 2, incarnation: 4))
        #expect(fresh.object?.keys.count == theirs.keys.count)
    }

    @Test("words for a program are not joined: the one that is kept stands, and the other is told")
    func words() throws {
        var mine: SealedObject = try Self.kept(["state": "open", "n": 1], shown: ["state": "closed", "n": 2])
        let theirs: SealedObject = Self.object(["state": "paused", "n": 3, "new": true], author: 2, incarnation: 4)
        let events: [SealedEvent] = mine.yield(to: theirs)
        #expect(mine.object == ["state": "closed", "n": 2, "new": true])
        #expect(
            Self.conflicts(events) == [
                SealedConflict(path: ["state"], losing: "paused", winning: "closed"),
                SealedConflict(path: ["n"], losing: 3, winning: 2),
            ])
    }

    @Test("what only one of the two has changed is nobody's loss, however deep")
    func untouched() throws {
        var mine: SealedObject = try Self.kept(
            ["o": ["a": 1, "b": 1], "s": "x"], shown: ["o": ["a": 2, "b": 1], "s": "x"])
        let theirs: SealedObject = Self.object(["o": ["a": 1, "b": 1, "c": 3], "s": "x"], author: 2, incarnation: 4)
        #expect(Self.conflicts(mine.yield(to: theirs)).isEmpty)
        #expect(mine.object == ["o": ["a": 2, "b": 1, "c": 3], "s": "x"])
    }

    @Test("a new object stands for itself: its texts are not mixed with those of another")
    func fresh() throws {
        var mine: SealedObject = .absent(author: .init(rawValue: 1), place: Self.place, appKey: "key")
        try mine.create(["t": .string(Self.page), "mine": 1])
        let other: String = "Something else altogether that has nothing to do with the rain, and is as long as that."
        let events: [SealedEvent] = mine.yield(to: Self.object(["t": .string(other)], author: 2, incarnation: 4))
        #expect(mine.object == ["t": .string(Self.page), "mine": 1])
        #expect(
            Self.conflicts(events) == [
                SealedConflict(path: ["t"], losing: .string(other), winning: .string(Self.page))
            ])
    }

    @Test("what a draft grew from is kept over a restart, goes with the creation, and ends with a deletion")
    func keptOver() throws {
        var mine: SealedObject = try Self.kept(["t": .string(Self.page)], shown: ["t": .string(Self.page + "Mine.")])
        let json: JSONObject = try #require(
            JSONValue(parsing: JSONValue.object(mine.kept.json).serialized()).objectValue)
        let read: SealedKept = try #require(SealedKept(json))
        #expect(read == mine.kept && read.draftBase == ["t": .string(Self.page)])
        let restored: SealedObject? = .restored(
            author: mine.author, log: mine.log, pending: nil, kept: read, with: Self.sealer)
        #expect(restored == mine)
        let made: SealedObject = try #require(mine.created(incarnation: .init(repeating: 9, count: 16)))
        #expect(made.draftBase == mine.draftBase)
        try mine.delete()
        #expect(mine.draftBase == nil && mine.kept.json["b"] == nil)
    }

    @Test("a creation that was not taken is a draft again, and no incarnation that has passed: it may still arrive")
    func notCreated() throws {
        var mine: SealedObject = .absent(author: .init(rawValue: 1), place: Self.place, appKey: "key")
        try mine.create(["n": 1])
        let incarnation: [UInt8] = .init(repeating: 9, count: 16)
        var made: SealedObject = try #require(mine.created(incarnation: incarnation))
        made.notCreated()
        #expect(made.object == ["n": 1] && made.needsRecreation && made.isConsistent)
        #expect(!made.pastIncarnations.contains(incarnation))
        // Others have made theirs, delete it, and then the server takes what was sent first, from an older connection.
        _ = made.yield(to: Self.object(["n": 1], author: 2, incarnation: 4))
        #expect(made.pending == nil && made.later == nil)
        let late: SealedObject = Self.object(["n": 1], incarnation: 9)
        let events: [SealedEvent] = made.adopt(Self.entity(late), with: Self.sealer)
        #expect(made.problem == nil && events.contains(.recreated))
        // That is shown once: what was there before it does not come back, nor it again behind a deletion.
        var older: SealedObject = made
        _ = older.adopt(Self.entity(Self.object(["n": 1], author: 2, incarnation: 4)), with: Self.sealer)
        #expect(older.problem == .rolledBack(to: 0))
        made.removedAfterTombstone()
        try made.create(["n": 2])
        _ = made.adopt(Self.entity(late), with: Self.sealer)
        #expect(made.problem == .rolledBack(to: 0))
    }

    @Test("where a key was made again unseen, what was shown is told: its maker need not have seen all of it")
    func recreated() throws {
        var mine: SealedObject = Self.object(["t": "agreed"])
        let fresh: SealedObject = Self.object(["t": "older"], author: 2, incarnation: 4)
        let events: [SealedEvent] = mine.adopt(Self.entity(fresh), with: Self.sealer)
        #expect(mine.object == ["t": "older"])
        #expect(
            Self.conflicts(events) == [
                SealedConflict(path: [], losing: ["t": "agreed"], winning: ["t": "older"])
            ])
        var same: SealedObject = Self.object(["t": "older"])
        #expect(Self.conflicts(same.adopt(Self.entity(fresh), with: Self.sealer)).isEmpty)
    }
}
