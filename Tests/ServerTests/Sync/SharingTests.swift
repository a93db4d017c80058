import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// Shared branches in a shard: lists, audiences in the log, and batches by members.
@Suite("Shared branches")
struct SharingTests {
    private let people: TestDirectory

    init() throws { people = try TestDirectory(TestShard.ann, "ben", "cleo", "dora") }

    /// Ann shares node 10, with 11 below it, with ben and cleo; node 1 is private.
    private func shared(_ memory: Memory, _ letters: String = "rw", store: (any Store)? = nil) throws -> TestShard {
        let shard = try TestShard.tree(memory, store: store)
        try shard.make(1, TestShard.put(1, "n1"), TestShard.put(10, "n10"))
        let list = try people.list(["ben": letters, "cleo": "rw"], on: 10)
        let reply = try shard.make(2, people, people.put(10, sv: 1, list: list), people.put(11, below: 10))
        #expect(reply.results == [.version(2), .version(1)])
        return shard
    }

    private func root(_ number: Int = 10) -> NodeID { NodeText.id(number) }

    @Test("the owner shares a branch, members write into it, and the owner ends it", arguments: [Memory.warm, .disk])
    func wholeWay(memory: Memory) throws {
        let shard = try shared(memory)
        #expect(
            try shard.make(3, by: "ben", in: 10, people, people.put(12, by: "ben", below: 11)).results == [.version(1)])
        #expect(try shard.record(12)?.stamps.sender == UserID("ben"))
        try shard.restart()
        let changes = try [
            people.put(11, by: "cleo", below: 10, sv: 1), people.put(12, by: "cleo", below: 10, sv: 1),
            people.put(13, by: "cleo", below: 12),
        ]
        #expect(try shard.send(shard.batch(4, by: "cleo", in: 10, changes, people)).first?.results.count == 3)
        #expect(try shard.record(12)?.stamps.sender == UserID("ben"), "its creator")
        #expect(try shard.record(11)?.stamps.sender == nil, "the owner's")
        #expect(try shard.record(11)?.signature?.author == UserID("cleo"))
        #expect(
            try shard.make(5, by: "ben", in: 10, people, TestShard.deleteTree(12, sv: 2, outdated: true, unknown: true))
                .branch?.removed == 2)
        // Ann writes in her tree as before, signed inside of the branch.
        #expect(try shard.make(6, people, people.put(14, below: 11), TestShard.put(1, "n1", sv: 1)).results.count == 2)
        let end = try shard.make(7, TestShard.put(10, "n10", sv: 2))
        #expect(end.results == [.version(3)])
        #expect(
            try shard.make(8, by: "ben", in: 10, people, people.put(15, by: "ben", below: 11)).reason == .permission)
        #expect(
            try shard.make(9, TestShard.put(14, below: .child(11), "n14", sv: 1)).results == [.version(2)],
            "private again")
    }

    @Test("the log names the branch of each change, and the one that a node has left", arguments: [Memory.warm, .disk])
    func audiences(memory: Memory) throws {
        let shard = try shared(memory)
        try shard.make(3, by: "ben", in: 10, people, people.put(12, by: "ben", below: 11))
        try shard.make(4, people, people.put(1, below: 10, sv: 1))
        try shard.make(5, TestShard.put(12, "n12", sv: 1))
        try shard.make(6, TestShard.delete(11, sv: 1), TestShard.delete(12, sv: 2))
        try shard.make(7, TestShard.put(10, "n10", sv: 2))
        let log = try shard.log()
        func audience(_ after: Int?, left: Int? = nil, entry: Bool = false) -> [String] {
            [after.map(String.init) ?? "-", left.map(String.init) ?? "-", entry ? "entry" : ""]
        }
        func text(_ id: NodeID?) -> String { id.map { String($0.value) } ?? "-" }
        let found = log.map { row in
            row.audience.map { [text($0.after), text($0.left), $0.isEntry ? "entry" : ""] } ?? audience(nil)
        }
        #expect(
            found == [
                audience(nil), audience(nil), audience(10, entry: true), audience(10), audience(10),
                audience(10, entry: true), audience(nil, left: 10), audience(10), audience(nil),
                audience(nil, left: 10),
            ])
        // What a member sees of it.
        let seen = log.compactMap { $0.seen(in: root()) }
        #expect(seen.map(\.gid) == [3, 4, 5, 6, 7, 8, 10])
        #expect(seen.map(\.kind) == [.modify, .modify, .modify, .modify, .remove, .remove, .remove])
        #expect(seen.map(\.sourceVersion) == [nil, nil, nil, nil, nil, nil, nil])
        #expect(seen.map(\.endVersion) == [2, 1, 1, 2, 2, 2, 3])
        #expect(log.allSatisfy { $0.seen(in: root(1)) == nil })
        // A node that comes in is whole, whatever the change in the log was.
        let entered = try JSONDiff.apply(ObjectDiff(JSONValue(parsing: seen[3].diff)), to: JSONObject())
        #expect(entered == (try shard.stored(NodeText.key(1))?.objectValue))
    }

    @Test("a record of another epoch than the branch is refused, of the owner and of members; one of the newest is not")
    func epochs() throws {
        let shard = try shared(.disk)
        let before = try #require(try shard.list(on: 10))
        let next = try people.list(["ben": "rw"], on: 10, after: before, epoch: 1)
        try shard.make(3, people, people.put(10, sv: 2, list: next))
        let cases: [(Int, UInt32, RefusalReason?)] = [(4, 0, .epoch), (5, 2, .epoch), (6, 1, nil)]
        for (id, epoch, reason) in cases {
            let number = 20 + id
            let own = try shard.make(id, people, people.put(number, below: 10) { $0.epoch = epoch })
            #expect(own.reason == reason && own.code == (reason == nil ? nil : 405), "\(own)")
            let deeper = try shard.make(
                id + 10, by: "ben", in: 10, people, people.put(number + 20, by: "ben", below: 11) { $0.epoch = epoch })
            #expect(deeper.reason == reason)
            let written = try [number, number + 20].filter { try shard.record($0) != nil }
            #expect(written == (reason == nil ? [number, number + 20] : []))
        }
        // What was written before stays as it is, until it is written again.
        #expect(try shard.record(11)?.epoch == 0)
        #expect(try shard.make(30, people, people.put(11, below: 10, sv: 1)).reason == .epoch)
        // One batch with the new list: what follows it has the new epoch.
        let last = try people.list(["ben": "rw"], on: 10, after: next, epoch: 2)
        let both = try shard.make(
            31, people, people.put(10, sv: 3, list: last), people.put(11, below: 10, sv: 1) { $0.epoch = 2 })
        #expect(both.results == [.version(4), .version(2)])
    }

    @Test("a depositor without the right to read does not learn the epoch, and is not refused for it")
    func depositEpoch() throws {
        let shard = try shared(.disk, "W")
        let before = try #require(try shard.list(on: 10))
        let next = try people.list(["ben": "W"], on: 10, after: before, epoch: 1)
        try shard.make(3, people, people.put(10, sv: 2, list: next))
        let ann = try UserID(TestShard.ann)
        let reply = try shard.make(
            4, by: "ben", in: 10, people,
            people.put(12, by: "ben", below: 10) { record in
                record.tag = NodeTag(inInbox: NodeText.id(12))
                let sealed = [1] + [UInt8](repeating: 3, count: KeyWrap.bytesCount - 1)
                record.wraps = [RecordWrap(.user(ann, keyID: "k"), sealed: sealed)]
            })
        #expect(reply.results == [.version(1)], "\(reply)")
    }

    @Test("a group that the store refuses leaves no list behind")
    func refusedGroup() throws {
        let store = MemoryStore(faults: { $0.number == 3 ? .fail(StoreError(.io, "a full disk")) : .none })
        let shard = try TestShard.tree(.warm, store: store)
        try shard.make(1, TestShard.put(10, "n10"))
        let list = try people.list(["ben": "rw"], on: 10)
        _ = try shard.make(2, people, people.put(10, sv: 1, list: list))
        #expect(
            try shard.make(3, by: "ben", in: 10, people, people.put(12, by: "ben", below: 10)).reason == .permission)
        try shard.make(4, people, people.put(10, sv: 1, list: list))
        #expect(try shard.make(5, by: "ben", in: 10, people, people.put(12, by: "ben", below: 10)).results.count == 1)
    }

    @Test("batches of one group see each other's lists: a member that is removed writes nothing after it")
    func oneGroup() throws {
        let shard = try shared(.disk)
        let before = try #require(try shard.list(on: 10))
        let next = try people.list(["cleo": "rw"], on: 10, after: before, epoch: 1)
        let replies = try shard.send(
            shard.batch(3, by: "ben", in: 10, [people.put(12, by: "ben", below: 10)], people),
            shard.batch(4, by: TestShard.ann, [people.put(10, sv: 2, list: next)], people),
            shard.batch(5, by: "ben", in: 10, [people.put(13, by: "ben", below: 10)], people),
            shard.batch(6, by: "cleo", in: 10, [people.put(14, by: "cleo", below: 10, epoch: 1)], people))
        #expect(replies.map(\.reason) == [nil, nil, .permission, nil])
    }

    @Test("the answer of a batch is its author's: repeated for it, also after its removal, and for no other account")
    func answers() throws {
        let shard = try shared(.disk)
        let operation = try people.put(12, by: "ben", below: 10)
        let first = try shard.make(3, by: "ben", in: 10, people, operation)
        #expect(try shard.make(3, by: "ben", in: 10, people, operation).text == first.text)
        #expect(try shard.make(3, by: "cleo", in: 10, people, operation).reason == .batchID)
        #expect(try shard.make(3, people, operation).reason == .batchID)
        #expect(try shard.make(3, by: "dora", in: 10, people, operation).reason == .permission)
        #expect(try shard.make(3, by: "ben", in: 1, people, operation).text == first.text)
        try shard.make(4, TestShard.put(10, "n10", sv: 2))
        #expect(try shard.make(3, by: "ben", in: 10, people, operation).text == first.text)
        #expect(try shard.make(3, by: "cleo", in: 10, people, operation).reason == .permission)
    }

    @Test("a burn time in a branch, and a removal by a single change, are logged for the branch")
    func removals() throws {
        let shard = try shared(.disk)
        try shard.make(3, by: "ben", in: 10, people, people.put(12, by: "ben", below: 10) { $0.burnTime = 9_000 })
        shard.wait(until: 10_000)
        #expect(try shard.remove(11, sv: 1).code == nil)
        let removed = try shard.log().filter { $0.kind == .remove }
        #expect(removed.count == 2 && removed.allSatisfy { $0.audience?.after == root() })
    }

    @Test("a single change writes nothing into a branch, nor what was in one")
    func singleChanges() throws {
        let shard = try shared(.warm)
        #expect(try shard.write(12, below: .child(10), "n12") == .refused(.signature))
        #expect(try shard.write(11, below: .child(10), "n11", sv: 1) == .refused(.signature))
        #expect(try shard.write(11, "n11", sv: 1) == .refused(.signature), "out")
        #expect(try shard.write(1, below: .child(11), "n1", sv: 1) == .refused(.signature), "in")
        #expect(try shard.write(10, "n10", sv: 2) == .refused(.signature), "the end of sharing")
        #expect(try shard.write(1, "n1", sv: 1).version == 2, "private")
        #expect(try shard.write(2, below: .child(1), "n2").version == 1)
    }

    @Test("the check of a store finds marks and creators that differ from the records")
    func storeCheck() throws {
        let folder = StoreFolder()
        let path = folder.path("thicket.db")
        do {
            let shard = try shared(.disk, store: SQLiteStore(path: path, settings: .testing))
            try shard.make(3, by: "ben", in: 10, people, people.put(12, by: "ben", below: 10))
        }
        #expect(try StoreCheck.run(path, settings: .testing).findings == [])
        try folder.run("UPDATE node SET shared = NULL", in: "thicket.db")
        #expect(
            try StoreCheck.run(path, settings: .testing).findings.contains {
                $0.contains("other readers of a shared branch")
            })
        try folder.run(
            #"UPDATE node SET shared = CAST('["ben","cleo"]' AS BLOB) WHERE substr(hex(id), 32) = 'A'"#,
            in: "thicket.db")
        try folder.run("UPDATE node SET member = 'x' WHERE member IS NOT NULL", in: "thicket.db")
        #expect(try StoreCheck.run(path, settings: .testing).findings.contains { $0.contains("another creator") })
    }
}
