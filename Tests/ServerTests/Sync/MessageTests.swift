import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

@Suite("Messages: copies into other trees")
struct MessageTests {
    private let people: TestDirectory

    init() throws { people = try TestDirectory(TestShard.ann, "bob", "carol", "dave") }

    private func copy(
        _ number: Int, to receiver: String, below parent: Int? = nil, by author: String = TestShard.ann
    ) throws -> TreeOperation { try people.copy(number, from: author, to: receiver, below: parent) }

    @Test(
        "a message and its attachment are at all receivers together, with the sender's stamp",
        arguments: Memory.allCases)
    func delivery(memory: Memory) throws {
        let shard = try TestShard.tree(memory)
        try shard.makeTree(of: "bob")
        let reply = try shard.make(
            1, people, TestShard.put(1, below: .trunk(.outbox), "sent"), copy(2, to: "bob"),
            copy(3, to: "bob", below: 2), copy(2, to: "carol"), copy(3, to: "carol", below: 2))
        #expect(reply.results == [.version(1), .version(1), .version(1), .version(1), .version(1)], "\(reply)")
        for name in ["bob", "carol"] {
            #expect(try shard.numbers(of: name) == [2] && shard.numbers(of: name, below: .child(2)) == [3])
            for number in [2, 3] {
                let stamps = try #require(try shard.record(number, of: name)?.stamps)
                #expect(stamps.sender == shard.bucket.user && stamps.created == 5_001 && stamps.changed == 5_001)
            }
            // A receiver sees a batch of its own changes only, complete with the last of them.
            let marks = try shard.marks(of: name).compactMap { $0 }
            #expect(marks.map(\.index) == [0, 1] && marks.allSatisfy { $0.count == 2 && $0.batch != BatchID(1) })
            #expect(Set(marks.map(\.batch)).count == 1)
        }
        #expect(try shard.marks(of: TestShard.ann) == [BatchMark(BatchID(1), index: 0, of: 1)])
        #expect(try shard.marks(of: "bob").first != shard.marks(of: "carol").first)
        #expect(try shard.record(1)?.stamps.sender == nil && shard.numbers(below: .outbox) == [1])
        #expect(shard.lastOutcome.appliedCount == 5 && shard.lastOutcome.refusedCount == 0)
        let modes = shard.lastOutcome.buckets.filter { $0.bucket.user.text == "carol" }.map(\.mode)
        #expect(modes == [.mode(.tree)], "the receiver without a tree has one now")
    }

    @Test("a batch without a change in the caller's tree is repeated byte for byte, also after a restart")
    func signal() throws {
        let shard = try TestShard.tree(.disk)
        let operations = [try copy(2, to: "bob")]
        let first = try shard.send(shard.batch(1, operations, people)).first
        #expect(first?.results == [.version(1)])
        #expect(try shard.send(shard.batch(1, operations, people)).first == first)
        try shard.restart()
        #expect(try shard.send(shard.batch(1, operations, people)).first == first)
        // Another key of the sender does not change the answer to what was made.
        let rotated = try TestDirectory(TestShard.ann, "bob")
        #expect(try shard.send(shard.batch(1, operations, rotated)).first == first)
        #expect(try shard.send(shard.batch(2, operations, rotated)).first?.reason == .signature)
        #expect(try shard.marks(of: "bob").count == 1)
        #expect(try shard.send(shard.batch(1, [copy(9, to: "bob")], people)).first?.reason == .batchID)
        #expect(try shard.numbers(of: "bob") == [2])
    }

