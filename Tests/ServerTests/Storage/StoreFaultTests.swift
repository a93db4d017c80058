import Glibc
import Testing
import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// The guarantee of an acknowledged commit, whatever the disk does.
@Suite("Store on a failing disk") struct StoreFaultTests {
    private func settings(_ disk: FaultVFS) -> StoreSettings {
        var settings: StoreSettings = .testing
        settings.vfs = disk.name
        settings.passivePages = 20
        settings.restartPages = 60
        settings.logReservedBytes = 64 << 10
        return settings
    }

    /// Every acknowledged change is stored unchanged.
    private func expectAll(_ acknowledged: [BucketID: StoreDriver.Bucket], in store: any Store) throws {
        let reader: any StoreReader = try store.makeReader()
        for (id, bucket) in acknowledged {
            let record: BucketRecord = try #require(try reader.bucket(id))
            #expect(record.head >= bucket.record.head)
            for change in bucket.log { #expect(try reader.change(change.gid) == change) }
            for (key, object) in bucket.objects {
                #expect(try #require(try reader.entity(key, in: record.row)).gid >= object.record.gid)
            }
        }
    }

    @Test(
        "a file that claims to have no log gets one before any write; a deleted journal does not come back"
    )
    func fileWithoutLog() throws {
        let folder = StoreFolder()
        let history = DiskHistory()
        let disk = FaultVFS(name: "without-log", history: history)
        let path: String = folder.path("thicket.db")
        let store = try SQLiteStore(path: path, settings: settings(disk))
        // Each deleted journal stays deleted: the folder is synced.
        let journals: [DiskHistory.Step] = history.steps.filter { $0.file.hasSuffix("-journal") }
        #expect(journals.contains { if case .delete = $0.action { true } else { false } })
        for (number, step) in journals.enumerated() {
            guard case .delete = step.action else { continue }
            guard number + 1 < journals.count, case .syncNames = journals[number + 1].action else {
                Issue.record("a deleted journal may come back")
                continue
            }
        }
        // The file as a journal that came back would leave it: read and write version of SQLite's file format are 1.
        let file: Int32 = open(path, O_RDWR)
        #expect(pwrite(file, [1, 1] as [UInt8], 2, 18) == 2)
        close(file)
        let driver = try StoreDriver(try store.makeWriter(), seed: 7)
        try driver.run(3, in: [try StoreDriver.id("a")])
        var versions: [UInt8] = [0, 0]
        let again: Int32 = open(path, O_RDONLY)
        #expect(pread(again, &versions, 2, 18) == 2)
        close(again)
        #expect(versions == [2, 2])
        #expect(access(path + "-wal", F_OK) == 0)
        try expectAll(driver.buckets, in: store)
    }

    @Test("any failed disk call refuses its group whole, loses nothing older, and the next group is committed")
    func everyFault() throws {
        var refused = 0
        for (number, failure) in [FaultRule.Failure.io, .full].enumerated() {
            for operation: FaultRule.Operation in [.write, .sync] {
                let folder = StoreFolder()
                let disk = FaultVFS(name: "every-\(number)-\(operation)")
                let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings(disk))
                let driver = try StoreDriver(try store.makeWriter(), seed: 41)
                let maintenance: any StoreMaintenance = try store.makeMaintenance(RetentionSettings())
                let id: BucketID = try StoreDriver.id("a")
                for round: Int in 0..<40 {
                    let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
                    for _ in 0..<3 { try driver.step(in: id, keys: 4) }
                    disk.fail(FaultRule(operation, failure, skipping: round % 9, times: 1))
                    do {
                        try driver.commit()
                        // The fault may hit maintenance instead, whose work is never acknowledged to a client.
                        _ = try? maintenance.nextBatch(now: driver.now)
                    } catch let error as StoreError {
                        #expect(error.kind == (failure == .full ? .full : .io))
                        driver.forgetBatch(saved)
                        #expect(try driver.writer.bucket(id)?.head == saved[id]?.record.head)
                        refused += 1
                    }
                    disk.heal()
                }
                try driver.run(3, in: [id])
                try expectAll(driver.buckets, in: store)
                #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
            }
        }
        #expect(refused > 20)
    }

