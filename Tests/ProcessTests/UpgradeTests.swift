import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketSQLite

@testable import ThicketServer

/// Programs and databases of different ages: what is older, what is newer, and who may bring which up to date.
@Suite("Databases of other versions", .blocking)
struct UpgradeTests {
    private let folder: TemporaryFolder = .init("upgrade")
    private var path: String { folder.path + "/thicket.db" }

    private func run(_ words: String...) throws -> ChildProcess.Outcome { try Daemon.command(folder.path, words) }

    /// A database as the program before this one made it, with an app.
    private func makeOlder() throws {
        let database: Database = try .init(path: path)
        _ = try database.text("PRAGMA journal_mode=WAL")
        for migration: String in Schema.migrations.dropLast() { try database.execute(migration) }
        try Meta.seed(database) { Array(repeating: 7, count: $0) }
        try database.execute("INSERT INTO app (name, created) VALUES ('notes', 1)")
        try database.execute(
            "PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=\(Schema.version - 1)")
    }

    private func version() throws -> Int64? { try Database(path: path).integer("PRAGMA user_version") }

    @Test("an older database is called older, with what to do; a backup copies it as it is")
    func older() throws {
        try makeOlder()
        let check: ChildProcess.Outcome = try run("check")
        #expect(check.code == 1 && check.errors.contains("older than this program's \(Schema.version)"), "\(check)")
        #expect(check.errors.contains("written by an older thicketd") && !check.errors.contains("newer"))
        let backup: ChildProcess.Outcome = try run("backup", folder.path + "/copy.db")
        #expect(backup.code == 0, "\(backup)")
        #expect(try Database(path: folder.path + "/copy.db").integer("PRAGMA user_version") == Schema.version - 1)
        #expect(try version() == Schema.version - 1, "neither of both changes anything")
        #expect(try Daemon.command(folder.path + "/other", ["restore", folder.path + "/copy.db"]).code == 0)
        #expect(try Daemon.command(folder.path + "/other", ["check"]).code == 0)
    }

    @Test("a newer database is called newer, and nothing is done to it")
    func newer() throws {
        #expect(try run("app", "create", "notes").code == 0)
        try Database(path: path).execute("PRAGMA user_version=\(Schema.version + 1)")
        for words: [String] in [
            ["check"], ["backup", folder.path + "/copy.db"], ["app", "create", "b"], ["partner", "create"],
            ["token", "list", "--app", "notes"], ["serve", "--listen", "127.0.0.1:0"],
        ] {
            let outcome: ChildProcess.Outcome = try Daemon.command(folder.path, words)
            #expect(outcome.code == 1 && outcome.errors.contains("written by a newer thicketd"), "\(outcome)")
            #expect(!outcome.errors.contains("older thicketd"), "\(words)")
        }
        #expect(try version() == Schema.version + 1)
    }

    @Test("no command brings a database up to date under a running server; with none it does, and says so")
    func migration() throws {
        try makeOlder()
        // What an older server has is its lock; this program's server would bring the file up to date.
        let lock: FolderLock = try DataFolder(folder.path, creating: false).lock()
        for words: [String] in [
            ["app", "create", "b"], ["app", "key", "list", "notes"], ["partner", "create"],
            ["account", "list", "--app", "notes"],
            ["token", "create", "--app", "notes", "--user", "u"], ["token", "list", "--app", "notes"],
            ["partner", "list"],
        ] {
            let outcome: ChildProcess.Outcome = try Daemon.command(folder.path, words)
            #expect(outcome.code == 3 && outcome.output.isEmpty, "\(outcome)")
            #expect(outcome.errors.contains("a server holds the folder (process \(getpid()))"), "\(outcome.errors)")
            #expect(outcome.errors.contains("Stop that server, take a backup"))
        }
        #expect(try version() == Schema.version - 1)
        #expect(try run("backup", folder.path + "/copy.db").code == 0, "a backup may be made meanwhile")
        withExtendedLifetime(lock) {}
    }

    @Test("with no server running the first command brings it up to date, and says so once")
    func migrationAlone() throws {
        try makeOlder()
        let outcome: ChildProcess.Outcome = try run("token", "list", "--app", "notes")
        #expect(outcome.code == 0 && outcome.output == "no tokens\n")
        #expect(outcome.errors.contains("from schema version \(Schema.version - 1) to \(Schema.version)"))
        #expect(try version() == Schema.version)
        #expect(try run("token", "list", "--app", "notes").errors.isEmpty)
    }

    @Test("accounts of a database from before access keys could change have had one, and are listed as they were")
    func accountKeys() throws {
        let database: Database = try .init(path: path)
        _ = try database.text("PRAGMA journal_mode=WAL")
        for migration: String in Schema.migrations.prefix(11) { try database.execute(migration) }
        try Meta.seed(database) { Array(repeating: 7, count: $0) }
        try database.execute(
            """
            INSERT INTO app (name, created) VALUES ('notes', 1);
            INSERT INTO account (user, app, name, folded, scheme, salt, n, r, p, verifier, recovery, access, created, changed)
            VALUES ('u1', 'notes', 'Ann', 'ann', 1, x'00', 17, 8, 1, x'01', x'02', x'03', 1, 1);
            PRAGMA application_id=\(Schema.applicationID); PRAGMA user_version=11
            """)
        let listed: ChildProcess.Outcome = try run("account", "list", "--app", "notes")
        #expect(listed.code == 0 && listed.output.hasPrefix("u1\tAnn\tkey"), "\(listed)")
        #expect(try Database(path: path).integer("SELECT keys FROM account WHERE user = 'u1'") == 1)
        #expect(try run("check").code == 0)
    }
}
