import Glibc
import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

@Suite("Checks, backups and restores of blobs")
struct BlobCheckTests {
    private let folder = BlobFolder()
    private static let length = sealedLength(1_000)
    private static let day: Int64 = 86_400_000

    /// Three blobs, the first two referred to.
    private func fill() throws {
        let store: SQLiteStore = try folder.open()
        let shard: TestShard = try .tree(store: store)
        let ledger: any BlobLedger = try store.makeBlobLedger()
        for number in 1...3 {
            try folder.blobs().begin(blobID(number), length: Self.length)
            try folder.blobs().add(1, bytes(number), to: blobID(number), at: 0)
            try ledger.blob(blobID(number), Self.length)
            try folder.blobs().complete(blobID(number), length: Self.length)
            try folder.blobs().abort(blobID(number))
        }
        for number in 1...2 {
            #expect(try shard.write(number, "n\(number)", blob: blobID(number), length: Self.length).code == nil)
        }
    }

    private func bytes(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number), count: Int(Self.length)) }

    @Test("a sound folder has no findings, and its blobs are counted")
    func sound() throws {
        try fill()
        let found: StoreFindings = try StoreCheck.run(folder.database, settings: .testing, blobs: folder.path)
        #expect(found.findings == [] && found.blobs == 3)
    }

    @Test(
        "each damage of the rows is found",
        arguments: [
            ("UPDATE node SET blob = NULL WHERE blob = (SELECT min(blob) FROM node)", "does not have its blob"),
            ("UPDATE node SET blob = (SELECT max(id) FROM blob)", "does not have its blob"),
            ("DELETE FROM blob WHERE id = (SELECT min(blob) FROM node)", "not in the table of blobs"),
            ("UPDATE blob SET length = length + 1", "another length"),
            ("UPDATE blob SET orphaned = 5", "marked as orphans"),
            ("UPDATE blob SET orphaned = NULL", "not marked as orphans"),
            ("UPDATE blob_use SET bytes = bytes - 1 WHERE user = ''", "differ from a recount"),
            ("DELETE FROM blob_use", "differ from a recount"),
        ])
    func damagedRows(sql: String, finding: String) throws {
        try fill()
        try folder.run(sql)
        let findings: [String] = try folder.check()
        #expect(findings.contains { $0.contains(finding) }, "\(findings)")
    }

    @Test("a missing file, a file of another length and a file without a row are found")
    func damagedFiles() throws {
        try fill()
        unlink(folder.file(of: blobID(1)))
        folder.overwrite(blobID(2), [1, 2, 3])
        folder.overwrite(blobID(1 << 20), [1])
        let findings: [String] = try folder.check()
        #expect(
            findings == [
                "blob \(blobID(1)): its file is missing",
                "blob \(blobID(2)): its file has 3 bytes, not \(Self.length)",
                "blob \(blobID(1 << 20)): a file without a row",
            ])
    }

    @Test("a backup has the blobs of its snapshot, although they are collected while it is made")
    func roundTrip() throws {
        try fill()
        let copy: String = folder.path + "/copy.db"
        var settings: StoreSettings = .testing
        let (path, database): (String, String) = (folder.path, folder.database)
        // Between the snapshot and the copies, everything goes and the sweep runs.
        let swept = Faults<String>()
        settings.fileFault = { call, name in
            guard call == .move, name.contains("/blobs/"), !swept.isFailing("done") else { return 0 }
            swept.fail("done")
            guard let store = try? SQLiteStore(path: database, settings: .testing),
                let shard: TestShard = try? TestShard(store: store, name: BucketMode.treeName),
                let ledger: any BlobLedger = try? store.makeBlobLedger()
            else { return 0 }
            for number in 1...2 {
                _ = try? shard.group([shard.removing(number, sv: 1, ccid: "gone-\(number)")])
            }
            let sweep = BlobSweep(
                ledger: ledger, store: FolderBlobStore(folder: path, settings: .testing))
            let report: BlobSweep.Report? = try? sweep.run(now: 900 * Self.day)
            #expect(report?.orphans == 3 && report?.files == 0, "\(String(describing: report))")
            return 0
        }
        let report: StoreBackup.Report = try StoreBackup.run(from: folder.database, to: copy, settings: settings)
        #expect(report.blobs == 3 && report.missingBlobs == 0 && swept.isFailing("done"))
        do {
            let store: SQLiteStore = try folder.open()
            let sweep = BlobSweep(ledger: try store.makeBlobLedger(), store: folder.blobs())
            #expect(try sweep.run(now: 900 * Self.day).files == 3)
        }
        #expect(folder.files == [])
        #expect(try folder.check() == [])
        let restored: StoreRestore.Report = try StoreRestore.run(from: copy, to: folder.database, settings: .testing)
        #expect(restored.missingBlobs == 0)
        #expect(try folder.check() == [])
        for number in 1...3 { #expect(try folder.blobs().bytes(of: blobID(number)) == bytes(number)) }
    }

    @Test("a backup that fails leaves neither a file nor blobs, and one can be made later")
    func failed() throws {
        try fill()
        let copy: String = folder.path + "/copy.db"
        for call: FileCall in [.create, .sync, .move] {
            var settings: StoreSettings = .testing
            settings.fileFault = { asked, name in asked == call && name.contains("copy.db") ? ENOSPC : 0 }
            #expect(throws: StoreError.self) {
                try StoreBackup.run(from: folder.database, to: copy, settings: settings)
            }
            #expect(!Files.exists(copy) && !Files.exists(copy + ".blobs"), "\(call)")
        }
        #expect(try StoreBackup.run(from: folder.database, to: copy, settings: .testing).blobs == 3)
    }

    @Test("a backup on another file system has copies of the blobs instead of links", arguments: [true, false])
    func copies(isOther: Bool) throws {
        try fill()
        var settings: StoreSettings = .testing
        settings.fileFault = { call, name in
            isOther && call == .move && name.contains("/blobs/") ? EXDEV : 0
        }
        let copy: String = folder.path + "/copy.db"
        #expect(try StoreBackup.run(from: folder.database, to: copy, settings: settings).blobs == 3)
        for number in 1...3 {
            let (from, to): (String, String) = (
                folder.file(of: blobID(number)),
                "\(copy).blobs/\(blobID(number).text.prefix(2))/\(blobID(number))"
            )
            var (original, copied): (stat, stat) = (stat(), stat())
            #expect(stat(from, &original) == 0 && stat(to, &copied) == 0)
            #expect((original.st_ino == copied.st_ino) == !isOther && copied.st_size == Self.length)
            #expect(FileText.readBytes(to, bytesMax: 10_000) == bytes(number))
        }
        for number in 1...3 { unlink(folder.file(of: blobID(number))) }
        #expect(try StoreRestore.run(from: copy, to: folder.database, settings: settings).missingBlobs == 0)
        #expect(try folder.check() == [])
    }

    @Test("a backup says how many blobs have lost their bytes, and is made nevertheless")
    func incomplete() throws {
        try fill()
        unlink(folder.file(of: blobID(1)))
        let copy: String = folder.path + "/copy.db"
        let report: StoreBackup.Report = try StoreBackup.run(from: folder.database, to: copy, settings: .testing)
        #expect(report.blobs == 2 && report.missingBlobs == 1)
        #expect(try StoreRestore.run(from: copy, to: folder.database, settings: .testing).missingBlobs == 1)
    }

    @Test("a backup without its blobs is restored over a folder that has them, and none is called missing")
    func blobsInPlace() throws {
        try fill()
        let other = BlobFolder()
        let copy: String = other.path + "/copy.db"
        _ = try StoreBackup.run(from: folder.database, to: copy, settings: .testing)
        BlobCopies(Files(.testing)).discard(BlobCopies.folder(ofBackup: copy))
        try #require(!Files.exists(BlobCopies.folder(ofBackup: copy)))
        unlink(folder.file(of: blobID(3)))
        #expect(try StoreRestore.run(from: copy, to: folder.database, settings: .testing).missingBlobs == 1)
        #expect(try folder.check() == ["blob \(blobID(3)): its file is missing"])
    }

    @Test("a restored store that was replaced still has its blobs")
    func back() throws {
        try fill()
        let copy: String = folder.path + "/copy.db"
        _ = try StoreBackup.run(from: folder.database, to: copy, settings: .testing)
        let replaced: String = try #require(
            try StoreRestore.run(from: copy, to: folder.database, settings: .testing).replaced)
        #expect(try StoreRestore.run(from: replaced, to: folder.database, settings: .testing).missingBlobs == 0)
        #expect(try folder.check() == [])
    }
}
