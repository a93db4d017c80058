import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed

@testable import ThicketSharing

/// An object of a shared bucket is made, deleted and made again, by several accounts and several devices of one.
@Suite("Shared objects are made and deleted", .nonceWatch)
struct SharedLifeTests {
    private static let name: String = "note"

    /// One device, and the sealer that fits what it knows.
    private struct Desk {
        let sealer: AuthoredSealer
        var object: SharedObject

        init(_ circle: Circle, _ user: String, device: UInt8 = 1) throws {
            sealer = try circle.sealer(
                of: user, device: .init(repeating: device, count: 8),
                key: circle.secrets.keys().serverKey(of: SharedLifeTests.name))
            object = try .absent(SharedLifeTests.name, with: sealer)
        }

        /// Makes the object, and what the server is sent for it.
        mutating func create(_ content: JSONObject) throws -> [UInt8] {
            try object.create(content, with: sealer)
            return try send()
        }

        mutating func send() throws -> [UInt8] {
            let made: (object: SharedObject, snapshot: [UInt8])? = object.created(
                incarnation: RandomBytes.make(16), id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
            let (next, snapshot): (SharedObject, [UInt8]) = try #require(made)
            object = next
            return snapshot
        }

        /// Whether there is something to create that may be sent.
        var mayBeMade: Bool {
            object.created(
                incarnation: RandomBytes.make(16), id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
                != nil
        }

        mutating func seal() throws -> [UInt8] {
            let made: SealedObject.Pending? = object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
            return try #require(made).sealed
        }

        mutating func receive(_ sealed: [UInt8]) throws -> [SharedEvent] { try object.receive(sealed, with: sealer) }

        mutating func meet(_ entity: SealedEntity) throws -> [SharedEvent] { try object.meet(entity, with: sealer) }

        mutating func set(_ key: String, _ value: JSONValue) throws {
            let isThere: Bool = object.object.object?.contains(key) == true
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

    @Test("a writer makes an object, others write into it, delete it, and make it again, without one alarm")
    func life() throws {
        let circle: Circle = try Circle(["ben": .writes])
        var (ann, ben): (Desk, Desk) = (try .init(circle, "ann"), try .init(circle, "ben"))
        var snapshot: [UInt8] = try ann.create(["t": "hello"])
        #expect(try ann.meet(Self.entity(snapshot)).allSatisfy { if case .written = $0 { true } else { false } })
        _ = try ben.meet(Self.entity(snapshot))
        #expect(ann.content == ["t": "hello"] && ben.content == ["t": "hello"])
        try ben.set("n", 1)
        let edit: [UInt8] = try ben.seal()
        _ = try ann.receive(edit)
        _ = try ben.receive(edit)
        #expect(ann.content == ["t": "hello", "n": 1] && ben.content == ann.content)
        try ann.object.delete(with: ann.sealer)
        #expect(ann.content == nil)
        let tombstone: [UInt8] = try ann.seal()
        let told: [SharedEvent] = try ben.receive(tombstone)
        #expect(
            told.contains {
                if case .written(let author, .operation, 2) = $0 { author.reader.user == "ann" } else { false }
            })
        _ = try ann.receive(tombstone)
        #expect(ann.object.object.wasDeletedHere && !ben.object.object.wasDeletedHere)
        #expect(ben.content == nil && ann.object.serverRemoved() == [] && ben.object.serverRemoved() == [])
        snapshot = try ben.create(["t": "again"])
        _ = try ann.meet(Self.entity(snapshot))
        #expect(ann.content == ["t": "again"] && ann.problem == nil && ben.problem == nil)
        // The first one does not come back.
        let first: SealedEntity = Self.entity(try #require(Self.lastIncarnation(ann, circle)))
        let back: [SharedEvent] = try ann.object.adopt(first, with: ann.sealer)
        #expect(back.contains(.object(.integrity(.rolledBack(to: 0)))))
        #expect(ann.content == ["t": "again"])
    }

    /// A snapshot of the incarnation that a device remembers to have passed.
    private static func lastIncarnation(_ desk: Desk, _ circle: Circle) -> [UInt8]? {
        desk.object.object.pastIncarnations.last.map { passed in
            let log: SealedLog = .init(
                place: desk.sealer.place, appKey: name, incarnation: passed, object: ["t": "hello"],
                list: desk.sealer.listVersion)
            return desk.sealer.seal(
                SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: RandomBytes.make(16), position: 0,
                nonce: RandomBytes.make(12))
        }
    }

    @Test("two devices of one account and another member make one key at once: nothing is lost, nothing stands twice")
    func createdAtOnce() throws {
        let circle: Circle = try Circle(["ben": .writes])
        var desks: [Desk] = [
            try .init(circle, "ben", device: 1), try .init(circle, "ben", device: 2), try .init(circle, "ann"),
        ]
        let snapshot: [UInt8] = try desks[0].create(["a": 1])
        // Sealed as creations, too: the server answers 405.
        _ = try desks[1].create(["b": 2])
        _ = try desks[2].create(["c": 3])
        var entity: SealedEntity = Self.entity(snapshot)
        for one: Int in 0..<3 {
            #expect(try !desks[one].meet(entity).contains { if case .object(.integrity) = $0 { true } else { false } })
        }
        #expect(desks[0].object.object.pending == nil && !desks[0].object.object.hasEdits, "it was its own")
        for one: Int in 1..<3 {
            let sealed: [UInt8] = try desks[one].seal()
            entity.tail.insert(Base64.encodeURL(sealed), at: 0)
            for reader: Int in 0..<3 { _ = try desks[reader].receive(sealed) }
        }
        for desk: Desk in desks {
            #expect(desk.content == ["a": 1, "b": 2, "c": 3] && desk.object.object.log == desks[0].object.object.log)
        }
        let fresh: SharedObject = try SharedObject.open(entity, author: .init(rawValue: 9), with: desks[2].sealer)
            .object
        #expect(fresh.object.log == desks[0].object.object.log)
    }

    @Test(
        "a creation that the server took, and whose answer was lost, is met as what it is, with what others wrote since"
    )
    func answerLost() throws {
        let circle: Circle = try Circle(["ben": .writes])
        var (ann, ben): (Desk, Desk) = (try .init(circle, "ann"), try .init(circle, "ben"))
        let snapshot: [UInt8] = try ann.create(["t": "hello"])
        _ = try ben.meet(Self.entity(snapshot))
        try ben.set("n", 1)
        let edit: [UInt8] = try ben.seal()
        _ = try ann.meet(Self.entity(snapshot, edit))
        #expect(ann.content == ["t": "hello", "n": 1] && !ann.object.object.hasEdits)
    }

    @Test("a draft, a creation in flight and what is kept after an alarm are restored as they were, and go on")
    func restored() throws {
        let circle: Circle = try Circle(["ben": .writes])
        var ann: Desk = try .init(circle, "ann")
        func again(_ desk: Desk, _ entity: SealedEntity?) throws -> SharedObject {
            try SharedObject.restored(
                entity, appKey: Self.name, pending: nil, kept: desk.object.object.kept, with: desk.sealer)
        }
        try ann.object.create(["t": "hello"], with: ann.sealer)
        ann.object = try again(ann, nil)
        #expect(ann.content == ["t": "hello"] && ann.mayBeMade)
        let snapshot: [UInt8] = try ann.send()
        ann.object = try again(ann, Self.entity(snapshot))
        #expect(ann.content == ["t": "hello"] && !ann.mayBeMade)
        #expect(
            try !ann.meet(Self.entity(snapshot)).contains { if case .object(.integrity) = $0 { true } else { false } })
        try ann.set("n", 1)
        _ = ann.object.serverRemoved()
        ann.object = try again(ann, Self.entity(snapshot))
        #expect(ann.problem == .removed && ann.content == ["t": "hello", "n": 1])
        try ann.object.keepMine(with: ann.sealer)
        // The server still has what is to be removed: what is kept is the draft alone.
        ann.object = try again(ann, nil)
        #expect(!ann.mayBeMade && ann.object.serverRemoved() == [] && ann.mayBeMade)
        #expect(ann.content == ["t": "hello", "n": 1])
    }

    @Test("an object that cannot be judged yet is not met, and the draft waits for it")
    func heldWhileMeeting() throws {
        var circle: Circle = try Circle(["ben": .writes])
        var ben: Desk = try .init(circle, "ben")
        try ben.object.create(["b": 1], with: ben.sealer)
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: false)
        var ann: Desk = try .init(circle, "ann")
        let entity: SealedEntity = Self.entity(try ann.create(["a": 1]))
        let before: SharedObject = ben.object
        #expect(throws: SharedOpenError.held(.list(2))) { _ = try ben.meet(entity) }
        #expect(ben.object == before)
        var later: Desk = try .init(circle, "ben")
        later.object = ben.object
        _ = try later.meet(entity)
        #expect(later.content == ["a": 1, "b": 1] && later.problem == nil)
    }

    @Test("two devices of one account, one deletes and one edits: both end equal, and what gave way is told")
    func deletedAndEdited() throws {
        for isEditFirst: Bool in [true, false] {
            let circle: Circle = try Circle(["ben": .writes])
            var (one, two): (Desk, Desk) = (try .init(circle, "ben", device: 1), try .init(circle, "ben", device: 2))
            let snapshot: [UInt8] = try one.create(["t": "hello"])
            _ = try two.meet(Self.entity(snapshot))
            try one.object.delete(with: one.sealer)
            try two.set("n", 1)
            let (tombstone, edit): ([UInt8], [UInt8]) = (try one.seal(), try two.seal())
            var told: [SharedEvent] = []
            for sealed: [UInt8] in isEditFirst ? [edit, tombstone] : [tombstone, edit] {
                told += try one.receive(sealed)
                _ = try two.receive(sealed)
            }
            #expect(one.object.object.log == two.object.object.log && one.content == two.content)
            #expect(one.content == (isEditFirst ? nil : ["t": "hello", "n": 1]))
            #expect(!Self.conflicts(told).isEmpty, "somebody's work gave way")
            #expect(one.object.serverRemoved().isEmpty == isEditFirst, "gone without a tombstone that stands: an alarm")
        }
    }

    @Test(
        "gone without a tombstone it stays, and is told; the server's is taken by choice alone, and what was seen is told"
    )
    func removed() throws {
        let circle: Circle = try Circle([:])
        var ann: Desk = try .init(circle, "ann")
        _ = try ann.create(["t": "hello"])
        #expect(ann.object.serverRemoved() == [.object(.integrity(.removed))])
        #expect(ann.content == ["t": "hello"] && ann.problem == .removed)
        #expect(throws: SealedEditError.readOnly) { try ann.set("t", "more") }
        #expect(throws: SealedEditError.readOnly) { try ann.object.delete(with: ann.sealer) }
        let events: [SharedEvent] = try ann.object.takeServers(nil, with: ann.sealer)
        #expect(Self.conflicts(events) == [SealedConflict(path: [], losing: ["t": "hello"], winning: nil)])
        #expect(ann.content == nil && ann.problem == nil)
    }

    @Test("after an alarm mine is kept as a new incarnation, which the others meet as one that was made anew")
    func keptMine() throws {
        let circle: Circle = try Circle(["ben": .writes])
        var (ann, ben): (Desk, Desk) = (try .init(circle, "ann"), try .init(circle, "ben"))
        let snapshot: [UInt8] = try ann.create(["t": "hello"])
        _ = try ben.meet(Self.entity(snapshot))
        try ann.set("n", 1)
        _ = ann.object.serverRemoved()
        #expect(!ann.mayBeMade)
        try ann.object.keepMine(with: ann.sealer)
        // What the server still has is removed first.
        #expect(!ann.mayBeMade)
        #expect(ann.object.serverRemoved() == [])
        let anew: [UInt8] = try ann.send()
        #expect(ann.content == ["t": "hello", "n": 1] && ann.problem == nil)
        let events: [SharedEvent] = try ben.object.adopt(Self.entity(anew), with: ben.sealer)
        #expect(events.contains(.object(.recreated)) && ben.content == ann.content && ben.problem == nil)
        #expect(throws: SealedEditError.readOnly) { try ann.object.keepMine(with: ann.sealer) }
    }

    @Test(
        "who may only read, and who is no writer at all, makes, edits, deletes, seals and chooses nothing, and can take what is there"
    )
    func readers() throws {
        let circle: Circle = try Circle(["ben": .writes, "cleo": .reads])
        var ben: Desk = try .init(circle, "ben")
        let snapshot: [UInt8] = try ben.create(["t": "hello"])
        let key: String = try circle.secrets.keys().serverKey(of: Self.name)
        let nobody: AuthoredSealer = try .init(
            serverKey: key, secrets: circle.opened(by: "cleo"), lists: circle.reader(), keys: circle.verified,
            writer: nil)
        for sealer: AuthoredSealer in [try circle.sealer(of: "cleo", key: key), nobody] {
            var draft: SharedObject = try .absent(Self.name, with: sealer)
            #expect(throws: SealedEditError.readOnly) { try draft.create(["t": "mine"], with: sealer) }
            #expect(try draft == .absent(Self.name, with: sealer))
            var object: SharedObject = try SharedObject.open(
                Self.entity(snapshot), author: sealer.author, with: sealer
            ).object
            let before: SharedObject = object
            #expect(throws: SealedEditError.readOnly) {
                try object.edit(ObjectDiff([(key: "n", operation: .insert(1))]), with: sealer)
            }
            #expect(throws: SealedEditError.readOnly) { try object.delete(with: sealer) }
            #expect(throws: SealedEditError.readOnly) { try object.create(["t": "mine"], with: sealer) }
            let (id, nonce): ([UInt8], [UInt8]) = (RandomBytes.make(16), RandomBytes.make(12))
            #expect(object.seal(changeID: id, nonce: nonce, with: sealer) == nil)
            #expect(object.sealMark(changeID: id, nonce: nonce, with: sealer) == nil)
            #expect(object.sealedSnapshot(id: id, nonce: nonce, with: sealer) == nil)
            for drafted: SharedObject in [object, draft] {
                let made: SharedObject? = drafted.created(incarnation: id, id: id, nonce: nonce, with: sealer)?.object
                #expect(made == nil)
            }
            #expect(try object.takeServers(Self.entity(snapshot), with: sealer) == [], "nothing is to be chosen")
            #expect(object == before)
            // After an alarm there is nothing of one's own to keep; what the server has can be taken.
            _ = object.serverRemoved()
            #expect(throws: SealedEditError.readOnly) { try object.keepMine(with: sealer) }
            #expect(object.object.problem == .removed)
            _ = try object.takeServers(Self.entity(snapshot), with: sealer)
            #expect(object.object.object == ["t": "hello"] && object.object.problem == nil)
        }
    }

    @Test("an object under another name than the key's is never begun")
    func otherName() throws {
        let circle: Circle = try Circle([:])
        let sealer: AuthoredSealer = try Desk(circle, "ann").sealer
        for name: String in ["another", "", Self.name + " "] {
            #expect(throws: SharingError.otherObject) { _ = try SharedObject.absent(name, with: sealer) }
            #expect(throws: SharedOpenError.doesNotFit) {
                _ = try SharedObject.restored(nil, appKey: name, pending: nil, kept: SealedKept(), with: sealer)
            }
        }
    }
}
