import Testing
import ThicketProtocol
import ThicketSQLite
import ThicketTestSupport
import ThicketTreeShape

@testable import ThicketServer

/// The places of nodes in the store: written with the changes, erased, migrated, audited.
@Suite("Nodes of trees in the store")
struct TreeStoreTests {
    private let folder = StoreFolder()
    private var path: String { folder.path("thicket.db") }

    private func findings() throws -> [String] { try StoreCheck.run(path, settings: .testing).findings }

    private func place(_ parent: NodeParent, _ name: String) throws -> NodePlace {
        NodePlace(parent: parent, tag: try NodeText.record(parent, name).tag)
    }

    private static func stored(_ place: NodePlace) -> NodeRow {
        NodeRow(place: place, gid: 1, changed: 2, burnTime: nil, blob: nil, bytes: 3)
    }

    @Test(
        "places are stored with the group's changes, found by id, by place and by parent", arguments: StoreKind.allCases
    )
    func rows(kind: StoreKind) throws {
        let driver = try StoreDriver(try kind.make(folder).makeWriter(), seed: 1)
        let id: BucketID = try StoreDriver.id("tree")
        try driver.put(EntityKey("k"), ["a": 1], in: id)
        let row: BucketRow = try #require(driver.buckets[id]).record.row
        for number: Int in 1...5 {
            let parent: NodeParent = number < 3 ? .trunk(.home) : .child(1)
            driver.batch.append(
                .init(bucket: row, node: NodeText.id(number), row: Self.stored(try place(parent, "n\(number)"))))
        }
        try driver.commit()
        let writer: any StoreWriter = driver.writer
        #expect(try writer.place(of: NodeText.id(4), in: row) == place(.child(1), "n4"))
        #expect(try writer.node(at: place(.trunk(.home), "n2"), in: row) == NodeText.id(2))
        #expect(try writer.node(at: place(.trunk(.prefs), "n2"), in: row) == nil)
        let below: [NodeID] = try writer.children(of: .child(1), in: row, limit: 9)
        #expect(Set(below) == [NodeText.id(3), NodeText.id(4), NodeText.id(5)])
        #expect(try writer.children(of: .child(1), in: row, limit: 2) == Array(below.prefix(2)))
        #expect(try writer.place(of: NodeText.id(1), in: row + 1) == nil)
        // Two exchange their places, one goes.
        try driver.put(EntityKey("k"), ["a": 2], in: id)
        for (number, new) in [(1, try place(.trunk(.home), "n2")), (2, try place(.trunk(.home), "n1")), (5, nil)] {
            driver.batch.append(.init(bucket: row, node: NodeText.id(number), row: new.map(Self.stored)))
        }
        try driver.commit()
        #expect(try writer.node(at: place(.trunk(.home), "n1"), in: row) == NodeText.id(2))
        #expect(try writer.place(of: NodeText.id(5), in: row) == nil)
    }

    @Test("a group in which two nodes have one place is refused as a whole", arguments: StoreKind.allCases)
    func atomic(kind: StoreKind) throws {
        let driver = try StoreDriver(try kind.make(folder).makeWriter(), seed: 1)
        let id: BucketID = try StoreDriver.id("tree")
        try driver.put(EntityKey("k"), ["a": 1], in: id)
        let row: BucketRow = try #require(driver.buckets[id]).record.row
        driver.batch.append(.init(bucket: row, node: NodeText.id(1), row: Self.stored(try place(.trunk(.home), "a"))))
        try driver.commit()
        let newest: GlobalID = try driver.writer.lastGlobalID()
        try driver.put(EntityKey("k"), ["a": 2], in: id)
        driver.batch.append(.init(bucket: row, node: NodeText.id(1), row: Self.stored(try place(.trunk(.home), "b"))))
        driver.batch.append(.init(bucket: row, node: NodeText.id(2), row: Self.stored(try place(.trunk(.home), "c"))))
        driver.batch.append(.init(bucket: row, node: NodeText.id(3), row: Self.stored(try place(.trunk(.home), "c"))))
        do {
            try driver.commit()
            Issue.record("it was committed")
        } catch let error as StoreError {
            #expect(error.kind == .constraint)
        }
        #expect(try driver.writer.lastGlobalID() == newest)
        #expect(try driver.writer.place(of: NodeText.id(1), in: row) == place(.trunk(.home), "a"))
        #expect(try driver.writer.place(of: NodeText.id(2), in: row) == nil)
    }

