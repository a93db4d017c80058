import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// `capacity` of a bucket's options, decided by the shard.
@Suite("Buckets with a capacity")
struct RoomTests {
    private static func options(_ shard: TestShard) throws -> BucketID {
        try #require(BucketOptions.bucket(of: shard.bucket.app))
    }

    /// Sets the options of `notes`.
    @discardableResult
    private static func set(_ options: JSONValue, _ shard: TestShard, key: String = "notes") throws -> Answer {
        let terms: SubmittedChange = try shard.submission(key, d: options, bucket: try Self.options(shard))
        return try #require(try shard.group([terms]).first)
    }

    private static func live(_ shard: TestShard) throws -> [String] {
        let writer: any StoreReader = try shard.store.makeReader()
        guard let row: BucketRow = try writer.bucket(shard.bucket)?.row else { return [] }
        return try writer.liveKeys(in: row, after: nil, limit: 10_000).map(\.text)
    }

    @Test(
        "an object above the capacity evicts the least recently changed one, as a removal without an author",
        arguments: Memory.allCases)
    func pushed(memory: Memory) throws {
        let shard = try TestShard(memory)
        #expect(try Self.set(["capacity": 3], shard).version == 1)
        for key: String in ["a", "b", "c"] { try shard.make(key, ["n": 1]) }
        try shard.send("a", sv: 1, v: ["n": ["o": "r", "v": 2]])
        let answers: [Answer] = try shard.group([shard.submission("d", d: ["n": 1])])
        #expect(answers.map { $0.element?["id"] } == ["d", "b"])
        #expect(answers[1].element?["o"] == "-" && answers[1].element?["clientid"] == "capacity")
        #expect(try Self.live(shard) == ["a", "c", "d"])
        // An edit needs no space, a removal frees some.
        #expect(try shard.group([shard.submission("c", sv: 1, v: ["n": ["o": "r", "v": 2]])]).count == 1)
        try shard.send("a", .remove)
        #expect(try shard.group([shard.submission("b", d: ["n": 3])]).count == 1)
        #expect(try Self.live(shard) == ["b", "c", "d"])
        #expect(try shard.send("b", d: ["n": 4]).version == 4, "an evicted object continues its versions")
        #expect(Set(try shard.log().map(\.changeID)).count == 10)
    }

    @Test("the capacity holds within one group, also in a bucket that is not on disk yet", arguments: Memory.allCases)
    func atOnce(memory: Memory) throws {
        let shard = try TestShard(memory)
        try Self.set(["capacity": 2], shard)
        var changes: [SubmittedChange] = []
        for number: Int in 0..<6 { changes.append(try shard.submission("k\(number)", d: ["n": 1])) }
        #expect(try shard.group(changes).count == 10)
        #expect(try Self.live(shard) == ["k4", "k5"])
        // Both objects on disk are changed in the group before the new object needs space.
        changes = [
            try shard.submission("k4", sv: 1, v: ["n": ["o": "r", "v": 2]]),
            try shard.submission("k5", sv: 1, v: ["n": ["o": "r", "v": 2]]), try shard.submission("z", d: ["n": 1]),
        ]
        #expect(try shard.group(changes).last?.element?["id"] == "k4")
        #expect(try Self.live(shard) == ["k5", "z"])
    }

    @Test("a set, changed or removed capacity holds from the next group on; a smaller one evicts step by step")
    func changed() throws {
        let shard = try TestShard(.disk)
        for number: Int in 100..<150 { try shard.make("k\(number)", ["n": 1]) }
        try Self.set(["capacity": 20], shard)
        #expect(try Self.live(shard).count == 50, "nothing is evicted before an object is created")
        #expect(try shard.group([shard.submission("new1", d: ["n": 1])]).count == 1 + BucketCapacity.removalsMax)
        #expect(try Self.live(shard).contains("k115") == false && Self.live(shard).contains("k116"))
        #expect(try shard.group([shard.submission("new2", d: ["n": 1])]).count == 1 + BucketCapacity.removalsMax)
        #expect(try Self.live(shard).count == 20)
        try Self.set(["capacity": .null], shard)
        try shard.make("new3", ["n": 1])
        #expect(try Self.live(shard).count == 21)
        try Self.set(["capacity": 5], shard)
        let removal: SubmittedChange = try shard.submission("notes", .remove, bucket: try Self.options(shard))
        try shard.group([removal])
        try shard.make("new4", ["n": 1])
        #expect(try Self.live(shard).count == 22)
    }

