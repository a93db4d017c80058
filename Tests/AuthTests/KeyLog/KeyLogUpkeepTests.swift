import Glibc
import Testing
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketSQLite

@testable import ThicketServer

/// What operators' work, failures and many requests do to a key log.
@Suite("Key log: upkeep")
struct KeyLogUpkeepTests {
    private static func export(_ bench: KeyLogServer) throws -> KeyLogExport {
        let key = try LogKey.load(bench.folder + "/keylog.key").key(of: "notes").verifyingKey
        return try KeyLogAdmin(path: bench.path).export("notes", key: key)
    }

    /// What `thicketd check` reports.
    private static func findings(_ bench: KeyLogServer) throws -> [String] {
        try KeyLogAdmin(path: bench.path).rowFindings("notes") + export(bench).findings
    }

    @Test("a restored backup has a sound log; devices that have seen more refuse it until their users accept it")
    func restore() throws {
        let bench = try KeyLogServer()
        let (ann, bob) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("bob", 3))
        let token = try bench.token(of: ann)
        #expect(try bench.ask("GET", "keylog/head", token: token).status == 200)
        let copy = bench.folder + "/copy.db"
        defer { for name in ["/copy.db", "/thicket.db.replaced-1"] { remove(bench.folder + name) } }
        _ = try StoreBackup.run(from: bench.path, to: copy, settings: .init())
        _ = try bench.token(of: bob)
        let device = try bench.device(token)
        let verdict = try device.lookUp(try ann.user)
        #expect(verdict.keys != nil && device.reader.head?.size == 8)
        bench.stop()
        let before = try Self.export(bench)
        #expect(before.entries.count == 4)
        _ = try StoreRestore.run(from: copy, to: bench.path, settings: .init())
        let after = try Self.export(bench)
        #expect(after.entries == Array(before.entries.prefix(2)) && after.key == before.key)
        #expect(try Self.findings(bench).isEmpty)
        let again = try KeyLogServer(after: bench)
        defer { again.stop() }
        device.bench = again
        let refused = try again.ask("GET", "keys/\(try ann.user)?known=8", token: token)
        #expect(refused.status == 400 && refused.code == "otherSize")
        device.reader.reset()
        #expect(try device.lookUp(try ann.user) == .verified(try #require(verdict.keys), .same))
        // What is missing is appended again by its owner.
        #expect(try again.signUp(bob, entries: bob.firsts(at: again.clock.now)).status == 200)
        #expect(try device.lookUp(try bob.user).keys != nil)
    }

    @Test("accounts of a store from before key logs have none, get their entries from their devices, and are looked up")
    func migrated() throws {
        let bench = try KeyLogServer()
        let (ann, bob) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("bob", 3))
        let token = try bench.signUp(ann, entries: nil).string("access_token")
        bench.stop()
        try Self.makeOlder(bench.path, before: "CREATE TABLE key_entry ")
        let again = try KeyLogServer(after: bench)
        defer { again.stop() }
        #expect(try again.ask("GET", "keylog/head", token: token).object?["head"] == .null)
        let empty = try again.ask("GET", "keys/\(try ann.user)", token: token)
        #expect(empty.status == 404 && empty.code == "empty_log")
        let entries = KeyLogServer.list(try ann.firsts(at: again.clock.now))
        let body = #"{"entries":\#(entries)}"#
        #expect(try again.ask("POST", "keylog/entries", token: token, body: body).appended == 2)
        _ = try again.token(of: bob)
        let device = try again.device(token)
        for person in [ann, bob] {
            #expect(try device.lookUp(try person.user).keys?.identity == person.identity.verifyingKey)
        }
        #expect(device.reader.head?.size == 8)
        #expect(try Self.findings(again).isEmpty)
    }

    /// Puts a store in place of another: as far as that existed before a migration, with the same rows.
    ///
    /// - Parameter statement: of the migration.
    static func makeOlder(_ path: String, before statement: String) throws {
        let before = try #require(Schema.migrations.firstIndex { $0.contains(statement) })
        let old = try Database(path: path + ".old")
        for migration in Schema.migrations.prefix(before) { try old.execute(migration) }
        try old.execute("ATTACH '\(path)' AS newer")
        var tables = [String]()
        try old.statement("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
            .forEach { tables.append($0.text(0)) }
        for table in tables {
            var columns = [String]()
            try old.statement("SELECT name FROM pragma_table_info('\(table)')").forEach { columns.append($0.text(0)) }
            let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
            try old.execute("INSERT OR REPLACE INTO \(table) (\(list)) SELECT \(list) FROM newer.\(table)")
        }
        try old.execute("DETACH newer; PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=\(before)")
        _ = try old.text("PRAGMA journal_mode=WAL")
        for end in ["-wal", "-shm"] { remove(path + end) }
        try #require(rename(path + ".old", path) == 0)
        for end in ["-wal", "-shm"] { _ = rename(path + ".old" + end, path + end) }
    }

    @Test(
        "a damaged entry, a missing one and a row of another user are found",
        arguments: [
            """
            UPDATE key_entry SET bytes =
                CAST(substr(bytes, 1, length(bytes) - 10) || x'0000' || substr(bytes, length(bytes) - 7) AS BLOB)
            WHERE place = 1
            """,
            "DELETE FROM key_entry WHERE place = 2",
            "UPDATE key_entry SET user = 'mallory' WHERE place = 1",
            "UPDATE key_entry SET number = 7 WHERE place = 3",
            "UPDATE key_log SET head = CAST(substr(head, 1, 8) || x'0000' || substr(head, 11) AS BLOB)",
        ])
    func damaged(sql: String) throws {
        let bench = try KeyLogServer()
        let token = try bench.token(of: KeyLogServer.Person("ann", 2))
        _ = try bench.token(of: KeyLogServer.Person("bob", 3))
        #expect(try bench.ask("GET", "keylog/head", token: token).status == 200)
        bench.stop()
        #expect(try Self.findings(bench).isEmpty)
        try SQLiteStore.connect(bench.path, .readWrite, .init()).execute(sql)
        #expect(try !Self.findings(bench).isEmpty)
    }

    @Test("a change of the log key that was interrupted after its commit is finished, once, with one statement")
    func interrupted() throws {
        let bench = try KeyLogServer()
        let token = try bench.token(of: KeyLogServer.Person("ann", 2))
        #expect(try bench.ask("GET", "keylog/head", token: token).status == 200)
        bench.stop()
        let path = bench.folder + "/keylog.key"
        let old = try #require(FileText.readBytes(path, bytesMax: 64))
        var new: [UInt8]?
        _ = try LogKeyChange.run(path, database: bench.path, now: bench.clock.now) {
            new = FileText.readBytes(LogKeyChange.fresh(path), bytesMax: 64)
        }
        // As it was between the commit and the renaming.
        defer { for name in ["/keylog.key.replaced-1", "/keylog.key.replaced-2"] { remove(bench.folder + name) } }
        remove(bench.folder + "/keylog.key.replaced-1")
        try Self.write(old, to: path)
        try Self.write(try #require(new), to: LogKeyChange.fresh(path))
        let admin = try KeyLogAdmin(path: bench.path)
        #expect(try admin.isForeign(try LogKey.load(path)), "the statement names the new key")
        #expect(try LogKeyChange.finishInterrupted(path, database: bench.path) == true)
        #expect(FileText.readBytes(path, bytesMax: 64) == new)
        #expect(try LogKeyChange.finishInterrupted(path, database: bench.path) == nil)
        #expect(try !admin.isForeign(try LogKey.load(path)))
        #expect(try Self.export(bench).rotations.count == 1)
        #expect(try Self.findings(bench).isEmpty)
        let again = try KeyLogServer(after: bench)
        defer { again.stop() }
        #expect(try again.ask("GET", "keylog/head", token: token).status == 200)
    }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(file) }
        try #require(Glibc.write(file, bytes, bytes.count) == bytes.count)
    }

    @Test("appending, names and bad tokens have bounds a minute; the answer says when to come again, others go on")
    func limits() throws {
        let bench = try KeyLogServer()
        defer { bench.stop() }
        let (ann, bob) = (KeyLogServer.Person("ann", 2), KeyLogServer.Person("bob", 3))
        let (token, other) = (try bench.token(of: ann), try bench.token(of: bob))
        let body = #"{"entries":\#(KeyLogServer.list(try ann.firsts(at: bench.clock.now)))}"#
        let append = { (token: String) in
            try bench.ask("POST", "keylog/entries", token: token, body: body)
        }
        for _ in 0..<KeyLogService.appendsPerMinute { #expect(try append(token).status == 200) }
        let refused = try append(token)
        #expect(refused.status == 429 && refused.code == "too_many_attempts")
        #expect(Int(refused.fields["retry-after"] ?? "") ?? 0 > 0)
        #expect(try append(other).status != 429, "another user has bounds of its own")
        for _ in 0..<KeyLogService.namesPerMinute {
            #expect(try bench.ask("GET", "keys?name=bob", token: token).status == 200)
        }
        #expect(try bench.ask("GET", "keys?name=bob", token: token).status == 429)
        #expect(try bench.ask("GET", "keys/\(try bob.user)", token: token).status == 200)
        bench.clock.pass(seconds: 61)
        #expect(try append(token).status == 200)
        #expect(try bench.ask("GET", "keys?name=bob", token: token).status == 200)
        for _ in 0..<KeyLogService.failuresPerMinute {
            #expect(try bench.ask("GET", "keylog/head", token: "wrong").status == 401)
        }
        #expect(try bench.ask("GET", "keylog/head", token: "wrong").status == 429)
        bench.clock.pass(seconds: 61)
        #expect(try bench.ask("GET", "keylog/head", token: token).status == 200)
    }
}