    @Test("space in the log is reserved in advance, and a disk without that space accepts commits as before")
    func reservedRoom() throws {
        func logBytes(_ path: String) -> Int {
            var info = stat()
            return stat(path + "-wal", &info) == 0 ? Int(info.st_size) : -1
        }
        let roomy = StoreFolder()
        var wanted: StoreSettings = .testing
        wanted.logReservedBytes = 3 << 20
        let store = try SQLiteStore(path: roomy.path("thicket.db"), settings: wanted)
        let driver = try StoreDriver(try store.makeWriter(), seed: 43)
        #expect(logBytes(store.path) == 3 << 20)
        try driver.run(20, in: [try StoreDriver.id("a")])
        #expect(logBytes(store.path) == 3 << 20, "commits use the reserved space")
        try expectAll(driver.buckets, in: store)

        let folder = StoreFolder()
        let disk = FaultVFS(name: "no-room")
        wanted.vfs = disk.name
        let full = try SQLiteStore(path: folder.path("thicket.db"), settings: wanted)
        let before: Int = logBytes(full.path)
        disk.fail(FaultRule(.write, .full, skipping: 1, times: 1))
        let other = try StoreDriver(try full.makeWriter(), seed: 44)
        disk.heal()
        #expect(logBytes(full.path) == max(before, 0), "the partial reservation is undone")
        try other.run(20, in: [try StoreDriver.id("a")])
        try expectAll(other.buckets, in: full)
        #expect(try StoreCheck.run(full.path, settings: .testing).findings == [])
    }

