import Testing
import ThicketProcesses

/// Sealed buckets of accounts with keys, by the real programs.
@Suite("thicket: sealed buckets")
struct SealedCommandTests {
    private static let password: [String: String] = ["THICKET_PASSWORD": "sesame"]

    private func place(_ bench: CommandBench) throws -> [String] {
        let output: String = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        let key: Substring? = try #require(output.split(separator: "\n").first).split(separator: " ").last
        return ["--server", bench.address, "--app", "notes", "--api-key", String(key ?? ""), "--user", "ann"]
    }

    /// Whether the server's database holds the word, in whichever of its files.
    private func holds(_ bench: CommandBench, _ word: String) throws -> Bool {
        let outcome: ChildProcess.Outcome = try ChildProcess.run(
            ["/bin/grep", "-raq", word, bench.path("data")], input: "", variables: [:])
        #expect(outcome.code == 0 || outcome.code == 1, "\(outcome)")
        return outcome.code == 0
    }

    @Test(
        "--sealed once; then every command on the bucket finds it, here and on the next machine, and the server reads nothing"
    )
    func life() throws {
        let bench: CommandBench = try .init()
        let ann: [String] = try place(bench)
        try bench.good(["signup"] + ann, variables: Self.password)
        try bench.good(["login"] + ann, home: "before", variables: Self.password)
        try bench.good(["put", "plain", "k", #"{"text":"readable"}"#])
        try bench.good(["put", "--sealed", "diary", "today", #"{"text":"canary\n"}"#])
        #expect(try bench.good(["get", "diary", "today", "--path", "text"]) == "canary\n")
        #expect(try bench.good(["ls", "diary"]).contains("today"))
        #expect(try bench.good(["status"]).contains("diary: 1 object\n"))

        // Logged in since: the bundle says it. Logged in before: the server says it, and is not enough.
        try bench.good(["login"] + ann, home: "since", variables: Self.password)
        #expect(try bench.good(["get", "diary", "today", "--path", "text"], home: "since") == "canary\n")
        let unknown: ChildProcess.Outcome = try bench.run(["get", "diary", "today"], home: "before")
        #expect(unknown.code == 2 && unknown.errors.contains("--sealed"), "\(unknown)")
        let refused: ChildProcess.Outcome = try bench.run(["put", "diary", "other", #"{"a":1}"#], home: "before")
        #expect(refused.code == 2 && refused.errors.contains("--sealed"), "\(refused)")
        #expect(try bench.good(["get", "--sealed", "diary", "today", "--path", "text"], home: "before") == "canary\n")

        try bench.write("editor", "#!/bin/sh\nprintf 'and more\\n' >> \"$1\"\n")
        try bench.good(
            ["edit", "diary", "today", "--text", "text"], home: "since", variables: ["EDITOR": bench.path("editor")])
        try bench.good(["mirror", bench.path("files"), "diary", "--once"])
        #expect(
            bench.read("files/today.json")?.contains("canary\\nand more\\n") == true
                || bench.read("files/today") == "canary\nand more\n")
        #expect(try bench.good(["history", "diary", "today", "--diff"]).contains("and more"))
        let audit: String = try bench.good(["audit", "diary"])
        #expect(audit.contains("today: ") && audit.contains("canary") && !audit.contains("the server can read it"))
        #expect(try holds(bench, "readable") && !holds(bench, "canary") && !holds(bench, "and more"))

        try bench.good(["rm", "diary", "today"])
        #expect(try bench.run(["get", "diary", "today"], home: "since").code == 3)
        try bench.good(["logout"])
    }

    @Test("a login without keys opens no sealed bucket, and is told where keys come from")
    func withoutKeys() throws {
        let bench: CommandBench = try .init()
        try bench.login()
        let outcome: ChildProcess.Outcome = try bench.run(["put", "--sealed", "diary", "k", #"{"a":1}"#])
        #expect(outcome.code == 3 && outcome.errors.contains("thicket signup"), "\(outcome)")
        #expect(try bench.run(["put", "diary", "k", #"{"a":1}"#]).code == 0, "nothing was kept of it")
    }
}
