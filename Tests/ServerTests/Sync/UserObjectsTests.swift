import Testing
import ThicketProtocol

@testable import ThicketServer

/// The share of the shard's memory that objects of one user may use.
struct UserObjectsTests {
    private static let text: JSONValue = .string(String(repeating: "x", count: 2_000))

    private func bucket(_ user: String, _ name: String = "notes") throws -> BucketID {
        BucketID(app: try AppID("app"), user: try UserID(user), name: try BucketName(name))
    }

    private func make(_ shard: TestShard, _ key: String, in bucket: BucketID) throws {
        let answers: [Answer] = try shard.group([
            try shard.submission(key, v: ["t": ["o": "+", "v": Self.text]], bucket: bucket)
        ])
        #expect(answers.map(\.version) == [1])
    }

    private func keys(_ shard: TestShard, in bucket: BucketID) -> Set<String> {
        Set((shard.core.buckets[bucket]?.entities.keys).map { $0.map(\.text) } ?? [])
    }

    @Test(
        "a user's objects over all buckets stay within the share, least recently used go first; others keep theirs"
    )
    func share() throws {
        let shard: TestShard = try TestShard { $0.entityCacheBytesPerUser = 40_000 }
        let (notes, tags, other) = (try bucket("ann"), try bucket("ann", "tags"), try bucket("bob"))
        try make(shard, "bob-1", in: other)
        for number: Int in 0..<50 { try make(shard, "k\(number)", in: number % 2 == 0 ? notes : tags) }
        #expect(shard.core.objects.bytes <= 40_000 + 10_000)
        #expect(keys(shard, in: other) == ["bob-1"])
        #expect(keys(shard, in: tags).contains("k49") && keys(shard, in: notes).contains("k48"))
        #expect(!keys(shard, in: notes).contains("k0"))
        let inMemory: Int = keys(shard, in: notes).count + keys(shard, in: tags).count + 1
        #expect(shard.core.memory.entities == inMemory)
        #expect(shard.core.memory.shareEvictions == 51 - inMemory)
        // An evicted object is read again.
        let again = try shard.submission("k0", sv: 1, v: ["n": ["o": "+", "v": 1]], bucket: notes)
        #expect(try shard.group([again]).map(\.version) == [2])
    }

    @Test(
        "a user's least recently used objects are evicted before a decision, but none that its group changes"
    )
    func roomBeforehand() throws {
        let shard: TestShard = try TestShard { $0.entityCacheBytesPerUser = 12_000 }
        let notes: BucketID = try bucket("ann")
        for number: Int in 0..<6 { try make(shard, "k\(number)", in: notes) }
        #expect(!keys(shard, in: notes).contains("k0") && !keys(shard, in: notes).contains("k1"))
        for key: String in ["k0", "k1", "k2", "k3"] {
            _ = shard.core.receive(
                .change(try shard.submission(key, sv: 1, v: ["n": ["o": "+", "v": 1]], bucket: notes)))
        }
        #expect(keys(shard, in: notes) == ["k0", "k1", "k2", "k3"])
        let outcome: CommitOutcome = shard.core.commit()
        #expect((outcome.appliedCount, outcome.refusedCount) == (4, 0))
        #expect(shard.core.objects.bytes <= 12_000)
        for key: String in ["k0", "k1", "k2", "k3"] {
            let again = try shard.submission(key, sv: 2, v: ["n": ["o": "I", "v": 1]], bucket: notes)
            #expect(try shard.group([again]).map(\.version) == [3])
        }
    }

    @Test("an object larger than the share is evicted after each change and read again")
    func large() throws {
        let shard: TestShard = try TestShard { $0.entityCacheBytesPerUser = 1_000 }
        let notes: BucketID = try bucket("ann")
        try make(shard, "k", in: notes)
        #expect(shard.core.memory.entities == 0)
        for version: Int64 in 1..<5 {
            let change = try shard.submission(
                "k", sv: version, v: ["n": ["o": "+", "v": .init(integerLiteral: version)]], bucket: notes)
            #expect(try shard.group([change]).map(\.version) == [version + 1])
        }
        #expect(shard.core.memory.entities == 0)
        #expect(shard.core.memory.entityBytes == 0)
        #expect(shard.core.memory.shareEvictions == 5)
    }

    @Test("above the bound for all users, the least recently active users lose their objects first")
    func all() throws {
        let shard: TestShard = try TestShard { $0.entityCacheBytes = 40_000 }
        let buckets: [BucketID] = try (0..<4).map { try bucket("user-\($0)") }
        for bucket in buckets { for number: Int in 0..<5 { try make(shard, "k\(number)", in: bucket) } }
        #expect(shard.core.objects.bytes <= 40_000)
        #expect(keys(shard, in: buckets[0]).isEmpty)
        #expect(keys(shard, in: buckets[3]).count == 5)
        #expect(shard.core.memory.shareEvictions == 0)
    }

    @Test("the objects of an evicted bucket leave its user's count")
    func forgottenBucket() throws {
        let shard = try TestShard()
        let (notes, tags) = (try bucket("ann"), try bucket("ann", "tags"))
        try make(shard, "k", in: notes)
        try make(shard, "k", in: tags)
        let both: Int = shard.core.memory.entityBytes
        _ = shard.core.receive(.forget(notes))
        _ = shard.core.commit()
        #expect(shard.core.memory.entities == 1)
        #expect(shard.core.memory.entityBytes < both)
        _ = shard.core.receive(.forget(tags))
        _ = shard.core.commit()
        #expect((shard.core.memory.entities, shard.core.memory.entityBytes) == (0, 0))
    }

    @Test("a group ends when the objects before its changes reach its bound of bytes")
    func group() throws {
        let shard: TestShard = try TestShard { $0.groupBytesMax = 10_000 }
        let notes: BucketID = try bucket("ann")
        try make(shard, "k", in: notes)
        var taken = 0
        while !shard.core.isFull, taken < 100 {
            taken += 1
            _ = shard.core.receive(
                .change(
                    try shard.submission("k", sv: Int64(taken), v: ["n\(taken)": ["o": "+", "v": 1]], bucket: notes)))
        }
        #expect((3...5).contains(taken), "\(taken) changes of 300 bytes, with 2,000 bytes before each")
        #expect(shard.core.commit().appliedCount == taken)
    }
}