    @Test("after a power cut at any point every acknowledged change is stored and the store is sound")
    func everyCrash() throws {
        var random = SeededRandom(seed: 42)
        var crashes = 0
        for point in stride(from: 0, to: 150, by: 3) {
            let folder = StoreFolder()
            let disk = FaultVFS(name: "crash-\(point)")
            let id: BucketID = try StoreDriver.id("a")
            var acknowledged: [BucketID: StoreDriver.Bucket] = [:]
            do {
                let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings(disk))
                let driver = try StoreDriver(try store.makeWriter(), seed: UInt64(point))
                let maintenance: any StoreMaintenance = try store.makeMaintenance(RetentionSettings())
                let base: Int = disk.calls(of: .change)
                for _ in 0..<60 where !disk.isCrashed {
                    for _ in 0..<2 { try driver.step(in: id, keys: 4) }
                    if disk.calls(of: .change) - base >= point {
                        // Any part of the unsynced writes may have reached the disk.
                        let share: Int = Int.random(in: 0...2, using: &random)
                        disk.fail(FaultRule(.sync, .io, times: share == 0 ? 0 : 1))
                        let failed: Bool = (try? driver.commit()) == nil
                        if !failed { acknowledged = driver.buckets }
                        disk.crash { _ in share > 0 && Bool.random(using: &random) }
                        crashes += 1
                        break
                    }
                    try driver.commit()
                    acknowledged = driver.buckets
                    _ = try? maintenance.nextBatch(now: driver.now)
                }
                if !disk.isCrashed {
                    disk.crash()
                    crashes += 1
                }
                #expect(throws: StoreError.self) {
                    try driver.step(in: id, keys: 4)
                    try driver.commit()
                }
            }
            disk.restart()
            let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings(disk))
            try expectAll(acknowledged, in: store)
            #expect(try StoreCheck.run(store.path, settings: settings(disk)).findings == [])
            let driver = try StoreDriver(try store.makeWriter(), seed: 1)
            try driver.run(5, in: [try StoreDriver.id("after")])
            #expect(try StoreCheck.run(store.path, settings: settings(disk)).findings == [])
        }
        #expect(crashes == 50)
    }

    @Test("after a crash between any two disk calls a group is stored whole or not at all")
    func crashInside() throws {
        for point: Int in 0..<60 {
            let folder = StoreFolder()
            let disk = FaultVFS(name: "inside-\(point)")
            let id: BucketID = try StoreDriver.id("a")
            var acknowledged: [BucketID: StoreDriver.Bucket] = [:]
            do {
                let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings(disk))
                let driver = try StoreDriver(try store.makeWriter(), seed: UInt64(point))
                let maintenance: any StoreMaintenance = try store.makeMaintenance(RetentionSettings())
                disk.fail(FaultRule(.change, .crash, skipping: point * 3))
                for _ in 0..<200 where !disk.isCrashed {
                    for _ in 0..<3 { try driver.step(in: id, keys: 4) }
                    guard (try? driver.commit()) != nil else { break }
                    acknowledged = driver.buckets
                    _ = try? maintenance.nextBatch(now: driver.now)
                }
                #expect(disk.isCrashed)
            }
            disk.restart()
            let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings(disk))
            try expectAll(acknowledged, in: store)
            let found: StoreFindings = try StoreCheck.run(store.path, settings: settings(disk))
            #expect(found.findings == [])
            #expect(found.changes % 3 == 0)
        }
    }

    @Test("a full file refuses changes, keeps its contents readable, and accepts changes again with more space")
    func pageLimit() throws {
        let folder = StoreFolder()
        var limited: StoreSettings = .testing
        // The tables of an empty store need more than sixty pages.
        limited.pagesMax = 96
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: limited)
        let driver = try StoreDriver(try store.makeWriter(), seed: 43)
        let id: BucketID = try StoreDriver.id("a")
        var error: StoreError?
        for _ in 0..<1_000 where error == nil {
            let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
            try driver.step(in: id, keys: 30)
            do {
                try driver.commit()
            } catch let failure as StoreError {
                error = failure
                driver.forgetBatch(saved)
            }
        }
        #expect(error?.kind == .full)
        try expectAll(driver.buckets, in: store)
        try (driver.writer as? SQLiteWriter)?.database.limitPages(10_000)
        try driver.run(30, in: [id])
        try expectAll(driver.buckets, in: store)
        #expect(try StoreCheck.run(store.path, settings: .testing).findings == [])
    }

    @Test("a log that may not grow is restarted while the file has space for it")
    func logCannotGrow() throws {
        let folder = StoreFolder()
        let disk = FaultVFS(name: "log-limit")
        var settings: StoreSettings = .testing
        settings.vfs = disk.name
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings)
        let driver = try StoreDriver(try store.makeWriter(), seed: 48)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(20, in: [id], keys: 3)
        let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
        try driver.step(in: id, keys: 3)
        disk.fail(FaultRule(.write, .full, times: 1, suffix: "-wal"))
        #expect(throws: StoreError.self) { try driver.commit() }
        driver.forgetBatch(saved)
        #expect(try driver.writer.bucket(id)?.head == saved[id]?.record.head)
        // The refused group has emptied the log into the file: the next group is at its beginning.
        try driver.step(in: id, keys: 3)
        try driver.commit()
        #expect(try #require((driver.writer as? SQLiteWriter)?.database.walPages) < 8)
        try expectAll(driver.buckets, in: store)
    }

    @Test("while another process locks the file a commit is refused as busy; then commits work")
    func locked() throws {
        let folder = StoreFolder()
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: .testing)
        let driver = try StoreDriver(try store.makeWriter(), seed: 44)
        let id: BucketID = try StoreDriver.id("a")
        try driver.run(5, in: [id])
        let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
        let other = try Database(path: store.path)
        try other.begin(.immediate)
        try driver.step(in: id, keys: 3)
        let error: StoreError? = #expect(throws: StoreError.self) { try driver.commit() }
        #expect(error?.kind == .busy)
        driver.forgetBatch(saved)
        #expect(try store.makeReader().bucket(id)?.head == saved[id]?.record.head)
        try other.commit()
        try driver.run(5, in: [id])
        try expectAll(driver.buckets, in: store)
    }

    @Test("a long log is restarted between groups, and every change stays readable")
    func longLog() throws {
        let folder = StoreFolder()
        var settings: StoreSettings = .testing
        settings.passivePages = 30
        settings.restartPages = 100
        let store = try SQLiteStore(path: folder.path("thicket.db"), settings: settings)
        let driver = try StoreDriver(try store.makeWriter(), seed: 45)
        let id: BucketID = try StoreDriver.id("a")
        var most: Int64 = 0
        for _ in 0..<60 {
            try driver.run(10, in: [id])
            most = max(most, Files.size(store.path + "-wal"))
        }
        // One group writes a few pages beyond the bound before the next one restarts the log.
        #expect(most > 50 * 4_096 && most < 160 * 4_096)
        try expectAll(driver.buckets, in: store)
    }

    @Test("a memory store fails and crashes by its plan")
    func memoryPlan() throws {
        let store = MemoryStore(faults: { point in
            switch point.number {
            case 2: .fail(StoreError(.full, "planned"))
            case 4: .crashBefore
            case 5: .crashAfter
            default: .none
            }
        })
        let id: BucketID = try StoreDriver.id("a")
        var driver = try StoreDriver(try store.makeWriter(), seed: 46)
        func put(_ key: String) throws {
            let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
            do {
                try driver.put(EntityKey(key), ["k": .string(key)], in: id)
                try driver.commit()
            } catch {
                driver.forgetBatch(saved)
                throw error
            }
        }
        try put("one")
        #expect(throws: StoreError(.full, "planned")) { try put("two") }
        try put("three")
        #expect(throws: StoreError.self) { try put("four") }
        #expect(store.isDown)
        #expect(throws: StoreError.self) { try driver.writer.bucket(id) }
        #expect(throws: StoreError.self) { try store.makeReader() }
        store.restart()
        let saved: [BucketID: StoreDriver.Bucket] = driver.buckets
        driver = try .init(try store.makeWriter(), seed: 47)
        driver.buckets = saved
        #expect(try driver.writer.liveKeys(in: 1, after: nil, limit: 9).map(\.text) == ["one", "three"])
        #expect(throws: StoreError.self) { try put("five") }
        store.restart()
        #expect(try store.makeReader().liveKeys(in: 1, after: nil, limit: 9).map(\.text) == ["five", "one", "three"])
    }
}
