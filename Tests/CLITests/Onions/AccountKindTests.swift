import Testing
import ThicketBlocking
import ThicketProcesses

/// The user or the profile says of which kind an account is; it is never guessed: the old login is made of the password
/// without a salt, so an attacker who gets it tries passwords cheaply.
@Suite("thicket: the kind of an account of notes", .blocking)
struct AccountKindTests {
    private static let password = ["THICKET_PASSWORD": "sesame"]

    /// All commands that talk to an account of either kind.
    private static let commands = [
        ["list"], ["show", "1"], ["new"], ["edit", "1"], ["rm", "1"], ["view"], ["export", "-"], ["import", "-"],
        ["delete"],
    ]

    private static func key(_ bench: CommandBench) throws -> String {
        let made = try Daemon.command(bench.path("data"), ["app", "key", "add", "notes"], succeeding: true)
            .output
        return String(try #require(made.split(separator: "\n").first).split(separator: " ").last ?? "")
    }

    /// Expects that nothing was sent, and that the answer names both ways.
    private static func expectRefused(_ outcome: ChildProcess.Outcome, _ words: [String]) {
        #expect(outcome.code == 2, "\(words): \(outcome)")
        for part in ["nothing was sent", "'thicket login' first", "add --old-account"] {
            #expect(outcome.errors.contains(part), "\(words): \(outcome)")
        }
    }

    @Test("without a profile with the account's keys nothing made of the password is sent, and both ways are named")
    func unsaid() throws {
        let bench = try CommandBench()
        var variables = [
            "THICKET_SERVER": bench.address, "THICKET_APP": "notes", "THICKET_API_KEY": try Self.key(bench),
        ].merging(Self.password) { $1 }
        try bench.good(["signup", "--user", "ann"], variables: variables)
        // A server that notices connections takes the server's place.
        let port = bench.server.port
        try bench.stopServer()
        let ear = try SilentServer(port: port)
        variables["THICKET_TIMEOUT"] = "1s"
        for words in Self.commands {
            // A new machine, and one whose profile is of another account.
            for (home, user) in [("new", "ann"), ("home", "bea")] {
                let words = ["onions"] + words + ["--user", user]
                Self.expectRefused(try bench.run(words, home: home, input: "text", variables: variables), words)
            }
        }
        #expect(!ear.wasCalled)
        // The name of the profile's own account is never that of an old one, whatever the options say.
        for user in ["ann", "Ann"] {
            let own = try bench.run(
                ["onions", "list", "--old-account", "--user", user], variables: variables)
            #expect(own.code == 2 && own.errors.contains("Leave out --old-account"), "\(own)")
        }
        // The same holds for the two commands that are for old accounts only.
        for (words, user) in [
            (["upgrade", "--new-user", "z"], "ann"), (["upgrade", "--new-user", "z"], "Ann"), (["signup"], "ann"),
            (["signup"], "Ann"),
        ] {
            let own = try bench.run(
                ["onions"] + words + ["--user", user],
                variables: variables.merging(["THICKET_NEW_PASSWORD": "another sesame"]) { $1 })
            #expect(own.code == 2 && own.errors.contains("nothing was sent"), "\(words), \(user): \(own)")
            #expect(own.errors.contains("'--profile OTHER' if there is an old account"), "\(words), \(user): \(own)")
        }
        #expect(!ear.wasCalled)
        let said = try bench.run(
            ["onions", "list", "--old-account", "--user", "bea"], variables: variables)
        #expect(said.code == 5 && ear.wasCalled, "the option is believed: \(said)")
    }

    @Test("the profile's own name is recognized in other spellings: an accent as its own character, capital letters")
    func spellings() throws {
        let bench = try CommandBench()
        var variables = [
            "THICKET_SERVER": bench.address, "THICKET_APP": "notes", "THICKET_API_KEY": try Self.key(bench),
        ].merging(Self.password) { $1 }
        try bench.good(["signup", "--user", "ren\u{E9}e"], variables: variables)
        let port = bench.server.port
        try bench.stopServer()
        let ear = try SilentServer(port: port)
        variables["THICKET_TIMEOUT"] = "1s"
        for user in ["ren\u{E9}e", "rene\u{301}e", "RENE\u{301}E"] {
            for words in [["list", "--old-account"], ["signup"]] {
                let own = try bench.run(
                    ["onions"] + words + ["--user", user], variables: variables)
                #expect(own.code == 2 && own.errors.contains("nothing was sent"), "\(words), \(user): \(own)")
            }
        }
        #expect(!ear.wasCalled)
    }

    @Test("an app that accepts no old logins says what its operator and its users can do")
    func closed() throws {
        let bench = try CommandBench()
        let reported = try bench.run(
            ["onions", "list", "--old-account", "--user", "ann"],
            variables: [
                "THICKET_SERVER": bench.address, "THICKET_APP": "notes", "THICKET_API_KEY": try Self.key(bench),
            ].merging(Self.password) { $1 })
        #expect(reported.code == 4, "\(reported)")
        for part in ["'thicketd app passwords notes notes'", "'thicket signup'", "'thicket login'"] {
            #expect(reported.errors.contains(part), "\(reported)")
        }
    }

    @Test("the view refuses before it opens the screen, and when the typed name is the profile's own")
    func view() throws {
        let bench = try CommandBench()
        let place = [
            "THICKET_SERVER": bench.address, "THICKET_APP": "notes", "THICKET_API_KEY": try Self.key(bench),
        ]
        try bench.good(["signup", "--user", "ann"], variables: place.merging(Self.password) { $1 })
        let terminal = try PseudoTerminal(
            [Programs.thicket, "onions", "view", "--old-account"], variables: bench.variables("home", [:]))
        try terminal.wait(forShown: "User name (not shown)")
        terminal.type("ann\rsesame\r")
        try terminal.wait(forShown: "nothing was sent")
        terminal.type("\u{1B}")
        #expect(try terminal.finish() == 0)
    }
}
