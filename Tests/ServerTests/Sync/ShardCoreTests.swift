import Synchronization
import Testing
import ThicketProtocol

@testable import ThicketServer

/// Sets the fault of a store's commits.
final class FaultSwitch: Sendable {
    private let fault = Mutex<CommitFault>(.none)
    /// Sets the fault of every commit from now on.
    func set(_ next: CommitFault) { fault.withLock { $0 = next } }
    var plan: FaultPlan { { _ in self.fault.withLock { $0 } } }
}

@Suite("ShardCore: groups, failures and memory")
struct ShardCoreTests {
    func edit(_ value: Int64) -> JSONValue { ["n": ["o": "r", "v": .number(JSONNumber(value))]] }

    @Test("a group's answers come in the order of decision, and each change sees those before it")
    func order() throws {
        let shard = try TestShard()
        let answers: [Answer] = try shard.group([
            shard.submission("k", v: ["n": ["o": "+", "v": 0]]), shard.submission("k", sv: 1, v: edit(1)),
            shard.submission("k", sv: 1, v: edit(1)), shard.submission("l", .remove),
            shard.submission("k", .remove), shard.submission("k", v: ["n": ["o": "+", "v": 9]]),
        ])
        #expect(answers.map(\.version) == [1, 2, nil, nil, 3, 4])
        #expect(answers.map(\.code) == [nil, nil, 412, 404, nil, nil])
        #expect(try shard.stored("k") == ["n": 9])
        #expect(shard.lastOutcome.appliedCount == 4)
        #expect(shard.lastOutcome.refusedCount == 2)
    }

    @Test("each row of the log links to the previous row of its object and of its bucket")
    func chains() throws {
        let shard = try TestShard()
        try shard.group([
            shard.submission("a", d: ["n": 1]), shard.submission("b", d: ["n": 1]),
            shard.submission("a", sv: 1, v: edit(2)),
        ])
        try shard.send("b", .remove)
        try shard.send("b", d: ["n": 5])
        let log: [ChangeRecord] = try shard.log()
        #expect(log.map(\.gid) == [1, 2, 3, 4, 5])
        #expect(log.map(\.previousOfBucket) == [0, 1, 2, 3, 4])
        #expect(log.map(\.previousOfEntity) == [0, 0, 1, 2, 4])
        #expect(log.map(\.endVersion) == [1, 1, 2, 2, 3])
        #expect(log.map(\.sourceVersion) == [nil, nil, 1, nil, nil])
        #expect(shard.lastOutcome.buckets.first?.published == 5)
    }

    @Test("a group that the store refuses is 503, also instead of 409 and 412, and the next group works")
    func failedCommit() throws {
        let faults = FaultSwitch()
        let shard = try TestShard(store: MemoryStore(faults: faults.plan))
        try shard.make("k", ["n": 0])
        faults.set(.fail(StoreError(.full, "no room")))
        let changes: [SubmittedChange] = [
            try shard.submission("k", sv: 1, v: edit(1), ccid: "x"), try shard.submission("k", sv: 2, v: edit(1)),
            try shard.submission("k", sv: 2, v: edit(7), ccid: "x"), try shard.submission("a/b", v: edit(1)),
            try shard.submission("k", v: edit(1), canWrite: false), try shard.submission("new", d: ["n": 1]),
        ]
        #expect(try shard.group(changes).map(\.code) == [503, 503, 503, 400, 401, 503])
        #expect(shard.lastOutcome.failure != nil)
        #expect(shard.lastOutcome.buckets.first?.published == nil)
        faults.set(.none)
        #expect(try shard.stored("k") == ["n": 0])
        #expect(try shard.group(changes).map(\.version) == [2, nil, nil, nil, nil, 1])
        #expect(try shard.log().map(\.gid) == [1, 2, 3])
        #expect(shard.lastOutcome.failure == nil)
    }

