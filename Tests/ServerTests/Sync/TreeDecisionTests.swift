import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Decisions on changes of a tree")
struct TreeDecisionTests {
    @Test(
        "a new bucket named tree becomes a tree once, and no other bucket and no bucket with a past does",
        arguments: Memory.allCases)
    func choosing(memory: Memory) throws {
        let shard = try TestShard(memory, name: "tree")
        #expect(shard.choose(.tree) == .mode(.tree))
        #expect(shard.choose(.sealed) == .mode(.tree) && shard.choose(.tree) == .mode(.tree))
        try shard.restart()
        #expect(try shard.make("k", ["t": "clear"]) == .refused(.badRecord))
        #expect(try shard.write(1, "a").version == 1)
        #expect(try shard.store.makeReader().bucket(shard.bucket)?.mode == .tree)
        #expect(try TestShard(memory).choose(.tree) == .mode(.open), "named notes")
        let open = try TestShard(memory, name: "tree")
        try open.make("k", ["t": "clear"])
        #expect(open.choose(.tree) == .mode(.open))
    }

    @Test(
        "a record is stored whole, with the server's times; a move keeps the time of creation",
        arguments: Memory.allCases)
    func stamps(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        let made: Answer = try shard.write(1, "a")
        #expect(made.version == 1 && made.element?["sv"] == nil)
        let first: NodeRecord = try #require(try shard.record(1))
        let created: Int64 = try #require(first.stamps.created)
        #expect(first.stamps.changed == created && first.stamps.sender == nil)
        try shard.write(2, "b")
        let moved: Answer = try shard.write(1, below: .child(2), "c", sv: 1)
        #expect(moved.version == 2 && moved.element?["sv"] == 1)
        let second: NodeRecord = try #require(try shard.record(1))
        #expect(second.parent == .child(2) && second.base == 1 && second.stamps.created == created)
        #expect(try #require(second.stamps.changed) > created)
        let changed: [String] = moved.element?["v"]?.objectValue?.keys.map { String($0) }.sorted() ?? []
        #expect(changed == ["_t", "n", "p", "s"], "only members that differ are sent")
        #expect(try shard.remove(1, sv: 2).version == 3)
        #expect(try shard.write(1, "a").version == 4)
        #expect(try #require(try shard.record(1)?.stamps.created) > created, "a new node under an old id")
    }

