import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Sweeps of blobs")
struct BlobSweepTests {
    private let folder = BlobFolder()
    private static let day: Int64 = 86_400_000
    private static let length = sealedLength(1_000)

    /// A ledger and a blob store of one kind each, and a sweep over them.
    private struct Parts {
        let store: any Store
        let ledger: any BlobLedger
        let blobs: any BlobStore
        var sweep: BlobSweep { BlobSweep(ledger: ledger, store: blobs) }

        /// A complete blob with its bytes.
        func add(_ number: Int, now: Int64) throws {
            try blobs.begin(blobID(number), length: BlobSweepTests.length)
            try blobs.add(1, [UInt8](repeating: 1, count: Int(BlobSweepTests.length)), to: blobID(number), at: 0)
            try ledger.blob(blobID(number), BlobSweepTests.length, now: now)
            try blobs.complete(blobID(number), length: BlobSweepTests.length)
            try blobs.abort(blobID(number))
        }

        func exists(_ number: Int) throws -> Bool { try blobs.open(blobID(number)) != nil }
    }

    private func parts(_ kind: StoreKind) throws -> Parts {
        let store: any Store = try kind.make(folder)
        let blobs: any BlobStore = kind == .memory ? MemoryBlobStore() : folder.blobs()
        return Parts(store: store, ledger: try store.makeBlobLedger(), blobs: blobs)
    }

    @Test(
        "a blob without a reference goes after 24 hours, not before, and one with a reference stays",
        arguments: StoreKind.allCases)
    func orphans(kind: StoreKind) throws {
        let parts: Parts = try parts(kind)
        let shard: TestShard = try .tree(store: parts.store)
        for number in 1...2 { try parts.add(number, now: 0) }
        #expect(try shard.write(2, "kept", blob: blobID(2), length: Self.length).code == nil)
        #expect(try parts.sweep.run(now: Self.day - 1) == BlobSweep.Report())
        #expect(try parts.exists(1))
        #expect(try parts.sweep.run(now: Self.day) == BlobSweep.Report(orphans: 1, files: 1))
        #expect(try !parts.exists(1) && parts.exists(2))
        #expect(try parts.sweep.run(now: 900 * Self.day).orphans == 0)
        // The day begins when the last reference goes. Changes of this shard are made at 1,000 ms and later.
        try shard.remove(2, sv: 1)
        #expect(try parts.sweep.run(now: Self.day + 500).orphans == 0)
        #expect(try parts.sweep.run(now: Self.day + 5_000).orphans == 1)
        #expect(try !parts.exists(2))
    }

    @Test("an upload expires after seven days, and a completed one is forgotten then", arguments: StoreKind.allCases)
    func uploads(kind: StoreKind) throws {
        let parts: Parts = try parts(kind)
        let app = try AppID("app")
        let user = try UserID("ann@example.com")
        let upload = BlobUpload(id: blobID(1), app: app, user: user, length: 10, partBytes: 10, begun: 0)
        _ = try parts.ledger.begin(upload, within: type(of: parts.ledger).unlimited)
        try parts.blobs.begin(blobID(1), length: 10)
        try parts.blobs.add(1, [UInt8](repeating: 1, count: 10), to: blobID(1), at: 0)
        try parts.add(2, now: Self.day)
        #expect(try parts.sweep.run(now: 7 * Self.day - 1).uploads == 0)
        #expect(try parts.blobs.parts(of: blobID(1)).count == 1)
        #expect(try parts.sweep.run(now: 7 * Self.day).uploads == 1)
        #expect(try parts.blobs.parts(of: blobID(1)) == [] && parts.ledger.upload(blobID(1)) == nil)
        #expect(try parts.ledger.usage(of: app, user).openCount == 0)
        #expect(try parts.ledger.upload(blobID(2)) != nil, "seven days begin when it is complete")
        #expect(try parts.sweep.run(now: 8 * Self.day).uploads == 1)
        #expect(try parts.ledger.upload(blobID(2)) == nil)
    }