    @Test("answers about buckets that the failed group did not write stay unchanged")
    func failureOfAnotherBucket() throws {
        let faults = FaultSwitch()
        let shard = try TestShard(store: MemoryStore(faults: faults.plan))
        try shard.make("k", ["n": 0])
        faults.set(.fail(StoreError(.io, "sector")))
        let other = try BucketID(app: shard.bucket.app, user: shard.bucket.user, name: BucketName("tags"))
        let answers: [Answer] = try shard.group([
            shard.submission("k", sv: 1, v: ["n": ["o": "r", "v": 0]]),
            shard.submission("k", d: ["n": 1], bucket: other),
        ])
        #expect(answers.map(\.code) == [412, 503])
        faults.set(.none)
        #expect(try shard.group([shard.submission("k", d: ["n": 1], bucket: other)]).map(\.version) == [1])
    }

    @Test("a bad row does not stop the other changes of its group: they are tried one by one")
    func badRow() throws {
        let rows = Mutex<Int>(0)
        let store = MemoryStore(faults: { point in
            // Every group is refused; alone, the second change is.
            if point.changes > 1 { return .fail(StoreError(.constraint, "a bad row")) }
            return rows.withLock { count in
                count += 1
                return count == 2 ? .fail(StoreError(.constraint, "a bad row")) : .none
            }
        })
        let shard = try TestShard(store: store)
        let answers: [Answer] = try shard.group([
            shard.submission("a", d: ["n": 1]), shard.submission("b", d: ["n": 1]), shard.submission("c", d: ["n": 1]),
            shard.submission("a", .remove, sv: 1),
        ])
        #expect(answers.map(\.code) == [nil, 500, nil, nil])
        #expect(try shard.log().map(\.gid) == [1, 2, 3])
        #expect(shard.lastOutcome.appliedCount == 3)
        #expect(shard.lastOutcome.buckets.count == 1)
    }

    @Test("a store that cannot be read gives 503 and is read again the next time")
    func failedRead() throws {
        let store = MemoryStore()
        let shard = try TestShard(.cold, store: store)
        try shard.make("k", ["n": 0])
        store.crash()
        #expect(try shard.send("k", sv: 1, v: edit(1), ccid: "late") == .error(503))
        store.restart()
        shard.core = ShardCore(store: try store.makeWriter())
        #expect(try shard.send("k", sv: 1, v: edit(1), ccid: "late").version == 2)
    }

    @Test("a group is full at its bound of changes or of bytes")
    func full() throws {
        let shard = try TestShard { $0.groupChangesMax = 2 }
        _ = shard.core.receive(.change(try shard.submission("a/b")))
        #expect(!shard.core.isFull)
        _ = shard.core.receive(.change(try shard.submission("k", d: [:])))
        #expect(shard.core.isFull)
        #expect(try shard.group([]).count == 2)
        #expect(!shard.core.isFull)
        let large = try TestShard { $0.groupBytesMax = 1_000 }
        _ = large.core.receive(
            .change(try large.submission("k", d: ["t": .string(String(repeating: "x", count: 1_000))])))
        #expect(large.core.isFull)
    }

    @Test("one bucket more than a user may have is refused with 500, in the group and after it")
    func bucketLimit() throws {
        let shard = try TestShard { $0.bucketsPerUserMax = 2 }
        func bucket(_ name: String, user: String = "ann@example.com") throws -> BucketID {
            try BucketID(app: AppID("app"), user: UserID(user), name: BucketName(name))
        }
        let answers: [Answer] = try shard.group([
            shard.submission("k", d: [:], bucket: bucket("one")), shard.submission("k", d: [:], bucket: bucket("two")),
            shard.submission("k", d: [:], bucket: bucket("three")),
            shard.submission("k", d: [:], bucket: bucket("one", user: "bob")),
        ])
        #expect(answers.map(\.code) == [nil, nil, 500, nil])
        #expect(try shard.group([shard.submission("k", d: [:], bucket: bucket("three"))]) == [.error(500)])
        #expect(try shard.group([shard.submission("l", d: [:], bucket: bucket("two"))]).first?.version == 1)
    }

