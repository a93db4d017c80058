import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport

@testable import ThicketServer

/// Modes of buckets in the file: how they are set and checked, and what a restore and an upgrade keep.
@Suite("Modes of buckets in the store")
struct BucketModeTests {
    private let folder = StoreFolder()
    private var path: String { folder.path("thicket.db") }

    private func open() throws -> SQLiteStore { try SQLiteStore(path: path, settings: .testing) }

    private func admin(_ shard: TestShard) throws -> StoreAdmin {
        let admin = try StoreAdmin(path: path)
        try admin.createApp(shard.bucket.app, now: 0)
        return admin
    }

    private func findings() throws -> [String] { try StoreCheck.run(path, settings: .testing).findings }

    @Test("a mode set for a name applies to all users' buckets or to none, and never to a bucket with objects")
    func setting() throws {
        let shard = try TestShard(store: try open())
        let (admin, app, name) = (try admin(shard), shard.bucket.app, shard.bucket.name)
        let bob = BucketID(app: app, user: try UserID("bob"), name: name)
        try shard.make("k", ["t": "clear"])
        try shard.group([try shard.submission("k", d: ["t": "clear"], bucket: bob)])
        #expect(throws: StoreAdminError.bucketsInUse(name, users: 2)) { try admin.setMode(.sealed, of: name, in: app) }
        try shard.send("k", .remove)
        #expect(throws: StoreAdminError.bucketsInUse(name, users: 1)) { try admin.setMode(.sealed, of: name, in: app) }
        #expect(try admin.modes(of: name, in: app) == .init(ofNew: .open, open: 2, sealed: 0))
        try shard.group([try shard.submission("k", .remove, bucket: bob)])
        #expect(try admin.setMode(.sealed, of: name, in: app) == 2)
        #expect(try admin.setMode(.sealed, of: name, in: app) == 0, "setting it again changes nothing")
        #expect(try admin.modes(of: name, in: app) == .init(ofNew: .sealed, open: 0, sealed: 2))
        #expect(try shard.create().version == 1)
        #expect(throws: StoreAdminError.bucketsInUse(name, users: 1)) { try admin.setMode(.open, of: name, in: app) }
        #expect(try findings() == [])
        #expect(throws: StoreAdminError.options) {
            try admin.setMode(.sealed, of: BucketName(BucketOptions.name), in: app)
        }
        let none = try AppID("none")
        #expect(throws: StoreAdminError.unknownApp(none)) { try admin.setMode(.sealed, of: name, in: none) }
    }

    @Test(
        "the check finds invalid rows of a sealed bucket",
        arguments: [
            ("UPDATE ent SET born = NULL", "no valid creation version"),
            ("UPDATE ent SET born = 2", "no valid creation version"),
            ("UPDATE ent SET born = 9", "no valid creation version"),
            ("UPDATE chg SET k = 'clear'; UPDATE ent SET k = 'clear'", "key"),
            (#"UPDATE chg SET diff = '{"t":{"o":"+","v":"clear"}}' WHERE gid = 1"#, "bucket 1"),
        ])
    func finding(sql: String, word: String) throws {
        do {
            let shard = try TestShard(store: try open())
            shard.seal()
            try shard.create()
            try shard.insert(1, sv: 1)
            #expect(try findings() == [])
        }
        try folder.writeAllHeads(in: "thicket.db")
        try folder.run(sql, in: "thicket.db")
        let found: [String] = try findings()
        #expect(!found.isEmpty && found.joined().contains(word), "\(found)")
    }

    @Test("the check finds an open bucket with objects that was turned into a sealed one by hand")
    func turned() throws {
        do {
            let shard = try TestShard(store: try open())
            try shard.make("k", ["t": "clear"])
        }
        try folder.run("UPDATE bucket SET mode = 1", in: "thicket.db")
        #expect(try !findings().isEmpty)
        let shard = try TestShard(store: try open())
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "r", "v": "more"]]) == .error(400))
    }

    @Test("backup and restore keep the mode, and versions from before the restore are refused with 405")
    func restored() throws {
        let copy: String = folder.path("copy.db")
        do {
            let store: SQLiteStore = try open()
            let shard = try TestShard(store: store)
            shard.seal()
            try shard.create()
            try shard.insert(1, sv: 1)
            _ = try StoreBackup.run(from: store.path, to: copy, settings: .testing)
            try shard.insert(2, sv: 2)
        }
        let report: StoreRestore.Report = try StoreRestore.run(from: copy, to: path, settings: .testing)
        #expect(try findings() == [])
        let shard = try TestShard(store: try open())
        #expect(try shard.make("k", ["t": "clear"]) == .error(400))
        for sv: Version in [1, 2, 3, report.versionsAdded] { #expect(try shard.insert(2, sv: sv) == .error(405)) }
        #expect(try shard.insert(2, sv: report.versionsAdded + 1).version == report.versionsAdded + 3)
        #expect(try shard.sealed()?.tail == [2, 1])
    }

    @Test("retention cuts the log of a sealed bucket and keeps its order; late operations are still accepted")
    func cut() throws {
        let store: SQLiteStore = try open()
        let shard = try TestShard(.cold, store: store)
        shard.seal()
        try shard.create()
        for number: Int in 1...60 { try shard.insert(number, sv: 1) }
        var settings = RetentionSettings()
        (settings.logAgeMin, settings.logChangesMin) = (0, 10)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1 << 40) { _ = try shard.core.apply(batch) }
        #expect(try shard.log().count == 10)
        #expect(try shard.insert(61, sv: 1).version == 62)
        #expect(try shard.compact(30, over: [0], removing: 30..<60, sv: 40) == .error(405), "too old to be rebased")
        #expect(try shard.compact(30, over: [0], removing: 31..<61, sv: 62).version == 63)
        #expect(try shard.sealed()?.tail == Array((31...61).reversed()))
        #expect(try findings() == [])
    }

    @Test("a file of schema version 8 has open buckets, which work as before")
    func migrated() throws {
        do {
            let old = try Database(path: path)
            _ = try old.text("PRAGMA journal_mode=WAL")
            for migration in Schema.migrations.prefix(8) { try old.execute(migration) }
            try Meta.seed(old) { Array(repeating: 7, count: $0) }
            try old.execute(
                """
                INSERT INTO bucket (id, app, owner, name, head, floor, fresh, settled, loose)
                    VALUES (1, 'app', 'ann@example.com', 'notes', 1, 0, 0, 0, 1);
                INSERT INTO client (id, name) VALUES (1, 'c');
                INSERT INTO chg VALUES (1, 1, 'k', 0, NULL, 1, 0, 0, 0, 1, 'x1', 5, '{"t":{"o":"+","v":"a"}}', NULL);
                INSERT INTO ent VALUES (1, 'k', 1, 1, 0, 0);
                PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=8
                """)
        }
        let shard = try TestShard(store: try open())
        #expect(try shard.store.makeReader().bucket(shard.bucket)?.mode == .open)
        #expect(shard.seal() == .mode(.open))
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "r", "v": "b"]]).version == 2)
        #expect(try findings() == [])
    }

    @Test("an erased user leaves no mode behind")
    func erased() throws {
        let store: SQLiteStore = try open()
        let shard = try TestShard(store: store)
        shard.seal()
        try shard.create()
        try folder.run(
            "INSERT INTO erasure (app, user, created) VALUES ('app', 'ann@example.com', 1)", in: "thicket.db")
        let maintenance: any StoreMaintenance = try store.makeMaintenance(.init())
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1 << 40) { _ = try shard.core.apply(batch) }
        #expect(try store.makeReader().bucket(shard.bucket) == nil)
        #expect(shard.seal() == .unknown, "no bucket of an erased user is sealed")
    }
}
