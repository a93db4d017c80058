import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// Several accounts, and several devices of one account, create, delete and recreate an object of a shared bucket.
@Suite("Creation and deletion of shared objects", .nonceWatch)
struct SharedLifecycleTests {
    private static let name = "note"

    /// One device, and the sealer that fits its knowledge.
    private struct Desk {
        let sealer: AuthoredSealer
        var object: SharedObject

        init(_ circle: Circle, _ user: String, device: UInt8 = 1) throws {
            sealer = try circle.sealer(
                of: user, device: .init(repeating: device, count: 8),
                key: circle.secrets.keys().serverKey(of: SharedLifecycleTests.name))
            object = try .absent(SharedLifecycleTests.name, with: sealer)
        }

        /// Creates the object and returns what the device sends to the server for it.
        mutating func create(_ content: JSONObject) throws -> [UInt8] {
            try object.create(content, with: sealer)
            return try send()
        }

        mutating func send() throws -> [UInt8] {
            let made = object.created(
                incarnation: RandomBytes.make(16), id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
            let (next, snapshot) = try #require(made)
            object = next
            return snapshot
        }

        /// Whether the device has a creation that may be sent.
        var mayBeMade: Bool {
            object.created(
                incarnation: RandomBytes.make(16), id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
                != nil
        }

        mutating func seal() throws -> [UInt8] {
            let made = object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
            return try #require(made).sealed
        }

        mutating func receive(_ sealed: [UInt8]) throws -> [SharedEvent] { try object.receive(sealed, with: sealer) }

        mutating func meet(_ entity: SealedEntity) throws -> [SharedEvent] { try object.meet(entity, with: sealer) }

        mutating func set(_ key: String, _ value: JSONValue) throws {
            let isThere = object.object.object?.contains(key) == true
            try object.edit(
                ObjectDiff([(key: key, operation: isThere ? .replace(value) : .insert(value))]), with: sealer)
        }

        var content: JSONObject? { object.object.object }
        var problem: SealedIntegrity? { object.object.problem }
    }

    private static func entity(_ snapshot: [UInt8], _ operations: [UInt8]...) -> SealedEntity {
        SealedEntity(
            snapshots: [0: Base64.encodeURL(snapshot)], tail: operations.reversed().map { Base64.encodeURL($0) })
    }

    private static func conflicts(_ events: [SharedEvent]) -> [SealedConflict] {
        events.compactMap { if case .object(.conflict(let conflict)) = $0 { conflict } else { nil } }
    }

    @Test("writers create an object, edit it, delete it and recreate it without an alarm")
    func run() throws {
        let circle = try Circle(["ben": .writes])
        var (ann, ben): (Desk, Desk) = (try .init(circle, "ann"), try .init(circle, "ben"))
        var snapshot = try ann.create(["t": "hello"])
        #expect(try ann.meet(Self.entity(snapshot)).allSatisfy { if case .written = $0 { true } else { false } })
        _ = try ben.meet(Self.entity(snapshot))
        #expect(ann.content == ["t": "hello"] && ben.content == ["t": "hello"])
        try ben.set("n", 1)
        let edit = try ben.seal()
        _ = try ann.receive(edit)
        _ = try ben.receive(edit)
        #expect(ann.content == ["t": "hello", "n": 1] && ben.content == ann.content)
        try ann.object.delete(with: ann.sealer)
        #expect(ann.content == nil)
        let tombstone = try ann.seal()
        let reported = try ben.receive(tombstone)
        #expect(
            reported.contains {
                if case .written(let author, .operation, 2) = $0 { author.reader.user == "ann" } else { false }
            })
        _ = try ann.receive(tombstone)
        #expect(ann.object.object.wasDeletedHere && !ben.object.object.wasDeletedHere)
        #expect(ben.content == nil && ann.object.serverRemoved() == [] && ben.object.serverRemoved() == [])
        snapshot = try ben.create(["t": "again"])
        _ = try ann.meet(Self.entity(snapshot))
        #expect(ann.content == ["t": "again"] && ann.problem == nil && ben.problem == nil)
        // The first incarnation does not come back.
        let first = Self.entity(try #require(Self.lastIncarnation(ann, circle)))
        let back: [SharedEvent] = try ann.object.adopt(first, with: ann.sealer)
        #expect(back.contains(.object(.integrity(.rolledBack(to: 0)))))
        #expect(ann.content == ["t": "again"])
    }

    /// A snapshot of the incarnation that a device remembers as past.
    private static func lastIncarnation(_ desk: Desk, _ circle: Circle) -> [UInt8]? {
        desk.object.object.pastIncarnations.last.map { passed in
            let log = SealedLog(
                place: desk.sealer.place, appKey: name, incarnation: passed, object: ["t": "hello"],
                list: desk.sealer.listVersion)
            return desk.sealer.seal(
                SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: RandomBytes.make(16), position: 0,
                nonce: RandomBytes.make(12))
        }
    }

    @Test("two devices of one account and another member create one key at once: nothing is lost or doubled")
    func createdAtOnce() throws {
        let circle = try Circle(["ben": .writes])
        var desks: [Desk] = [
            try .init(circle, "ben", device: 1), try .init(circle, "ben", device: 2), try .init(circle, "ann"),
        ]
        let snapshot = try desks[0].create(["a": 1])
        // These are sealed as creations, too: the server answers 405.
        _ = try desks[1].create(["b": 2])
        _ = try desks[2].create(["c": 3])
        var entity = Self.entity(snapshot)
        for one in 0..<3 {
            #expect(try !desks[one].meet(entity).contains { if case .object(.integrity) = $0 { true } else { false } })
        }
        #expect(desks[0].object.object.pending == nil && !desks[0].object.object.hasEdits, "its own creation")
        for one in 1..<3 {
            let sealed = try desks[one].seal()
            entity.tail.insert(Base64.encodeURL(sealed), at: 0)
            for reader in 0..<3 { _ = try desks[reader].receive(sealed) }
        }
        for desk in desks {
            #expect(desk.content == ["a": 1, "b": 2, "c": 3] && desk.object.object.log == desks[0].object.object.log)
        }
        let fresh = try SharedObject.open(entity, author: .init(rawValue: 9), with: desks[2].sealer)
            .object
        #expect(fresh.object.log == desks[0].object.object.log)
    }

    @Test(
        "a creation whose answer was lost is recognised as the device's own, with later edits of others"
    )
    func answerLost() throws {
        let circle = try Circle(["ben": .writes])
        var (ann, ben): (Desk, Desk) = (try .init(circle, "ann"), try .init(circle, "ben"))
        let snapshot = try ann.create(["t": "hello"])
        _ = try ben.meet(Self.entity(snapshot))
        try ben.set("n", 1)
        let edit = try ben.seal()
        _ = try ann.meet(Self.entity(snapshot, edit))
        #expect(ann.content == ["t": "hello", "n": 1] && !ann.object.object.hasEdits)
    }

    @Test("a draft, a creation in flight and the state kept after an alarm are restored unchanged and continue")
    func restored() throws {
        let circle = try Circle(["ben": .writes])
        var ann = try Desk(circle, "ann")
        func again(_ desk: Desk, _ entity: SealedEntity?) throws -> SharedObject {
            try SharedObject.restored(
                entity, appKey: Self.name, pending: nil, kept: desk.object.object.kept, with: desk.sealer)
        }
        try ann.object.create(["t": "hello"], with: ann.sealer)
        ann.object = try again(ann, nil)
        #expect(ann.content == ["t": "hello"] && ann.mayBeMade)
        let snapshot = try ann.send()
        ann.object = try again(ann, Self.entity(snapshot))
        #expect(ann.content == ["t": "hello"] && !ann.mayBeMade)
        #expect(
            try !ann.meet(Self.entity(snapshot)).contains { if case .object(.integrity) = $0 { true } else { false } })
        try ann.set("n", 1)
        _ = ann.object.serverRemoved()
        ann.object = try again(ann, Self.entity(snapshot))
        #expect(ann.problem == .removed && ann.content == ["t": "hello", "n": 1])
        try ann.object.keepMine(with: ann.sealer)
        // The server still has the object that is to be removed: only the draft is kept.
        ann.object = try again(ann, nil)
        #expect(!ann.mayBeMade && ann.object.serverRemoved() == [] && ann.mayBeMade)
        #expect(ann.content == ["t": "hello", "n": 1])
    }