    @Test("a crash after the rows are removed leaves files that the next sweep deletes", arguments: StoreKind.allCases)
    func rowsFirst(kind: StoreKind) throws {
        let parts: Parts = try parts(kind)
        try parts.add(1, now: 0)
        #expect(try parts.ledger.collect(until: Self.day, limit: 9) == 1)
        #expect(try parts.exists(1), "the process dies here")
        #expect(try parts.sweep.run(now: 1).files == 1)
        #expect(try !parts.exists(1) && parts.ledger.removed(after: nil, limit: 9) == [])
    }

    @Test(
        "a crash before the row is written leaves an upload that can be completed again", arguments: StoreKind.allCases)
    func fileFirst(kind: StoreKind) throws {
        let parts: Parts = try parts(kind)
        let upload = BlobUpload(
            id: blobID(1), app: try AppID("app"), user: try UserID("ann@example.com"), length: 10, partBytes: 10,
            begun: 0)
        _ = try parts.ledger.begin(upload, within: type(of: parts.ledger).unlimited)
        try parts.blobs.begin(blobID(1), length: 10)
        try parts.blobs.add(1, [UInt8](repeating: 1, count: 10), to: blobID(1), at: 0)
        try parts.blobs.complete(blobID(1), length: 10)
        // The process dies here. The file belongs to an open upload, so no sweep removes it.
        #expect(try parts.sweep.removeUnknown() == 0 && parts.exists(1))
        #expect(try parts.blobs.parts(of: blobID(1)).count == 1)
        try parts.blobs.complete(blobID(1), length: 10)
        #expect(try parts.ledger.complete(blobID(1), proof: [1], now: 1))
        // If it is never completed, it expires, and then the file is unknown.
        try parts.ledger.remove(upload: blobID(1))
        _ = try parts.ledger.collect(until: 1, limit: 9)
        try parts.ledger.forget([blobID(1)])
        #expect(try parts.sweep.removeUnknown() > 0)
        #expect(try !parts.exists(1))
    }

    @Test(
        "a file that a crash brings back goes, although its completed upload is remembered",
        arguments: StoreKind.allCases)
    func broughtBack(kind: StoreKind) throws {
        let parts: Parts = try parts(kind)
        try parts.ledger.blob(blobID(1), 10)
        _ = try parts.ledger.collect(until: 1, limit: 9)
        try parts.ledger.forget([blobID(1)])
        #expect(try parts.ledger.upload(blobID(1)) != nil)
        // The deletion of the file was not durable.
        try parts.blobs.begin(blobID(1), length: 10)
        try parts.blobs.add(1, [UInt8](repeating: 1, count: 10), to: blobID(1), at: 0)
        try parts.blobs.complete(blobID(1), length: 10)
        #expect(try parts.sweep.removeUnknown() > 0)
        #expect(try !parts.exists(1))
    }

    @Test("a blob that is being copied is deleted by a later sweep")
    func pinned() throws {
        let parts: Parts = try parts(.sqlite)
        for number in 1...2 { try parts.add(number, now: 0) }
        do {
            let pin = try FolderBlobStore.pin(folder.path, Files(.testing))
            #expect(try parts.sweep.run(now: Self.day) == BlobSweep.Report(orphans: 2))
            withExtendedLifetime(pin) {}
        }
        #expect(try parts.exists(1) && parts.exists(2) && folder.check() == [])
        #expect(try parts.sweep.run(now: Self.day) == BlobSweep.Report(files: 2))
        #expect(try !parts.exists(1) && folder.check() == [])
    }

    @Test("unknown files are kept while the folder has a store that was replaced")
    func replaced() throws {
        let parts: Parts = try parts(.sqlite)
        try parts.blobs.begin(blobID(5), length: 1)
        try parts.blobs.add(1, [1], to: blobID(5), at: 0)
        try parts.blobs.complete(blobID(5), length: 1)
        try Files(.testing).createPrivate(folder.database + ".replaced-1")
        #expect(try parts.sweep.removeUnknown() == 0 && parts.exists(5))
        try Files(.testing).remove(folder.database + ".replaced-1")
        #expect(try parts.sweep.removeUnknown() > 0)
        #expect(try !parts.exists(5))
    }
}
