import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Batches of a tree")
struct TreeBatchTests {
    @Test("a batch makes a parent and its child together, and answers their versions", arguments: Memory.allCases)
    func two(memory: Memory) throws {
        let shard = try TestShard.tree(memory)
        let reply = try shard.make(1, TestShard.put(1, "a"), TestShard.put(2, below: .child(1), "b"))
        #expect(reply.results == [.version(1), .version(1)])
        #expect(try shard.numbers() == [1, 2] && shard.place(2)?.parent == .child(1))
        #expect(shard.lastOutcome.appliedCount == 2 && shard.lastOutcome.refusedCount == 0)
        #expect(shard.lastOutcome.batchCount == 1)
    }

    @Test("operations see each other: exchanged names, moved, written twice, removed and made again")
    func order() throws {
        let shard = try TestShard.tree(.cold)
        try shard.write(1, "a")
        try shard.write(2, "b")
        // Names are exchanged over a third one: each operation leaves a tree.
        let exchange = try shard.make(
            1, TestShard.put(1, "free", sv: 1), TestShard.put(2, "a", sv: 1), TestShard.put(1, "b", sv: 2))
        #expect(exchange.results == [.version(2), .version(2), .version(3)])
        #expect(try shard.make(2, TestShard.put(1, "a", sv: 3), TestShard.put(2, "c", sv: 2)).reason == .nameTaken)
        let again = try shard.make(
            3, TestShard.delete(2, sv: 2), TestShard.put(2, below: .child(1), "x"), TestShard.delete(2, sv: 4))
        #expect(again.results == [.version(3), .version(4), .version(5)])
        let cycle = try shard.make(
            4, TestShard.put(3, "p"), TestShard.put(4, below: .child(3), "q"),
            TestShard.put(3, below: .child(4), "p", sv: 1))
        #expect(cycle.reason == .cycle && cycle.operation == 2)
        #expect(try shard.numbers() == [1])
    }

    private static func refused() throws -> [(TreeOperation, RefusalReason?, Int)] {
        let other = try NodeText.record(.trunk(.home), "z", base: 2)
        return [
            (try TestShard.put(9, "a"), .nameTaken, 400),
            (try TestShard.put(9, below: .child(77), "z"), .parentMissing, 400),
            (try TestShard.put(1, below: .child(2), "a", sv: 1), .cycle, 400),
            (try TestShard.put(9, below: .child(163), "z"), .depth, 400), (TestShard.delete(1, sv: 1), .leafOnly, 400),
            (try TestShard.put(1, "z", sv: 7), .stale, 405), (TestShard.delete(2, sv: 7), .stale, 405),
            (try TestShard.put(88, "z", sv: 1), .nodeMissing, 404), (TestShard.delete(88, sv: 1), .nodeMissing, 404),
            (TestShard.deleteTree(88, sv: 1), .nodeMissing, 404),
            (.put(NodeText.id(1), source: 1, other), .badRecord, 400),
            (try TestShard.put(9, below: .trunk(.inbox), "z"), .badRecord, 400), (TestShard.delete(3, sv: 1), nil, 412),
        ]
    }

