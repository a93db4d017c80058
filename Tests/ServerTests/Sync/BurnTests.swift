import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Burn times of nodes")
struct BurnTests {
    @Test(
        "a node goes with its branch when its time has come, by ordinary removals, and no earlier",
        arguments: Memory.allCases)
    func branch(memory: Memory) throws {
        let shard = try TestShard.tree(memory)
        try shard.make(
            1, TestShard.put(1, "a", burns: 10_000), TestShard.put(2, below: .child(1), "b"),
            TestShard.put(3, below: .child(2), "c", burns: 90_000), TestShard.put(4, "d"),
            TestShard.put(5, "e", burns: 20_000))
        shard.wait(until: 9_999)
        #expect(try shard.numbers() == [1, 2, 3, 4, 5] && shard.log().count == 5)
        #expect(!shard.core.burn(now: 10_000))
        let outcome = shard.core.commit()
        #expect(outcome.burnedCount == 3 && outcome.appliedCount == 3 && outcome.refusedCount == 0)
        #expect(try shard.numbers() == [4, 5])
        let removed = try shard.log().suffix(3)
        #expect(removed.map { $0.key.text } == [3, 2, 1].map { NodeText.key($0) }, "leaves first")
        #expect(removed.allSatisfy { $0.kind == .remove && $0.clientID.text == "burn" && $0.timestamp == 10_000 })
        #expect(try shard.write(6, below: .child(1), "x") == .refused(.parentMissing))
        shard.wait(until: 1 << 50)
        #expect(try shard.numbers() == [4])
    }

    @Test("a time that was removed or put off does not burn, and a moved node burns where it is")
    func edited() throws {
        let shard = try TestShard.tree(.disk)
        for number in 1...3 { try shard.make(number, TestShard.put(number, "n\(number)", burns: 10_000)) }
        try shard.make(
            4, TestShard.put(1, "n1", sv: 1), TestShard.put(2, "n2", sv: 1, burns: 30_000),
            TestShard.put(3, below: .child(1), "n3", sv: 1, burns: 10_000))
        shard.wait(until: 20_000)
        #expect(try shard.numbers() == [1, 2])
        shard.wait(until: 30_000)
        #expect(try shard.numbers() == [1])
    }

    @Test("many burn in bounded groups, over a restart in the middle, each node once", arguments: StoreKind.allCases)
    func many(kind: StoreKind) throws {
        let folder = StoreFolder()
        let shard = try TestShard.tree(store: kind.make(folder)) { $0.clearedObjectsPerGroup = 20 }
        let puts = try (1...90).map {
            try TestShard.put(
                $0, below: $0 % 3 == 1 ? .trunk(.home) : .child($0 - 1), "n\($0)", burns: $0 % 3 == 1 ? 10_000 : nil)
        }
        try shard.send(shard.batch(1, puts))
        var groups = [Int]()
        while true {
            let hasMore = shard.core.burn(now: 10_000)
            groups.append(shard.core.commit().burnedCount)
            if !hasMore { break }
            if groups.count == 2 { try shard.restart() }
        }
        #expect(groups.allSatisfy { $0 <= 20 } && groups.reduce(0, +) == 90)
        #expect(try shard.numbers() == [] && shard.log().count == 180)
        guard kind == .sqlite else { return }
        #expect(try StoreCheck.run(folder.path("thicket.db"), settings: .testing).findings == [])
    }

    @Test("a branch larger than one group goes leaves first, and what is left is a tree meanwhile")
    func large() throws {
        let shard = try TestShard.tree { $0.clearedObjectsPerGroup = 7 }
        let puts = try (1...30).map {
            try TestShard.put($0, below: $0 == 1 ? .trunk(.home) : .child($0 - 1), "n", burns: $0 == 1 ? 10_000 : nil)
        }
        try shard.send(shard.batch(1, puts))
        var left = 30
        while shard.core.burn(now: 10_000) {
            _ = shard.core.commit()
            left -= 7
            #expect(try shard.numbers() == Set(1...max(1, left)))
        }
        _ = shard.core.commit()
        #expect(try shard.numbers() == [])
    }

    @Test("a group that cannot be committed burns nothing; the next sweep does")
    func failing() throws {
        let store = MemoryStore(faults: { $0.number == 3 ? .fail(StoreError(.full, "a test")) : .none })
        let shard = try TestShard.tree(store: store)
        try shard.make(1, TestShard.put(1, "a", burns: 10_000))
        _ = shard.core.burn(now: 10_000)
        let failed = shard.core.commit()
        #expect(failed.failure != nil && failed.burnedCount == 0)
        #expect(try shard.numbers() == [1])
        shard.wait(until: 10_000)
        #expect(try shard.numbers() == [])
    }

    @Test("a tree whose user is being erased does not burn and does not keep other trees from burning")
    func trees() throws {
        let shard = try TestShard.tree()
        try shard.make(1, TestShard.put(1, "a", burns: 10_000))
        let bob = BucketID(app: shard.bucket.app, user: try UserID("bob"), name: shard.bucket.name)
        _ = shard.core.receive(.chooseMode(ModeRequest(.tree, of: bob, tenant: 0)))
        var record = try NodeText.record(.trunk(.home), "a")
        record.burnTime = 10_000
        try shard.group([try shard.submission(NodeText.key(2), d: .object(record.object), bucket: bob)])
        var work = MaintenanceBatch()
        work.erasures = [.init(app: shard.bucket.app, user: shard.bucket.user, rowsMax: 0, bytesMax: 0)]
        shard.core.endUser(work.erasures[0])
        shard.wait(until: 10_000)
        let reader = try shard.store.makeReader()
        let row = try #require(try reader.bucket(bob)?.row)
        #expect(try reader.place(of: NodeText.id(2), in: row) == nil)
        #expect(try reader.burningNodes(at: 10_000, limit: 9).map(\.node) == [NodeText.id(1)])
    }
}
