import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol
import ThicketSQLite

@testable import ThicketServer

/// `thicketd account pro` for users of partners, who have no account here.
@Suite("Commands about partners' users", .blocking)
struct ProCommandTests {
    private let folder: TemporaryFolder = .init("pro")

    init() throws {
        for words: [String] in [
            ["partner", "create"], ["app", "create", "onions", "--partner", "1000"], ["app", "notes", "onions", "on"],
            ["partner", "create"], ["app", "create", "other", "--partner", "1001"], ["app", "create", "alone"],
        ] { #expect(try Daemon.command(folder.path, words).code == 0, "\(words)") }
        // As a registration leaves them: 'two' calls itself, at its partner, as another is called here.
        for (id, name, partner): (String, String, String) in [
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
        let store: SQLiteStore = try .init(path: path)
        return try store.makeWriter().noteRule(
            of: BucketID(app: try AppID("onions"), user: try UserID(user), name: try BucketName("onions")))
    }

    @Test("a partner's user is Pro by the partner's id or by ours, in that app alone, and no longer when it ends")
    func users() throws {
        #expect(try rule("e-2") == .free)
        let made: ChildProcess.Outcome = try pro("bob", "--partner", "--receipt", "r-1")
        #expect(made.code == 0 && made.output == "the user e-2 is Pro\n", "\(made)")
        #expect(try rule("e-2") == .pro && rule("e-1") == .free)
        #expect(try pro("e-2", "--partner", "--end").output == "the user e-2 is no longer Pro\n")
        #expect(try rule("e-2") == .free)
        #expect(try pro("ann", "--partner", app: "other").output == "the user e-4 is Pro\n", "the partner of the app")
        #expect(try rule("e-1") == .free && rule("e-4") == .free)
    }

    @Test(
        "nobody is guessed at: a name that means two users, nobody's name, an app without a partner, a missing --partner"
    )
    func refused() throws {
        let two: ChildProcess.Outcome = try pro("e-1", "--partner")
        #expect(two.code == 1 && two.errors.contains("another's id here") && two.errors.contains("nothing was changed"))
        #expect(try rule("e-1") == .free && rule("e-3") == .free)
        #expect(try pro("ann", "--partner").output == "the user e-1 is Pro\n", "by the other id")
        let nobody: ChildProcess.Outcome = try pro("zoe", "--partner")
        #expect(nobody.code == 1 && nobody.errors.contains("no partner with a user zoe"), "\(nobody)")
        #expect(try pro("ann", "--partner", app: "alone").code == 1)
        let bare: ChildProcess.Outcome = try pro("bob")
        #expect(bare.code == 1 && bare.errors.contains("--partner searches"), "\(bare)")
        #expect(try pro("bob", "--partner", "--end", "--receipt", "x").code == 2)
        #expect(try rule("e-2") == .free)
    }
}
