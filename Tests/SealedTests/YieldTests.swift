import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

@Suite("A draft of a sealed object and another author's object under its key")
struct YieldTests {
    private static let sealer = ClearSealer()
    private static let place = SealedPlace(owner: "o", app: "a", bucket: "b", serverKey: "k")

    private static func object(_ content: JSONObject, author: UInt64 = 1, incarnation: UInt8 = 3) -> SealedObject {
        SealedObject(
            author: .init(rawValue: author),
            log: SealedLog(
                place: place, appKey: "key", incarnation: .init(repeating: incarnation, count: 16), object: content))
    }

    /// The object of a user that chose to keep theirs: `shown`, made from `base`.
    private static func kept(_ base: JSONObject, shown: JSONObject) throws -> SealedObject {
        var object = object(base)
        try object.edit(to: shown)
        object.keepMine()
        object.hasReplaced()
        return object
    }

    /// The conflicts among the events: path, losing value, winning value.
    private static func conflicts(_ events: [SealedEvent]) -> [SealedConflict] {
        events.compactMap { if case .conflict(let conflict) = $0 { conflict } else { nil } }
    }

    private static func entity(_ object: SealedObject) -> SealedEntity {
        let snapshot = object.sealedSnapshot(id: .init(repeating: 7, count: 16), nonce: [], with: sealer)
        return SealedEntity(snapshots: [object.log.position: Base64.encodeURL(snapshot)])
    }

    private static let page = "The rain had stopped, and the street was full of people who carried umbrellas. "

    @Test("two kept versions of one text are joined: the additions of both are in it, once, and nothing gives way")
    func joined() throws {
        var mine = try Self.kept(
            ["t": .string(Self.page), "n": 1], shown: ["t": .string(Self.page + "Mine."), "n": 1])
        let theirs = Self.object(
            ["t": .string("Theirs. " + Self.page), "n": 1], author: 2, incarnation: 4)
        let events = mine.yield(to: theirs)
        #expect(mine.object == ["t": .string("Theirs. " + Self.page + "Mine."), "n": 1])
        #expect(Self.conflicts(events).isEmpty && mine.isConsistent && mine.draftBase == nil)
        // It is sent as an edit of the text, so that it merges with what others type.
        let sealed = mine.seal(
            changeID: .init(repeating: 1, count: 16), nonce: [], with: Self.sealer)
        guard case .members(let members)? = sealed?.edit, members.count == 1, case .text = members[0].edit else {
            Issue.record("\(String(describing: sealed?.edit))")
            return
        }
    }

    @Test("agreed text that is missing in the other version, which was made of an older state, comes back")
    func older() throws {
        let agreed = Self.page + "This was agreed. "
        var mine = try Self.kept(["t": .string(agreed)], shown: ["t": .string(agreed + "Mine.")])
        let events = mine.yield(
            to: Self.object(["t": .string(Self.page + "Theirs.")], author: 2, incarnation: 4))
        let text = try #require(mine.object?["t"]?.stringValue)
        for part in [Self.page, "This was agreed. ", "Mine.", "Theirs."] {
            #expect(text.contains(part), "\(text)")
        }
        #expect(text.count >= agreed.count + "Mine.".count && Self.conflicts(events).isEmpty)
    }

    @Test("texts that two users wrote at one place are placed one after the other, without mixed letters")
    func legible() throws {
        let base = Self.page
        let mine = "I walked home alone that evening, along the canal."
        let theirs = "We took the last bus to the harbour and waited there."
        var object = try Self.kept(["t": .string(base)], shown: ["t": .string(base + mine)])
        let events = object.yield(
            to: Self.object(["t": .string(base + theirs)], author: 2, incarnation: 4))
        #expect(object.object == ["t": .string(base + theirs + mine)])
        #expect(Self.conflicts(events).isEmpty && object.isConsistent)
    }

    @Test("a text that both sides have rewritten holds both versions, whole")
    func rewritten() throws {
        let mine = "Nothing of what stood here before is true any more; this is how it was."
        let theirs = "All of it has been crossed out by somebody, who wrote these other words instead."
        var object = try Self.kept(["t": .string(Self.page)], shown: ["t": .string(mine)])
        _ = object.yield(to: Self.object(["t": .string(theirs)], author: 2, incarnation: 4))
        #expect(object.object == ["t": .string(theirs + mine)])
    }

    @Test("characters of more than one unit are not cut where texts are joined")
    func wholeCharacters() throws {
        let base = Self.page + "😀"
        for (mine, theirs) in [("😁", "😂"), ("👩‍👩‍👧", "👩‍👩‍👦"), ("e\u{301}", "e\u{300}")] {
            var object = try Self.kept(["t": .string(base)], shown: ["t": .string(Self.page + mine)])
            _ = object.yield(to: Self.object(["t": .string(Self.page + theirs)], author: 2, incarnation: 4))
            #expect(object.object == ["t": .string(Self.page + theirs + mine)], "\(mine) \(theirs)")
        }
    }

    @Test(
        "a member deleted here stays deleted if the other version left it unchanged; the other's changes are kept")
    func deletedMembers() throws {
        let base: JSONObject = ["a": 1, "gone": 1, "theirs": 1, "o": ["x": 1, "y": 1]]
        var mine: SealedObject = try Self.kept(base, shown: ["a": 2, "o": ["y": 1]])
        let theirs: JSONObject = ["a": 1, "gone": 1, "theirs": 2, "new": 1, "o": ["x": 1, "y": 1]]
        let events = mine.yield(to: Self.object(theirs, author: 2, incarnation: 4))
        #expect(mine.object == ["a": 2, "theirs": 2, "new": 1, "o": ["y": 1]])
        #expect(Self.conflicts(events) == [SealedConflict(path: ["theirs"], losing: nil, winning: 2)])
        // A new object has deleted nothing.
        var fresh = SealedObject.absent(author: .init(rawValue: 1), place: Self.place, appKey: "key")
        try fresh.create(["a": 2])
        _ = fresh.yield(to: Self.object(theirs, author: 2, incarnation: 4))
        #expect(fresh.object?.keys.count == theirs.keys.count)
    }