    @Test("a draft does not merge with an object that cannot be judged yet, and waits until it can")
    func heldWhileMeeting() throws {
        var circle = try Circle(["ben": .writes])
        var ben = try Desk(circle, "ben")
        try ben.object.create(["b": 1], with: ben.sealer)
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        var ann = try Desk(circle, "ann")
        let entity = Self.entity(try ann.create(["a": 1]))
        let before = ben.object
        #expect(throws: SharedOpenError.held(.list(2))) { _ = try ben.meet(entity) }
        #expect(ben.object == before)
        var later = try Desk(circle, "ben")
        later.object = ben.object
        _ = try later.meet(entity)
        #expect(later.content == ["a": 1, "b": 1] && later.problem == nil)
    }

    @Test("of two devices of one account, one deletes and one edits: both end equal, and report a conflict")
    func deletedAndEdited() throws {
        for isEditFirst in [true, false] {
            let circle = try Circle(["ben": .writes])
            var (one, two): (Desk, Desk) = (try .init(circle, "ben", device: 1), try .init(circle, "ben", device: 2))
            let snapshot = try one.create(["t": "hello"])
            _ = try two.meet(Self.entity(snapshot))
            try one.object.delete(with: one.sealer)
            try two.set("n", 1)
            let (tombstone, edit) = (try one.seal(), try two.seal())
            var reported = [SharedEvent]()
            for sealed in isEditFirst ? [edit, tombstone] : [tombstone, edit] {
                reported += try one.receive(sealed)
                _ = try two.receive(sealed)
            }
            #expect(one.object.object.log == two.object.object.log && one.content == two.content)
            #expect(one.content == (isEditFirst ? nil : ["t": "hello", "n": 1]))
            #expect(!Self.conflicts(reported).isEmpty, "an edit or a deletion gave way")
            #expect(one.object.serverRemoved().isEmpty == isEditFirst, "removed without a valid tombstone: an alarm")
        }
    }

