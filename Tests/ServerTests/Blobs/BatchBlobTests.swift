import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Batches that refer to blobs")
struct BatchBlobTests {
    private let folder = BlobFolder()
    private static let length = ModelTree.blobLength
    private static let day: Int64 = 86_400_000

    /// A shard with a tree, and the complete blobs 1 to `count` with their bytes.
    private struct Parts {
        let shard: TestShard
        let ledger: any BlobLedger
        let blobs: any BlobStore

        /// Numbers of the blobs that are left after a sweep.
        func left(after now: Int64, of count: Int) throws -> [Int] {
            _ = try BlobSweep(ledger: ledger, store: blobs).run(now: now)
            let files = try (1...count).filter { try blobs.open(blobID($0)) != nil }
            let rows = try ledger.known(among: (1...count).map(blobID))
            #expect(Set(files.map(blobID)) == rows)
            return files
        }

        /// Whether the owner of the tree reads the blob through a node.
        func reads(_ blob: Int, through node: Int) throws -> Bool {
            let bucket = shard.bucket
            return try ledger.length(of: blobID(blob), in: NodeText.id(node), of: bucket.app, bucket.user) != nil
        }
    }

    private func parts(_ kind: StoreKind, _ count: Int) throws -> Parts {
        let store = try kind.make(folder)
        let blobs: any BlobStore = kind == .memory ? MemoryBlobStore() : folder.blobs()
        let ledger = try store.makeBlobLedger()
        for number in 1...count {
            try blobs.begin(blobID(number), length: Self.length)
            try blobs.add(1, [UInt8](repeating: 1, count: Int(Self.length)), to: blobID(number), at: 0)
            try ledger.blob(blobID(number), Self.length)
            try blobs.complete(blobID(number), length: Self.length)
            try blobs.abort(blobID(number))
            try ledger.remove(upload: blobID(number))
        }
        return Parts(shard: try .tree(store: store), ledger: ledger, blobs: blobs)
    }

    @Test("a batch whose third put names a missing blob leaves nothing", arguments: StoreKind.allCases)
    func third(kind: StoreKind) throws {
        let parts = try parts(kind, 2)
        let shard = parts.shard
        let (first, second) = (try TestShard.put(1, "a", blob: blobID(1)), try TestShard.put(2, "b", blob: blobID(2)))
        for (index, third) in try [
            TestShard.put(3, "c", blob: blobID(3)), TestShard.put(3, "c", blob: blobID(2), length: Self.length + 1),
        ].enumerated() {
            let reply = try shard.make(1, first, second, third, TestShard.put(4, "d"))
            #expect(reply.reason == .blobMissing && reply.code == 404 && reply.operation == 2, "\(index): \(reply)")
            #expect(try shard.numbers() == [] && shard.log().isEmpty)
        }
        // The id of the refused batch may be used again.
        #expect(try shard.make(1, first, second).results == [.version(1), .version(1)])
        #expect(try parts.left(after: 900 * Self.day, of: 2) == [1, 2])
    }

    @Test("a refused batch does not keep its blobs", arguments: StoreKind.allCases)
    func refused(kind: StoreKind) throws {
        let parts = try parts(kind, 1)
        let reply = try parts.shard.make(1, TestShard.put(1, "a", blob: blobID(1)), TestShard.put(2, "a"))
        #expect(reply.reason == .nameTaken && reply.operation == 1)
        #expect(try parts.left(after: Self.day, of: 1) == [])
    }

    @Test("a blob stays while one of several nodes of a batch refers to it", arguments: StoreKind.allCases)
    func shared(kind: StoreKind) throws {
        let parts = try parts(kind, 2)
        let shard = parts.shard
        let puts = try (1...3).map { try TestShard.put($0, "n\($0)", blob: blobID(1)) }
        try shard.send(shard.batch(1, puts))
        // Replaced, removed, and named by a new node, in one batch.
        let moved = try shard.make(
            2, TestShard.delete(1, sv: 1), TestShard.put(2, "n2", sv: 1, blob: blobID(2)), TestShard.delete(3, sv: 1),
            TestShard.put(4, "n4", blob: blobID(1)))
        #expect(moved.results.count == 4)
        #expect(try parts.left(after: 900 * Self.day, of: 2) == [1, 2])
        #expect(try parts.reads(1, through: 4) && !parts.reads(1, through: 2) && parts.reads(2, through: 2))
        try shard.make(3, TestShard.put(4, "renamed", sv: 1, blob: blobID(1)), TestShard.put(2, "n2", sv: 2))
        #expect(try parts.left(after: 900 * Self.day, of: 2) == [1])
        // Written and removed in one batch: it never refers to the blob outside.
        try shard.make(
            4, TestShard.delete(4, sv: 2), TestShard.put(5, "n5", blob: blobID(1)), TestShard.delete(5, sv: 1))
        #expect(try parts.left(after: 900 * Self.day, of: 2) == [])
        #expect(try shard.make(5, TestShard.put(6, "n6", blob: blobID(1))).reason == .blobMissing)
    }

