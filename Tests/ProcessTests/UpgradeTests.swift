import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketSQLite

@testable import ThicketServer

/// Programs and databases of different versions: which is older, which is newer, and which commands may migrate.
@Suite("Databases of other versions", .blocking)
struct UpgradeTests {
    private let folder = TemporaryFolder("upgrade")
    private var path: String { folder.path + "/thicket.db" }

    private func run(_ words: String...) throws -> ChildProcess.Outcome { try Daemon.command(folder.path, words) }

    /// A database of the schema version before this one, with an app.
    private func makeOlder() throws {
        let database = try Database(path: path)
        _ = try database.text("PRAGMA journal_mode=WAL")
        for migration in Schema.migrations.dropLast() { try database.execute(migration) }
        try Meta.seed(database) { Array(repeating: 7, count: $0) }
        try database.execute("INSERT INTO app (name, created) VALUES ('notes', 1)")
        try database.execute(
            "PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=\(Schema.version - 1)")
    }

    private func version() throws -> Int64? { try Database(path: path).integer("PRAGMA user_version") }

    @Test("an older database is reported as older, with what to do; a backup copies it unchanged")
    func older() throws {
        try makeOlder()
        let check = try run("check")
        #expect(check.code == 1 && check.errors.contains("older than this program's \(Schema.version)"), "\(check)")
        #expect(check.errors.contains("written by an older thicketd") && !check.errors.contains("newer"))
        let backup = try run("backup", folder.path + "/copy.db")
        #expect(backup.code == 0, "\(backup)")
        #expect(try Database(path: folder.path + "/copy.db").integer("PRAGMA user_version") == Schema.version - 1)
        #expect(try version() == Schema.version - 1, "neither command changes anything")
        #expect(try Daemon.command(folder.path + "/other", ["restore", folder.path + "/copy.db"]).code == 0)
        #expect(try Daemon.command(folder.path + "/other", ["check"]).code == 0)
    }

    @Test("a newer database is reported as newer and stays unchanged")
    func newer() throws {
        #expect(try run("app", "create", "notes").code == 0)
        try Database(path: path).execute("PRAGMA user_version=\(Schema.version + 1)")
        for words in [
            ["check"], ["backup", folder.path + "/copy.db"], ["app", "create", "b"], ["partner", "create"],
            ["token", "list", "--app", "notes"], ["serve", "--listen", "127.0.0.1:0"],
        ] {
            let outcome = try Daemon.command(folder.path, words)
            #expect(outcome.code == 1 && outcome.errors.contains("written by a newer thicketd"), "\(outcome)")
            #expect(!outcome.errors.contains("older thicketd"), "\(words)")
        }
        #expect(try version() == Schema.version + 1)
    }

    @Test("no command migrates a database under a running server: each ends with 3 and what to do")
    func migration() throws {
        try makeOlder()
        // The test holds the lock, as an older server does; this program's server would migrate the file.
        let lock = try DataFolder(folder.path, creating: false).lock()
        for words in [
            ["app", "create", "b"], ["app", "key", "list", "notes"], ["partner", "create"],
            ["account", "list", "--app", "notes"],
            ["token", "create", "--app", "notes", "--user", "u"], ["token", "list", "--app", "notes"],
            ["partner", "list"],
        ] {
            let outcome = try Daemon.command(folder.path, words)
            #expect(outcome.code == 3 && outcome.output.isEmpty, "\(outcome)")
            #expect(outcome.errors.contains("a server holds the folder (process \(getpid()))"), "\(outcome.errors)")
            #expect(outcome.errors.contains("Stop that server, take a backup"))
        }
        #expect(try version() == Schema.version - 1)
        #expect(try run("backup", folder.path + "/copy.db").code == 0, "a backup may be made meanwhile")
        withExtendedLifetime(lock) {}
    }

    @Test("without a running server the first command migrates the database, and reports it once")
    func migrationAlone() throws {
        try makeOlder()
        let outcome = try run("token", "list", "--app", "notes")
        #expect(outcome.code == 0 && outcome.output == "no tokens\n")
        #expect(outcome.errors.contains("from schema version \(Schema.version - 1) to \(Schema.version)"))
        #expect(try version() == Schema.version)
        #expect(try run("token", "list", "--app", "notes").errors.isEmpty)
    }

    @Test("accounts of a database from before access keys could change have one key, and are listed as before")
    func accountKeys() throws {
        let database = try Database(path: path)
        _ = try database.text("PRAGMA journal_mode=WAL")
        for migration in Schema.migrations.prefix(11) { try database.execute(migration) }
        try Meta.seed(database) { Array(repeating: 7, count: $0) }
        try database.execute(
            """
            INSERT INTO app (name, created) VALUES ('notes', 1);
            INSERT INTO account (user, app, name, folded, scheme, salt, n, r, p, verifier, recovery, access, created, changed)
            VALUES ('u1', 'notes', 'Ann', 'ann', 1, x'00', 17, 8, 1, x'01', x'02', x'03', 1, 1);
            PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=11
            """)
        let listed = try run("account", "list", "--app", "notes")
        #expect(listed.code == 0 && listed.output.hasPrefix("u1\tAnn\tkey"), "\(listed)")
        #expect(try Database(path: path).integer("SELECT keys FROM account WHERE user = 'u1'") == 1)
        #expect(try run("check").code == 0)
    }
}
