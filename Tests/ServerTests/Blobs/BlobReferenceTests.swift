import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("References of records to blobs")
struct BlobReferenceTests {
    private let folder = BlobFolder()
    private static let length = sealedLength(1_000)
    private static let day: Int64 = 86_400_000

    @Test(
        "a record is refused unless the owner has a complete blob of its length", arguments: StoreKind.allCases)
    func missing(kind: StoreKind) throws {
        let shard: TestShard = try .tree(store: kind.make(folder))
        let ledger: any BlobLedger = try shard.store.makeBlobLedger()
        let length: Int64 = Self.length
        #expect(try shard.write(1, "a", blob: blobID(1), length: length) == .refused(.blobMissing), "no blob")
        try ledger.blob(blobID(2), length, "bob@example.com")
        #expect(try shard.write(1, "a", blob: blobID(2), length: length) == .refused(.blobMissing), "bob's blob")
        try ledger.blob(blobID(3), length, app: "other")
        #expect(try shard.write(1, "a", blob: blobID(3), length: length) == .refused(.blobMissing), "another app's")
        let open = BlobUpload(
            id: blobID(4), app: shard.bucket.app, user: shard.bucket.user, length: length, partBytes: 1, begun: 0)
        _ = try ledger.begin(open, within: type(of: ledger).unlimited)
        #expect(try shard.write(1, "a", blob: blobID(4), length: length) == .refused(.blobMissing), "not complete")
        try ledger.blob(blobID(5), length)
        #expect(try shard.write(1, "a", blob: blobID(5), length: length + 1) == .refused(.blobMissing), "other length")
        #expect(try shard.write(1, "a", blob: blobID(5), length: length).version == 1)
        #expect(try shard.lastOutcome.refusedCount == 0 && shard.record(1)?.data != nil)
    }

    @Test("a blob is an orphan after the group in which its last record goes", arguments: StoreKind.allCases)
    func orphans(kind: StoreKind) throws {
        let shard: TestShard = try .tree(store: kind.make(folder))
        let ledger: any BlobLedger = try shard.store.makeBlobLedger()
        for number in 1...4 { try ledger.blob(blobID(number), Self.length) }
        func collect() throws -> [BlobID] {
            for number in 1...4 { try ledger.remove(upload: blobID(number)) }
            _ = try ledger.collect(until: 1 << 40, limit: 9)
            defer { try? ledger.forget((1...4).map(blobID)) }
            return try ledger.removed(after: nil, limit: 9)
        }
        let length: Int64 = Self.length
        _ = try shard.write(1, "a", blob: blobID(1), length: length)
        _ = try shard.write(2, "b", blob: blobID(1), length: length)
        _ = try shard.write(3, "c", blob: blobID(2), length: length)
        _ = try shard.write(4, "d", blob: blobID(4), length: length)
        #expect(try collect() == [blobID(3)], "never referred to")
        try shard.remove(1, sv: 1)
        #expect(try collect() == [], "another record refers to it")
        // In one group the reference goes from one record to another.
        try shard.group([
            shard.removing(2, sv: 1), shard.writing(5, "e", blob: blobID(1), length: length),
        ])
        #expect(try collect() == [])
        #expect(try shard.write(3, "c", sv: 1).version == 2, "the content goes into the record")
        try shard.remove(5, sv: 1)
        #expect(try collect() == [blobID(1), blobID(2)])
        #expect(try shard.write(6, "f", blob: blobID(1), length: length) == .refused(.blobMissing))
        #expect(try shard.write(4, "renamed", sv: 1, blob: blobID(4), length: length).version == 2)
        #expect(try collect() == [])
    }

    @Test("a blob that goes between decision and commit makes the change refused, not the record broken")
    func race() throws {
        let store: SQLiteStore = try folder.open()
        let shard: TestShard = try .tree(store: store)
        let ledger: any BlobLedger = try store.makeBlobLedger()
        try ledger.blob(blobID(1), Self.length)
        try shard.write(2, "other")
        shard.receive(try shard.writing(1, "a", blob: blobID(1), length: Self.length))
        #expect(try ledger.collect(until: 1 << 40, limit: 9) == 1)
        let outcome: CommitOutcome = shard.core.commit()
        let answers: [Answer] = try outcome.buckets.flatMap(\.events).map(Answer.init)
        #expect(answers == [.refused(.blobMissing)], "\(answers)")
        #expect(try StoreCheck.run(folder.database, settings: .testing).findings == [])
    }

