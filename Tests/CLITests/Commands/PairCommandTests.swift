import Testing
import ThicketBlocking
import ThicketProcesses

/// What a machine that gets keys from another one reports when the server does not show what that one has seen.
@Suite("thicket pair", .blocking)
struct PairCommandTests {
    @Test("cancelling the new machine's command at the question for a yes leaves no login behind")
    func interrupted() throws {
        let bench = try CommandBench()
        let added = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        let key: Substring? = try #require(added.split(separator: "\n").first).split(separator: " ").last
        let place = ["--server", bench.address, "--app", "notes", "--api-key", String(key ?? "")]
        try bench.good(["signup"] + place + ["--user", "ann"], variables: ["THICKET_PASSWORD": "canary sesame"])
        let new = try PseudoTerminal(
            [Programs.thicket, "pair"] + place, variables: bench.variables("x", [:]))
        try new.wait(forPrinted: "Waiting…")
        let begun: Substring = try #require(new.printed.split(whereSeparator: \.isNewline).first)
        try bench.good(["pair", String(try #require(begun.split(separator: " ").last))])
        try new.wait(forPrinted: "Type yes: ")
        #expect(try bench.good(["token", "list", "--json"]).split(separator: "\n").count == 2)
        new.type("\u{3}")
        #expect(try new.finish() == 1)
        #expect(new.printed.contains("cancelled, nothing was kept"), "\(new.printed)")
        #expect(try bench.good(["token", "list", "--json"]).split(separator: "\n").count == 1)
        #expect(try bench.run(["words"], home: "x").code == 6, "there is no login on the new machine")
    }

    @Test("after a restore older than the keys of the other machine pair keeps nothing and says what to do")
    func restored() throws {
        let bench = try CommandBench()
        let added = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        let key: Substring? = try #require(added.split(separator: "\n").first).split(separator: " ").last
        let place = ["--server", bench.address, "--app", "notes", "--api-key", String(key ?? "")]
        let password = ["THICKET_PASSWORD": "canary sesame"]
        try bench.good(["signup"] + place + ["--user", "ann"], variables: password)
        let words: [Substring] = try bench.good(["words"]).split { $0 == " " || $0 == "\n" }.filter {
            !$0.hasSuffix(".")
        }
        try bench.write("words", words.joined(separator: " "))
        try bench.good(["put", "--sealed", "notes", "k", "{}"])
        try Daemon.command(bench.path("data"), ["backup", bench.path("copy.db")], succeeding: true)
        // A newer version of the account's keys, which the backup does not have.
        try bench.good(["verify", "--words-file", bench.path("words")])
        try bench.stopServer()
        try Daemon.command(bench.path("data"), ["restore", bench.path("copy.db")], succeeding: true)
        try bench.startServer()

        let new = try bench.start(["pair", "--yes"] + place, home: "x")
        let code: Substring = try #require(try new.firstLine().split(separator: " ").last)
        try bench.good(["pair", String(code)])
        let reported = try new.finish()
        #expect(reported.code == 1, "\(reported)")
        #expect(
            reported.errors.contains(
                "nothing was kept: the server shows version 2 of the account's keys, which is older than version 3"))
        #expect(
            reported.errors.contains("whether a backup was restored") && reported.errors.contains("'thicket login'"))
        #expect(reported.errors.contains("'thicket keys --restored'"), "\(reported)")
        #expect(!reported.output.contains("logged in"), "\(reported)")
        #expect(try bench.run(["words"], home: "x").code == 6, "there is no login on the new machine")
        let logins: [Substring] = try bench.good(["token", "list", "--json"]).split(separator: "\n")
        #expect(logins.count == 1, "and no login is left at the server: \(logins)")
        // The advice helps, and the machine that has the keys continues.
        try bench.good(["login"] + place + ["--user", "ann"], home: "x", variables: password)
        for home in ["x", "home"] {
            #expect(try bench.good(["get", "notes", "k", "--json"], home: home) == "{}\n", "\(home)")
        }
        // The older keys do not replace the newer ones, and success is not reported.
        let stuck = try bench.start(["pair", "--yes"] + place)
        let again: Substring = try #require(try stuck.firstLine().split(separator: " ").last)
        try bench.good(["pair", String(again)], home: "x")
        let kept = try stuck.finish()
        #expect(kept.code != 0 && kept.errors.contains("has newer keys of the account"), "\(kept)")
        #expect(kept.errors.contains("--profile OTHER") && !kept.output.contains("logged in"), "\(kept)")
        let back = try bench.good(["keys", "--restored"])
        #expect(back.hasPrefix("the keys are put back, as version 4;"), "\(back)")
    }
}
