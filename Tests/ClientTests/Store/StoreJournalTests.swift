import Glibc
import Testing
import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketClient

/// A large object is stored as a whole and the steps since.
@Suite("The journal of a store in a file")
struct StoreJournalTests {
    private func rows(_ path: String) throws -> Int {
        Int(try Database(path: path, mode: .readOnly).integer("SELECT count(*) FROM journal") ?? 0)
    }

    @Test("a store that is opened again after any number of turns holds what it held in memory", arguments: 1...12)
    func everyPrefix(seed: UInt64) throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let typist = try Typist(seed: seed)
        var opened: SQLiteLocalStore? = try SQLiteLocalStore(path: path)
        if let opened { try typist.begin(in: opened) }
        var most = 0
        for turn: Int in 0..<150 {
            if let opened {
                try typist.step(in: opened)
                #expect(try opened.entity(typist.address) == typist.record, "seed \(seed), turn \(turn)")
                try expectLists(opened, typist)
            }
            guard turn % 5 == 0 else { continue }
            opened?.close()
            // The lock ends with the store.
            opened = nil
            most = max(most, try rows(path))
            opened = try reopened(path, typist, "seed \(seed), turn \(turn), opened again")
        }
        #expect(most > 5, "steps are kept")
        #expect(most < 300, "and end when they outgrow the whole")
    }

    private func reopened(_ path: String, _ typist: Typist, _ place: Comment) throws -> SQLiteLocalStore {
        let store = try SQLiteLocalStore(path: path)
        #expect(try store.entity(typist.address) == typist.record, place)
        try expectLists(store, typist)
        return store
    }

    /// Queries over many objects give the same answers.
    private func expectLists(_ store: SQLiteLocalStore, _ typist: Typist) throws {
        let record = typist.record
        let known = try store.versions(typist.address.bucket, limit: 2).map(\.version)
        #expect(known == (record.ghost.object == nil ? [] : [record.ghost.version]))
        let isEdited = try store.edited(typist.address.bucket).contains { $0.hasEdits }
        #expect(isEdited == record.edits.hasEdits)
    }

    @Test("a keystroke in a text of 100 KB writes four pages on average, and steps are merged before 1,024")
    func bytesOfAKeystroke() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let store = try SQLiteLocalStore(path: path)
        let typist = try Typist(seed: 1)
        try typist.begin(in: store, units: 100_000)
        try typist.pressKey(in: store)
        let before = size(path + "-wal")
        for _ in 0..<100 { try typist.pressKey(in: store) }
        let pages = Double(size(path + "-wal") - before) / Double(4_096 + 24) / 100
        #expect(pages <= 4.2, "edit; step, edit and position")
        for _ in 0..<1_000 { try typist.pressKey(in: store) }
        #expect(try store.entity(typist.address) == typist.record)
        store.close()
        #expect(try rows(path) < 1_024)
    }

    private func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }

    @Test("after a crash at any point the store holds one moment, not before the last one that had to be on the disk")
    func everyCrash() throws {
        var random = SeededRandom(seed: 7)
        var lost = 0
        for point in stride(from: 0, to: 240, by: 4) {
            let folder = try TemporaryFolder()
            let path = folder.file("a.db")
            let disk = FaultVFS(name: "journal-crash-\(point)")
            let typist = try Typist(seed: UInt64(point))
            let key: StoreKey? = point % 8 == 0 ? .random() : nil
            // The states that the store may hold afterwards: the one on the disk, and each one since.
            var moments = [EntityRecord]()
            do {
                let store = try SQLiteLocalStore(path: path, key: key, vfs: disk.name)
                try typist.begin(in: store, units: 5_000)
                try typist.step(in: store, isOnDisk: true)
                moments = [typist.record]
                disk.fail(FaultRule(.change, .crash, skipping: point))
                for turn in 0..<200 where !disk.isCrashed {
                    let isOnDisk = turn % 7 == 0
                    do { try typist.step(in: store, isOnDisk: isOnDisk) } catch { break }
                    moments = isOnDisk ? [typist.record] : moments + [typist.record]
                }
                if !disk.isCrashed { disk.crash { _ in Bool.random(using: &random) } }
                store.close()
            }
            disk.restart()
            let store = try SQLiteLocalStore(path: path, key: key, vfs: disk.name)
            let found = try #require(try store.entity(typist.address))
            // The turn during which the crash came may be complete.
            let place: Int? = moments.lastIndex(of: found)
            if place == nil { #expect(found.ghost.version >= (moments.last?.ghost.version ?? 0), "point \(point)") }
            lost += place.map { moments.count - 1 - $0 } ?? 0
            try typist.adopt(found)
            for _ in 0..<5 { try typist.step(in: store) }
            #expect(try store.entity(typist.address) == typist.record)
            store.close()
        }
        #expect(lost > 0, "what need not be on the disk may be lost")
    }

    @Test("when a write or a sync of the disk fails, the turn is refused as a whole and the next one works")
    func everyFault() throws {
        var refused = 0
        for (number, operation) in [FaultRule.Operation.write, .sync].enumerated() {
            let folder = try TemporaryFolder()
            let disk = FaultVFS(name: "journal-fault-\(number)")
            let key: StoreKey? = number == 0 ? .random() : nil
            let store = try SQLiteLocalStore(path: folder.file("a.db"), key: key, vfs: disk.name)
            let typist = try Typist(seed: 3)
            try typist.begin(in: store)
            for turn in 0..<120 {
                disk.fail(FaultRule(operation, turn % 2 == 0 ? .io : .full, skipping: turn % 7, times: 1))
                do { try typist.step(in: store, isOnDisk: true) } catch { refused += 1 }
                disk.heal()
                #expect(try store.entity(typist.address) == typist.record, "\(operation), turn \(turn)")
            }
            store.close()
        }
        #expect(refused > 30)
    }

    @Test("a store of format 1 opens, keeps its edits, and continues with steps")
    func migration() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("a.db")
        let text = String(repeating: "old text ", count: 1_000)
        do {
            let old = try Database(path: path)
            try old.execute(Self.formatOne)
            try old.statement("INSERT INTO ghost (id, object) VALUES (1, ?1)")
                .bind(1, JSONObject([("text", .string(text))]).serialized()).run()
            try old.statement("INSERT INTO edit VALUES (1, 'c1', ?1, 7, ?2, NULL, 0, ?1, NULL, NULL, NULL, NULL, 0, 0)")
                .bind(1, Array(#"{"n":{"o":"+","v":1}}"#.utf8)).bind(2, Array(#"{"id":"page"}"#.utf8)).run()
        }
        var store: SQLiteLocalStore? = try SQLiteLocalStore(path: path)
        let typist = try Typist(seed: 5)
        let kept: EntityRecord = try #require(try store?.entity(typist.address))
        #expect(kept.ghost == Ghost(version: 7, object: ["text": .string(text)]))
        #expect(kept.edits.pending?.changeID.text == "c1")
        #expect(kept.edits.pending?.bytes == Array(#"{"id":"page"}"#.utf8))
        #expect(kept.edits.later == .modify(ObjectDiff([("n", .insert(1))])))
        #expect(try store?.buckets().first?.changeVersion?.text == "cv9")
        store?.close()
        store = nil
        #expect(try Database(path: path).integer("PRAGMA user_version") == 5)
        let again = try SQLiteLocalStore(path: path)
        var record = kept
        record.edits = EditState()
        record.ghost = try record.ghost.after([GhostStep(version: 8, diff: ObjectDiff([("n", .insert(1))]))])
        let step = GhostStep(version: 8, diff: ObjectDiff([("n", .insert(1))]))
        var batch = LocalBatch()
        batch.entities = [EntityWrite(typist.address, record, [.ghost, .edits], ghostSteps: [step])]
        try again.commit(batch)
        #expect(try again.entity(typist.address) == record)
        again.close()
        #expect(try rows(path) == 1)
    }

    /// The format of version 0.1.
    private static let formatOne = """
        CREATE TABLE note (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE bucket (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, cv TEXT, walks INTEGER NOT NULL,
            walk INTEGER, mark TEXT, current TEXT, objects_read INTEGER, objects_total INTEGER);
        CREATE TABLE entity (
            id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 0,
            is_there INTEGER NOT NULL DEFAULT 0, is_live INTEGER NOT NULL DEFAULT 0, walk INTEGER NOT NULL DEFAULT 0,
            UNIQUE (bucket, key));
        CREATE TABLE ghost (id INTEGER PRIMARY KEY, object BLOB NOT NULL);
        CREATE TABLE edit (
            id INTEGER PRIMARY KEY, ccid TEXT, pending BLOB, source INTEGER, sent BLOB, applied_at INTEGER,
            is_confirmed INTEGER NOT NULL, later BLOB, held_version INTEGER, held BLOB, wanted INTEGER, refusal INTEGER,
            attempts INTEGER NOT NULL, sends_whole INTEGER NOT NULL);
        INSERT INTO bucket (id, name, cv, walks) VALUES (1, 'notes', 'cv9', 1);
        INSERT INTO entity VALUES (1, 1, 'page', 7, 1, 1, 1);
        PRAGMA journal_mode=WAL;
        PRAGMA user_version=1;
        """
}