    @Test("one refused receiver of three refuses the message for all", arguments: [0, 1, 2])
    func allOrNothing(place: Int) throws {
        let shard = try TestShard.tree(.disk)
        var receivers = ["bob", "carol"]
        receivers.insert("dave", at: place)
        try shard.set(InboxPolicy(blocked: [shard.bucket.user]), of: "dave")
        let reply = try shard.send(shard.batch(1, receivers.map { try copy(2, to: $0) }, people)).first
        #expect(reply?.reason == .blocked && reply?.code == 401 && reply?.operation == place)
        for name in receivers { #expect(try shard.numbers(of: name) == [] && shard.marks(of: name) == []) }
        try shard.set(InboxPolicy(), of: "dave")
        #expect(try shard.send(shard.batch(1, receivers.map { try copy(2, to: $0) }, people)).first?.results.count == 3)
        for name in receivers { #expect(try shard.numbers(of: name) == [2]) }
    }

    @Test("a commit that fails leaves the message nowhere and is answered 503; the repeat is delivered")
    func failedCommit() throws {
        let store = MemoryStore(faults: { $0.number == 3 ? .fail(StoreError(.full, "a test")) : .none })
        let shard = try TestShard.tree(.warm, store: store)
        try shard.make(1, TestShard.put(1, "a"))
        let operations = [try copy(2, to: "bob"), try copy(2, to: "carol")]
        let refused = try shard.send(shard.batch(2, operations, people)).first
        #expect(refused?.code == 503 && refused?.text == nil, "\(String(describing: refused))")
        for name in ["bob", "carol"] { #expect(try shard.numbers(of: name) == []) }
        #expect(try shard.send(shard.batch(2, operations, people)).first?.results.count == 2)
        for name in ["bob", "carol"] { #expect(try shard.numbers(of: name) == [2]) }
    }

    @Test("a refusal that follows from a message of the same group is not sent if the group is not written")
    func derivedRefusal() throws {
        let store = MemoryStore(faults: { $0.number == 3 ? .fail(StoreError(.full, "a test")) : .none })
        let shard = try TestShard.tree(.warm, store: store)
        try shard.makeTree(of: "carol")
        let replies = try shard.send(
            shard.batch(1, [copy(2, to: "bob")], people),
            shard.batch(2, by: "carol", [copy(2, to: "bob", by: "carol")], people))
        #expect(replies.map(\.code) == [503, 503])
        #expect(try shard.make(3, by: "carol", people, copy(2, to: "bob", by: "carol")).results == [.version(1)])
    }

    @Test("everyone, contacts, nobody and blocked: who is refused gets the answer of a receiver that does not exist")
    func policies() throws {
        let shard = try TestShard.tree(.disk)
        let carol = try UserID("carol")
        let cases: [(InboxPolicy, admitted: Bool)] = [
            (InboxPolicy(.nobody), false), (InboxPolicy(.contacts), false),
            (InboxPolicy(.contacts, contacts: [carol]), false),
            (InboxPolicy(.contacts, contacts: [shard.bucket.user], blocked: [shard.bucket.user]), false),
            (InboxPolicy(blocked: [carol, shard.bucket.user]), false), (InboxPolicy(blocked: [carol]), true),
            (InboxPolicy(.contacts, contacts: [shard.bucket.user]), true),
        ]
        let absent = try shard.send(shard.batch(99, [copy(2, to: "nobody")], people)).first
        #expect(absent?.reason == .blocked && absent?.code == 401)
        for (index, (policy, admitted)) in cases.enumerated() {
            let answer = try shard.set(policy, of: "bob")
            #expect(answer == JSONValue.object(policy.object).serializedText)
            if index % 2 == 0 { try shard.restart() }
            let number = 10 + index
            let reply = try shard.send(shard.batch(number, [copy(number, to: "bob")], people)).first
            #expect((reply?.results == [.version(1)]) == admitted)
            guard !admitted else { continue }
            #expect(reply?.reason == absent?.reason && reply?.code == absent?.code)
            #expect(reply?.refused?.detail == absent?.refused?.detail && reply?.operation == absent?.operation)
        }
        #expect(try shard.numbers(of: "nobody") == [])
        #expect(try shard.store.makeReader().bucket(try shard.tree(of: "nobody")) == nil)
    }

    @Test("a policy is refused to a token that may not write, and one that was not stored is not in force")
    func policyFaults() throws {
        let store = MemoryStore(faults: { $0.number == 2 ? .fail(StoreError(.full, "a test")) : .none })
        let shard = try TestShard.tree(.warm, store: store)
        #expect(try shard.set(InboxPolicy(.nobody), of: "bob") == nil)
        #expect(shard.replies.first?.code == 503)
        #expect(try shard.make(1, people, copy(2, to: "bob")).results == [.version(1)])
        #expect(try shard.set(InboxPolicy(.nobody), of: "bob") != nil)
        #expect(try shard.make(2, people, copy(3, to: "bob")).reason == .blocked)
    }

    @Test("a message to oneself needs no policy and has no sender")
    func own() throws {
        let shard = try TestShard.tree(.disk)
        try shard.set(InboxPolicy(.nobody), of: TestShard.ann)
        let reply = try shard.make(1, people, TestShard.put(1, "a"), copy(2, to: TestShard.ann), TestShard.put(3, "b"))
        #expect(reply.results.count == 3 && !reply.results.isEmpty)
        #expect(try shard.record(2)?.stamps.sender == nil && shard.numbers(below: .inbox) == [2])
        #expect(try shard.marks(of: TestShard.ann).compactMap { $0?.index } == [0, 1, 2])
    }

    @Test("the sender stays known in the inbox and is forgotten when the node is moved out")
    func stamps() throws {
        let shard = try TestShard.tree(.disk)
        try shard.make(1, people, copy(2, to: "bob"), copy(3, to: "bob", below: 2))
        var record = try #require(try shard.record(2, of: "bob"))
        (record.stamps, record.base, record.signature) = (RecordStamps(), 1, nil)
        #expect(try shard.make(2, by: "bob", nil, .put(NodeText.id(2), source: 1, record)).results == [.version(2)])
        #expect(try shard.record(2, of: "bob")?.stamps.sender == shard.bucket.user)
        (record.parent, record.base) = (.trunk(.home), 2)
        #expect(try shard.make(3, by: "bob", nil, .put(NodeText.id(2), source: 2, record)).results == [.version(3)])
        #expect(try shard.record(2, of: "bob")?.stamps.sender == nil)
        #expect(try shard.record(2, of: "bob")?.stamps.created == 5_001)
        #expect(try shard.record(3, of: "bob")?.stamps.sender == shard.bucket.user, "it was not written again")
    }

    @Test("what was sent is burned while it is in the inbox, with its branch, and only by its sender")
    func burning() throws {
        let shard = try TestShard.tree(.disk)
        let bob = try UserID("bob")
        try shard.make(1, people, copy(2, to: "bob"), copy(3, to: "bob", below: 2), copy(4, to: "bob"))
        let refused: [(String, TreeOperation)] = [
            ("carol", .burn(NodeText.id(2), to: bob)), (TestShard.ann, .burn(NodeText.id(3), to: bob)),
            (TestShard.ann, .burn(NodeText.id(9), to: bob)),
            (TestShard.ann, .burn(NodeText.id(2), to: try UserID("dave"))),
            ("bob", .burn(NodeText.id(2), to: bob)),
        ]
        for (index, (name, operation)) in refused.enumerated() {
            try shard.makeTree(of: name)
            let reply = try shard.make(10 + index, by: name, nil, operation)
            #expect(reply.reason == .nodeMissing && reply.code == 404, "\(index): \(reply)")
        }
        let reply = try shard.make(20, nil, .burn(NodeText.id(2), to: bob))
        #expect(reply.branch == BranchOutcome(removed: 2, left: 0, kept: [], hasMore: false))
        #expect(try shard.numbers(of: "bob") == [4] && shard.numbers(of: "bob", below: .child(2)) == [])
        #expect(try shard.make(21, nil, .burn(NodeText.id(2), to: bob)).reason == .nodeMissing)
        // Moved out of the inbox: it is the receiver's.
        var record = try #require(try shard.record(4, of: "bob"))
        (record.stamps, record.base, record.signature, record.parent) = (RecordStamps(), 1, nil, .trunk(.home))
        try shard.make(22, by: "bob", nil, .put(NodeText.id(4), source: 1, record))
        #expect(try shard.make(23, nil, .burn(NodeText.id(4), to: bob)).reason == .nodeMissing)
        #expect(try shard.numbers(of: "bob", below: .trunk(.home)) == [4])
    }

    @Test("a burn time of a received node is kept: it is removed with its branch")
    func burnTimes() throws {
        let shard = try TestShard.tree(.disk)
        try shard.make(
            1, people, people.copy(2, from: TestShard.ann, to: "bob") { $0.burnTime = 9_000 },
            copy(3, to: "bob", below: 2), copy(4, to: "bob"))
        shard.wait(until: 8_999)
        #expect(try shard.numbers(of: "bob") == [2, 4])
        shard.wait(until: 9_000)
        #expect(try shard.numbers(of: "bob") == [4] && shard.numbers(of: "bob", below: .child(2)) == [])
    }

    @Test(
        "a receiver without a tree that has all its buckets refuses as a full inbox, and no receiver gets anything",
        arguments: Memory.allCases)
    func receiverWithoutSpace(memory: Memory) throws {
        let shard = try TestShard.tree(memory) { $0.bucketsPerUserMax = 1 }
        let other = BucketID(app: shard.bucket.app, user: try UserID("carol"), name: try BucketName("note"))
        try shard.group([shard.submission("a", d: ["x": 1], bucket: other)])
        let reply = try shard.make(
            1, people, TestShard.put(1, "mine"), copy(2, to: "bob"), copy(3, to: "bob", below: 2), copy(2, to: "carol"))
        #expect(reply.reason == .inboxFull && reply.code == 413 && reply.operation == 3, "\(reply)")
        #expect(try shard.numbers(of: "bob") == [] && shard.numbers(of: "carol") == [])
        #expect(try shard.record(1) == nil && shard.record(2, of: "bob") == nil)
        #expect(try shard.store.makeReader().bucket(shard.tree(of: "bob")) == nil, "not even an empty tree")
        // Without that receiver it is made.
        #expect(try shard.make(2, people, TestShard.put(1, "mine"), copy(2, to: "bob")).results.count == 2)
        // A receiver that has a tree needs no further bucket.
        #expect(try shard.make(3, people, copy(4, to: "bob")).results == [.version(1)])
    }

    @Test("an inbox has a bound for all senders, for one sender, and for one sender in a minute")
    func bounds() throws {
        let shard = try TestShard.tree(.disk) {
            ($0.inboxNodesMax, $0.inboxNodesPerSenderMax, $0.messagesPerMinuteMax) = (5, 3, 2)
        }
        for name in ["bob", "carol", "dave"] { try shard.makeTree(of: name) }
        let minute: Int64 = 60_000
        func send(_ number: Int, by name: String, at time: Int64, _ more: Int...) throws -> BatchReply? {
            let numbers = [number] + more
            return try shard.send(
                shard.batch(number, by: name, numbers.map { try copy($0, to: "bob", by: name) }, people, now: time)
            ).first
        }
        #expect(try send(10, by: "carol", at: 0, 11, 12)?.reason == .rate)
        #expect(try send(10, by: "carol", at: 0, 11)?.results.count == 2)
        #expect(try send(12, by: "carol", at: 59_999)?.reason == .rate)
        #expect(try send(12, by: "carol", at: 59_999)?.code == 413)
        #expect(try send(12, by: "carol", at: minute)?.results.count == 1)
        #expect(try send(13, by: "carol", at: minute)?.reason == .inboxFull)
        #expect(try send(20, by: "dave", at: minute, 21)?.results.count == 2)
        #expect(try send(22, by: "dave", at: 2 * minute)?.reason == .inboxFull)
        // What the owner removes, or moves out, leaves room.
        #expect(try shard.make(30, by: "bob", nil, TestShard.delete(10, sv: 1)).results == [.version(2)])
        #expect(try send(13, by: "carol", at: 3 * minute)?.results.count == 1)
        #expect(try shard.numbers(of: "bob") == [11, 12, 13, 20, 21])
    }
}
