import Glibc
import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Sealed buckets of accounts with keys, with the real programs.
@Suite("thicket: sealed buckets", .blocking)
struct SealedCommandTests {
    private static let password = ["THICKET_PASSWORD": "sesame"]

    /// A server, and a login of ann after her sign-up.
    private func signedUp() throws -> (bench: CommandBench, ann: [String]) {
        let bench = try CommandBench()
        let output = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        let key: Substring? = try #require(output.split(separator: "\n").first).split(separator: " ").last
        let ann = [
            "--server", bench.address, "--app", "notes", "--api-key", String(key ?? ""), "--user", "ann",
        ]
        try bench.good(["signup"] + ann, variables: Self.password)
        return (bench, ann)
    }

    /// Whether any file of the server's database holds the word.
    private func holds(_ bench: CommandBench, _ word: String) throws -> Bool {
        let outcome = try ChildProcess.run(
            ["/bin/grep", "-raq", word, bench.path("data")], input: "", variables: [:])
        #expect(outcome.code == 0 || outcome.code == 1, "\(outcome)")
        return outcome.code == 0
    }

    @Test(
        "after --sealed once every command finds the bucket, here and on the next machine; the server reads nothing"
    )
    func lifecycle() throws {
        let (bench, ann) = try signedUp()
        try bench.good(["login"] + ann, home: "before", variables: Self.password)
        try bench.good(["put", "plain", "k", #"{"text":"readable"}"#])
        try bench.good(["put", "--sealed", "diary", "today", #"{"text":"canary\n"}"#])
        #expect(try bench.good(["get", "diary", "today", "--path", "text"]) == "canary\n")
        #expect(try bench.good(["ls", "diary"]).contains("today"))
        #expect(try bench.good(["status"]).contains("diary: 1 object\n"))

        // A login made since then knows it from the bundle; for an older login the server's word is not enough.
        try bench.good(["login"] + ann, home: "since", variables: Self.password)
        #expect(try bench.good(["get", "diary", "today", "--path", "text"], home: "since") == "canary\n")
        let unknown = try bench.run(["get", "diary", "today"], home: "before")
        #expect(unknown.code == 2 && unknown.errors.contains("--sealed"), "\(unknown)")
        let refused = try bench.run(["put", "diary", "other", #"{"a":1}"#], home: "before")
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
        let audit = try bench.good(["audit", "diary"])
        #expect(audit.contains("today: ") && audit.contains("canary") && !audit.contains("the server can read it"))
        #expect(try holds(bench, "readable") && !holds(bench, "canary") && !holds(bench, "and more"))

        try bench.good(["rm", "diary", "today"])
        #expect(try bench.run(["get", "diary", "today"], home: "since").code == 3)
        try bench.good(["logout"])
    }

    @Test("ls --removed names the removed objects of a sealed bucket, also on a machine that has never held them")
    func removals() throws {
        let (bench, ann) = try signedUp()
        for key in ["today", "other"] { try bench.good(["put", "--sealed", "diary", key, #"{"text":"canary"}"#]) }
        // A tombstone, then the removal.
        try bench.good(["rm", "diary", "today"])
        #expect(try bench.good(["ls", "diary", "--removed"]).hasPrefix("today  v3  20"))
        try bench.good(["login"] + ann, home: "since", variables: Self.password)
        #expect(try bench.good(["ls", "diary", "--removed"], home: "since").hasPrefix("today  v3  20"))
        #expect(try bench.good(["history", "diary", "today"], home: "since").hasPrefix("v3  removed  20"))
        try bench.good(["revert", "diary", "today", "1"], home: "since")
        #expect(try bench.good(["ls", "diary", "--removed"]).isEmpty)
        let history = try bench.good(["history", "diary", "today"])
        #expect(history.contains("v3  removed  20") && history.hasPrefix("v4  {"), "\(history)")
    }

    @Test("an old edit that the server refuses keeps no command from telling the account that the bucket is sealed")
    func reportedBesideRefused() throws {
        let (bench, ann) = try signedUp()
        let large = #"{"text":""# + String(repeating: "x", count: 2 << 20) + #""}"#
        try bench.write("large.json", large)
        try bench.good(["put", "--sealed", "--offline", "diary", "large", "@" + bench.path("large.json")])
        try bench.good(["put", "--sealed", "--offline", "diary", "k", #"{"text":"canary"}"#])
        // Both are sent; one is accepted, so that the server holds the bucket as sealed.
        for words in [["ls", "diary"], ["get", "diary", "k", "--path", "text"]] {
            let outcome = try bench.run(words)
            #expect(outcome.code == 4 && outcome.errors.contains("diary/large: the server refused"), "\(outcome)")
            #expect(outcome.output.contains(words[0] == "ls" ? "k" : "canary\n"))
        }
        #expect(try bench.good(["status"]).contains("1 not sent"), "the refused one is kept")
        try bench.good(["login"] + ann, home: "since", variables: Self.password)
        #expect(try bench.good(["get", "diary", "k", "--path", "text"], home: "since") == "canary\n", "by the bundle")
    }

    @Test(
        "a read-only login learns from the account's bundle that a bucket is sealed, beside an edit that waits"
    )
    func reportedReadingOnly() throws {
        let (bench, ann) = try signedUp()
        try bench.good(["login"] + ann, home: "reader", variables: Self.password)
        let home = try ProfileHome(["THICKET_HOME": bench.path("reader")])
        var profile = try #require(try home.read("default"))
        profile.token = try bench.token(user: try #require(profile.login).userId, readOnly: true)
        try home.write(profile, "default")
        try bench.good(["put", "--sealed", "diary", "k", #"{"text":"canary"}"#])
        try bench.good(["put", "--sealed", "--offline", "diary", "mine", #"{"a":1}"#], home: "reader")
        #expect(try home.readKeys("default")?.open().bundle.buckets["diary"] == nil)
        let listed = try bench.run(["ls", "diary"], home: "reader")
        #expect(
            listed.code == 6 && listed.output.contains("k") && !listed.errors.contains("do not know that"), "\(listed)")
        #expect(listed.errors.contains("diary/mine: the edit kept here was not taken"), "\(listed)")
        #expect(try home.readKeys("default")?.open().bundle.buckets["diary"]?.isSealed == true)
        #expect(try bench.good(["status"], home: "reader").contains("1 not sent"), "the edit waits")
    }

    @Test("a login without keys opens no sealed bucket, and the message says where keys come from")
    func withoutKeys() throws {
        let bench = try CommandBench()
        try bench.login()
        let outcome = try bench.run(["put", "--sealed", "diary", "k", #"{"a":1}"#])
        #expect(outcome.code == 3 && outcome.errors.contains("thicket signup"), "\(outcome)")
        #expect(try bench.run(["put", "diary", "k", #"{"a":1}"#]).code == 0, "nothing was kept of it")
    }

    private func copy(_ bench: CommandBench, _ from: String, _ to: String) throws {
        let copied = try ChildProcess.run(
            ["/bin/sh", "-c", #"rm -rf "$2" && cp -a "$1" "$2""#, "sh", bench.path(from), bench.path(to)], input: "",
            variables: [:])
        #expect(copied.code == 0, "\(copied)")
    }

    /// The server continues from its state before "a" and "b" were written again, and does not report that.
    private func forgetTheSecond(_ bench: CommandBench, meanwhile body: () throws -> Void = {}) throws {
        try bench.stopServer()
        try copy(bench, "data", "backup")
        try bench.startServer()
        for key in ["a", "b"] { try bench.good(["put", "diary", key, #"{"text":"one and two"}"#]) }
        try body()
        try bench.stopServer()
        try copy(bench, "backup", "data")
        try bench.startServer()
    }

    @Test("after a backup was restored both states are shown, one is chosen, and nothing disappears unreported")
    func repair() throws {
        let (bench, ann) = try signedUp()
        for key in ["a", "b", "quiet"] {
            try bench.good(["put", "--sealed", "diary", key, #"{"text":"one"}"#])
        }
        #expect(try bench.good(["repair", "diary"]) == "diary: nothing to choose\n")
        let none = try bench.run(["repair", "diary", "a", "--mine"])
        #expect(none.code == 3 && none.errors.contains("diary/a is not read-only"), "\(none)")
        try forgetTheSecond(bench)

        let reported = try bench.run(["get", "diary", "a", "--path", "text"])
        #expect(reported.output == "one and two\n", "nothing goes back by itself: \(reported)")
        #expect(
            reported.errors.contains("2 objects are read-only until you choose: thicket repair diary"),
            "\(reported.errors)")
        #expect(reported.errors.contains("diary/a: the server shows an older state"), "\(reported.errors)")
        let refused = try bench.run(["put", "diary", "a", #"{"text":"three"}"#])
        #expect(refused.code == 1 && refused.errors.contains("thicket repair"), "\(refused)")

        let shown = try bench.good(["repair", "diary"])
        for line in [
            "a: the server shows an older state", #"  mine     {"text":"one and two"}"#, #"  server's {"text":"one"}"#,
            "b: ",
        ] { #expect(shown.contains(line), "\(shown)") }
        #expect(!shown.contains("quiet"))
        #expect(try bench.good(["repair", "diary", "a", "--mine"]) == "diary/a: yours is kept\n")
        let taken = try bench.run(["repair", "diary", "b", "--servers"])
        #expect(taken.code == 0 && taken.output == "diary/b: the server's is taken\n", "\(taken)")
        #expect(taken.errors.contains(#"this gave way: {"text":"one and two"}"#), "\(taken.errors)")
        #expect(try bench.good(["repair", "diary"]) == "diary: nothing to choose\n")

        try bench.good(["login"] + ann, home: "other", variables: Self.password)
        #expect(try bench.good(["get", "diary", "a", "--path", "text"], home: "other") == "one and two\n")
        #expect(try bench.good(["get", "diary", "b", "--path", "text"], home: "other") == "one\n")
        let open = try bench.run(["repair", "plain"])
        #expect(open.code == 2, "\(open)")
    }

    @Test("a command that fails still reports what is reported only once, also about other objects")
    func reportedByFailures() throws {
        let (bench, _) = try signedUp()
        for key in ["a", "b"] { try bench.good(["put", "--sealed", "diary", key, #"{"text":"one"}"#]) }
        try forgetTheSecond(bench)
        let refused = try bench.run(["put", "diary", "a", #"{"text":"three"}"#])
        #expect(refused.code == 1 && refused.errors.contains("thicket: cannot put diary/a"), "\(refused)")
        #expect(refused.errors.contains("diary/b: the server shows an older state"), "\(refused)")
        #expect(refused.errors.contains("2 objects are read-only until you choose"), "\(refused)")
        let rows: [Substring] = try bench.good(["repair", "diary", "--json"]).split(separator: "\n")
        #expect(
            rows.count == 2 && rows[0].hasPrefix(#"{"key":"a","problem":"the server shows an older state"#), "\(rows)")
        #expect(
            rows[1].hasSuffix(#""mine":{"text":"one and two"},"readable":true,"server":{"text":"one"}}"#), "\(rows)")
        #expect(try bench.run(["repair", "diary", "a", "--mine", "--json"]).code == 2)
        // The first is done and reported; the second cannot be done.
        let half = try bench.run(["repair", "diary", "b", "none", "--servers"])
        #expect(half.code == 3 && half.output == "diary/b: the server's is taken\n", "\(half)")
        #expect(half.errors.contains(#"this gave way: {"text":"one and two"}"#), "\(half)")
        #expect(try bench.good(["repair", "diary", "--json"]).split(separator: "\n").count == 1)
    }

    @Test("the command whose edit prevailed reports what gave way, and watch reports problems in words")
    func reportedInWords() throws {
        let (bench, ann): (CommandBench, [String]) = try signedUp()
        for key in ["a", "b"] { try bench.good(["put", "--sealed", "diary", key, #"{"text":"one"}"#]) }
        for home in ["other", "third"] {
            try bench.good(["login"] + ann, home: home, variables: Self.password)
            try bench.good(["ls", "diary"], home: home)
        }
        let watch = try bench.start(["watch", "diary"], home: "third")
        try watch.wait(for: "watching diary")
        // Two edits of one field, made apart: only one can prevail.
        try bench.good(["put", "diary", "a", #"{"text":8}"#, "--offline"])
        try bench.good(["put", "diary", "a", #"{"text":9}"#, "--offline"], home: "other")
        try bench.good(["ls", "diary"], home: "other")
        let reported = try bench.run(["ls", "diary"])
        #expect(reported.errors == "diary/a: two edits met at text, and this gave way: 9\n", "\(reported)")
        #expect(try bench.run(["ls", "diary"]).errors.isEmpty, "once")
        try forgetTheSecond(bench) { try watch.wait(for: "~ b") }
        try watch.wait(for: "! b: the server shows an older state")
        watch.signal(SIGINT)
        let outcome = try watch.finish()
        #expect(outcome.code == 0, "\(outcome)")
    }

    @Test("with keys of 250 to 256 characters mirror and export name the same ones in equal words, and write the rest")
    func longKeys() throws {
        let (bench, _): (CommandBench, [String]) = try signedUp()
        let words = "the key is too long for a file name"
        var (written, named): ([String], [String]) = ([], [])
        for length in 250...256 {
            let (text, whole) = (String(repeating: "t", count: length), String(repeating: "w", count: length))
            try bench.good(["put", "--sealed", "diary", text, #"{"text":"a text\n"}"#])
            try bench.good(["put", "--sealed", "diary", whole, #"{"n":1}"#])
            if length <= 255 { written.append(text) } else { named.append(text) }
            if length <= 250 { written.append(whole + ".json") } else { named.append(whole) }
        }
        let mirror = ["mirror", "--sealed", bench.path("m"), "diary", "--once"]
        for round in 0..<2 {
            let mirrored = try bench.run(mirror)
            #expect(mirrored.output.isEmpty == (round == 1), "what was received is remembered: \(mirrored)")
            let exported = try bench.run(["export", "diary", bench.path("out"), "--force"])
            #expect(mirrored.code == 1 && exported.code == 1, "\(mirrored) \(exported)")
            for key in named {
                #expect(mirrored.errors.contains("thicket: \(key) is left alone: \(words)\n"), "\(mirrored)")
                #expect(exported.errors.contains("  \(key): \(words)\n"), "\(exported)")
            }
            for reported in [mirrored, exported] {
                #expect(reported.errors.ranges(of: words).count == named.count, "\(reported)")
            }
            for name in written { #expect(bench.exists("m/\(name)") && bench.exists("out/\(name)"), "\(name.count)") }
        }
        #expect(try bench.good(["ls", "diary"]).split(separator: "\n").count == 14, "none was taken for deleted")
        // The longest name is a file like any other.
        let longest = String(repeating: "t", count: 255)
        unlink(bench.path("m/" + longest))
        #expect(try bench.run(mirror).output == "removed \(longest) from the bucket\n")
        #expect(try bench.run(["get", "diary", longest]).code == 3)
    }

    @Test("a mirror reports before it ends what the server no longer shows; the files stay as they were")
    func mirrored() throws {
        let (bench, _) = try signedUp()
        for key in ["a", "b"] { try bench.good(["put", "--sealed", "diary", key, #"{"text":"one"}"#]) }
        let mirror = ["mirror", "--sealed", bench.path("files"), "diary", "--once"]
        try bench.good(mirror)
        try forgetTheSecond(bench) { try bench.good(mirror) }
        let reported = try bench.run(mirror)
        for key in ["a", "b"] {
            #expect(reported.errors.contains("\(key): the server shows an older state"), "\(reported)")
            let content = bench.read("files/\(key).json") ?? bench.read("files/\(key)")
            #expect(content?.contains("one and two") == true)
        }
    }

    @Test("--sealed for a bucket of open objects is refused, and leaves no copy that is taken for a sealed one")
    func sealedByMistake() throws {
        let (bench, ann) = try signedUp()
        try bench.good(["put", "plain", "k", #"{"text":"readable"}"#])
        try bench.good(["logout"])
        // Another machine, so that nothing is known of the bucket.
        try bench.good(["login"] + ann, variables: Self.password)
        for words in [["ls", "--sealed", "plain"], ["put", "--sealed", "plain", "new", #"{"a":1}"#]] {
            let refused = try bench.run(words)
            #expect(refused.code == 2 && refused.errors.contains("plain is not a sealed bucket"), "\(refused)")
            #expect(!refused.errors.contains("read-only until you choose"), "\(refused)")
        }
        #expect(try bench.good(["get", "plain", "k", "--path", "text"]) == "readable\n")
        let known = try bench.run(["ls", "--sealed", "plain"])
        #expect(known.code == 2 && known.errors.contains("plain is not a sealed bucket"), "of an open copy: \(known)")
        #expect(try bench.run(["get", "plain", "new"]).code == 3, "nothing of it was sent")
        try bench.good(["put", "plain", "k", #"{"text":"canary"}"#])
        #expect(try holds(bench, "canary"), "it goes on as an open one")
    }

    @Test(
        "an object's stored history is exported and checked offline; a server that left something out is detected"
    )
    func verifiedHistory() throws {
        let (bench, _) = try signedUp()
        try bench.good(["put", "--sealed", "diary", "today", #"{"text":"one"}"#])
        for text in ["one and two", "one and three", "four"] {
            try bench.good(["put", "diary", "today", #"{"text":"\#(text)"}"#])
        }
        let exported = try bench.good(["history", "diary", "today", "--export"])
        #expect(!exported.contains("one and two") && !exported.contains("today"), "nothing but what the server has")
        try bench.stopServer()
        try bench.write("good", exported)
        #expect(
            try bench.good(["verify-history", bench.path("good")])
                == "diary/today: 4 versions up to operation 3 are one history, by one device\n")

        // The newest state without the operation before it.
        let json = try JSONValue(parsing: Array(exported.utf8))
        var versions = try #require(json["versions"]?.arrayValue)
        let tail = try #require(versions[3]["value"]?["d"]?.arrayValue)
        var (newest, value) = (
            try #require(versions[3].objectValue), try #require(versions[3]["value"]?.objectValue)
        )
        value["d"] = .array([tail[0], tail[2]])
        newest["value"] = .object(value)
        versions[3] = .object(newest)
        var lying = try #require(json.objectValue)
        lying["versions"] = .array(versions)
        try bench.write("bad", JSONValue.object(lying).serializedText)
        let refused = try bench.run(["verify-history", bench.path("bad")])
        #expect(
            refused.code == 1 && refused.output.contains("version 4: other devices have seen another history"),
            "\(refused)")

        lying["object"] = .string(String(repeating: "a", count: 32))
        try bench.write("other", JSONValue.object(lying).serializedText)
        #expect(try bench.run(["verify-history", bench.path("other")]).code == 1, "another object's")
        try bench.write("none", "{}")
        #expect(try bench.run(["verify-history", bench.path("none")]).code == 2)
    }
}
