import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

/// Attempts of an author whom a newer list of readers has removed or made read-only, and how the owner ends them.
@Suite("Operations under a superseded list of readers")
struct OlderListTests {
    private static let place = SealedPlace(owner: "o", app: "a", bucket: "b", serverKey: "k")
    private static let never: Head? = .init([UInt8](repeating: 9, count: 16))
    private var random = SeededRandom(seed: 670)

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

    private mutating func sealed(_ clear: [UInt8]) -> [UInt8] {
        Self.sealer(0).seal(clear, kind: .operation, id: random.bytes(16), position: 0, nonce: [])
    }

    /// Types, seals under a list, and gives the operation to both devices.
    private mutating func type(
        _ text: String, on device: inout SealedObject, and other: inout SealedObject, under list: Int
    ) throws {
        let length = device.object?["t"]?.stringValue?.utf16.count ?? 0
        let delta = TextDelta([.retain(length), .insert(Array(text.utf16))])
        try device.edit(ObjectDiff([(key: "t", operation: .text(delta))]))
        let made = device.seal(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(list))
        let sealed = try #require(made).sealed
        _ = device.receive(sealed, with: Self.sealer(list))
        _ = other.receive(sealed, with: Self.sealer(list))
    }

    /// Operations that stop or alarm a reader if they count: newer rules, a base past the log, another history.
    private static func hostile(_ log: SealedLog, under list: Int) throws -> [(name: String, clear: [UInt8])] {
        let typing = try Edit(
            .object(ObjectDiff([(key: "t", operation: .text(TextDelta([.insert([0x62])])))])))
        func text(_ base: Int, _ head: Head?) throws -> [UInt8] {
            SealedOperation(
                base: base, head: try #require(head), incarnation: log.incarnationTag, author: .init(rawValue: 9),
                list: list, content: .edit(typing)
            ).clearBytes()
        }
        return [
            ("newer rules", Array(#"{"t":2,"l":\#(list),"what":["ever"]}"#.utf8)),
            ("a base to come", try text(log.position + 7, log.chain[log.position])),
            ("a head that was never there", try text(log.position, never)),
        ]
    }

    @Test(
        "an operation under an older list than the log's is void before it is read further: no stop and no alarm"
    )
    mutating func listFirst() throws {
        var (ann, cleo) = (Self.device(1), Self.device(3))
        try type("a", on: &ann, and: &cleo, under: 3)
        let start = ann.log
        var tail = [[UInt8]]()
        let again = SealedOperation(
            base: 0, head: try #require(start.chain[0]), incarnation: start.incarnationTag, author: .init(rawValue: 1),
            list: 2, content: .tombstone
        ).clearBytes()
        let none: [UInt8] = Array(#"{"t":2}"#.utf8)
        for clear in try Self.hostile(start, under: 2).map(\.clear) + [again, none] {
            let sealed = sealed(clear)
            tail.append(sealed)
            for events in [
                ann.receive(sealed, with: Self.sealer(3)), cleo.receive(sealed, with: Self.sealer(3)),
            ] { #expect(events == []) }
        }
        #expect(ann.problem == nil && !ann.isStopped && ann.log.position == 1 + tail.count && ann.log == cleo.log)
        // A device that opens the object from an earlier snapshot holds the same.
        let snapshot = Self.sealer(3).seal(
            SealedSnapshot.clearBytes(of: start), kind: .snapshot, id: random.bytes(16), position: 1, nonce: [])
        let fresh = try SealedObject.open(
            snapshot, at: 1, tail: tail.reversed(), author: .init(rawValue: 4), place: Self.place,
            with: Self.sealer(3))
        #expect(fresh.object.log == ann.log && fresh.events == [])
        try type("b", on: &cleo, and: &ann, under: 3)
        #expect(ann.object?["t"] == .string("xab") && ann.log == cleo.log)
    }

    @Test("under the list of the log or a newer one, newer rules stop the reader and another history is a fork")
    mutating func listOfToday() throws {
        for list in [3, 4] {
            var (ann, cleo) = (Self.device(1), Self.device(3))
            try type("a", on: &ann, and: &cleo, under: 3)
            for (name, clear) in try Self.hostile(ann.log, under: list) {
                var device = ann
                let events = device.receive(sealed(clear), with: Self.sealer(4))
                switch name {
                case "newer rules": #expect(events == [.stopped(after: 1)] && device.isStopped)
                case "a base to come": #expect(events == [.integrity(.forked(at: 2))])
                default: #expect(events == [.integrity(.forked(at: 1))])
                }
                #expect(device.log == ann.log, "the operation was not applied")
            }
        }
    }

    @Test(
        "newer rules with an invalid list version are malformed under a list; without lists they stop the reader"
    )
    mutating func badVersion() throws {
        let clear: [UInt8] = Array(#"{"t":2,"l":"x"}"#.utf8)
        var (ann, cleo) = (Self.device(1), Self.device(3))
        #expect(ann.receive(sealed(clear), with: Self.sealer(0)) == [.stopped(after: 0)])
        (ann, cleo) = (Self.device(1), Self.device(3))
        try type("a", on: &ann, and: &cleo, under: 3)
        #expect(ann.receive(sealed(clear), with: Self.sealer(3)) == [.integrity(.misfit(at: 2, .malformed))])
        #expect(!ann.isStopped && ann.log.position == 2)
    }

    @Test(
        "a mark behind 64 operations under the old list is void and made again, until the log is under the new list"
    )
    mutating func lateMark() throws {
        var (ann, ben) = (Self.device(1), Self.device(2))
        let first = ann.sealMark(
            changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        var mark = try #require(first)
        for round in 0..<2 {
            for _ in 0..<64 { try type("b", on: &ben, and: &ann, under: 1) }
            #expect(ann.receive(mark.sealed, with: Self.sealer(2)) == [.rebased(mark.changeID)])
            _ = ben.receive(mark.sealed, with: Self.sealer(2))
            #expect(ann.log.list == 1 && ann.log == ben.log && ann.needsMark, "round \(round)")
            // The mark is still due after a restart of the program.
            let kept = try #require(SealedKept(ann.kept.json))
            ann = try #require(
                SealedObject.restored(
                    author: ann.author, log: ann.log, pending: nil, kept: kept, with: Self.sealer(2)))
            let again = ann.seal(
                changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
            mark = try #require(again)
        }
        #expect(ann.receive(mark.sealed, with: Self.sealer(2)) == [.acknowledged(mark.changeID)])
        _ = ben.receive(mark.sealed, with: Self.sealer(2))
        #expect(ann.log.list == 2 && ann.log == ben.log && ann.isConsistent)
        let more = ann.seal(changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
        #expect(more == nil && !ann.needsMark && ann.kept.isEmpty, "no mark is due any more")
    }

    @Test("a mark is due also while an edit is in flight, and any operation under the new list replaces it")
    mutating func requestedBehindEdit() throws {
        for isEdited in [false, true] {
            var (ann, cleo) = (Self.device(1), Self.device(3))
            try ann.edit(ObjectDiff([(key: "n", operation: .insert(1))]))
            let first = ann.seal(
                changeID: random.bytes(16), nonce: [], with: Self.sealer(1))
            let edit = try #require(first)
            let none = ann.sealMark(
                changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
            #expect(none == nil && ann.needsMark, "an edit under the old list is in flight")
            _ = ann.receive(edit.sealed, with: Self.sealer(2))
            _ = cleo.receive(edit.sealed, with: Self.sealer(2))
            if isEdited { try type("c", on: &cleo, and: &ann, under: 2) }
            #expect(ann.needsMark == !isEdited)
            // No mark is made under a list older than the one for which it is due.
            let old = ann.seal(
                changeID: random.bytes(16), nonce: [], with: Self.sealer(1))
            #expect(old == nil)
            let mark = ann.seal(
                changeID: random.bytes(16), nonce: [], with: Self.sealer(2))
            #expect((mark == nil) == isEdited)
        }
    }

    @Test(
        "an object created under a list is under it from the start: an operation under an older list is void"
    )
    mutating func creation() throws {
        var draft = SealedObject.absent(author: .init(rawValue: 1), place: Self.place, appKey: "note")
        try draft.create(["t": "x"])
        let made = draft.created(incarnation: random.bytes(16), list: 2)
        var ann = try #require(made)
        let snapshot = ann.sealedSnapshot(id: random.bytes(16), nonce: [], with: Self.sealer(2))
        var cleo = try SealedObject.open(
            snapshot, at: 0, tail: [], author: .init(rawValue: 3), place: Self.place, with: Self.sealer(2)
        ).object
        #expect(ann.log.list == 2 && ann.log == cleo.log)
        var ben = SealedObject(author: .init(rawValue: 2), log: ann.log)
        ben.log.list = 0
        try type("b", on: &ben, and: &cleo, under: 1)
        #expect(cleo.log.position == 1 && cleo.log.list == 2 && cleo.object?["t"] == .string("x"))
        try type("a", on: &ann, and: &cleo, under: 2)
        #expect(ann.keepingMine(incarnation: random.bytes(16), list: 3)?.log.list == 3)
        // In a bucket of one account, no list is named.
        let own = try #require(draft.created(incarnation: random.bytes(16))).log
        #expect(SealedOperation.list(clear: SealedSnapshot.clearBytes(of: own)) == 0)
    }

    @Test(
        "a recreated object is rejected under an older list than its predecessor's, but not in a bucket of one account",
        arguments: [(2, 3, false), (3, 3, true), (4, 4, true), (0, 3, false), (0, 0, true)])
    mutating func remade(list: Int, known: Int, isTaken: Bool) throws {
        var (ann, cleo) = (Self.device(1), Self.device(3))
        try type("a", on: &ann, and: &cleo, under: 3)
        let other = SealedLog(
            place: Self.place, appKey: "note", incarnation: random.bytes(16), object: ["t": "anew"], list: list)
        let snapshot = Self.sealer(known).seal(
            SealedSnapshot.clearBytes(of: other), kind: .snapshot, id: random.bytes(16), position: 0, nonce: [])
        let events = ann.adopt(
            SealedEntity(snapshots: [0: Base64.encodeURL(snapshot)]), with: Self.sealer(known))
        if isTaken {
            #expect(events.first == .recreated && ann.log == other)
        } else {
            #expect(events == [.integrity(.snapshotMismatch(at: 0))])
            #expect(ann.log == cleo.log && ann.object?["t"] == .string("xa") && ann.problem != nil)
        }
    }
}
