import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Ledgers of blobs")
struct BlobLedgerTests {
    private let folder = BlobFolder()

    private func upload(_ number: Int, _ length: Int64, _ user: String = "ann", begun: Int64 = 0) throws -> BlobUpload {
        BlobUpload(
            id: blobID(number), app: try AppID("app"), user: try UserID(user), length: length, partBytes: 1_000,
            begun: begun)
    }

    @Test("an upload has its parts' places and lengths, the last part what is left")
    func places() throws {
        let upload: BlobUpload = try upload(1, 2_500)
        #expect(upload.partCount == 3 && upload.offset(of: 3) == 2_000)
        #expect([1, 2, 3].map(upload.bytes) == [1_000, 1_000, 500])
        let even: BlobUpload = try self.upload(1, 2_000)
        #expect(even.partCount == 2 && even.bytes(of: 2) == 1_000)
    }

    @Test("quotas count blobs and open uploads, of the user and of the app", arguments: StoreKind.allCases)
    func quotas(kind: StoreKind) throws {
        let ledger: any BlobLedger = try kind.make(folder).makeBlobLedger()
        let quota = BlobQuota(userBytesMax: 1_000, appBytesMax: 1_500, uploadsMax: 2)
        #expect(try ledger.begin(upload(1, 600), within: quota) == .accepted)
        #expect(try ledger.begin(upload(2, 401), within: quota) == .userFull)
        #expect(try ledger.complete(blobID(1), proof: [1], now: 5))
        #expect(try ledger.begin(upload(2, 401), within: quota) == .userFull, "a blob counts like its upload")
        #expect(try ledger.begin(upload(2, 400), within: quota) == .accepted)
        #expect(try ledger.begin(upload(3, 501, "bob"), within: quota) == .appFull)
        #expect(try ledger.begin(upload(3, 1, "bob"), within: quota) == .accepted)
        #expect(try ledger.begin(upload(4, 1, "bob"), within: quota) == .accepted)
        #expect(try ledger.begin(upload(5, 1, "bob"), within: quota) == .userFull, "two uploads are open")
        try ledger.remove(upload: blobID(2))
        #expect(try ledger.usage(of: AppID("app"), UserID("ann")) == BlobUsage(count: 1, bytes: 600))
        #expect(
            try ledger.usage(of: AppID("app"), nil) == BlobUsage(count: 1, bytes: 600, openBytes: 2, openCount: 2))
        #expect(try ledger.usage(of: AppID("other"), nil) == BlobUsage())
    }

    @Test("no length can overflow a quota", arguments: StoreKind.allCases)
    func overflow(kind: StoreKind) throws {
        let ledger: any BlobLedger = try kind.make(folder).makeBlobLedger()
        let quota = BlobQuota(userBytesMax: 1_000, appBytesMax: .max, uploadsMax: 9)
        #expect(try ledger.begin(upload(1, .max), within: quota) == .userFull)
        #expect(try ledger.begin(upload(1, 1_000), within: quota) == .accepted)
        #expect(try ledger.begin(upload(2, .max), within: quota) == .userFull)
    }

    @Test(
        "A9: the ledger of each store gives contents of a branch to its readers only, through a node of it",
        arguments: StoreKind.allCases)
    func branches(kind: StoreKind) throws {
        let people = try TestDirectory(TestShard.ann, "bob", "cleo")
        let store = try kind.make(folder)
        let shard = try TestShard.tree(.disk, store: store)
        try shard.make(1, TestShard.put(1, "n1"), TestShard.put(2, below: .child(1), "n2"), TestShard.put(10, "n10"))
        let list = try people.list(["bob": "r", "cleo": "W"], on: 10)
        try shard.make(
            2, people, people.put(10, sv: 1, list: list), people.put(11, below: 10), people.put(12, below: 11))
        let ledger = try store.makeBlobLedger()
        let app = try AppID(TestDirectory.app)
        func mayRead(_ user: String, _ number: Int, root: Int = 10, of owner: String = TestShard.ann) throws -> Bool {
            let branch = BranchName(of: try UserID(owner), root: NodeText.id(root))
            return try ledger.mayRead(UserID(user), NodeText.id(number), in: branch, of: app)
        }
        for number in [10, 11, 12] { #expect(try mayRead("bob", number), "\(number)") }
        for number in [1, 2, 77] { #expect(try !mayRead("bob", number), "outside of the branch: \(number)") }
        for root in [1, 11, 77] { #expect(try !mayRead("bob", 12, root: root), "not the root: \(root)") }
        #expect(try !mayRead("cleo", 11), "without the letter")
        #expect(try !mayRead(TestShard.ann, 11), "the owner reads without a branch")
        #expect(try !mayRead("bob", 11, of: "cleo") && !mayRead("dora", 11))
        // A node that leaves the branch, and one that comes into it.
        try shard.make(3, people, people.put(12, sv: 1), people.put(2, below: 11, sv: 1))
        #expect(try !mayRead("bob", 12) && mayRead("bob", 2))
        let next = try people.list(["cleo": "W"], on: 10, after: list, epoch: 1)
        try shard.make(4, people, people.put(10, sv: 2, list: next))
        for number in [2, 10, 11] { #expect(try !mayRead("bob", number), "removed: \(number)") }
    }

    @Test("an upload is completed once, and known with its proof from then on", arguments: StoreKind.allCases)
    func completes(kind: StoreKind) throws {
        let ledger: any BlobLedger = try kind.make(folder).makeBlobLedger()
        #expect(try !ledger.complete(blobID(1), proof: [1], now: 5), "it does not exist")
        _ = try ledger.begin(upload(1, 600), within: type(of: ledger).unlimited)
        #expect(try ledger.upload(blobID(1))?.proof == nil)
        #expect(try ledger.complete(blobID(1), proof: [1, 2], now: 5))
        #expect(try !ledger.complete(blobID(1), proof: [3], now: 6))
        #expect(try ledger.upload(blobID(1))?.proof == [1, 2])
    }

    @Test(
        "the counters equal a recount after 1,000 random calls, also in the next process", arguments: StoreKind.allCases
    )
    func recount(kind: StoreKind) throws {
        let store: any Store = try kind.make(folder)
        var ledger: any BlobLedger = try store.makeBlobLedger()
        var random = SeededRandom(seed: 5)
        var now: Int64 = 0
        for number in 1...1_000 {
            now += 10
            let other: BlobID = blobID(Int.random(in: 1...number, using: &random))
            switch Int.random(in: 0..<8, using: &random) {
            case 0...3:
                let user = ["ann", "bob", "cid"].randomElement(using: &random) ?? "ann"
                let length = Int64.random(in: 1...5_000, using: &random)
                _ = try ledger.begin(upload(number, length, user, begun: now), within: type(of: ledger).unlimited)
            case 4, 5: _ = try ledger.complete(other, proof: [1], now: now)
            case 6: try ledger.remove(upload: other)
            default: _ = try ledger.collect(until: now - 2_000, limit: 1)
            }
            if number % 200 == 0 { ledger = try store.makeBlobLedger() }
        }
        let app = try AppID("app")
        let users: [BlobUsage] = try ["ann", "bob", "cid"].map { try ledger.usage(of: app, UserID($0)) }
        let sum = BlobUsage(
            count: users.reduce(0) { $0 + $1.count }, bytes: users.reduce(0) { $0 + $1.bytes },
            openBytes: users.reduce(0) { $0 + $1.openBytes }, openCount: users.reduce(0) { $0 + $1.openCount })
        #expect(try sum.count > 20 && sum.openCount > 20 && ledger.usage(of: app, nil) == sum && ledger.total() == sum)
        if kind == .sqlite { #expect(try StoreCheck.run(folder.database, settings: .testing).findings == []) }
    }

    @Test("collected blobs are listed until they are forgotten, and known until then", arguments: StoreKind.allCases)
    func collected(kind: StoreKind) throws {
        let ledger: any BlobLedger = try kind.make(folder).makeBlobLedger()
        for number in 1...5 { try ledger.blob(blobID(number), 10, now: Int64(number)) }
        for number in 1...5 { try ledger.remove(upload: blobID(number)) }
        #expect(try ledger.collect(until: 3, limit: 2) == 2 && ledger.collect(until: 3, limit: 2) == 1)
        #expect(try ledger.collect(until: 3, limit: 2) == 0)
        #expect(try ledger.removed(after: nil, limit: 9) == [blobID(1), blobID(2), blobID(3)])
        #expect(try ledger.removed(after: blobID(1), limit: 1) == [blobID(2)])
        try ledger.forget([blobID(1), blobID(3)])
        #expect(try ledger.removed(after: nil, limit: 9) == [blobID(2)])
        #expect(try ledger.known(among: (1...6).map(blobID)) == [blobID(2), blobID(4), blobID(5)])
    }
}
