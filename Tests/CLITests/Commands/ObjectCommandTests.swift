import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// The commands on single objects, as processes against a real server.
@Suite("thicket: objects", .blocking)
struct ObjectCommandTests {
    @Test("one profile gets what another puts; rm, history and revert work")
    func lifecycle() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.login(home: "other")
        #expect(
            try bench.good(["put", "notes", "plan", #"{"title":"Oak","n":1.50}"#]) == "notes/plan is at version 1\n")
        #expect(
            try bench.good(["get", "notes", "plan", "--json"], home: "other") == #"{"title":"Oak","n":1.50}"# + "\n")
        #expect(try bench.good(["get", "notes", "plan", "--path", "title"], home: "other") == "Oak\n")
        try bench.good(["put", "notes", "plan", #"{"title":"Elm"}"#], home: "other")
        #expect(try bench.good(["ls", "notes"]) == "plan  v2\n")
        let history = try bench.good(["history", "notes", "plan", "--json"])
        #expect(
            history == #"{"version":2,"object":{"title":"Elm"}}"# + "\n"
                + #"{"version":1,"object":{"title":"Oak","n":1.50}}"# + "\n")
        #expect(try bench.good(["history", "notes", "plan", "--diff"]).contains("    - n\n"))
        #expect(try bench.good(["get", "notes", "plan", "--version", "1", "--path", "n"]) == "1.50\n")
        #expect(try bench.good(["revert", "notes", "plan", "1"]).contains("version 3"))
        #expect(try bench.good(["get", "notes", "plan", "--path", "title"], home: "other") == "Oak\n")
        try bench.good(["rm", "notes", "plan"], home: "other")
        #expect(try bench.run(["get", "notes", "plan"]).code == 3)
        #expect(try bench.run(["rm", "notes", "plan"]).code == 3)
        #expect(try bench.run(["rm", "--force", "notes", "plan"]).code == 0)
        #expect(try bench.good(["ls"]) == "notes\n")
    }

    @Test("ls --removed lists removed objects with version and time; history after a revert shows the removal")
    func removals() throws {
        let bench = try CommandBench()
        try bench.login()
        for key in ["plan", "draft", "kept"] { try bench.good(["put", "notes", key, #"{"title":"Oak"}"#]) }
        #expect(try bench.good(["ls", "notes", "--removed"]).isEmpty)
        try bench.good(["rm", "notes", "plan", "draft"])
        let lines = try bench.good(["ls", "notes", "--removed"]).split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first?.firstMatch(of: /^draft  v2  20\d\d-\d\d-\d\d \d\d:\d\d$/) != nil, "\(lines)")
        #expect(lines.last?.hasPrefix("plan   v2  20") == true, "\(lines)")
        let rows = try bench.good(["ls", "notes", "--removed", "--json"])
        #expect(rows.firstMatch(of: /^{"key":"draft","version":2,"removedAt":\d{13}}\n{"key":"plan"/) != nil, "\(rows)")
        #expect(try bench.good(["history", "notes", "plan"]).hasPrefix("v2  removed  20"))

        try bench.good(["revert", "notes", "plan", "1"])
        #expect(try bench.good(["ls", "notes", "--removed"]).hasPrefix("draft "))
        let history = try bench.good(["history", "notes", "plan"]).split(separator: "\n")
        #expect(history.map { $0.prefix(12) } == [#"v3  {"title""#, "v2  removed ", #"v1  {"title""#])
        let diff = try bench.good(["history", "notes", "plan", "--diff"])
        #expect(diff.contains("v3\n    + title") && diff.contains("v2  removed"), "\(diff)")
        let json = try bench.good(["history", "notes", "plan", "--json"])
        #expect(json.contains(#"{"version":2,"removed":true,"removedAt":1"#), "\(json)")
        #expect(try bench.good(["history", "notes", "plan", "--limit", "1"]).split(separator: "\n").count == 1)
        for option in ["--offline", "--long"] {
            let outcome = try bench.run(["ls", "notes", "--removed", option])
            #expect(outcome.code == 2 && outcome.errors.contains(option), "\(outcome)")
        }
        #expect(try bench.run(["ls", "--removed"]).code == 2)
    }

    @Test("an object comes from the command line, from a file and from standard input")
    func sources() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.write("o.json", "{\n \"from\": \"file\" }\n")
        try bench.good(["put", "notes", "f", "@" + bench.path("o.json")])
        #expect(try bench.run(["put", "notes", "s", "-"], input: #"{"from":"pipe"}"#).code == 0)
        #expect(try bench.good(["get", "notes", "f", "--path", "from"]) == "file\n")
        #expect(try bench.good(["get", "notes", "s", "--path", "from"]) == "pipe\n")
        #expect(try bench.run(["put", "notes", "s", "@" + bench.path("none")]).code == 3)
        #expect(try bench.good(["put", "notes", "f", #"{"from":"file"}"#]).contains("is so already"))
    }

    @Test(
        "an unusable argument ends with 2 and a reason",
        arguments: [
            (["put", "notes", "k", "{"], "it ends too early"), (["put", "notes", "k", "[1]"], "not an object"),
            (["put", "notes", "a b", "{}"], "is not a key"), (["get", "no/tes", "k"], "is not a bucket name"),
            (["get", "notes", "k", "--version", "x"], "a version is a number"),
            (["get", "notes", "k", "--path", "a..b"], "--path"), (["ls", "notes", "--timeout", "soon"], "--timeout"),
            (["ls", "--profile", "../x"], "is not a profile name"), (["frobnicate"], "there is no command"),
            (["history", "notes", "k", "--limit", "0"], "--limit"),
        ] as [([String], String)])
    func unusable(words: [String], reason: String) throws {
        let variables = [
            "THICKET_HOME": "/nonexistent", "THICKET_SERVER": "http://127.0.0.1:1", "THICKET_APP": "notes",
            "THICKET_TOKEN": "t",
        ]
        let outcome = try ChildProcess.run([Programs.thicket] + words, variables: variables)
        #expect(outcome.code == 2 && outcome.errors.contains(reason), "\(outcome)")
    }

    @Test("the editor's save is merged with a concurrent change, and the merge is reported")
    func editing() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.login(home: "other")
        try bench.good(["put", "notes", "plan", #"{"text":"one two three","n":1}"#])
        // The editor changes one word; meanwhile another device changes another.
        try bench.write(
            "editor",
            """
            #!/bin/sh
            THICKET_HOME='\(bench.path("other"))' '\(Programs.thicket)' put notes plan '{"text":"one two THREE","n":2}' || exit 9
            sed 's/one/ONE/' "$1" > "$1.new" && mv "$1.new" "$1"
            """)
        let outcome = try bench.run(
            ["edit", "notes", "plan"], variables: ["EDITOR": bench.path("editor")])
        #expect(outcome.code == 0 && outcome.errors.contains("both edits are merged"), "\(outcome)")
        #expect(try bench.good(["get", "notes", "plan", "--json"]) == #"{"text":"ONE two THREE","n":2}"# + "\n")
    }

    @Test("one text is edited alone, a new object is created, and nothing is saved when nothing changed")
    func editingText() throws {
        let bench = try CommandBench()
        try bench.login()
        let append = ["EDITOR": "sh -c 'echo more >> \"$1\"' x"]
        try bench.good(["edit", "notes", "fresh.md", "--text", "text"], variables: append)
        #expect(try bench.good(["get", "notes", "fresh.md", "--json"]) == #"{"text":"more"}"# + "\n")
        let same = try bench.good(["edit", "notes", "fresh.md"], variables: ["EDITOR": "true"])
        #expect(same == "notes/fresh.md: nothing changed\n")
        #expect(try bench.good(["ls", "notes"]) == "fresh.md  v1\n")
    }

    @Test("a text that cannot be saved is kept, and its path is named")
    func editingBroken() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "notes", "plan", #"{"n":1}"#])
        let outcome = try bench.run(
            ["edit", "notes", "plan"], variables: ["EDITOR": "sh -c 'echo \"{ half\" > \"$1\"' x"])
        #expect(outcome.code == 1 && outcome.errors.contains("is not JSON"), "\(outcome)")
        let kept = try #require(
            outcome.errors.split(separator: "\n").last?.split(separator: " ").last.map(String.init))
        #expect(kept.hasSuffix("/plan.json") && access(kept, F_OK) == 0)
        unlink(kept)
        rmdir(String(kept.dropLast("/plan.json".count)))
        let failing = try bench.run(["edit", "notes", "plan"], variables: ["EDITOR": "false"])
        #expect(failing.code == 1 && failing.errors.contains("ended with code 1"))
        let missing = try bench.run(
            ["edit", "notes", "plan"], variables: ["EDITOR": "no-such-editor"])
        #expect(missing.code == 1 && missing.errors.contains("set EDITOR"))
    }

    @Test("watch reports other devices' changes, as JSON and in words, beside other commands; Ctrl-C ends it with 0")
    func watching() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.login(home: "other")
        try bench.good(["put", "notes", "plan", #"{"title":"Oak"}"#])
        let lines = try bench.start(["watch", "notes", "--json"])
        let words = try bench.start(["watch", "notes", "plan", "--all"], home: "other")
        try lines.wait(for: "watching notes")
        try words.wait(for: "= plan")
        try bench.good(["put", "notes", "plan", #"{"title":"Elm"}"#])
        try bench.good(["put", "notes", "new", #"{"a":1}"#], home: "other")
        try bench.good(["rm", "notes", "new"], home: "other")
        try lines.wait(for: #"{"event":"removed","key":"new"}"#)
        try words.wait(for: "{+Elm+}")
        lines.signal(SIGINT)
        words.signal(SIGTERM)
        let outcome = try lines.finish()
        #expect(outcome.code == 0)
        let reported = outcome.output.split(separator: "\n").map(String.init)
        #expect(
            reported == [
                #"{"event":"changed","key":"plan","new":false,"object":{"title":"Elm"},"diff":{"title":{"o":"d","v":"-3\t+Elm"}}}"#,
                #"{"event":"changed","key":"new","new":true,"object":{"a":1},"diff":{"a":{"o":"+","v":1}}}"#,
                #"{"event":"removed","key":"new"}"#,
            ])
        #expect(try words.finish().code == 0)
    }

    @Test("watch survives a server that stops and comes back")
    func reconnecting() throws {
        let bench = try CommandBench()
        try bench.login()
        let watch = try bench.start(["watch", "notes", "--json"])
        try watch.wait(for: "watching notes")
        try bench.stopServer()
        try watch.wait(for: "offline (")
        try bench.startServer()
        try bench.good(["put", "notes", "late", #"{"a":1}"#])
        try watch.wait(for: #""key":"late""#)
        watch.signal(SIGINT)
        #expect(try watch.finish().code == 0)
    }

    @Test("jsondiff answers line by line, and continues after a line it cannot read")
    func jsondiff() throws {
        let input = #"{"source":{"a":1},"target":{"a":2}}"# + "\n\nnonsense\n" + #"{"source":{},"target":{}}"#
        let outcome = try ChildProcess.run(
            [Programs.thicket, "jsondiff", "diff", "--lines"], input: input)
        let lines: [Substring] = outcome.output.split(separator: "\n")
        // The empty line has its own answer.
        #expect(outcome.code == 0 && lines.count == 4)
        #expect(lines.first == #"{"diff":{"a":{"o":"r","v":2}}}"# && lines.last == #"{"diff":{}}"#)
        #expect(lines.dropFirst().prefix(2).allSatisfy { $0.hasPrefix(#"{"error":"#) })
        #expect(try ChildProcess.run([Programs.thicket, "jsondiff", "diff"]).code == 2)
    }

    @Test("each shell accepts its completion script", arguments: ["bash", "zsh", "fish"])
    func completion(shell: String) throws {
        let outcome = try ChildProcess.run([Programs.thicket, "completion", shell])
        #expect(outcome.code == 0 && outcome.output.contains("mirror"))
        guard let program = ["/bin/", "/usr/bin/"].map({ $0 + shell }).first(where: { access($0, X_OK) == 0 })
        else { return }
        let folder = TemporaryFolder("completion")
        let file = open(folder.path + "/script", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        _ = write(file, outcome.output, outcome.output.utf8.count)
        close(file)
        let checked = try ChildProcess.run([program, "-n", folder.path + "/script"])
        #expect(checked.code == 0, "\(checked.errors)")
    }
}
