import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Accounts and apps that are created again under an old name, and sealed folders that find an older server: what a
/// device has is not deleted, and what was confirmed is not lost (docs/decisions/0083).
@Suite("thicket: created again under an old name", .blocking)
struct RecreatedCommandTests {
    private static let password = ["THICKET_PASSWORD": "correct barley"]
    private static let names = ["a", "b", "c"]
    private let bench: CommandBench

    init() throws {
        bench = try CommandBench()
        mkdir(bench.path("m"), 0o700)
        for name in Self.names { try bench.write("m/\(name).md", "text of \(name)\n") }
    }

    /// Signs ann up, in an app of this data folder.
    @discardableResult
    private func signUp(_ data: String, isSent: Bool) throws -> ChildProcess.Outcome {
        let made = try Daemon.command(bench.path(data), ["app", "key", "add", "notes"], succeeding: true).output
        let key = try #require(made.split(separator: "\n").first?.split(separator: " ").last)
        let words = ["signup", "--server", bench.address, "--app", "notes", "--api-key", String(key), "--user", "ann"]
        let outcome = try bench.run(words + (isSent ? ["--sent-password"] : []), variables: Self.password)
        #expect(outcome.code == 0, "\(outcome)")
        return outcome
    }

    private func mirror(_ more: [String] = []) throws -> ChildProcess.Outcome {
        try bench.run(["mirror", bench.path("m"), "n", "--once"] + more)
    }

    private func expectFiles(_ outcome: ChildProcess.Outcome) {
        for name in Self.names { #expect(bench.read("m/\(name).md") == "text of \(name)\n", "\(outcome)") }
    }

    @Test(
        "when an app or an account is created again no file of a mirror is deleted, and all are sent",
        arguments: [true, false], [true, false])
    func mirrored(isApp: Bool, isSent: Bool) throws {
        try signUp("data", isSent: isSent)
        #expect(try mirror().code == 0)
        try recreate(isApp, isSent: isSent)
        let outcome = try mirror()
        #expect(outcome.code == 0, "\(outcome)")
        for name in Self.names { #expect(outcome.output.contains("sent \(name).md again"), "\(outcome)") }
        try expectSent()
    }

    @Test(
        "if a sealed bucket's keys are gone with the account the copy says what to do, and no file is lost",
        arguments: [true, false])
    func sealed(isApp: Bool) throws {
        try signUp("data", isSent: false)
        #expect(try mirror(["--sealed"]).code == 0)
        try recreate(isApp, isSent: false)
        let outcome = try mirror(["--sealed"])
        expectFiles(outcome)
        #expect(outcome.code == 1 && outcome.errors.contains("sealed for the keys of another account"), "\(outcome)")
        let advice = "When \(bench.path("m/.thicket")) is removed the mirror starts from the beginning"
        #expect(outcome.errors.contains(advice))
        let removed = try ChildProcess.run(["/bin/rm", "-r", bench.path("m/.thicket")])
        #expect(removed.code == 0)
        #expect(try mirror(["--sealed"]).code == 0)
        try expectSent()
    }

    @Test(
        "a profile's copies are set aside and named: they may be all that is left of the account",
        arguments: [true, false], [true, false])
    func profile(isApp: Bool, isSealed: Bool) throws {
        try signUp("data", isSent: false)
        try bench.good(["put", "n", "k", #"{"text":"all that is left"}"#] + (isSealed ? ["--sealed"] : []))
        let reported = try recreate(isApp, isSent: false)
        #expect(reported.errors.contains("is kept as the profile 'default.old-1'"), "\(reported)")
        #expect(try bench.run(["get", "n", "k"]).code != 0)
        let kept = ["--offline", "--profile", "default.old-1"]
        #expect(try bench.good(["get", "n", "k", "--path", "text"] + kept) == "all that is left\n")
        try bench.good(["export", "n", bench.path("out")] + kept)
        try bench.good(["import", "n", bench.path("out")] + (isSealed ? ["--sealed"] : []))
        #expect(try bench.good(["get", "n", "k", "--path", "text"]) == "all that is left\n")
        #expect(try bench.run(["logout", "--profile", "default.old-1"]).code == 0)
        #expect(!bench.exists("home/profiles/default.old-1"))
    }

    /// Returns the outcome of the sign-up.
    @discardableResult
    private func recreate(_ isApp: Bool, isSent: Bool) throws -> ChildProcess.Outcome {
        if isApp {
            try bench.stopServer()
            _ = try bench.startServer(on: "other", user: "someone")
        } else {
            try bench.good(["account", "delete"], variables: Self.password)
        }
        let ended = try mirror()
        #expect(ended.code != 0, "the login has ended: \(ended)")
        expectFiles(ended)
        return try signUp(isApp ? "other" : "data", isSent: isSent)
    }

    /// Expects the new account to have all files, and the folder to stay in step with it.
    private func expectSent() throws {
        for name in Self.names {
            let got = try bench.run(["get", "n", "\(name).md", "--path", "text"])
            #expect(got.output == "text of \(name)\n", "\(got)")
        }
        let again = try mirror()
        #expect(again.code == 0 && again.output.isEmpty, "\(again)")
        expectFiles(again)
    }

    @Test("after a sealed folder's server is restored from an older backup nothing is deleted or lost")
    func sealedRestore() throws {
        try signUp("data", isSent: false)
        #expect(try mirror(["--sealed"]).code == 0)
        try Daemon.command(bench.path("data"), ["backup", bench.path("copy.db")], succeeding: true)
        try bench.write("m/a.md", "newer\n")
        try bench.write("m/late.md", "late\n")
        #expect(try mirror([]).code == 0)
        try bench.stopServer()
        try Daemon.command(bench.path("data"), ["restore", bench.path("copy.db")], succeeding: true)
        try bench.startServer()
        for round in 0..<3 {
            let outcome = try mirror()
            #expect(outcome.code == 0 && outcome.output.isEmpty, "\(outcome)")
            #expect(outcome.errors.contains("a.md: the server shows an older state") == (round == 0), "\(outcome)")
            #expect(outcome.errors.contains("late.md: the object is missing on the server") == (round == 0))
            #expect(
                outcome.errors.contains("2 objects are read-only until you choose: thicket repair n --mirror "),
                "\(outcome)")
            #expect(bench.read("m/a.md") == "newer\n" && bench.read("m/late.md") == "late\n", "\(outcome)")
            #expect(bench.read("m/b.md") == "text of b\n" && bench.read("m/c.md") == "text of c\n", "\(outcome)")
        }
        // The mirror's copy has seen more than the profile's.
        #expect(try bench.good(["repair", "n"]).contains("nothing to choose"))
        #expect(try bench.run(["repair", "n", "--mirror", bench.path("none")]).code == 3)
        let choice = ["repair", "n", "--mirror", bench.path("m")]
        let shown = try bench.good(choice)
        #expect(shown.contains("a.md: ") && shown.contains("late.md: ") && shown.contains("newer"), "\(shown)")
        for key in ["a.md", "late.md"] { try bench.good(choice + [key, "--mine"]) }
        #expect(try mirror().code == 0)
        #expect(bench.read("m/a.md") == "newer\n" && bench.read("m/late.md") == "late\n")
        // A copy that has seen the object before it was created again is asked, too.
        try bench.good(["repair", "n", "a.md", "--servers"])
        #expect(try bench.good(["get", "n", "a.md", "--path", "text"]) == "newer\n")
        #expect(try bench.good(["get", "n", "late.md", "--path", "text"]) == "late\n")
    }
}