    @Test(
        "a smaller capacity evicts per group at most what EMPTY removes, besides one object per new object"
    )
    func bounded() throws {
        let shard: TestShard = try .init { $0.clearedObjectsPerGroup = 10 }
        for number: Int in 100..<150 { try shard.make("k\(number)", ["n": 1]) }
        try Self.set(["capacity": 5], shard)
        for left: Int in [40, 30, 20, 10, 5] {
            let news: [SubmittedChange] = try (0..<3).map { try shard.submission("new\(left)-\($0)", d: ["n": 1]) }
            try shard.group(news)
            #expect(try Self.live(shard).count == left)
        }
    }

    @Test("each bucket of each user has its own capacity")
    func others() throws {
        let shard = try TestShard()
        try Self.set(["capacity": 1], shard)
        let app: AppID = shard.bucket.app
        let bob = BucketID(app: app, user: try UserID("bob"), name: shard.bucket.name)
        let tags = BucketID(app: app, user: shard.bucket.user, name: try BucketName("tags"))
        for key: String in ["a", "b"] {
            for place: BucketID in [shard.bucket, bob, tags] {
                try shard.group([shard.submission(key, d: ["n": 1], bucket: place)])
            }
        }
        let reader: any StoreReader = try shard.store.makeReader()
        let counts: [Int] = try [shard.bucket, bob, tags].map { place in
            try reader.liveKeys(in: try #require(try reader.bucket(place)).row, after: nil, limit: 9).count
        }
        #expect(counts == [1, 1, 2])
    }

    @Test("a group that the store refuses evicts nothing, and the count is right afterwards")
    func failure() throws {
        let faults = FaultSwitch()
        let shard = try TestShard(store: MemoryStore(faults: faults.plan))
        try Self.set(["capacity": 2], shard)
        for key: String in ["a", "b"] { try shard.make(key, ["n": 1]) }
        faults.set(.fail(StoreError(.io, "sector")))
        #expect(try shard.group([shard.submission("c", d: ["n": 1])]) == [.error(503)])
        faults.set(.none)
        #expect(try Self.live(shard) == ["a", "b"])
        #expect(try shard.group([shard.submission("c", d: ["n": 1])]).count == 2)
        #expect(try Self.live(shard) == ["b", "c"])
    }

    @Test(
        "random creations, edits and removals never exceed the capacity, and the oldest objects are evicted",
        arguments: 0..<8)
    func model(round: UInt64) throws {
        let seed: UInt64 = 3_400 + round
        var random = SeededRandom(seed: seed)
        let shard = try TestShard(Memory.allCases[Int(round % 4)])
        let capacity: Int = 1 + Int(random.next() % 6)
        try Self.set(["capacity": .number(JSONNumber(Int64(capacity)))], shard)
        var order: [String] = []
        for step: Int in 0..<60 {
            var changes: [SubmittedChange] = []
            for part: Int in 0...Int(random.next() % 4) {
                let key = "k\(random.next() % 12)"
                let value: JSONValue = .number(JSONNumber(Int64(step * 10 + part)))
                if random.next() % 5 == 0 {
                    changes.append(try shard.submission(key, .remove))
                    order.removeAll { $0 == key }
                } else {
                    changes.append(try shard.submission(key, d: ["n": value]))
                    order.removeAll { $0 == key }
                    order.append(key)
                    if order.count > capacity { order.removeFirst() }
                }
            }
            try shard.group(changes)
            #expect(try Self.live(shard) == order.sorted(), "step \(step), seed \(seed)")
        }
    }

    @Test("options without an effect are refused with 400")
    func refused() throws {
        let shard = try TestShard()
        for (key, options): (String, JSONValue) in [
            ("notes", ["schema": ["type": "object"]]), ("notes", ["capacity": 0]), ("notes", ["capacity": 100_001]),
            ("notes", ["capacity": "7"]), ("notes", ["capacity": 1.5]), ("notes", ["version_max": 0]),
            ("notes", ["version10_max": -1]), ("notes", ["versionmax": 5]), ("notes", ["schema": .null]),
            ("a@b", ["capacity": 5]), ("__options__", ["capacity": 5]),
        ] {
            #expect(try Self.set(options, shard, key: key) == .error(400), "\(key) \(options)")
        }
        for (key, options): (String, JSONValue) in [
            ("notes", [:]), ("notes", ["capacity": 100_000, "version_max": 1, "version10_max": 0]),
            ("notes", ["capacity": .null]), ("__options__", ["version_max": 9]),
        ] {
            #expect(try Self.set(options, shard, key: key).version != nil, "\(key) \(options)")
        }
        let patch: SubmittedChange = try shard.submission(
            "notes", v: ["schema": ["o": "+", "v": 1]], bucket: try Self.options(shard))
        #expect(try shard.group([patch]) == [.error(400)])
        // Objects of a user's bucket are not restricted in this way.
        try shard.make("x", ["schema": 1])
    }
}