    @Test(
        "an object removed without a tombstone stays with an alarm; taking the server's state reports a conflict"
    )
    func removed() throws {
        let circle = try Circle([:])
        var ann = try Desk(circle, "ann")
        _ = try ann.create(["t": "hello"])
        #expect(ann.object.serverRemoved() == [.object(.integrity(.removed))])
        #expect(ann.content == ["t": "hello"] && ann.problem == .removed)
        #expect(throws: SealedEditError.readOnly) { try ann.set("t", "more") }
        #expect(throws: SealedEditError.readOnly) { try ann.object.delete(with: ann.sealer) }
        let events: [SharedEvent] = try ann.object.takeServers(nil, with: ann.sealer)
        #expect(Self.conflicts(events) == [SealedConflict(path: [], losing: ["t": "hello"], winning: nil)])
        #expect(ann.content == nil && ann.problem == nil)
    }

    @Test("keeping mine after an alarm makes a new incarnation, which other devices see as recreated")
    func keptMine() throws {
        let circle = try Circle(["ben": .writes])
        var (ann, ben): (Desk, Desk) = (try .init(circle, "ann"), try .init(circle, "ben"))
        let snapshot = try ann.create(["t": "hello"])
        _ = try ben.meet(Self.entity(snapshot))
        try ann.set("n", 1)
        _ = ann.object.serverRemoved()
        #expect(!ann.mayBeMade)
        try ann.object.keepMine(with: ann.sealer)
        // The object that the server still has is removed first.
        #expect(!ann.mayBeMade)
        #expect(ann.object.serverRemoved() == [])
        let remade = try ann.send()
        #expect(ann.content == ["t": "hello", "n": 1] && ann.problem == nil)
        let events: [SharedEvent] = try ben.object.adopt(Self.entity(remade), with: ben.sealer)
        #expect(events.contains(.object(.recreated)) && ben.content == ann.content && ben.problem == nil)
        #expect(throws: SealedEditError.readOnly) { try ann.object.keepMine(with: ann.sealer) }
    }

    @Test(
        "a read-only member or a device without a writer can change and seal nothing, but can take the server's state"
    )
    func readers() throws {
        let circle = try Circle(["ben": .writes, "cleo": .reads])
        var ben = try Desk(circle, "ben")
        let snapshot = try ben.create(["t": "hello"])
        let key = try circle.secrets.keys().serverKey(of: Self.name)
        let nobody = try AuthoredSealer(
            serverKey: key, secrets: circle.opened(by: "cleo"), lists: circle.reader(), keys: circle.verified,
            writer: nil)
        for sealer in [try circle.sealer(of: "cleo", key: key), nobody] {
            var draft: SharedObject = try .absent(Self.name, with: sealer)
            #expect(throws: SealedEditError.readOnly) { try draft.create(["t": "mine"], with: sealer) }
            #expect(try draft == .absent(Self.name, with: sealer))
            var object = try SharedObject.open(
                Self.entity(snapshot), author: sealer.author, with: sealer
            ).object
            let before = object
            #expect(throws: SealedEditError.readOnly) {
                try object.edit(ObjectDiff([(key: "n", operation: .insert(1))]), with: sealer)
            }
            #expect(throws: SealedEditError.readOnly) { try object.delete(with: sealer) }
            #expect(throws: SealedEditError.readOnly) { try object.create(["t": "mine"], with: sealer) }
            let (id, nonce) = (RandomBytes.make(16), RandomBytes.make(12))
            #expect(object.seal(changeID: id, nonce: nonce, with: sealer) == nil)
            #expect(object.sealMark(changeID: id, nonce: nonce, with: sealer) == nil)
            #expect(object.sealedSnapshot(id: id, nonce: nonce, with: sealer) == nil)
            for drafted in [object, draft] {
                let made = drafted.created(incarnation: id, id: id, nonce: nonce, with: sealer)?.object
                #expect(made == nil)
            }
            #expect(try object.takeServers(Self.entity(snapshot), with: sealer) == [], "no choice is due")
            #expect(object == before)
            // After an alarm such a device has nothing of its own to keep; it can take the server's state.
            _ = object.serverRemoved()
            #expect(throws: SealedEditError.readOnly) { try object.keepMine(with: sealer) }
            #expect(object.object.problem == .removed)
            _ = try object.takeServers(Self.entity(snapshot), with: sealer)
            #expect(object.object.object == ["t": "hello"] && object.object.problem == nil)
        }
    }

    @Test("an object is not begun or restored under another name than its key's")
    func otherName() throws {
        let circle = try Circle([:])
        let sealer = try Desk(circle, "ann").sealer
        for name in ["another", "", Self.name + " "] {
            #expect(throws: SharingError.otherObject) { _ = try SharedObject.absent(name, with: sealer) }
            #expect(throws: SharedOpenError.doesNotFit) {
                _ = try SharedObject.restored(nil, appKey: name, pending: nil, kept: SealedKept(), with: sealer)
            }
        }
    }
}
