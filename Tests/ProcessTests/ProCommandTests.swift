import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol
import ThicketSQLite

@testable import ThicketServer

/// `thicketd account pro` for users of partners, which have no account on this server.
@Suite("Commands about partners' users", .blocking)
struct ProCommandTests {
    private let folder = TemporaryFolder("pro")

    init() throws {
        for words in [
            ["partner", "create"], ["app", "create", "onions", "--partner", "1000"], ["app", "notes", "onions", "on"],
            ["partner", "create"], ["app", "create", "other", "--partner", "1001"], ["app", "create", "alone"],
        ] { #expect(try Daemon.command(folder.path, words).code == 0, "\(words)") }
        // As a registration leaves them: the partner's name for e-3 is the id of another user on this server.
        for (id, name, partner) in [
            ("e-1", "ann", "1000"), ("e-2", "bob", "1000"), ("e-3", "e-1", "1000"), ("e-4", "ann", "1001"),
        ] {
            try Database(path: path).execute(
                """
                INSERT INTO entity (id, partner, partner_entity, email, created)
                VALUES ('\(id)', '\(partner)', '\(name)', 'a@b', 1)
                """)
        }
    }

    private var path: String { folder.path + "/thicket.db" }

    private func pro(_ words: String..., app: String = "onions") throws -> ChildProcess.Outcome {
        try Daemon.command(folder.path, ["account", "pro", "--app", app] + words)
    }

    private func rule(_ user: String) throws -> NoteRule {
        let store = try SQLiteStore(path: path)
        return try store.makeWriter().noteRule(
            of: BucketID(app: try AppID("onions"), user: try UserID(user), name: try BucketName("onions")))
    }

    @Test("a partner's user is Pro by the partner's id or by ours, in that app alone, until its Pro ends")
    func users() throws {
        #expect(try rule("e-2") == .free)
        let made = try pro("bob", "--partner", "--receipt", "r-1")
        #expect(made.code == 0 && made.output == "the user e-2 is Pro\n", "\(made)")
        #expect(try rule("e-2") == .pro && rule("e-1") == .free)
        #expect(try pro("e-2", "--partner", "--end").output == "the user e-2 is no longer Pro\n")
        #expect(try rule("e-2") == .free)
        #expect(try pro("ann", "--partner", app: "other").output == "the user e-4 is Pro\n", "the partner of the app")
        #expect(try rule("e-1") == .free && rule("e-4") == .free)
    }

    @Test(
        "an ambiguous name, an unknown name, an app without a partner and a missing --partner are refused"
    )
    func refused() throws {
        let two = try pro("e-1", "--partner")
        #expect(two.code == 1 && two.errors.contains("another's id here") && two.errors.contains("nothing was changed"))
        #expect(try rule("e-1") == .free && rule("e-3") == .free)
        #expect(try pro("ann", "--partner").output == "the user e-1 is Pro\n", "by the other id")
        let nobody = try pro("zoe", "--partner")
        #expect(nobody.code == 1 && nobody.errors.contains("no partner with a user zoe"), "\(nobody)")
        #expect(try pro("ann", "--partner", app: "alone").code == 1)
        let bare = try pro("bob")
        #expect(bare.code == 1 && bare.errors.contains("--partner searches"), "\(bare)")
        #expect(try pro("bob", "--partner", "--end", "--receipt", "x").code == 2)
        #expect(try rule("e-2") == .free)
    }
}