    @Test(
        "one refused operation at any place refuses the whole batch, with its index and reason", arguments: [0, 1, 2])
    func allOrNothing(place: Int) throws {
        let shard = try TestShard.tree(place == 1 ? .cold : .warm)
        try shard.write(1, "a")
        try shard.write(2, below: .child(1), "b")
        try shard.write(3, "c")
        try shard.remove(3, sv: 1)
        for number in 100...163 {
            try shard.write(number, below: number == 100 ? .trunk(.prefs) : .child(number - 1), "n")
        }
        let head = try shard.log().count
        for (index, (operation, reason, code)) in try Self.refused().enumerated() {
            var operations = [try TestShard.put(50, "good"), try TestShard.put(51, below: .child(50), "good")]
            operations.insert(operation, at: place)
            let reply = try #require(try shard.send(shard.batch(index, operations)).first)
            #expect(reply.reason == reason && reply.code == code && reply.operation == place, "\(operation): \(reply)")
            if reason == .stale { #expect(reply.refused?.tree?.current == 1) }
            #expect(shard.lastOutcome.appliedCount == 0 && shard.lastOutcome.refusedCount == 1)
        }
        #expect(try shard.log().count == head && shard.numbers() == [1, 2])
        // A refusal is not kept: the same id may be used by a batch that can be made.
        #expect(try shard.make(0, TestShard.put(50, "good")).results == [.version(1)])
    }

    @Test("a refused batch leaves the other changes of its group as they are", arguments: Memory.allCases)
    func beside(memory: Memory) throws {
        let shard = try TestShard.tree(memory)
        try shard.group([
            shard.writing(1, "a"), shard.batch(1, [TestShard.put(2, "b"), TestShard.put(3, "a")]),
            shard.writing(4, below: .child(1), "b"), shard.batch(2, [TestShard.put(5, below: .child(4), "c")]),
            shard.writing(2, "b"),
        ])
        #expect(shard.replies.map(\.reason) == [.nameTaken, nil] && shard.replies[0].operation == 1)
        #expect(try shard.numbers() == [1, 2, 4, 5] && shard.record(2)?.base == 0)
    }

    @Test(
        "a batch that is sent again gets the same bytes, in the same group, later, and after a restart",
        arguments: Memory.allCases)
    func idempotent(memory: Memory) throws {
        let shard = try TestShard.tree(memory)
        let operations = [try TestShard.put(1, "a"), try TestShard.put(2, below: .child(1), "b")]
        let replies = try shard.send(shard.batch(1, operations), shard.batch(1, operations))
        #expect(replies.count == 2 && replies[0] == replies[1] && replies[0].results.count == 2)
        #expect(shard.lastOutcome.refusedCount == 0)
        try shard.make(2, TestShard.deleteTree(1, sv: 1, unknown: true))
        #expect(try shard.send(shard.batch(1, operations)) == [replies[0]])
        try shard.restart()
        #expect(try shard.send(shard.batch(1, operations)) == [replies[0]])
        #expect(try shard.numbers() == [] && shard.log().count == 4)
    }

    @Test("A22: a batch with the id of another one is refused, in the same group, later, and after a restart")
    func otherBody() throws {
        let shard = try TestShard.tree(.disk)
        let other = [try TestShard.put(2, "b")]
        let replies = try shard.send(shard.batch(1, [TestShard.put(1, "a")]), shard.batch(1, other))
        #expect(replies[1].reason == .batchID && replies[1].code == 409 && replies[1].operation == nil)
        #expect(try shard.send(shard.batch(1, other)).first?.reason == .batchID)
        try shard.restart()
        #expect(try shard.send(shard.batch(1, other)).first?.reason == .batchID)
        #expect(try shard.numbers() == [1])
    }

    @Test("a commit that fails leaves nothing of the batch and is answered 503; the repeat is made")
    func failing() throws {
        let store = MemoryStore(faults: { $0.number == 3 ? .fail(StoreError(.full, "a test")) : .none })
        let shard = try TestShard.tree(store: store)
        try shard.write(1, "a")
        let operations = [try TestShard.put(2, below: .child(1), "b"), TestShard.delete(2, sv: 1)]
        #expect(try shard.send(shard.batch(1, operations)).first?.code == 503)
        #expect(try shard.numbers() == [1] && shard.log().count == 1)
        #expect(try shard.send(shard.batch(1, operations)).first?.results == [.version(1), .version(2)])
        #expect(try shard.log().count == 3)
    }

    @Test(
        "after a crash during its commit all of a batch is there or nothing, and the repeat is answered as made",
        arguments: [CommitFault.crashBefore, .crashAfter])
    func crash(fault: CommitFault) throws {
        let store = MemoryStore(faults: { $0.number == 3 ? fault : .none })
        let shard = try TestShard.tree(store: store)
        try shard.write(1, "a")
        let operations = [try TestShard.put(2, below: .child(1), "b"), try TestShard.put(3, below: .child(2), "c")]
        #expect(try shard.send(shard.batch(1, operations)).first?.code == 503)
        try shard.restart()
        #expect(try shard.numbers() == (fault == .crashAfter ? [1, 2, 3] : [1]))
        let reply = try shard.send(shard.batch(1, operations)).first
        #expect(reply?.results == [.version(1), .version(1)])
        #expect(try shard.numbers() == [1, 2, 3] && shard.log().count == 3)
    }

    @Test("a node that a batch creates twice is refused at the second place, with the version that the first one made")
    func twice() throws {
        let shard = try TestShard.tree()
        let reply = try shard.make(1, TestShard.put(1, "a"), TestShard.put(1, "b"))
        #expect(reply.reason == .stale && reply.operation == 1 && reply.refused?.tree?.current == 1)
        #expect(try shard.numbers() == [])
    }

    @Test("a bad row in a group with a batch is found by trying each request alone")
    func oneByOne() throws {
        let store = MemoryStore(faults: { $0.number == 2 ? .fail(StoreError(.constraint, "a test")) : .none })
        let shard = try TestShard.tree(store: store)
        let replies = try shard.send(
            shard.batch(1, [TestShard.put(1, "a"), TestShard.put(2, below: .child(1), "b")]),
            shard.batch(2, [TestShard.put(3, below: .child(2), "c")]))
        #expect(replies.map(\.results.count) == [2, 1] && replies.allSatisfy { $0.refused == nil })
        #expect(try shard.numbers() == [1, 2, 3])
    }

    @Test("the changes of a batch follow each other in the log and carry its mark; other ccids cannot have one")
    func marks() throws {
        let shard = try TestShard.tree(.disk)
        try shard.group([
            shard.writing(1, "a"),
            shard.batch(7, [TestShard.put(2, "b"), TestShard.put(3, "c"), TestShard.delete(2, sv: 1)]),
            shard.writing(4, "d"),
        ])
        let log = try shard.log()
        let id = BatchID(7)
        #expect(
            log.map { BatchMark(ccid: $0.changeID.text) } == [nil] + (0..<3).map { BatchMark(id, index: $0, of: 3) } + [
                nil
            ])
        let applied = shard.lastOutcome.buckets.flatMap(\.events).compactMap { event -> JSONValue? in
            guard case .applied(let applied) = event else { return nil }
            return try? JSONValue(parsing: applied.element)["tx"]
        }
        #expect(applied == (0..<3).map { ["id": .string(id.text), "i": .number(JSONNumber(Int64($0))), "n": 3] })
        let forged = try shard.writing(5, "e", ccid: "\(id.text)-0-1")
        #expect(try shard.group([forged]) == [.refused(.badRecord)])
    }

