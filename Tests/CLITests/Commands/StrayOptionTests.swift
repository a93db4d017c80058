import Testing
import ThicketBlocking
import ThicketProcesses

/// Commands that work with a profile's login, and what they report when they cannot use it.
@Suite("thicket: logins that are not used, or gone", .blocking)
struct StrayOptionTests {
    private let bench: CommandBench
    private let place: [String]
    private static let password = [
        "THICKET_PASSWORD": "canary sesame", "THICKET_NEW_PASSWORD": "canary barley",
    ]

    init() throws {
        bench = try CommandBench()
        let output = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        let key: Substring? = try #require(output.split(separator: "\n").first).split(separator: " ").last
        place = ["--server", bench.address, "--app", "notes", "--api-key", String(key ?? "")]
    }

    @Test(
        "a setting that differs from the profile's is named as the reason and nothing is done, with or without keys",
        arguments: [[], ["--sent-password"]])
    func strays(kind: [String]) throws {
        try bench.good(["signup"] + place + ["--user", "ann"] + kind, variables: Self.password)
        for words in [["passwd"], ["account", "delete"], ["token", "list"]]
            + (kind.isEmpty ? [["words"], ["pair", "abcd"]] : [])
        {
            let server = try bench.run(
                words + ["--server", bench.address + "/other"], variables: Self.password)
            #expect(server.code == 2, "\(server)")
            #expect(
                server.errors.contains("--server (THICKET_SERVER) of this call is not what the profile 'default' has"))
            #expect(server.errors.contains("Leave it out") && server.errors.contains("--profile"), "\(server)")
            let both = try bench.run(
                words + ["--app", "other"], variables: Self.password.merging(["THICKET_TOKEN": "x"]) { $1 })
            #expect(both.code == 2 && both.errors.contains("THICKET_TOKEN) of this call are not what"), "\(both)")
            #expect(
                both.errors.contains("--app (THICKET_APP) and ") && both.errors.contains("Leave them out"), "\(both)")
        }
        // The profile's own values are accepted.
        let same = ["passwd", "--server", bench.address, "--app", "notes"]
        #expect(try bench.good(same, variables: Self.password).contains("the password is changed"))
        // Its server is accepted in another spelling, too: neither as a stray setting nor as another account to log in
        // to.
        let other = ["--server", bench.address.replacing("http://", with: "HTTP://") + "/"]
        try bench.good(["token", "list"] + other)
        try bench.good(["put", "notes", "k", "{}"])
        let again = ["THICKET_PASSWORD": "canary barley"]
        try bench.good(["login"] + other + place.dropFirst(2) + ["--user", "ann"] + kind, variables: again)
        #expect(try bench.good(["get", "notes", "k", "--json"] + other) == "{}\n")
    }

    @Test("a login of another kind is still reported as such where settings are not the reason")
    func otherKind() throws {
        try bench.login()
        for words in [["passwd"], ["account", "delete"]] {
            let outcome = try bench.run(words, variables: Self.password)
            #expect(outcome.code == 2 && outcome.errors.contains("not one to an account of the server"), "\(outcome)")
        }
    }

    @Test("status shows that an account was deleted when the answer was lost", arguments: [[], ["--sent-password"]])
    func deleted(kind: [String]) throws {
        let ann = place + ["--user", "ann"] + kind
        try bench.good(["signup"] + ann, variables: Self.password)
        try bench.good(["login"] + ann, home: "other", variables: Self.password)
        #expect(try bench.good(["status"]).contains(": online"), "it is there")
        // As after an answer that was lost: the server has done it, and this machine does not know.
        try bench.good(["account", "delete"], home: "other", variables: Self.password)
        let gone = try bench.run(["status"])
        #expect(gone.code == 6 && gone.output.contains("token not accepted"), "\(gone)")
        // A login does not show it: its message is that of a wrong password.
        let login = try bench.run(["login"] + ann, home: "third", variables: Self.password)
        #expect(login.code == 6 && login.errors.contains("password is wrong"), "\(login)")
    }
}