    @Test(
        "2,000 random writes and removals leave exactly the referenced blobs, over reopened files",
        arguments: [(StoreKind.memory, 1), (.sqlite, 2)] as [(StoreKind, UInt64)])
    func model(kind: StoreKind, seed: UInt64) throws {
        var store: any Store = try kind.make(folder)
        var shard: TestShard = try .tree(store: store)
        var random = SeededRandom(seed: seed)
        var (nodes, versions): ([Int: BlobID?], [Int: Version]) = ([:], [:])
        var (live, next): (Set<BlobID>, Int) = ([], 1)
        let ledger: any BlobLedger = try store.makeBlobLedger()
        var refused = 0
        for step in 1...2_000 {
            if step % 5 == 0 {
                try ledger.blob(blobID(next), Self.length, now: 1 << 41)
                try ledger.remove(upload: blobID(next))
                live.insert(blobID(next))
                next += 1
            }
            let number = Int.random(in: 1...30, using: &random)
            let sv: Version = nodes.keys.contains(number) ? versions[number] ?? 0 : 0
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where nodes.keys.contains(number):
                #expect(try shard.group([shard.removing(number, sv: sv, ccid: "m-\(step)")]).first?.code == nil)
                nodes.removeValue(forKey: number)
                versions[number, default: 0] += 1
            case 1:
                let change: SubmittedChange = try shard.writing(number, "n\(number)", sv: sv, ccid: "m-\(step)")
                #expect(try shard.group([change]).first?.code == nil)
                nodes.updateValue(nil, forKey: number)
                versions[number, default: 0] += 1
            default:
                let any: BlobID = blobID(Int.random(in: 1...max(1, next), using: &random))
                let isAny: Bool = Int.random(in: 0..<4, using: &random) == 0
                let blob: BlobID = isAny ? any : live.sorted().randomElement(using: &random) ?? any
                let change: SubmittedChange = try shard.writing(
                    number, "n\(number)", sv: sv, blob: blob, length: Self.length, ccid: "m-\(step)")
                let answer: Answer = try shard.group([change]).first ?? Answer()
                guard live.contains(blob) else {
                    #expect(answer == .refused(.blobMissing))
                    refused += 1
                    continue
                }
                #expect(answer.code == nil, "seed \(seed), step \(step): \(answer)")
                nodes.updateValue(blob, forKey: number)
                versions[number, default: 0] += 1
            }
            if step % 100 == 0 {
                while try ledger.collect(until: 1 << 42, limit: 7) > 0 {}
                live = Set(nodes.values.compactMap { $0 })
                let known: Set<BlobID> = try ledger.known(among: (1...next).map(blobID))
                let removed: Set<BlobID> = Set(try ledger.removed(after: nil, limit: 10_000))
                #expect(known.subtracting(removed) == live, "seed \(seed), step \(step)")
            }
            if step % 250 == 0, kind == .sqlite {
                #expect(try StoreCheck.run(folder.database, settings: .testing).findings == [])
                store = try kind.make(folder)
                shard = try TestShard(store: store, name: BucketMode.treeName)
            }
        }
        #expect(refused > 100 && live.count > 3)
    }

    @Test("the data of an erased user includes its blobs and uploads", arguments: [1, 1_000])
    func erased(rowsMax: Int) throws {
        let store: SQLiteStore = try folder.open()
        let shard: TestShard = try .tree(store: store)
        let ledger: any BlobLedger = try store.makeBlobLedger()
        for number in 1...6 { try ledger.blob(blobID(number), Self.length) }
        try ledger.blob(blobID(9), Self.length, "bob@example.com")
        let open = BlobUpload(
            id: blobID(8), app: shard.bucket.app, user: shard.bucket.user, length: 9, partBytes: 1, begun: 0)
        _ = try ledger.begin(open, within: type(of: ledger).unlimited)
        for number in 1...3 { _ = try shard.write(number, "n\(number)", blob: blobID(number), length: Self.length) }
        try folder.run("INSERT INTO erasure (app, user, created) VALUES ('app', 'ann@example.com', 1)")
        var settings = RetentionSettings()
        settings.rowsPerBatch = rowsMax
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        var steps = 0
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1 << 40), steps < 1_000 {
            _ = try shard.core.apply(batch)
            steps += 1
            #expect(try StoreCheck.run(folder.database, settings: .testing).findings == [])
        }
        #expect(try ledger.removed(after: nil, limit: 99) == (1...6).map(blobID))
        #expect(try ledger.upload(blobID(8)) == nil)
        #expect(try ledger.usage(of: shard.bucket.app, shard.bucket.user) == BlobUsage())
        #expect(try ledger.total() == BlobUsage(count: 1, bytes: Self.length), "bob's stays")
    }
}