    @Test("values for a program are not joined: the kept one wins, and the other is reported as a conflict")
    func words() throws {
        var mine = try Self.kept(["state": "open", "n": 1], shown: ["state": "closed", "n": 2])
        let theirs = Self.object(["state": "paused", "n": 3, "new": true], author: 2, incarnation: 4)
        let events = mine.yield(to: theirs)
        #expect(mine.object == ["state": "closed", "n": 2, "new": true])
        #expect(
            Self.conflicts(events) == [
                SealedConflict(path: ["state"], losing: "paused", winning: "closed"),
                SealedConflict(path: ["n"], losing: 3, winning: 2),
            ])
    }

    @Test("a value that only one of the two versions has changed is not a conflict, at any depth")
    func untouched() throws {
        var mine = try Self.kept(
            ["o": ["a": 1, "b": 1], "s": "x"], shown: ["o": ["a": 2, "b": 1], "s": "x"])
        let theirs = Self.object(["o": ["a": 1, "b": 1, "c": 3], "s": "x"], author: 2, incarnation: 4)
        #expect(Self.conflicts(mine.yield(to: theirs)).isEmpty)
        #expect(mine.object == ["o": ["a": 2, "b": 1, "c": 3], "s": "x"])
    }

    @Test("the texts of a new object are not joined with those of another; the other's is reported as a conflict")
    func fresh() throws {
        var mine = SealedObject.absent(author: .init(rawValue: 1), place: Self.place, appKey: "key")
        try mine.create(["t": .string(Self.page), "mine": 1])
        let other = "Something else altogether that has nothing to do with the rain, and is as long as that."
        let events = mine.yield(to: Self.object(["t": .string(other)], author: 2, incarnation: 4))
        #expect(mine.object == ["t": .string(Self.page), "mine": 1])
        #expect(
            Self.conflicts(events) == [
                SealedConflict(path: ["t"], losing: .string(other), winning: .string(Self.page))
            ])
    }

    @Test("the base of a draft is kept over a restart, goes with the creation, and ends with a deletion")
    func keptOver() throws {
        var mine = try Self.kept(["t": .string(Self.page)], shown: ["t": .string(Self.page + "Mine.")])
        let json = try #require(
            JSONValue(parsing: JSONValue.object(mine.kept.json).serialized()).objectValue)
        let read = try #require(SealedKept(json))
        #expect(read == mine.kept && read.draftBase == ["t": .string(Self.page)])
        let restored: SealedObject? = .restored(
            author: mine.author, log: mine.log, pending: nil, kept: read, with: Self.sealer)
        #expect(restored == mine)
        let made = try #require(mine.created(incarnation: .init(repeating: 9, count: 16)))
        #expect(made.draftBase == mine.draftBase)
        try mine.delete()
        #expect(mine.draftBase == nil && mine.kept.json["b"] == nil)
    }

    @Test("a creation that was not accepted is a draft again; its incarnation is not past and may still arrive")
    func notCreated() throws {
        var mine = SealedObject.absent(author: .init(rawValue: 1), place: Self.place, appKey: "key")
        try mine.create(["n": 1])
        let incarnation = [UInt8](repeating: 9, count: 16)
        var made = try #require(mine.created(incarnation: incarnation))
        made.notCreated()
        #expect(made.object == ["n": 1] && made.needsRecreation && made.isConsistent)
        #expect(!made.pastIncarnations.contains(incarnation))
        // Others create theirs and delete it; then the server accepts the first creation, from an older connection.
        _ = made.yield(to: Self.object(["n": 1], author: 2, incarnation: 4))
        #expect(made.pending == nil && made.later == nil)
        let late = Self.object(["n": 1], incarnation: 9)
        let events = made.adopt(Self.entity(late), with: Self.sealer)
        #expect(made.problem == nil && events.contains(.recreated))
        // It is shown once: the state before it does not come back, nor does it come back itself after a deletion.
        var older = made
        _ = older.adopt(Self.entity(Self.object(["n": 1], author: 2, incarnation: 4)), with: Self.sealer)
        #expect(older.problem == .rolledBack(to: 0))
        made.removedAfterTombstone()
        try made.create(["n": 2])
        _ = made.adopt(Self.entity(late), with: Self.sealer)
        #expect(made.problem == .rolledBack(to: 0))
    }

    @Test("a key recreated unseen reports the shown content as lost: the new creator may not have seen all of it")
    func recreated() throws {
        var mine = Self.object(["t": "agreed"])
        let fresh = Self.object(["t": "older"], author: 2, incarnation: 4)
        let events = mine.adopt(Self.entity(fresh), with: Self.sealer)
        #expect(mine.object == ["t": "older"])
        #expect(
            Self.conflicts(events) == [
                SealedConflict(path: [], losing: ["t": "agreed"], winning: ["t": "older"])
            ])
        var same = Self.object(["t": "older"])
        #expect(Self.conflicts(same.adopt(Self.entity(fresh), with: Self.sealer)).isEmpty)
    }
}