    @Test("a batch needs a tree and the right to write")
    func rights() throws {
        let shard = try TestShard.tree()
        let reply = try shard.send(shard.batch(1, [TestShard.put(1, "a")], canWrite: false)).first
        #expect(reply?.code == 401 && reply?.reason == nil)
        let open = try TestShard(name: "tree")
        try open.make("k", ["a": 1])
        #expect(try open.make(1, TestShard.put(1, "a")).code == 404)
    }

    @Test("a batch of 1,000 changes is made; one that would make more is refused as a whole")
    func bounds() throws {
        let shard = try TestShard.tree(.cold)
        let puts = try (1...1_000).map { try TestShard.put($0, below: $0 == 1 ? .trunk(.home) : .child(1), "n\($0)") }
        #expect(try shard.send(shard.batch(1, puts)).first?.results.count == 1_000)
        let more = [try TestShard.put(2_000, below: .child(2), "x"), TestShard.deleteTree(1, sv: 1, unknown: true)]
        let reply = try #require(try shard.send(shard.batch(2, more)).first)
        #expect(reply.reason == .batch && reply.code == 413 && reply.operation == 1)
        #expect(try shard.numbers().count == 1_000)
    }

    @Test("answers are kept for 7 days and for the newest batches of a tree only", arguments: StoreKind.allCases)
    func kept(kind: StoreKind) throws {
        let folder = StoreFolder()
        let shard = try TestShard.tree(store: kind.make(folder))
        try shard.make(1, TestShard.put(1, "a"))
        try shard.make(2, TestShard.put(2, "b"))
        let maintenance = try shard.store.makeMaintenance(RetentionSettings())
        let reader = try shard.store.makeReader()
        let row = try #require(try reader.bucket(shard.bucket)?.row)
        func run(_ now: Int64) throws {
            while let batch = try maintenance.nextBatch(now: now) { _ = try shard.core.apply(batch) }
        }
        try run(5_001 + BatchAnswer.ageMax)
        #expect(try reader.batchAnswer(BatchID(1), in: row) != nil)
        try run(5_002 + BatchAnswer.ageMax + 3_600_000 * 24)
        #expect(try reader.batchAnswer(BatchID(1), in: row) == nil && reader.batchAnswer(BatchID(2), in: row) == nil)
        // Its changes are known by their ccids.
        #expect(try shard.make(1, TestShard.put(1, "a")).refused != nil && shard.numbers() == [1, 2])
        for number in 10..<(12 + BatchAnswer.perTreeMax) { try shard.make(number, TestShard.put(number, "n\(number)")) }
        #expect(try reader.batchAnswer(BatchID(11), in: row) == nil && reader.batchAnswer(BatchID(12), in: row) != nil)
    }
}

