import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol

@testable import ThicketSealed

/// Checks the states of an object, as a server has kept them, against each other with nothing but the keys.
@Suite("Exported histories of sealed objects", .noncesGiven)
struct HistoryTests {
    private static let key = "note"

    /// An object and its states, oldest first: creation, operations, a compaction, more operations.
    private struct Story {
        let keys: SealedBucketKeys
        let serverKey: String
        let sealer: ObjectSealer
        private(set) var object: SealedObject
        private(set) var entity: SealedEntity
        private(set) var states = [JSONObject]()
        private var count: UInt8 = 0

        init() throws {
            let secret = SecureBytes(copying: Array(repeating: 9, count: 32))
            keys = try SealedBucketKeys(owner: "ann", app: "notes", bucket: "diary", secrets: [0: secret])
            serverKey = keys.serverKey(of: HistoryTests.key)
            sealer = try keys.sealer(serverKey: serverKey)
            let log = SealedLog(
                place: keys.place(serverKey: serverKey), appKey: HistoryTests.key,
                incarnation: Array(repeating: 3, count: 16), object: ["t": ""])
            object = SealedObject(author: AuthorID(rawValue: 5), log: log)
            entity = SealedEntity(snapshots: [:])
            entity.snapshots[0] = snapshot()
            states.append(entity.object)
            for _ in 0..<5 { try type() }
            compact()
            for _ in 0..<4 { try type() }
        }

        private mutating func bytes(_ length: Int) -> [UInt8] {
            count += 1
            return Array(repeating: count, count: length)
        }

        mutating func snapshot() -> String {
            Base64.encodeURL(object.sealedSnapshot(id: bytes(16), nonce: bytes(12), with: sealer))
        }

        private mutating func type() throws {
            try object.edit(to: ["t": .string("text \(states.count)")])
            let made = object.seal(changeID: bytes(16), nonce: bytes(12), with: sealer)
            let sealed = try #require(made).sealed
            _ = object.receive(sealed, with: sealer)
            entity.tail.insert(Base64.encodeURL(sealed), at: 0)
            states.append(entity.object)
        }

        private mutating func compact() {
            entity = SealedEntity(snapshots: [object.log.position: snapshot()])
            states.append(entity.object)
        }

        func read(_ states: [JSONObject], serverKey: String? = nil) throws -> SealedHistory {
            var history = try SealedHistory(keys: keys, serverKey: serverKey ?? self.serverKey)
            for (place, state) in states.enumerated() {
                history.read(state, version: Int64(place) + 1)
            }
            return history
        }
    }

    private func changed(_ state: JSONObject, _ body: (inout SealedEntity) -> Void) throws -> JSONObject {
        var entity = try SealedEntity(state)
        body(&entity)
        return entity.object
    }

    @Test("an honest history has no findings, even with versions missing, and ends in the object's log")
    func honest() throws {
        let story = try Story()
        let whole = try story.read(story.states)
        #expect(whole.findings.isEmpty && whole.log == story.object.log && whole.states == 11 && whole.recreations == 0)
        for step in [2, 3, 10] {
            let some = stride(from: 0, to: story.states.count, by: step).map { story.states[$0] }
            #expect(try story.read(some).findings.isEmpty)
        }
    }

    @Test(
        "a history reports an omission, swap, repetition, replacement, roll-back or clear state, and reads on after it"
    )
    func lies() throws {
        let story = try Story()
        func findings(_ place: Int, _ body: (inout SealedEntity) -> Void) throws -> [SealedHistory.Finding] {
            var states = story.states
            states[place] = try changed(states[place], body)
            return try story.read(states).findings
        }
        let dropped = try findings(5) { $0.tail.remove(at: 1) }
        #expect(dropped.first?.version == 6 && !dropped.isEmpty, "\(dropped)")
        let swapped = try findings(5) { $0.tail.swapAt(0, 1) }
        #expect(swapped.first?.version == 6, "\(swapped)")
        let repeated = try findings(10) { $0.tail.insert($0.tail[0], at: 0) }
        #expect(repeated.map(\.kind) == [.integrity(.misfit(at: 10, .repeated))], "\(repeated)")
        let foreign = try findings(10) { $0.tail[0] = $0.tail[1] }
        #expect(foreign.first?.version == 11, "\(foreign)")
        let older = try story.read(story.states + [story.states[3]])
        #expect(older.findings == [.init(version: 12, kind: .integrity(.rolledBack(to: 3)))], "\(older.findings)")
        let clear = try story.read(story.states + [["t": "clear"], story.states[10]])
        #expect(clear.findings == [.init(version: 12, kind: .integrity(.clear))])
        let newer = try story.read(story.states + [["z": 2, "t": "clear"], story.states[10]])
        #expect(newer.findings == [.init(version: 12, kind: .stopped(after: nil))])
        #expect(newer.findings.map(\.description) == ["version 12: has a newer shape and was not checked"])
        let bad = try findings(6) {
            $0.snapshots[5] = $0.snapshots[5].map { "B" + $0.dropFirst() }
        }
        #expect(bad.first?.version == 7, "\(bad)")
    }

    @Test("an object under another object's key does not open, and an object that states another name is reported")
    func names() throws {
        let story = try Story()
        let elsewhere = try story.read(story.states, serverKey: story.keys.serverKey(of: "other"))
        #expect(elsewhere.log == nil && !elsewhere.findings.isEmpty)
        // A holder of the keys seals another name under this object's key.
        let (other, sealer) = (story.serverKey, story.sealer)
        let log = SealedLog(
            place: story.keys.place(serverKey: other), appKey: "another", incarnation: Array(repeating: 8, count: 16),
            object: [:])
        let sealed = SealedObject(author: AuthorID(rawValue: 1), log: log).sealedSnapshot(
            id: Array(repeating: 250, count: 16), nonce: Array(repeating: 250, count: 12), with: sealer)
        let state = SealedEntity(snapshots: [0: Base64.encodeURL(sealed)]).object
        #expect(try story.read([state]).findings == [.init(version: 1, kind: .otherName)])
    }
}
