import Glibc
import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// A refusal stays until it is resolved: real programs and a real server (docs/decisions/0084).
@Suite("thicket: refused edits", .blocking)
struct RefusalCommandTests {
    private static let password = ["THICKET_PASSWORD": "sesame"]
    /// Larger than the server keeps objects.
    private static let large = #"{"a":""# + String(repeating: "x", count: 1_150_000) + #""}"#

    private func bench() throws -> (bench: CommandBench, large: String) {
        let bench = try CommandBench()
        try bench.login()
        try bench.write("large.json", Self.large)
        return (bench, "@" + bench.path("large.json"))
    }

    @Test("put of a refused object is never 'so already': each repetition reports the refusal and ends with 4")
    func repeated() throws {
        let (bench, large) = try bench()
        try bench.good(["put", "notes", "k", large, "--offline"])
        let kept = try bench.good(["put", "notes", "k", large, "--offline"])
        #expect(kept.contains("is kept here and is sent") && !kept.contains("so already"), "\(kept)")
        for words in [[], [], ["--offline"], []] {
            let again = try bench.run(["put", "notes", "k", large] + words)
            #expect(again.code == 4 && again.errors.contains("413"), "\(again.code ?? -1) \(again.errors.prefix(600))")
            #expect(again.output.isEmpty && again.errors.contains("'thicket drop notes k'"))
        }
        try bench.login(home: "other")
        #expect(try bench.run(["get", "notes", "k"], home: "other").code == 3, "the server never had it")
    }