    @Test("members that are set and removed in v make the same record as the whole in d", arguments: Memory.allCases)
    func members(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        let record: JSONObject = try NodeText.record(.trunk(.home), "a").object
        #expect(try shard.make(NodeText.key(1), record).version == 1)
        let burning: JSONValue = ["s": ["o": "r", "v": 1], "x": ["o": "+", "v": 5_000]]
        #expect(try shard.send(NodeText.key(1), sv: 1, v: burning).version == 2)
        #expect(try shard.record(1)?.burnTime == 5_000)
        #expect(
            try shard.send(NodeText.key(1), sv: 2, v: ["s": ["o": "r", "v": 2], "x": ["o": "-"]]).version == 3)
        #expect(try shard.record(1)?.burnTime == nil && shard.record(1)?.base == 2)
    }

    @Test(
        "what is not a whole record, or contains a server's stamps, is a bad record",
        arguments: [
            #"{"id":"KEY","v":{"t":{"o":"+","v":"clear"}}}"#, #"{"id":"KEY","d":{"t":"clear"}}"#,
            #"{"id":"KEY","sv":1,"v":{"s":{"o":"r","v":1},"m":{"o":"d","v":"=1\t+x"}}}"#,
            #"{"id":"KEY","sv":1,"v":{"s":{"o":"I","v":1}}}"#, #"{"id":"KEY","sv":1,"v":{"s":{"o":"r","v":2}}}"#,
            #"{"id":"KEY","sv":1,"v":{"s":{"o":"r","v":1},"_t":{"o":"r","v":1}}}"#,
            #"{"id":"KEY","sv":1,"v":{"s":{"o":"r","v":1},"_c":{"o":"-"}}}"#,
            #"{"id":"KEY","sv":1,"v":{"s":{"o":"r","v":1},"x":{"o":"-"}}}"#,
            #"{"id":"KEY","sv":1,"v":{"s":{"o":"r","v":1},"l":{"o":"+","v":{}}}}"#,
            #"{"id":"KEY","sv":1,"v":{"s":{"o":"r","v":1}},"d":{}}"#, #"{"id":"k","v":{"t":{"o":"+","v":1}}}"#,
        ])
    func badRecords(text: String) throws {
        let shard: TestShard = try .tree()
        try shard.write(1, "a")
        let sent: JSONObject = try #require(
            try JSONValue(parsing: Array(text.replacing("KEY", with: NodeText.key(1)).utf8)).objectValue)
        let isNew: Bool = sent["sv"] == nil && sent["id"] != "k"
        let answer: Answer = try shard.send(
            isNew ? NodeText.key(2) : sent["id"]?.stringValue ?? "", sv: sent["sv"]?.intValue, v: sent["v"],
            d: sent["d"])
        #expect(answer == .refused(.badRecord))
        #expect(try shard.log().count == 1)
    }

    @Test("a device that sends stamps in d is refused, and so is one whose record names another base")
    func sentStamps() throws {
        let shard: TestShard = try .tree()
        var record: NodeRecord = try NodeText.record(.trunk(.home), "a")
        record.stamps = RecordStamps(changed: 1)
        #expect(try shard.send(NodeText.key(1), d: .object(record.object)) == .refused(.badRecord))
        let other: NodeRecord = try NodeText.record(.trunk(.home), "a", base: 4)
        #expect(try shard.send(NodeText.key(1), d: .object(other.object)) == .refused(.badRecord))
    }

    @Test("a record that is too large is 413, also where an operator allows less")
    func sizes() throws {
        let shard: TestShard = try .tree()
        let large: JSONValue = .string(String(repeating: "A", count: 70_000))
        var object: JSONObject = try NodeText.record(.trunk(.home), "a").object
        object["m"] = large
        #expect(try shard.send(NodeText.key(1), d: .object(object)) == .refused(.record))
        let small: TestShard = try .tree { $0.documentBytesMax = 200 }
        #expect(try small.write(1, "a") == .refused(.record))
    }

    @Test("trunks cannot be written or removed, and a tree cannot be emptied")
    func trunks() throws {
        let shard: TestShard = try .tree()
        try shard.write(1, "a")
        for trunk in Trunk.allCases {
            let record: JSONObject = try NodeText.record(.trunk(.home), "b").object
            #expect(try shard.send(trunk.rawValue, d: .object(record)) == .refused(.trunk))
            #expect(try shard.send(trunk.rawValue, .remove) == .refused(.trunk))
        }
        #expect(try shard.send("tree", .empty) == .refused(.leafOnly))
        #expect(try shard.place(1) != nil && !shard.core.hasBacklog)
    }

    @Test(
        "a change on another version than the current one is stale and gets the current one",
        arguments: Memory.allCases)
    func stale(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        try shard.write(1, "a")
        #expect(try shard.write(1, "b") == .refused(.stale, current: 1))
        #expect(try shard.write(1, "b", sv: 2) == .refused(.stale, current: 1))
        #expect(try shard.write(1, "b", sv: 1).version == 2)
        #expect(try shard.remove(1, sv: 1) == .refused(.stale, current: 2))
        #expect(try shard.remove(1, sv: nil) == .refused(.stale, current: 2))
        #expect(
            try shard.send(NodeText.key(1), sv: 1, v: ["s": ["o": "r", "v": 1]]) == .refused(.stale, current: 2))
        #expect(try shard.write(2, "b", sv: 3) == .refused(.nodeMissing))
        #expect(try shard.remove(2, sv: 1) == .refused(.nodeMissing))
        #expect(try shard.remove(1, sv: 2).version == 3)
        #expect(try shard.remove(1, sv: 3) == .error(412), "removed already")
        #expect(try shard.write(1, "c", sv: 3) == .refused(.nodeMissing))
    }

    @Test("a change that is sent again is known by its ccid")
    func duplicates() throws {
        let shard: TestShard = try .tree()
        let change: SubmittedChange = try shard.writing(1, "a")
        #expect(try shard.group([change]).first?.version == 1)
        #expect(try shard.group([change]) == [.error(409)])
    }

    @Test("only leaves are removed, and a removed name is free again", arguments: Memory.allCases)
    func leaves(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        try shard.writeChain(3)
        #expect(try shard.remove(1, sv: 1) == .refused(.leafOnly) && shard.remove(2, sv: 1) == .refused(.leafOnly))
        #expect(try shard.remove(3, sv: 1).version == 2 && shard.remove(2, sv: 1).version == 2)
        #expect(try shard.write(4, below: .child(2), "n") == .refused(.parentMissing))
        #expect(try shard.write(5, below: .child(1), "n").version == 1)
        #expect(try shard.remove(1, sv: 1) == .refused(.leafOnly))
    }

    @Test("of two creations of one name in one group the second is refused", arguments: Memory.allCases)
    func twins(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        let answers: [Answer] = try shard.group([shard.writing(1, "a"), shard.writing(2, "a"), shard.writing(3, "b")])
        #expect(answers.map(\.code) == [nil, 400, nil] && answers[1] == .refused(.nameTaken))
        #expect(try shard.place(1) != nil && shard.place(2) == nil)
        #expect(try shard.write(2, "a") == .refused(.nameTaken), "also when it is on disk")
    }

    @Test(
        "changes of one group see each other: moved away, removed, exchanged, created below",
        arguments: Memory.allCases)
    func groups(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        try shard.group([shard.writing(1, "a"), shard.writing(2, "b")])
        let moved: [Answer] = try shard.group([
            shard.writing(1, below: .child(2), "a", sv: 1), shard.writing(3, "a"),
            shard.writing(4, below: .child(3), "x"), shard.removing(3, sv: 1), shard.removing(4, sv: 1),
            shard.removing(3, sv: 1), shard.writing(5, below: .child(3), "x"),
        ])
        #expect(moved.map(\.reason) == [nil, nil, nil, "leaf-only", nil, nil, "parent-missing"])
        // Two nodes exchange their names over a third.
        try shard.write(6, "c")
        let exchanged: [Answer] = try shard.group([
            shard.writing(2, "spare", sv: 1), shard.writing(6, "b", sv: 1), shard.writing(2, "c", sv: 2),
        ])
        #expect(exchanged.map(\.code) == [nil, nil, nil])
        #expect(try shard.place(6)?.tag == NodeText.record(.trunk(.home), "b").tag)
        #expect(try shard.place(2)?.tag == NodeText.record(.trunk(.home), "c").tag)
        #expect(try shard.write(7, "spare").version == 1, "nothing is left of the place in between")
    }

    @Test("two moves of one group do not make a cycle", arguments: Memory.allCases)
    func cycles(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        try shard.group([shard.writing(1, "a"), shard.writing(2, "b")])
        let answers: [Answer] = try shard.group([
            shard.writing(1, below: .child(2), "a", sv: 1), shard.writing(2, below: .child(1), "b", sv: 1),
        ])
        #expect(answers.first?.version == 2 && answers.last == .refused(.cycle))
        #expect(try shard.write(2, below: .child(2), "b", sv: 1) == .refused(.cycle))
    }

    @Test("the 65th level is refused, for a new node and for what hangs below a moved one", arguments: Memory.allCases)
    func depth(memory: Memory) throws {
        let shard: TestShard = try .tree(memory)
        try shard.writeChain(64)
        #expect(try shard.write(100, below: .child(64), "x") == .refused(.depth))
        try shard.group([shard.writing(200, "p"), shard.writing(201, below: .child(200), "q")])
        #expect(try shard.write(200, below: .child(63), "p", sv: 1) == .refused(.depth))
        #expect(try shard.write(200, below: .child(62), "p", sv: 1).version == 2)
        let branch: [Answer] = try shard.group([
            shard.writing(300, "r"), shard.writing(301, below: .child(300), "s"),
            shard.writing(300, below: .child(63), "r", sv: 1),
        ])
        #expect(branch.last == .refused(.depth), "what hangs below it is of the same group")
    }

    @Test("a branch that goes up, or stays at its depth, is moved without a look at what hangs below")
    func wideBranches() throws {
        let shard: TestShard = try .tree { $0.nodeVisitsMax = 20 }
        try shard.group([shard.writing(1, "a"), shard.writing(2, below: .child(1), "b")])
        try shard.group((0..<20).map { try shard.writing(100 + $0, below: .child(2), "n\($0)") })
        #expect(try shard.write(2, "b", sv: 1).version == 2)
        try shard.write(3, "c")
        #expect(try shard.write(2, below: .child(3), "b", sv: 2) == .refused(.depth), "too many to visit")
    }

    @Test("the inbox takes nodes under the tag of their ids only")
    func inbox() throws {
        let shard: TestShard = try .tree()
        #expect(try shard.write(1, below: .trunk(.inbox), "a") == .refused(.badRecord))
        var record: NodeRecord = try NodeText.record(.trunk(.inbox), "a")
        record.tag = NodeTag(inInbox: NodeText.id(1))
        #expect(try shard.send(NodeText.key(1), d: .object(record.object)).version == 1)
    }

    @Test("a failed group leaves no node, and what was decided on it is decided again")
    func failing() throws {
        let store = MemoryStore(faults: { $0.number == 3 ? .fail(StoreError(.io, "a test")) : .none })
        let shard: TestShard = try .tree(store: store)
        try shard.write(1, "a")
        let answers: [Answer] = try shard.group([
            shard.writing(2, "b"), shard.writing(3, below: .child(2), "c"), shard.writing(4, "b"),
        ])
        #expect(answers.map(\.code) == [503, 503, 503], "also the refusal that followed from what is not stored")
        #expect(try shard.place(2) == nil && shard.place(3) == nil)
        #expect(try shard.write(3, below: .child(2), "c") == .refused(.parentMissing))
        #expect(try shard.write(4, "b").version == 1)
    }

    @Test("a group with a row that the store refuses is decided again one by one, on what is stored then")
    func oneByOne() throws {
        let store = MemoryStore(faults: { $0.number == 3 ? .fail(StoreError(.constraint, "a test")) : .none })
        let shard: TestShard = try .tree(store: store)
        try shard.write(1, "a")
        let answers: [Answer] = try shard.group([
            shard.writing(2, "b"), shard.writing(3, below: .child(2), "c"), shard.writing(4, "b"),
            shard.writing(1, below: .child(3), "a", sv: 1),
        ])
        #expect(answers.map(\.reason) == [nil, nil, "name-taken", nil] && answers.map(\.code) == [nil, nil, 400, nil])
        #expect(try shard.place(1)?.parent == .child(3) && shard.place(3)?.parent == .child(2))
        #expect(try shard.place(4) == nil)
    }
}
