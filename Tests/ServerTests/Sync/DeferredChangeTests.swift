import Testing
import ThicketProtocol

@testable import ThicketServer

/// Changes that another thread than the shard's decides.
@Suite("Deferred changes")
struct DeferredChangeTests {
    /// Members of an object that needs more than `DocumentMeasure.largeBytes`.
    private static let large = JSONObject((0..<12_000).map { ("m\($0)", JSONValue.number(0)) })

    private static func shard(_ adjust: (inout ShardSettings) -> Void = { _ in }) throws -> TestShard {
        try TestShard {
            $0.decidedHereMax = 1 << 20
            adjust(&$0)
        }
    }

    /// Receives a change that is expected to be offloaded.
    private func giveOut(_ shard: TestShard, _ request: ShardRequest) throws -> DeferredChange {
        try #require(shard.core.receive(request))
    }

    private func commit(_ shard: TestShard) throws -> [Answer] {
        try shard.core.commit().buckets.flatMap(\.events).map(Answer.init)
    }

    @Test("small changes of small objects are decided at once; long, late, whole or much rebased ones are offloaded")
    func whatIsLong() throws {
        let shard: TestShard = try Self.shard()
        let text = String(repeating: "word ", count: 2_000)
        try shard.make("text", ["t": .string(text), "n": 0])
        for version: Version in 1...70 { try shard.send("text", sv: version, v: ["n": ["o": "I", "v": 1]]) }
        try shard.make("large", Self.large)
        func isOffloaded(_ change: SubmittedChange) -> Bool {
            defer { _ = shard.core.commit() }
            return shard.core.receive(.change(change)) != nil
        }
        let typed: JSONValue = ["t": ["o": "d", "v": .string("+x\t=\(text.utf16.count)")]]
        #expect(!isOffloaded(try shard.submission("text", sv: 71, v: typed)))
        #expect(!isOffloaded(try shard.submission("text", sv: 70, v: ["n": ["o": "I", "v": 1]])))
        #expect(!isOffloaded(try shard.submission("new", v: ["t": ["o": "+", "v": .string(text)]])))
        #expect(!isOffloaded(try shard.submission("text", .remove)))
        #expect(
            isOffloaded(try shard.submission("new", sv: 1, d: ["t": .string(text + "!")])), "two objects are compared")
        #expect(
            isOffloaded(
                try shard.submission(
                    "new", sv: 1,
                    v: [
                        "u": [
                            "o": "+",
                            "v": .string(
                                text + text + text + text
                                    + text + text + text),
                        ]
                    ])), "70 kB")
        try shard.make("text", ["n": 0])
        for version: Version in 74...150 { try shard.send("text", sv: version, v: ["n": ["o": "I", "v": 1]]) }
        #expect(isOffloaded(try shard.submission("text", sv: 75, v: ["n": ["o": "I", "v": 1]])), "late by 76")
        #expect(isOffloaded(try shard.submission("large", sv: 1, v: ["m1": ["o": "I", "v": 1]])), "12,000 members")
    }

    @Test("a change whose object changed meanwhile is offloaded again, and the shard decides it in the end")
    func changedMeanwhile() throws {
        let shard: TestShard = try Self.shard()
        try shard.make("large", Self.large)
        var request: ShardRequest = .change(
            try shard.submission("large", sv: 1, v: ["m1": ["o": "I", "v": 1]], library: .thicket))
        for round: Int in 0..<DeferredChange.triesMax {
            let long: DeferredChange = try giveOut(shard, request)
            request = .decided(long.decide(reading: try shard.store.makeReader()))
            let other = try shard.submission("large", sv: Version(1 + round), v: ["m2": ["o": "I", "v": 1]])
            let others: DeferredChange = try giveOut(shard, .change(other))
            #expect(shard.core.receive(.decided(others.decide(reading: nil))) == nil)
            #expect(try commit(shard).map(\.version) == [Version(2 + round)])
        }
        #expect(shard.core.receive(request) == nil, "the shard decides the last try itself")
        #expect(try commit(shard).map(\.version) == [Version(2 + DeferredChange.triesMax)])
    }

    @Test("a decision based on changes that were never written is made again")
    func groupRefused() throws {
        let fails = FaultSwitch()
        let store = MemoryStore(faults: fails.plan)
        let shard: TestShard = try TestShard(store: store) { $0.decidedHereMax = 1 << 20 }
        try shard.make("large", Self.large)
        let first: DeferredChange = try giveOut(
            shard, .change(try shard.submission("large", sv: 1, v: ["m1": ["o": "I", "v": 1]])))
        #expect(shard.core.receive(.decided(first.decide(reading: nil))) == nil)
        // On a state that is not written yet.
        let second: DeferredChange = try giveOut(
            shard, .change(try shard.submission("large", sv: 2, v: ["m1": ["o": "I", "v": 10]])))
        let result: DeferredChange.Result = second.decide(reading: try store.makeReader())
        fails.set(.fail(StoreError(.io, "sector")))
        #expect(try commit(shard).map(\.code) == [503])
        fails.set(.none)
        let again: DeferredChange = try giveOut(shard, .decided(result))
        #expect(shard.core.receive(.decided(again.decide(reading: try store.makeReader()))) == nil)
        #expect(try commit(shard).map(\.code) == [405], "version 2 never existed")
    }

    @Test(
        "an evicted large object is read outside the shard, and a change that waited is decided on that state"
    )
    func readElsewhere() throws {
        let shard: TestShard = try Self.shard { $0.entityCacheBytesPerUser = 2 << 20 }
        try shard.make("a", Self.large)
        try shard.make("b", Self.large)
        for key: String in ["a", "b"] {
            let long: DeferredChange = try giveOut(
                shard, .change(try shard.submission(key, sv: 1, v: ["m1": ["o": "I", "v": 1]])))
            #expect(shard.core.receive(.decided(long.decide(reading: try shard.store.makeReader()))) == nil)
            #expect(try commit(shard).map(\.version) == [2])
        }
        #expect(!shard.core.takeGarbage().isEmpty, "large values are released elsewhere, too")
        #expect(shard.core.takeGarbage().isEmpty)
        let bucket: ActiveBucket = try #require(shard.core.buckets[shard.bucket])
        #expect(bucket.entities.count + bucket.large.count == 2)
        // A removal needs the object, too.
        let removed: EntityKey = try #require(bucket.large.first)
        let long: DeferredChange = try giveOut(shard, .change(try shard.submission(removed.text, .remove)))
        #expect(bucket.entities[removed] == nil, "the shard did not read it")
        let result: DeferredChange.Result = long.decide(reading: try shard.store.makeReader())
        let without: DeferredChange = try giveOut(shard, .decided(long.decide(reading: nil)))
        #expect(without.tries == 1, "without a store it is tried again")
        #expect(shard.core.receive(.decided(result)) == nil)
        #expect(try commit(shard).map(\.element?["o"]) == ["-"])
    }

    @Test("a large object that was changed between its read and the decision is read again")
    func readTooEarly() throws {
        let shard: TestShard = try Self.shard { $0.entityCacheBytesPerUser = 1_000 }
        try shard.make("a", Self.large)
        let edit: (Version) throws -> SubmittedChange = {
            try shard.submission("a", sv: $0, v: ["m1": ["o": "I", "v": 1]])
        }
        let first: DeferredChange = try giveOut(shard, .change(try edit(1)))
        let early: DeferredChange.Result = first.decide(reading: try shard.store.makeReader())
        let second: DeferredChange = try giveOut(shard, .change(try edit(1)))
        #expect(shard.core.receive(.decided(second.decide(reading: try shard.store.makeReader()))) == nil)
        #expect(try commit(shard).map(\.version) == [2])
        let again: DeferredChange = try giveOut(shard, .decided(early))
        #expect(shard.core.receive(.decided(again.decide(reading: try shard.store.makeReader()))) == nil)
        let answers: [Answer] = try commit(shard)
        #expect(answers.map(\.version) == [3])
        #expect(answers.first?.element?["sv"] == 2)
    }
}