    @Test("rows carry a whole body after enough diffs and bytes, and every version can be read")
    func keyframes() throws {
        let shard = try TestShard()
        try shard.make("k", ["t": .string(String(repeating: "x", count: 600))])
        for version: Version in 1...60 {
            try shard.send("k", sv: version, v: ["t": ["o": "d", "v": .string("=\(599 + version)\t+y")]])
        }
        let log: [ChangeRecord] = try shard.log()
        let keyframes: [Version] = log.filter { $0.keyframe != nil }.map(\.endVersion)
        #expect(keyframes.count >= 2)
        #expect(keyframes.first.map { $0 >= 16 } == true)
        let before: ChangeRecord? = log.dropLast().last { $0.keyframe != nil }
        #expect(log.last?.previousKeyframe == before?.gid)
        let reader: any StoreReader = try shard.store.makeReader()
        for version: Version in 1...61 {
            let body: [UInt8]? = try reader.body(of: EntityKey("k"), version: version, in: log[0].bucket, upTo: .max)
            let text: String = String(repeating: "x", count: 600) + String(repeating: "y", count: Int(version) - 1)
            #expect(try body.map { try JSONValue(parsing: $0) } == ["t": .string(text)])
        }
    }

    @Test("maintenance raises the floor of a bucket in memory, and no edit is rebased over changes that it cut")
    func maintenance() throws {
        let shard = try TestShard()
        try shard.make("k", ["n": 0])
        for version: Version in 1...20 {
            try shard.send("k", sv: version, v: ["n": ["o": "I", "v": 1]], ccid: "c\(version)")
        }
        let cutRows: [ChangeRecord] = Array(try shard.log().prefix(15))
        let kept = MaintenanceBatch.KeptBody(key: try EntityKey("k"), version: 15, body: Array(#"{"n":14}"#.utf8))
        var work = MaintenanceBatch()
        work.cuts = [
            MaintenanceBatch.Cut(
                bucket: cutRows[0].bucket, floorBefore: 0, floor: 15, rows: cutRows.map(\.gid),
                keys: [try EntityKey("k")],
                changeIDs: cutRows.map {
                    .init(hash: shard.store.identity.hash(of: $0.changeID), timestamp: $0.timestamp)
                },
                keptBodies: [kept], droppedBodies: [], bytes: 0)
        ]
        #expect(try shard.core.apply(work).map(\.floor) == [15])
        #expect(try shard.send("k", sv: 2, v: ["n": ["o": "I", "v": 1]]) == .error(405))
        #expect(try shard.send("k", sv: 20, v: ["n": ["o": "I", "v": 1]]).version == 22)
        #expect(try shard.send("k", sv: 22, v: ["n": ["o": "I", "v": 1]], ccid: "c1") == .error(409))
        #expect(try shard.stored("k") == ["n": 21])
    }

    @Test("a forgotten bucket is read again from the store")
    func forget() throws {
        let shard = try TestShard()
        try shard.make("k", ["n": 0])
        _ = shard.core.receive(.forget(shard.bucket))
        #expect(try shard.group([shard.submission("k", sv: 1, v: edit(1))]).map(\.version) == [2])
        #expect(shard.core.buckets.isEmpty)
        #expect(try shard.send("k", sv: 1, v: ["m": ["o": "+", "v": 1]]).version == 3)
        #expect(try shard.stored("k") == ["n": 1, "m": 1])
    }

    @Test("objects in memory stay within their bound, and the least recently used are evicted first")
    func eviction() throws {
        let shard = try TestShard { $0.entityCacheBytes = 40_000 }
        for number in 0..<100 { try shard.make("k\(number)", ["t": .string(String(repeating: "x", count: 500))]) }
        #expect(shard.core.objects.bytes <= 40_000)
        let inMemory: [String] = shard.core.buckets[shard.bucket].map { $0.entities.keys.map(\.text) } ?? []
        #expect(inMemory.contains("k99") && !inMemory.contains("k0"))
        #expect(inMemory.count == shard.core.objects.count)
        #expect(try shard.send("k0", sv: 1, v: ["n": ["o": "+", "v": 1]]).version == 2)
    }
}