    @Test("every command on the bucket names the refused edit in one line and ends with 4, until it is resolved")
    func everyCommand() throws {
        let (bench, large) = try bench()
        try bench.good(["put", "notes", "fine", #"{"n":1}"#])
        try bench.good(["put", "notes", "k", large, "--offline"])
        try bench.write("editor", "#!/bin/sh\nexit 0\n")
        mkdir(bench.path("in"), 0o700)
        try bench.write("in/fine.json", #"{"n":1}"#)
        let calls = [
            ["ls", "notes"], ["ls", "notes", "--offline"], ["ls", "--long"], ["get", "notes", "fine"],
            ["get", "notes", "fine", "--offline"], ["get", "notes", "fine", "--version", "1"],
            ["put", "notes", "fine", #"{"n":2}"#], ["put", "notes", "fine", #"{"n":2}"#],
            ["put", "notes", "fine", #"{"n":2}"#, "--offline"], ["put", "notes", "gone", #"{"n":1}"#],
            ["rm", "notes", "gone"], ["edit", "notes", "fine"], ["history", "notes", "fine"],
            ["revert", "notes", "fine", "1"], ["export", "notes", bench.path("out")],
            ["import", "notes", bench.path("in")],
        ]
        for words in calls {
            let outcome = try bench.run(words, variables: ["EDITOR": bench.path("editor")])
            let lines: [Substring] = outcome.errors.split(separator: "\n").filter { $0.contains("notes/k: ") }
            #expect(
                outcome.code == 4 && lines.count == 1, "\(words) \(outcome.code ?? -1) \(outcome.errors.prefix(600))")
            #expect(lines.first?.contains("(413)") == true && lines.first?.contains("thicket drop notes k") == true)
        }
        let missing = try bench.run(["get", "notes", "none"])
        #expect(missing.code == 3 && missing.errors.contains("notes/k: "), "the command's own answer counts")
        let watch = try bench.start(["watch", "notes"])
        try watch.wait(for: "notes/k: the server refused the edit kept here")
        watch.signal(SIGINT)
        #expect(try watch.finish().code == 0)

        let listed = try bench.run(["ls", "notes"]).output
        #expect(listed.contains("k     new  refused (413)\n"), "\(listed)")
        let json = try bench.run(["ls", "notes", "--json"]).output
        #expect(json.contains(#"{"key":"k","version":0,"unsent":true,"refused":413}"#), "\(json)")
        let status = try bench.good(["status"])
        #expect(status.contains("1 not sent, 1 of them refused\n"), "\(status)")
        #expect(
            status.contains("refused  notes/k: the server refused the edit kept here: it is too large"), "\(status)")
        #expect(!status.contains("sent with the next command"), "\(status)")
        let row = try JSONValue(parsing: try bench.good(["status", "--json"]))
        let refused = row["buckets"]?.arrayValue?.first?["refused"]?.arrayValue?.first
        #expect(refused?["key"] == "k" && refused?["code"] == 413 && refused?["reason"]?.stringValue != nil, "\(row)")

        try bench.good(["put", "notes", "k", #"{"a":"small"}"#])
        #expect(try bench.run(["ls", "notes"]).errors.isEmpty)
        #expect(try bench.good(["status"]).contains("not sent") == false)
    }

    @Test("drop gives up a refused edit, a refused removal and one that was never sent, and prints what it dropped")
    func dropped() throws {
        let (bench, large) = try bench()
        try bench.good(["put", "notes", "old", #"{"n":1}"#])
        try bench.good(["put", "notes", "old", large, "--offline"])
        try bench.good(["put", "notes", "new", large, "--offline"])
        #expect(try bench.run(["ls", "notes"]).code == 4)
        let both = try bench.run(["drop", "notes", "old", "new"])
        #expect(both.code == 0 && both.output == Self.large + "\n" + Self.large + "\n", "\(both.errors)")
        #expect(both.errors.contains("notes/old: the edit is dropped") && both.errors.contains("version 1"))
        #expect(try bench.good(["get", "notes", "old", "--json"]) == #"{"n":1}"# + "\n")
        #expect(try bench.run(["get", "notes", "new"]).code == 3)
        let nothing = try bench.run(["drop", "notes", "old"])
        #expect(nothing.code == 3 && nothing.errors.contains("nothing to drop at notes/old"), "\(nothing)")

        // Never sent: no server is running, and it receives nothing of it later.
        try bench.stopServer()
        try bench.good(["put", "notes", "old", #"{"n":2}"#, "--offline"])
        #expect(try bench.good(["drop", "notes", "old"]) == #"{"n":2}"# + "\n")
        try bench.good(["rm", "notes", "old", "--offline"])
        let removal = try bench.run(["revert", "notes", "old"])
        #expect(removal.code == 0 && removal.output.isEmpty, "\(removal)")
        #expect(removal.errors.contains("the removal is dropped"), "\(removal)")
        try bench.startServer()
        #expect(try bench.good(["get", "notes", "old", "--json"]) == #"{"n":1}"# + "\n")
        #expect(try bench.good(["history", "notes", "old"]).split(separator: "\n").count == 1)
    }

    @Test(
        "revert without a version restores the server's state; with one it is 'so already' only when that is confirmed")
    func reverted() throws {
        let (bench, large) = try bench()
        try bench.good(["put", "notes", "k", #"{"n":1}"#])
        try bench.good(["put", "notes", "k", #"{"n":2}"#])
        try bench.good(["put", "notes", "k", large, "--offline"])
        let back = try bench.run(["revert", "notes", "k"])
        #expect(
            back.code == 0 && back.output == Self.large + "\n" && back.errors.contains("version 2"), "\(back.errors)")
        #expect(try bench.good(["get", "notes", "k", "--json"]) == #"{"n":2}"# + "\n")
        try bench.good(["put", "notes", "k", large, "--offline"])
        #expect(try bench.good(["revert", "notes", "k", "1"]).contains("that is version 3"))
        try bench.good(["put", "notes", "k", #"{"n":2}"#, "--offline"])
        // The edit is sent first and confirmed, so the revert finds its state.
        #expect(try bench.good(["revert", "notes", "k", "2"]).contains("already"))
        #expect(try bench.good(["get", "notes", "k", "--version", "4", "--json"]) == #"{"n":2}"# + "\n")
    }

    @Test("import names refused files with code and reason in every run, and counts none of them as unchanged")
    func imported() throws {
        let (bench, large) = try bench()
        mkdir(bench.path("in"), 0o700)
        try bench.write("in/big.json", Self.large)
        try bench.write("in/fine.md", "fine\n")
        try bench.good(["put", "notes", "big", large, "--offline"])
        for round in 0..<3 {
            let outcome = try bench.run(["import", "notes", bench.path("in")])
            #expect(outcome.code == 4 && outcome.errors.contains("big.json: the server refused"), "\(outcome.errors)")
            #expect(outcome.errors.contains("(413)"))
            let counts =
                round == 0 ? "1 new or different, 0 as they were" : "0 new or different, 1 as they were"
            #expect(outcome.output.contains(counts), "\(round) \(outcome.output)")
        }
        try bench.write("in/half.json", "{")
        #expect(
            try bench.run(["import", "notes", bench.path("in")]).code == 4, "a refusal counts more than a bad file")
        try bench.write("in/big.json", #"{"a":"small"}"#)
        try bench.write("in/half.json", "{}")
        #expect(try bench.good(["import", "notes", bench.path("in")]).contains("2 new or different, 1 as they were"))
        #expect(try bench.good(["get", "notes", "big", "--json"]) == #"{"a":"small"}"# + "\n")
    }

    @Test("edit names the file with the text whose save was refused; an older refused edit stays")
    func edited() throws {
        let (bench, large) = try bench()
        try bench.good(["put", "notes", "k", #"{"a":"one"}"#])
        let editor = ["EDITOR": "cp '\(bench.path("large.json"))'"]
        for hasOlder in [false, true] {
            if hasOlder { try bench.good(["put", "notes", "k", large.replacing("large", with: "other"), "--offline"]) }
            let outcome = try bench.run(["edit", "notes", "k"], variables: editor)
            #expect(outcome.code == 4 && outcome.errors.contains("(413)"), "\(outcome.errors.prefix(600))")
            let line: Substring = try #require(
                outcome.errors.split(separator: "\n").first { $0.hasPrefix("What you wrote is in ") })
            let path = String(line.dropFirst("What you wrote is in ".count))
            #expect(access(path, F_OK) == 0)
            unlink(path)
            rmdir(String(path.dropLast("/k.json".count)))
            #expect(outcome.errors.contains(hasOlder ? "The edit is kept here" : "Nothing was changed"))
            #expect(try bench.run(["ls", "notes"]).code == (hasOlder ? 4 : 0))
            try bench.write("other.json", Self.large.replacing("xxx", with: "xyx"))
        }
    }

    @Test(
        "with a read-only token earlier edits stay, every command ends with 6, and drop gives the edits up")
    func readOnly() throws {
        let bench = try CommandBench()
        try bench.login()
        for key in ["k", "l"] { try bench.good(["put", "notes", key, #"{"a":1}"#]) }
        try bench.login(home: "reader", token: try bench.token(readOnly: true))
        try bench.good(["ls", "notes"], home: "reader")
        try bench.good(["put", "notes", "k", #"{"a":2}"#, "--offline"], home: "reader")
        try bench.good(["rm", "notes", "l", "--offline"], home: "reader")
        let calls = [
            (["put", "notes", "k", #"{"a":2}"#], "'put notes/k' is kept here and was not sent"),
            (["put", "notes", "k", #"{"a":2}"#], "'put notes/k' is kept here and was not sent"),
            (["rm", "notes", "l"], "'remove notes/l' is kept here and was not sent"),
            (["put", "notes", "m", #"{"a":2}"#], "'put notes/m' changed nothing"), (["get", "notes", "k"], "(401)"),
            (["ls", "notes"], "(401)"), (["history", "notes", "k"], "(401)"),
        ]
        for (words, reported) in calls {
            let outcome = try bench.run(words, home: "reader")
            #expect(outcome.code == 6 && outcome.errors.contains(reported), "\(words) \(outcome)")
            #expect(!outcome.output.contains("already") && !outcome.output.contains("removed"), "\(outcome)")
        }
        // Each file has its own answer, and none of them stays behind.
        mkdir(bench.path("in"), 0o700)
        for name in ["m", "n", "o"] { try bench.write("in/\(name).json", #"{"a":3}"#) }
        let imported = try bench.run(["import", "notes", bench.path("in")], home: "reader")
        #expect(imported.code == 6 && imported.output.contains("0 new or different, 0 as they were"), "\(imported)")
        for name in ["m", "n", "o"] {
            #expect(imported.errors.contains("'import \(name).json' changed nothing"), "\(imported)")
        }
        let dropped = try bench.run(["drop", "notes", "k", "l"], home: "reader")
        #expect(dropped.code == 0 && dropped.output == #"{"a":2}"# + "\n", "\(dropped)")
        #expect(try bench.good(["ls", "notes"], home: "reader") == "k  v1\nl  v1\n")
    }

    @Test("a sealed bucket's refusal is reported with the app's key, repeated, listed by status, and dropped")
    func sealed() throws {
        let bench = try CommandBench()
        let output = try Daemon.command(bench.path("data"), ["app", "key", "add", "notes"], succeeding: true)
            .output
        let key: Substring? = try #require(output.split(separator: "\n").first).split(separator: " ").last
        try bench.good(
            [
                "signup", "--server", bench.address, "--app", "notes", "--api-key", String(key ?? ""), "--user", "ann",
            ], variables: Self.password)
        try bench.write("large.json", Self.large)
        try bench.good(["put", "--sealed", "diary", "fine", #"{"a":1}"#])
        let put = ["put", "diary", "k", "@" + bench.path("large.json")]
        try bench.good(put + ["--offline"])
        for _ in 0..<2 {
            let again = try bench.run(put)
            #expect(again.code == 4 && again.errors.contains("(413)") && again.output.isEmpty, "\(again.errors)")
        }
        for words in [
            ["get", "diary", "fine"], ["audit", "diary"], ["repair", "diary"], ["repair", "diary", "k"],
        ] {
            let got = try bench.run(words)
            #expect(got.code == (words.last == "k" ? 3 : 4), "\(words) \(got.code ?? -1) \(got.errors.prefix(600))")
            #expect(got.errors.contains("diary/k: the server refused the edit kept here"), "\(words)")
        }
        #expect(try bench.good(["status"]).contains("refused  diary/k: "))
        #expect(try bench.good(["drop", "diary", "k"]) == Self.large + "\n")
        #expect(try bench.good(["ls", "diary"]) == "fine  v1\n")
    }
}
