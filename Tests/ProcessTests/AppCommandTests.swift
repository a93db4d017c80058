import Testing
import ThicketBlocking
import ThicketProcesses

/// Commands for apps with their own users.
@Suite("Commands about apps and their users", .blocking)
struct AppCommandTests {
    private let folder = TemporaryFolder("apps")

    private func run(_ words: String...) throws -> ChildProcess.Outcome { try Daemon.command(folder.path, words) }

    private func makeApp(_ name: String) throws -> String {
        let made = try run("app", "create", name)
        let line: Substring? = made.output.split(separator: "\n").first { $0.hasPrefix("api key") }
        return String(try #require(line?.split(separator: " ").last, "\(made)"))
    }

    /// Makes an account, as an app does.
    private func signUp(_ user: String, _ app: String, _ key: String, _ server: Daemon) throws {
        let answer = try PlainHTTP.post(
            server.port, "/1/\(app)/create/",
            #"{"client_id":"\#(key)","username":"\#(user)","password":"correct horse"}"#)
        #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
    }

    @Test("tying an app without accounts to a partner closes its sign-ups, and the command says so")
    func tiedEmpty() throws {
        _ = try makeApp("shop")
        #expect(try run("partner", "create").code == 0)
        let tied = try run("app", "create", "shop", "--partner", "1000")
        #expect(
            tied.output == "the app shop exists already, tied to partner 1000 now; it accepts passwords: closed\n")
        #expect(tied.errors.contains("To undo: 'thicketd app passwords shop sent'."))
        #expect(try run("app", "passwords", "shop").output == "closed\n")
        #expect(try run("app", "passwords", "shop", "sent").code == 0)
        let again = try run("app", "create", "shop", "--partner", "1000")
        #expect(again.output == "the app shop exists already, tied to partner 1000\n")
        #expect(try run("app", "passwords", "shop").output == "sent\n", "an app that is tied already keeps its setting")
        #expect(try run("app", "create", "shop", "--partner", "2").errors.contains("there is no partner 2"))
        _ = try makeApp("other")
        let kept = try run("app", "create", "other", "--partner", "1000", "--passwords", "sent")
        #expect(kept.output.hasSuffix("it accepts passwords: sent\n"))
        #expect(kept.errors.contains("may still create accounts"))
    }

    @Test("tying an app with accounts keeps their logins, and the command says so; tokens are found by name")
    func tiedWithAccounts() throws {
        let key = try makeApp("shop")
        #expect(try run("partner", "create").code == 0)
        let server = try Daemon(folder: folder.path)
        try signUp("Ann@example.com", "shop", key, server)
        let tied = try run("app", "create", "shop", "--partner", "1000")
        #expect(tied.output.hasSuffix("it accepts passwords: sent\n"), "\(tied)")
        #expect(tied.errors.contains("its 1 account logs in as before"), "\(tied.errors)")
        try signUp("bob", "shop", key, server)
        let none = try run("app", "passwords", "shop", "none")
        #expect(none.code == 0)

        let listed = try run("token", "list", "--app", "shop", "--user", "ann@EXAMPLE.com").output
        #expect(listed.split(separator: "\n").count == 1 && listed.contains("read-write"), "\(listed)")
        let id: Substring = try #require(listed.split(separator: "\t").dropFirst().first)
        #expect(try run("token", "list", "--app", "shop", "--user", String(id)).output == listed)
        let other = try run("token", "create", "--app", "shop", "--user", "Ann@example.com")
        #expect(other.code == 0 && other.errors.contains("For the account: --user \(id)"), "\(other)")
        let both = try run("token", "list", "--app", "shop", "--user", "Ann@example.com").output
        #expect(both.split(separator: "\n").count == 2, "the user of that name, and the account")
        let revoke = ["token", "revoke", "--app", "shop", "--user"]
        #expect(try Daemon.command(folder.path, revoke + ["bob", String(listed.prefix(16))]).code == 1)
        let one = try Daemon.command(
            folder.path, revoke + ["Ann@example.com", String(listed.prefix(16))])
        #expect(one.output == "revoked 1 token\n", "\(one)")
        #expect(try Daemon.command(folder.path, revoke + ["Ann@example.com", "--all"]).output == "revoked 1 token\n")
        #expect(try run("token", "list", "--app", "shop", "--user", "ann@example.com").output == "no tokens\n")
        #expect(try server.terminate().code == 0)
    }
}
