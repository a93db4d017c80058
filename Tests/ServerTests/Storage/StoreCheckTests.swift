import Glibc
import Testing
import ThicketProtocol

@testable import ThicketServer

@Suite("Store check, backup and restore") struct StoreCheckTests {
    /// A store with two buckets and some history.
    private func filled(_ folder: StoreFolder, seed: UInt64 = 21) throws -> (SQLiteStore, StoreDriver) {
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: seed)
        driver.policy.diffsMin = 3
        try driver.run(150, in: [try StoreDriver.id("a"), try StoreDriver.id("b")], keys: 5)
        return (store, driver)
    }

    @Test("the check finds nothing in a store as the writer leaves it")
    func clean() throws {
        let folder = StoreFolder()
        let (store, driver): (SQLiteStore, StoreDriver) = try filled(folder)
        let found: StoreFindings = try StoreCheck.run(store.path, settings: .testing)
        #expect(found.findings == [])
        #expect(found.changes == 150 && found.buckets == 2 && found.keyframes > 5)
        #expect(found.objects == driver.buckets.values.map(\.objects.count).reduce(0, +))
    }

    @Test(
        "the check finds every kind of broken row",
        arguments: [
            "UPDATE bucket SET head = head - 1 WHERE id = 1",
            "UPDATE bucket SET head = head + 1000 WHERE id = 2",
            "UPDATE bucket SET floor = 1000000 WHERE id = 1",
            "DELETE FROM chg WHERE gid = 77",
            "DELETE FROM chg WHERE gid = (SELECT max(gid) FROM chg)",
            "UPDATE chg SET pe = 0 WHERE gid = (SELECT max(gid) FROM chg WHERE sv > 3)",
            "UPDATE chg SET pb = 0 WHERE gid = 60",
            "UPDATE chg SET pk = 1 WHERE gid = (SELECT max(gid) FROM chg WHERE pk > 1)",
            "UPDATE chg SET ev = ev + 1 WHERE gid = 90",
            "UPDATE chg SET b = 3 - b WHERE gid = 100",
            "UPDATE chg SET k = 'note.99' WHERE gid = 50",
            "UPDATE chg SET diff = '{}' WHERE gid = (SELECT max(gid) FROM chg WHERE snap IS NOT NULL)",
            "UPDATE chg SET snap = '{\"title\":\"x\"}' WHERE gid = (SELECT max(gid) FROM chg WHERE snap IS NOT NULL)",
            "UPDATE chg SET client = 999 WHERE gid = 5",
            "UPDATE ent SET ver = ver + 1 WHERE b = 1 AND k = 'note.1'",
            "UPDATE ent SET dead = 1 - dead WHERE b = 2 AND k = 'note.2'",
            "UPDATE ent SET gid = gid - 1 WHERE b = 1 AND k = 'note.3'",
            "DELETE FROM ent WHERE b = 1 AND k = 'note.0'",
            "DELETE FROM bucket WHERE id = 2",
            "DELETE FROM meta WHERE k = 'epoch'",
            "INSERT INTO seg (b, high, count, bytes, content) VALUES (1, 5, 1, 4, 'none')",
        ])
    func broken(_ sql: String) throws {
        let folder = StoreFolder()
        _ = try filled(folder)
        try folder.writeAllHeads(in: "thicket.db")
        #expect(try StoreCheck.run(folder.path("thicket.db"), settings: .testing).isClean)
        try folder.run(sql, in: "thicket.db")
        #expect(try !StoreCheck.run(folder.path("thicket.db"), settings: .testing).isClean)
    }

    @Test("a backup between groups is one sound state, and it never overwrites a file")
    func backup() throws {
        let folder = StoreFolder()
        let (store, driver): (SQLiteStore, StoreDriver) = try filled(folder)
        let copy: String = folder.path("copy.db")
        let report: StoreBackup.Report = try StoreBackup.run(from: store.path, to: copy, settings: .testing)
        #expect(report.changes == 150 && report.buckets == 2 && report.bytes > 10_000)
        try driver.run(20, in: [try StoreDriver.id("a")])
        #expect(try StoreCheck.run(copy, settings: .testing).changes == 150)
        #expect(try StoreCheck.run(copy, settings: .testing).findings == [])
        #expect(throws: StoreError.self) { try StoreBackup.run(from: store.path, to: copy, settings: .testing) }
        #expect(folder.names.filter { $0.contains("partial") } == [])
        #expect(try StoreCheck.run(store.path, settings: .testing).changes == 170)
    }

    @Test("a restore raises the epoch and every version, and keeps the store that it replaces")
    func restore() throws {
        let folder = StoreFolder()
        let copy: String = folder.path("copy.db")
        let saved: [BucketID: StoreDriver.Bucket] = try {
            let (store, driver): (SQLiteStore, StoreDriver) = try filled(folder)
            _ = try StoreBackup.run(from: store.path, to: copy, settings: .testing)
            let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
            try driver.run(30, in: [try StoreDriver.id("a")])
            return saved
        }()
        let path: String = folder.path("thicket.db")
        let report: StoreRestore.Report = try StoreRestore.run(from: copy, to: path, settings: .testing)
        let added: Version = report.versionsAdded
        #expect(added >= 1_000_000 && added <= 65_536 * 1_000_000 && added.isMultiple(of: 1_000_000))
        let store = try SQLiteStore(path: path, settings: .testing)
        #expect(store.identity.epoch == report.epoch && report.epoch > 1)
        #expect(store.identity.versionBase == added)
        #expect(try StoreCheck.run(path, settings: .testing).findings == [])
        let reader: any StoreReader = try store.makeReader()
        for (id, bucket) in saved {
            let row: BucketRow = try #require(try reader.bucket(id)).row
            for (key, object) in bucket.objects {
                let record: EntityRecord = try #require(try reader.entity(key, in: row))
                #expect(record.version == object.record.version + added)
                for version in object.versions {
                    let raised: Int64 = version.number + added
                    let body: [UInt8]? = try reader.body(of: key, version: raised, in: row, upTo: .max)
                    #expect(try body.flatMap { try JSONValue(parsing: $0).objectValue } == version.body)
                    #expect(try reader.body(of: key, version: version.number, in: row, upTo: .max) == nil)
                    #expect(try reader.history(of: key, after: raised, in: row, limit: 1_000) != nil)
                    #expect(try reader.history(of: key, after: version.number, in: row, limit: 1_000) == nil)
                }
            }
        }
        let kept: String = try #require(report.replaced)
        #expect(try StoreCheck.run(kept, settings: .testing).changes == 180)
        #expect(try StoreRestore.run(from: copy, to: path, settings: .testing).versionsAdded > added)
        #expect(try SQLiteStore(path: path, settings: .testing).identity.epoch > report.epoch)
    }

    @Test("repeated restores into empty folders give different versions and epochs")
    func restoredTwice() throws {
        let folder = StoreFolder()
        let copy: String = folder.path("copy.db")
        do {
            let (store, _): (SQLiteStore, StoreDriver) = try filled(folder)
            _ = try StoreBackup.run(from: store.path, to: copy, settings: .testing)
        }
        var reports: [StoreRestore.Report] = []
        for byte: UInt8 in [0x00, 0x01, 0xFF] {
            var settings: StoreSettings = .testing
            settings.random = { [UInt8](repeating: byte, count: $0) }
            // Each time into an empty folder.
            let empty = StoreFolder()
            reports.append(try StoreRestore.run(from: copy, to: empty.path("thicket.db"), settings: settings))
        }
        #expect(reports.map(\.versionsAdded) == [1_000_000, 0x102 * 1_000_000, 0x1_0000 * 1_000_000])
        #expect(Set(reports.map(\.epoch)).count == 3)
        #expect(reports.allSatisfy { $0.replaced == nil })
    }

    @Test("a restore that is interrupted anywhere has not happened, or is finished at the next start")
    func interruptedRestore() throws {
        let folder = StoreFolder()
        let copy: String = folder.path("copy.db")
        do {
            let (store, driver): (SQLiteStore, StoreDriver) = try filled(folder)
            _ = try StoreBackup.run(from: store.path, to: copy, settings: .testing)
            try driver.run(30, in: [try StoreDriver.id("a")])
        }
        var crashes: [StoreFolder] = []
        _ = try StoreRestore.run(from: copy, to: folder.path("thicket.db"), settings: .testing) {
            crashes.append(folder.copied())
        }
        var outcomes: [String] = []
        for crash in crashes {
            let path: String = crash.path("thicket.db")
            let interrupted: StoreRestore.Interrupted? = try StoreRestore.finishInterrupted(path)
            #expect(try StoreRestore.finishInterrupted(path) == nil)
            let changes: Int = try StoreCheck.run(path, settings: .testing).changes
            #expect(try StoreCheck.run(path, settings: .testing).findings == [])
            #expect(crash.names.filter { $0.contains("restor") } == [])
            switch interrupted {
            case .finished(let replaced):
                #expect(changes == 150 && replaced == path + ".replaced-1")
                #expect(try StoreCheck.run(path + ".replaced-1", settings: .testing).changes == 180)
                #expect(try SQLiteStore(path: path, settings: .testing).identity.epoch > 1)
            case .undone, nil:
                let isOld: Bool = changes == 180 && !crash.names.contains("thicket.db.replaced-1")
                let isDone: Bool = changes == 150 && crash.names.contains("thicket.db.replaced-1")
                #expect(isOld || isDone)
            }
            outcomes.append("\(interrupted.map { $0 == .undone ? "undone" : "finished" } ?? "nothing to do")")
        }
        #expect(outcomes == ["undone", "undone", "undone", "undone", "finished", "finished", "nothing to do"])
    }

    @Test(
        "an interrupted restore keeps the old store together with its write-ahead log",
        arguments: ["", ".replaced-1"])
    func interruptedWithLog(_ oldName: String) throws {
        let folder = StoreFolder()
        let copy: String = folder.path("copy.db")
        do {
            let (store, _): (SQLiteStore, StoreDriver) = try filled(folder)
            _ = try StoreBackup.run(from: store.path, to: copy, settings: .testing)
        }
        let crash = StoreFolder()
        try crash.write(try folder.bytes("copy.db"), to: "thicket.db.restored")
        // Before the old store was renamed, and after it was renamed but its log was not.
        try crash.write([1, 2, 3], to: "thicket.db" + oldName)
        try crash.write([4, 5], to: "thicket.db-wal")
        let interrupted: StoreRestore.Interrupted? = try StoreRestore.finishInterrupted(crash.path("thicket.db"))
        #expect(interrupted == .finished(replaced: crash.path("thicket.db.replaced-1")))
        #expect(try StoreCheck.run(crash.path("thicket.db"), settings: .testing).changes == 150)
        #expect(try crash.bytes("thicket.db.replaced-1") == [1, 2, 3])
        #expect(try crash.bytes("thicket.db.replaced-1-wal") == [4, 5])
    }

    @Test("a backup whose folder cannot be synced leaves no file, and the same name may be used again")
    func unsyncedFolder() throws {
        let folder = StoreFolder()
        let (store, _): (SQLiteStore, StoreDriver) = try filled(folder)
        let copy: String = folder.path("copy.db")
        let place: String = Files.folder(of: copy)
        var failing: StoreSettings = .testing
        failing.fileFault = { call, path in call == .sync && path == place ? EIO : 0 }
        #expect(throws: StoreError.self) { try StoreBackup.run(from: store.path, to: copy, settings: failing) }
        #expect(!Files.exists(copy))
        #expect(try StoreBackup.run(from: store.path, to: copy, settings: .testing).changes == 150)
    }

    @Test("a broken backup is refused, and the store stays unchanged")
    func brokenBackup() throws {
        let folder = StoreFolder()
        let copy: String = folder.path("copy.db")
        do {
            let (store, _): (SQLiteStore, StoreDriver) = try filled(folder)
            _ = try StoreBackup.run(from: store.path, to: copy, settings: .testing)
        }
        var bytes: [UInt8] = try folder.bytes("copy.db")
        for place in stride(from: 4_096, to: bytes.count, by: 7) { bytes[place] ^= 0x55 }
        try folder.write(bytes, to: "copy.db")
        let before: [UInt8] = try folder.bytes("thicket.db")
        #expect(throws: StoreError.self) {
            try StoreRestore.run(from: copy, to: folder.path("thicket.db"), settings: .testing)
        }
        #expect(try folder.bytes("thicket.db") == before)
        #expect(try StoreCheck.run(folder.path("thicket.db"), settings: .testing).findings == [])
    }
}