    @Test(
        "blobs of a branch that is removed or burns go a day later, and a shared one stays",
        arguments: StoreKind.allCases, [false, true])
    func branch(kind: StoreKind, burns: Bool) throws {
        let parts = try parts(kind, 3)
        let shard = parts.shard
        let removed: Int64 = burns ? 10_000 : 5_002
        try shard.make(
            1, TestShard.put(1, "a", burns: burns ? removed : nil, blob: blobID(1)),
            TestShard.put(2, below: .child(1), "b", blob: blobID(2)),
            TestShard.put(3, below: .child(2), "c", blob: blobID(3)), TestShard.put(4, "d", blob: blobID(3)))
        if burns {
            shard.wait(until: removed)
        } else {
            #expect(try shard.make(2, TestShard.deleteTree(1, sv: 1, unknown: true)).branch?.removed == 3)
        }
        #expect(try shard.numbers() == [4])
        for number in 1...3 { #expect(try !parts.reads(number, through: number)) }
        #expect(try parts.reads(3, through: 4))
        #expect(try parts.left(after: removed + Self.day - 1, of: 3) == [1, 2, 3])
        #expect(try parts.left(after: removed + Self.day, of: 3) == [3])
        #expect(try parts.reads(3, through: 4) && parts.left(after: 900 * Self.day, of: 3) == [3])
        if kind == .sqlite { #expect(try folder.check() == []) }
    }

    @Test("nodes that survive the removal of their branch keep their blobs", arguments: StoreKind.allCases)
    func survivors(kind: StoreKind) throws {
        let parts = try parts(kind, 3)
        try parts.shard.make(
            1, TestShard.put(1, "a", blob: blobID(1)), TestShard.put(2, below: .child(1), "b", blob: blobID(2)),
            TestShard.put(3, below: .child(1), "c", blob: blobID(3)))
        let branch = try parts.shard.make(2, TestShard.deleteTree(1, sv: 1, known: [2: 1])).branch
        #expect(branch?.removed == 1 && branch?.left == 2)
        #expect(try parts.left(after: 900 * Self.day, of: 3) == [1, 3])
    }

    @Test("a blob that is completed while a group is open is there for the later changes of the group")
    func completedMeanwhile() throws {
        let parts = try parts(.sqlite, 1)
        let shard = parts.shard
        try shard.make(1, TestShard.put(1, "a", blob: blobID(1)))
        let row = try #require(try shard.store.makeReader().bucket(shard.bucket)?.row)
        shard.receive(try shard.writing(2, "b"))
        for number in 2...3 { try parts.ledger.blob(blobID(number), Self.length) }
        let seen = try shard.core.store.length(of: blobID(2), by: shard.bucket, in: row)
        #expect(seen == nil, "the group reads an older state")
        shard.receive(try shard.batch(2, [TestShard.put(3, "c", blob: blobID(2))]))
        shard.receive(try shard.writing(4, "d", blob: blobID(3), length: Self.length))
        let outcome = shard.core.commit()
        #expect(outcome.appliedCount == 3 && outcome.refusedCount == 0)
        #expect(try shard.numbers() == [1, 2, 3, 4] && parts.reads(2, through: 3) && parts.reads(3, through: 4))
    }

    @Test("a blob that goes between decision and commit makes the whole batch refused, not a record broken")
    func race() throws {
        let parts = try parts(.sqlite, 2)
        let shard = parts.shard
        try shard.make(1, TestShard.put(9, "other", blob: blobID(2)))
        shard.receive(
            try shard.batch(2, [TestShard.put(1, "a", blob: blobID(2)), TestShard.put(2, "b", blob: blobID(1))]))
        #expect(try parts.left(after: Self.day, of: 2) == [2])
        let outcome = shard.core.commit()
        let refused: [RefusedOutcome] = outcome.buckets.flatMap(\.events).compactMap {
            if case .refused(let refused) = $0 { refused } else { nil }
        }
        #expect(refused.map(\.tree?.reason) == [.blobMissing] && refused.map(\.operation) == [1])
        #expect(outcome.appliedCount == 0)
        #expect(try shard.numbers() == [9] && folder.check() == [])
    }
}
