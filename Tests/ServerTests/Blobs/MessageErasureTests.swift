import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Messages: check, and accounts that are erased")
struct MessageErasureTests {
    private let folder = BlobFolder()
    private static let length = sealedLength(1_000)
    private let people: TestDirectory

    init() throws { people = try TestDirectory(TestShard.ann, "bob@example.com") }

    private var findings: [String] {
        get throws { try StoreCheck.run(folder.database, settings: .testing).findings }
    }

    private func deliver(_ shard: TestShard, _ ledger: any BlobLedger) throws {
        for number in 1...2 { try ledger.blob(blobID(number), Self.length) }
        let copy = try people.copy(2, from: TestShard.ann, to: "bob@example.com") {
            $0.data = .blob(DataID(7), length: UInt64(Self.length), blob: blobID(1))
        }
        #expect(try shard.make(1, people, copy).results == [.version(1)])
        for name in [TestShard.ann, "bob@example.com"] { try shard.set(InboxPolicy(.contacts), of: name) }
        #expect(try findings == [])
    }

    private func erase(_ name: String, _ shard: TestShard, rowsMax: Int) throws {
        try folder.run("INSERT INTO erasure (app, user, created) VALUES ('app', '\(name)', 1)")
        var settings = RetentionSettings()
        settings.rowsPerBatch = rowsMax
        let maintenance = try shard.store.makeMaintenance(settings)
        var steps = 0
        while let batch = try maintenance.nextBatch(now: 1 << 40), steps < 1_000 {
            _ = try shard.core.apply(batch)
            steps += 1
            #expect(try findings == [])
        }
    }

    @Test(
        "the blob of a message stays after its sender was erased, counts for the app, and goes with the message",
        arguments: [1, 1_000])
    func sender(rowsMax: Int) throws {
        let shard = try TestShard.tree(store: try folder.open())
        let ledger = try shard.store.makeBlobLedger()
        try deliver(shard, ledger)
        try erase(TestShard.ann, shard, rowsMax: rowsMax)
        let (app, bob) = (shard.bucket.app, try UserID("bob@example.com"))
        #expect(try ledger.length(of: blobID(1), in: NodeText.id(2), of: app, bob) == Self.length)
        #expect(try ledger.removed(after: nil, limit: 9) == [blobID(2)])
        #expect(try ledger.usage(of: app, shard.bucket.user) == BlobUsage())
        #expect(try ledger.usage(of: app, nil) == BlobUsage(count: 1, bytes: Self.length))
        let reader = try shard.store.makeReader()
        #expect(try reader.inboxPolicy(of: shard.bucket) == InboxPolicy())
        #expect(try reader.inboxPolicy(of: shard.tree(of: "bob@example.com")) == InboxPolicy(.contacts))
        #expect(try shard.make(2, by: "bob@example.com", nil, TestShard.delete(2, sv: 1)).results == [.version(2)])
        #expect(try ledger.collect(until: 1 << 40, limit: 9) == 1)
        #expect(try ledger.usage(of: app, nil) == BlobUsage() && findings == [])
    }

    @Test("the inbox of an erased receiver goes; what is sent later is refused like to one that never was")
    func receiver() throws {
        let shard = try TestShard.tree(store: try folder.open())
        let ledger = try shard.store.makeBlobLedger()
        try deliver(shard, ledger)
        try folder.run("INSERT INTO erasure (app, user, created) VALUES ('app', 'bob@example.com', 1)")
        try shard.restart()
        let closed = try shard.make(5, people, people.copy(3, from: TestShard.ann, to: "bob@example.com"))
        #expect(closed.reason == .blocked, "closed, and not erased yet")
        let maintenance = try shard.store.makeMaintenance(RetentionSettings())
        while let batch = try maintenance.nextBatch(now: 1 << 40) { _ = try shard.core.apply(batch) }
        #expect(try shard.numbers(of: "bob@example.com") == [] && findings == [])
        #expect(try ledger.length(of: blobID(1), in: NodeText.id(2), of: shard.bucket.app, shard.bucket.user) == nil)
        let erased = try shard.make(6, people, people.copy(3, from: TestShard.ann, to: "bob@example.com"))
        #expect(erased.reason == .blocked && erased.refused?.detail == closed.refused?.detail)
        #expect(try shard.make(7, nil, .burn(NodeText.id(2), to: UserID("bob@example.com"))).reason == .nodeMissing)
    }

    @Test("the check finds another sender in the table of nodes, and a policy that cannot be read")
    func check() throws {
        let shard = try TestShard.tree(store: try folder.open())
        try deliver(shard, try shard.store.makeBlobLedger())
        try folder.run("UPDATE node SET sender = 'carol'; UPDATE inbox_policy SET content = '{}' WHERE user LIKE 'b%'")
        let found = try findings
        #expect(found.contains { $0.contains("has another sender") }, "\(found)")
        #expect(found.contains { $0 == "inboxes: 1 policies cannot be read" }, "\(found)")
    }
}
