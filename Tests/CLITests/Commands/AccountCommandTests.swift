import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Logins, missing permissions, and servers that cannot be reached.
@Suite("thicket: accounts", .blocking)
struct AccountCommandTests {
    @Test("login keeps a profile that only its owner can read; status shows it; logout removes it")
    func profile() throws {
        let bench = try CommandBench()
        #expect(try bench.run(["ls", "notes"]).code == 6)
        let login = try bench.run(
            ["login", "--server", bench.address, "--app", "notes", "--token-file", "-"], input: bench.token + "\n")
        #expect(login.code == 0 && login.output.contains("as ann@example.com"), "\(login)")
        #expect(!login.output.contains(bench.token))
        var status = stat()
        #expect(stat(bench.path("home/profiles/default/profile.json"), &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(stat(bench.path("home/profiles/default"), &status) == 0 && status.st_mode & 0o777 == 0o700)
        let reported = try bench.good(["status"])
        #expect(reported.contains("online") && reported.contains("ann@example.com") && !reported.contains(bench.token))
        #expect(try bench.good(["status", "--json"]).contains(#""online":true"#))
        try bench.good(["logout"])
        #expect(!bench.exists("home/profiles/default"))
        #expect(try bench.run(["logout"]).code == 3)
        #expect(try bench.run(["status"]).code == 6)
    }

    @Test("profiles are independent of each other, and settings take precedence over them")
    func profiles() throws {
        let bench = try CommandBench()
        try bench.login()
        let bob = try bench.token(user: "bob@example.com")
        try bench.good(
            ["login", "--profile", "bob", "--server", bench.address, "--app", "notes"],
            variables: ["THICKET_TOKEN": bob])
        try bench.good(["put", "notes", "k", #"{"of":"ann"}"#])
        #expect(try bench.run(["get", "notes", "k", "--profile", "bob"]).code == 3)
        try bench.good(["put", "notes", "k", #"{"of":"bob"}"#], variables: ["THICKET_PROFILE": "bob"])
        #expect(try bench.good(["get", "notes", "k", "--path", "of"]) == "ann\n")
        #expect(
            try bench.good(["get", "notes", "k", "--path", "of"], variables: ["THICKET_TOKEN": bob]) == "bob\n")
        let nobody = [
            "HOME": "", "THICKET_HOME": "", "THICKET_SERVER": bench.address, "THICKET_APP": "notes",
            "THICKET_TOKEN": bob,
        ]
        #expect(try bench.good(["get", "notes", "k", "--path", "of"], variables: nobody) == "bob\n")
    }

    @Test("a token that is not accepted ends the command with 6 and keeps nothing")
    func wrongToken() throws {
        let bench = try CommandBench()
        try bench.write("token", "nonsense\n")
        let words = [
            "--server", bench.address, "--app", "notes", "--token-file", bench.path("token"),
        ]
        let login = try bench.run(["login"] + words)
        #expect(login.code == 6 && login.errors.contains("does not accept this token"), "\(login)")
        #expect(!bench.exists("home/profiles"))
        #expect(try bench.run(["get", "notes", "k"] + words).code == 6)
    }

    @Test("a read-only token reads; its changes are refused with 6 and leave no trace")
    func readOnly() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "notes", "k", #"{"a":1}"#])
        try bench.login(home: "reader", token: try bench.token(readOnly: true))
        for words in [["put", "notes", "k", #"{"a":2}"#], ["rm", "notes", "k"]] {
            let outcome = try bench.run(words, home: "reader")
            #expect(outcome.code == 6 && outcome.errors.contains("reading only"), "\(outcome)")
        }
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "reader") == #"{"a":1}"# + "\n")
        #expect(try bench.good(["ls", "notes", "--offline"], home: "reader") == "k  v1\n")
    }

    @Test("an object that is too large is refused with 4, and stays as it was")
    func tooLarge() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "notes", "k", #"{"a":1}"#])
        let large = #"{"a":""# + String(repeating: "x", count: 2 << 20) + #""}"#
        try bench.write("large.json", large)
        let outcome = try bench.run(["put", "notes", "k", "@" + bench.path("large.json")])
        #expect(
            outcome.code == 4 && outcome.errors.contains("413"), "\(outcome.code ?? -1) \(outcome.errors.prefix(400))")
        #expect(try bench.good(["get", "notes", "k", "--json"]) == #"{"a":1}"# + "\n")
    }

    @Test("without a server commands end with 5 at once; --offline works on the copy and sends later")
    func offline() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "notes", "k", #"{"a":1}"#])
        try bench.stopServer()
        let kept = "With --offline the edit is kept here and is sent with the next command on notes."
        for (words, reported) in [
            (["get", "notes", "k"], ["notes was not read", "With --offline the copy kept here is shown."]),
            (["put", "notes", "k", "{}"], ["notes/k was not changed", kept]),
            (["rm", "notes", "k"], ["nothing was removed", kept]),
            (["ls", "notes"], ["notes was not read", "With --offline the copy kept here is listed."]),
            (
                ["export", "notes", bench.path("out")],
                ["notes was not read", "With --offline the copy kept here is written."]
            ),
            (["watch", "notes"], ["notes was not read"]),
            (["get", "notes", "k", "--version", "1"], ["notes was not read"]),
        ] {
            let outcome = try bench.run(words)
            for text in ["cannot be reached"] + reported {
                #expect(outcome.code == 5 && outcome.errors.contains(text), "\(words) \(outcome)")
            }
            // `watch` has no such option, and only the server keeps old versions.
            #expect(outcome.errors.contains("--offline") == (reported.count > 1), "\(words) \(outcome)")
        }
        #expect(try bench.good(["get", "notes", "k", "--offline", "--json"]) == #"{"a":1}"# + "\n")
        try bench.good(["put", "notes", "k", #"{"a":2}"#, "--offline"])
        let status = try bench.run(["status"])
        #expect(status.code == 5 && status.output.contains("1 not sent"), "\(status)")
        let logout = try bench.run(["logout"])
        #expect(logout.code == 1 && logout.errors.contains("never sent"))
        try bench.startServer()
        try bench.login(home: "other")
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "other") == #"{"a":1}"# + "\n")
        try bench.good(["ls", "notes"])
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "other") == #"{"a":2}"# + "\n")
        #expect(try bench.good(["status"]).contains("not sent") == false)
    }

    @Test("two commands work on one bucket at once; only a command that needs the copy itself is refused with 7")
    func together() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "notes", "k", #"{"a":1}"#])
        // An editor that waits for a file keeps the copy open.
        try bench.write("editor", "#!/bin/sh\necho open > '\(bench.path("pipe"))'\nread x < '\(bench.path("pipe"))'\n")
        mkfifo(bench.path("pipe"), 0o600)
        let edit = try ChildProcess(
            [Programs.thicket, "edit", "notes", "k"],
            variables: ["THICKET_HOME": bench.path("home"), "VISUAL": "", "EDITOR": bench.path("editor")])
        #expect(bench.read("pipe") == "open\n")
        #expect(try bench.run(["get", "notes", "k", "--offline"]).code == 7)
        #expect(try bench.good(["get", "notes", "k", "--json"]) == #"{"a":1}"# + "\n")
        #expect(try bench.good(["put", "notes", "k", #"{"a":2}"#]).contains("version 2"))
        #expect(try bench.good(["status"]).contains("used by another command"))
        try bench.write("pipe", "go\n")
        let outcome = try edit.finish()
        #expect(outcome.code == 0 && outcome.output.contains("nothing changed"), "\(outcome)")
    }
}