@Suite("Removal of branches")
struct BranchRemovalTests {
    /// 1 with the children 2 and 3; 4 below 2 is outdated, 5 below 3 is unknown to the sender, 6 below 3 is known.
    private static func shard(_ memory: Memory) throws -> TestShard {
        let shard = try TestShard.tree(memory)
        try shard.make(
            1, TestShard.put(1, "a"), TestShard.put(2, below: .child(1), "b"), TestShard.put(3, below: .child(1), "c"),
            TestShard.put(4, below: .child(2), "d"), TestShard.put(6, below: .child(3), "f"))
        // What another device does meanwhile.
        try shard.write(4, below: .child(2), "d2", sv: 1)
        try shard.write(5, below: .child(3), "e")
        return shard
    }

    @Test(
        "outdated and unknown nodes are kept or removed as the options say, and what is kept keeps what is above it",
        arguments: [
            (false, false, [1, 2, 3, 4, 5]), (true, false, [1, 3, 5]), (false, true, [1, 2, 4]), (true, true, []),
        ] as [(Bool, Bool, Set<Int>)])
    func options(outdated: Bool, unknown: Bool, left: Set<Int>) throws {
        for memory in Memory.allCases {
            let shard = try Self.shard(memory)
            let reply = try shard.make(
                2,
                TestShard.deleteTree(1, sv: 1, known: [2: 1, 3: 1, 4: 1, 6: 1], outdated: outdated, unknown: unknown))
            #expect(try shard.numbers() == left)
            let branch = try #require(reply.branch)
            #expect(branch.removed == 6 - left.count && branch.left == left.count && !branch.hasMore)
            #expect(Set(branch.kept.map { Int($0.value) }) == left)
            #expect(try shard.log().suffix(branch.removed).allSatisfy { $0.kind == .remove })
        }
    }

    @Test("a child that another device adds in the same group, before the removal, is kept, and after it has no parent")
    func concurrent() throws {
        let shard = try Self.shard(.cold)
        let known: [Int: Version] = [2: 1, 3: 1, 4: 2, 5: 1, 6: 1]
        try shard.group([
            shard.writing(7, below: .child(6), "late"), shard.batch(2, [TestShard.deleteTree(1, sv: 1, known: known)]),
            shard.writing(8, below: .child(2), "later"),
        ])
        #expect(shard.replies.first?.branch?.kept.map(\.value) == [7, 6, 3, 1])
        #expect(shard.replies.last?.reason == .parentMissing)
        #expect(try shard.numbers() == [1, 3, 6, 7])
    }