    @Test("backup and restore keep the places; records are written on the raised versions")
    func restored() throws {
        let copy: String = folder.path("copy.db")
        do {
            let shard: TestShard = try .tree(store: SQLiteStore(path: path, settings: .testing))
            try shard.writeChain(3)
            _ = try StoreBackup.run(from: path, to: copy, settings: .testing)
            try shard.write(4, "later")
        }
        let added: Version = try StoreRestore.run(from: copy, to: path, settings: .testing).versionsAdded
        #expect(try findings() == [])
        let shard: TestShard = try .tree(store: SQLiteStore(path: path, settings: .testing))
        #expect(try shard.place(3)?.parent == .child(2) && shard.place(4) == nil)
        let old: SubmittedChange = try shard.writing(3, below: .child(1), "x", sv: 1, ccid: "old")
        #expect(try shard.group([old]) == [.refused(.stale, current: added + 1)])
        let new: SubmittedChange = try shard.writing(3, below: .child(1), "x", sv: added + 1, ccid: "new")
        #expect(try shard.group([new]).first?.version == added + 2)
        #expect(try findings() == [])
    }

    @Test("retention cuts the log of a tree and leaves its nodes")
    func cut() throws {
        let store = try SQLiteStore(path: path, settings: .testing)
        let shard: TestShard = try .tree(.cold, store: store)
        try shard.writeChain(3)
        for version: Version in 1...40 { try shard.write(3, below: .child(2), "n\(version)", sv: version) }
        var settings = RetentionSettings()
        (settings.logAgeMin, settings.logChangesMin) = (0, 5)
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1 << 40) { _ = try shard.core.apply(batch) }
        #expect(try shard.log().count == 5 && findings() == [])
        #expect(try shard.remove(1, sv: 1) == .refused(.leafOnly))
        #expect(try shard.write(3, "home", sv: 41).version == 42)
        #expect(try shard.remove(2, sv: 1).version == 2 && findings() == [])
    }

    @Test("a user whose account ends leaves no node behind; the others' nodes stay", arguments: [1, 1_000])
    func erased(rowsMax: Int) throws {
        let store = try SQLiteStore(path: path, settings: .testing)
        let shard: TestShard = try .tree(store: store)
        try shard.writeChain(9)
        for number in 10...15 { try shard.make(number, TestShard.put(number, "n\(number)")) }
        let bob = BucketID(app: shard.bucket.app, user: try UserID("bob"), name: shard.bucket.name)
        _ = shard.core.receive(.chooseMode(ModeRequest(.tree, of: bob, tenant: 0)))
        let record: JSONObject = try NodeText.record(.trunk(.home), "a").object
        try shard.group([try shard.submission(NodeText.key(1), d: .object(record), bucket: bob)])
        try folder.run(
            "INSERT INTO erasure (app, user, created) VALUES ('app', 'ann@example.com', 1)", in: "thicket.db")
        var settings = RetentionSettings()
        settings.rowsPerBatch = rowsMax
        let maintenance: any StoreMaintenance = try store.makeMaintenance(settings)
        while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1 << 40) { _ = try shard.core.apply(batch) }
        let database = try Database(path: path)
        #expect(try database.integer("SELECT count(*) FROM node") == 1)
        #expect(try database.integer("SELECT count(*) FROM batch") == 0)
        #expect(try findings() == [])
    }

    @Test("a file from before trees gets an empty table, and its bucket tree stays open")
    func migrated() throws {
        let before = try #require(Schema.migrations.firstIndex { $0.contains("CREATE TABLE node ") })
        do {
            let old = try Database(path: path)
            _ = try old.text("PRAGMA journal_mode=WAL")
            for migration in Schema.migrations.prefix(before) { try old.execute(migration) }
            try Meta.seed(old) { Array(repeating: 7, count: $0) }
            try old.execute(
                """
                INSERT INTO bucket (id, app, owner, name, head, floor, fresh, settled, loose)
                    VALUES (1, 'app', 'ann@example.com', 'tree', 1, 0, 0, 0, 1);
                INSERT INTO client (id, name) VALUES (1, 'c');
                INSERT INTO chg VALUES (1, 1, 'k', 0, NULL, 1, 0, 0, 0, 1, 'x1', 5, '{"t":{"o":"+","v":"a"}}', NULL);
                INSERT INTO ent VALUES (1, 'k', 1, 1, 0, 0, NULL);
                PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=\(before)
                """)
        }
        let shard: TestShard = try .tree(store: SQLiteStore(path: path, settings: .testing))
        #expect(try shard.store.makeReader().bucket(shard.bucket)?.mode == .open)
        #expect(try shard.send("k", sv: 1, v: ["t": ["o": "r", "v": "b"]]).version == 2)
        #expect(try findings() == [])
    }

    @Test("rows of nodes from before lists of children get their newest change, its time and their children")
    func olderRows() throws {
        do {
            let shard: TestShard = try .tree(store: SQLiteStore(path: path, settings: .testing))
            try shard.writeChain(30)
            try shard.write(3, below: .child(2), "moved", sv: 1)
        }
        // Some heads are not in their table yet.
        try folder.run(
            """
            CREATE TABLE kept AS SELECT id, gid, t, kids FROM node; DROP INDEX node_newest; DROP INDEX node_burn;
            ALTER TABLE node DROP COLUMN gid; ALTER TABLE node DROP COLUMN t; ALTER TABLE node DROP COLUMN x;
            ALTER TABLE node DROP COLUMN kids; DROP TABLE batch; DROP INDEX node_blob;
            ALTER TABLE node DROP COLUMN blob; DROP TABLE blob; DROP TABLE upload; DROP TABLE blob_use;
            DROP TABLE blob_gone; ALTER TABLE node DROP COLUMN bytes; DROP TABLE tree_use;
            DROP INDEX node_sender; ALTER TABLE node DROP COLUMN sender; DROP TABLE inbox_policy; DROP TABLE key_entry;
            DROP TABLE key_log; DROP TABLE key_rotation; DROP INDEX node_shared; DROP INDEX node_member;
            ALTER TABLE node DROP COLUMN shared; ALTER TABLE node DROP COLUMN member; ALTER TABLE chg DROP COLUMN aud;
            DROP TABLE guest; PRAGMA user_version=\(Schema.version - 7)
            """, in: "thicket.db")
        _ = try SQLiteStore(path: path, settings: .testing).makeWriter()
        let database = try Database(path: path)
        let same = "SELECT count(*) FROM kept AS k JOIN node AS n USING (id, gid, t, kids)"
        #expect(try database.integer(same) == 30)
        try database.execute("DROP TABLE kept")
        #expect(try findings() == [])
    }

    @Test(
        "the check finds nodes without rows, rows without nodes, other places, and branches that hang on nothing",
        arguments: [
            ("DELETE FROM node WHERE id = (SELECT max(id) FROM node)", "does not have it"),
            (
                "INSERT INTO node (b, id, parent, tag) VALUES (1, zeroblob(16), CAST('home' AS BLOB), zeroblob(20))",
                "5 rows of nodes, 4 nodes"
            ),
            ("UPDATE node SET tag = zeroblob(20) WHERE id = (SELECT max(id) FROM node)", "at another place"),
            ("UPDATE node SET parent = zeroblob(16) WHERE id = (SELECT max(id) FROM node)", "2 of them reached"),
            ("UPDATE node SET tag = x'00' WHERE id = (SELECT max(id) FROM node)", "is not a place"),
            ("UPDATE node SET b = 7", "belong to no bucket"),
            ("INSERT INTO batch VALUES (7, zeroblob(16), x'00', x'00', 1, 1)", "1 rows of nodes and batches belong"),
            ("UPDATE node SET gid = gid + 1", "another change or burn time"), ("UPDATE node SET x = 1", "burn time"),
            ("UPDATE node SET bytes = 1", "another number of bytes"),
            ("UPDATE tree_use SET bytes = bytes + 1", "the counters of its tree differ from a recount"),
            ("DELETE FROM tree_use", "the counters of its tree differ from a recount"),
            ("UPDATE node SET kids = 1", "3 rows of nodes have a wrong number of children"),
            ("UPDATE bucket SET mode = 0", "4 rows of nodes, 0 nodes"),
            (#"UPDATE chg SET diff = '{"t":{"o":"+","v":"clear"}}' WHERE gid = 1"#, "not a record"),
            ("UPDATE chg SET k = 'clear' WHERE gid = 1; UPDATE ent SET k = 'clear' WHERE gid = 1", "the key of a node"),
        ])
    func damaged(sql: String, word: String) throws {
        do {
            let shard: TestShard = try .tree(store: SQLiteStore(path: path, settings: .testing))
            // The highest id is the parent of one other.
            try shard.group([
                shard.writing(1, "a"), shard.writing(9, "b"), shard.writing(2, below: .child(9), "c"),
                shard.writing(3, "d"),
            ])
            #expect(try findings() == [])
        }
        try folder.writeAllHeads(in: "thicket.db")
        try folder.run(sql, in: "thicket.db")
        let found: [String] = try findings()
        #expect(found.joined(separator: "\n").contains(word), "\(found)")
    }

    @Test("an operator neither makes trees nor turns them into something else, not even empty ones")
    func operators() throws {
        let store = try SQLiteStore(path: path, settings: .testing)
        let shard: TestShard = try .tree(store: store)
        let (admin, app, name) = (try StoreAdmin(path: path), shard.bucket.app, shard.bucket.name)
        try admin.createApp(app, now: 0)
        #expect(throws: StoreAdminError.treeMode) { try admin.setMode(.tree, of: name, in: app) }
        for mode: BucketMode in [.open, .sealed] {
            #expect(throws: StoreAdminError.bucketsInUse(name, users: 1)) { try admin.setMode(mode, of: name, in: app) }
        }
        #expect(try admin.modes(of: name, in: app) == .init(ofNew: .open, open: 0, sealed: 0, tree: 1))
        let other = try BucketName("tree2")
        try admin.setMode(.sealed, of: other, in: app)
        let sealed = try TestShard(store: store)
        #expect(sealed.choose(.tree) == .mode(.open), "named notes")
    }
}