    @Test("an outdated root is kept, and what is known below it is removed")
    func root() throws {
        let shard = try Self.shard(.warm)
        try shard.write(1, "renamed", sv: 1)
        let known: [Int: Version] = [2: 1, 3: 1, 4: 2, 5: 1, 6: 1]
        let branch = try #require(try shard.make(2, TestShard.deleteTree(1, sv: 1, known: known)).branch)
        #expect(branch == BranchOutcome(removed: 5, left: 1, kept: [NodeText.id(1)], hasMore: false))
        // Nothing is left to do: the answer is a success that changes nothing.
        let again = try #require(try shard.make(3, TestShard.deleteTree(1, sv: 1)).branch)
        #expect(again.removed == 0 && again.left == 1)
    }

    @Test("a removal sees the operations before it, and those after it see what is left")
    func order() throws {
        let shard = try Self.shard(.disk)
        let reply = try shard.make(
            2, TestShard.put(4, "saved", sv: 2), TestShard.put(9, below: .child(6), "new"),
            TestShard.deleteTree(1, sv: 1, outdated: true, unknown: true), TestShard.put(10, "a"))
        #expect(reply.results.count == 4)
        #expect(try shard.numbers() == [4, 10])
    }

    @Test("a branch that is too large is removed in parts, each of which leaves a tree", arguments: StoreKind.allCases)
    func parts(kind: StoreKind) throws {
        let folder = StoreFolder()
        let shard = try TestShard.tree(.cold, store: kind.make(folder))
        for part in 0..<5 {
            let numbers = (part * 500 + 1)...(part * 500 + 500)
            let puts = try numbers.map {
                try TestShard.put($0, below: $0 == 1 ? .trunk(.home) : .child($0 / 4 + 1), "n\($0)")
            }
            #expect(try shard.send(shard.batch(part, puts)).first?.refused == nil)
        }
        var (left, parts) = (2_500, 0)
        while left > 0 {
            let branch = try #require(
                try shard.make(100 + parts, TestShard.deleteTree(1, sv: 1, outdated: true, unknown: true)).branch)
            parts += 1
            left -= branch.removed
            #expect(branch.removed == min(1_000, left + branch.removed) && branch.hasMore == (left > 0))
            #expect(try shard.numbers().count == left)
        }
        #expect(parts == 3)
        guard kind == .sqlite else { return }
        #expect(try StoreCheck.run(folder.path("thicket.db"), settings: .testing).findings == [])
    }

    @Test("a branch whose survivors are too many to visit is refused: smaller branches can be removed")
    func survivors() throws {
        let shard = try TestShard.tree { $0.nodeVisitsMax = 50 }
        try shard.write(1, "a")
        for number in 2...99 { try shard.write(number, below: .child(number % 2 == 0 ? 1 : number - 1), "n\(number)") }
        let reply = try shard.make(1, TestShard.deleteTree(1, sv: 1))
        #expect(reply.reason == .batch && reply.operation == 0)
        #expect(try shard.make(2, TestShard.deleteTree(2, sv: 1, unknown: true)).branch?.removed == 2)
    }

    @Test("of many survivors the first 100 are listed, and all are counted")
    func listed() throws {
        let shard = try TestShard.tree()
        try shard.make(1, TestShard.put(1, "a"))
        let puts = try (2...300).map { try TestShard.put($0, below: .child(1), "n\($0)") }
        try shard.send(shard.batch(2, puts))
        let branch = try #require(try shard.make(3, TestShard.deleteTree(1, sv: 1, known: [2: 1])).branch)
        #expect(branch.removed == 1 && branch.left == 299 && branch.kept.count == 100)
    }
}
