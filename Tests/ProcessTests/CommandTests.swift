import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

/// The built program `thicketd`: its words, its output and its exit codes.
@Suite("thicketd commands", .blocking)
struct CommandTests {
    private let folder = TemporaryFolder("commands")
    private var data: String { folder.path + "/data" }

    private func run(_ words: String..., input: String = "") throws -> ChildProcess.Outcome {
        try ChildProcess.run([Programs.thicketd] + words, input: input)
    }

    private func write(_ name: String, _ text: String) -> String {
        let path = folder.path + "/" + name
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        _ = Glibc.write(file, text, text.utf8.count)
        close(file)
        return path
    }

    @Test("help, version and completion go to standard output and end with 0")
    func help() throws {
        for words in [
            ["--help"], ["help"], ["serve", "--help"], ["help", "token", "import"], ["version"], ["--version"],
        ] {
            let outcome = try ChildProcess.run([Programs.thicketd] + words)
            #expect(outcome.code == 0 && !outcome.output.isEmpty && outcome.errors.isEmpty, "\(words)")
        }
        #expect(try run("completion", "bash").output.contains("complete -o filenames -F _thicketd thicketd"))
        for command in [
            "serve", "app create", "app key add", "token create", "token import", "token revoke", "check", "backup",
            "restore", "ask",
        ] {
            let outcome = try ChildProcess.run(
                [Programs.thicketd] + command.split(separator: " ").map(String.init) + ["--help"])
            #expect(outcome.output.contains("Examples:"), "\(command)")
        }
    }

    @Test(
        "invalid words end with 2, give the reason and create nothing",
        arguments: [
            (["srve"], "did you mean 'serve'?"), (["serve", "--lisen", "x"], "did you mean --listen?"),
            (["serve", "--idle-timeout", "30"], "has no unit"), (["serve", "--listen", "8000"], "not HOST:PORT"),
            (["app", "create"], "NAME is missing"), (["app", "create", "a b"], "app id"),
            (["token", "create", "--app", "x"], "--user USER is missing"),
            (["ask", "a", "u", "b", "all"], "say index, log:0"),
            (["ask", "a", "u", "b", "index", "--wait", "9"], "no unit"),
            (["config", "--config", "/nowhere/x.conf"], "cannot be read: No such file"), ([], "Commands:"),
        ] as [([String], String)])
    func refusedWords(words: [String], part: String) throws {
        let outcome = try ChildProcess.run(
            [Programs.thicketd] + words, variables: ["THICKET_DATA": data])
        #expect(outcome.code == 2 && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.errors.contains(part), "\(outcome.errors)")
        #expect(access(data, F_OK) != 0, "nothing may be made")
    }

    @Test("config shows each value with its source, and a misspelt variable is an error")
    func config() throws {
        let file = write("t.conf", "idle-timeout = 2m\nmessages-burst = 7 # few\n")
        let outcome = try ChildProcess.run(
            [Programs.thicketd, "config", "--config", file, "--listen", "0.0.0.0:1"],
            variables: ["THICKET_DATA": "/srv/x", "THICKET_IDLE_TIMEOUT": "3m"])
        let lines = outcome.output.split(separator: "\n").map { (line: Substring) in
            line.split(separator: " ").joined(separator: " ")
        }
        #expect(outcome.code == 0)
        #expect(lines.contains("data = /srv/x # environment"))
        #expect(lines.contains("idle-timeout = 3m # environment"))
        #expect(lines.contains("messages-burst = 7 # \(file):2"))
        #expect(lines.contains("listen = 0.0.0.0:1 # flag"))
        #expect(lines.contains("log-level = info # default"))
        let slip = try ChildProcess.run(
            [Programs.thicketd, "config"], variables: ["THICKET_DTA": "x"])
        #expect(slip.code == 2 && slip.errors.contains("did you mean THICKET_DATA?"))
    }

    @Test("an app is created once, and tokens only for an app that exists")
    func appsAndTokens() throws {
        #expect(try run("token", "create", "--app", "a", "--user", "u", "--data", data).code == 1)
        let made = try run("app", "create", "Notes", "--data", data)
        let lines: [Substring] = made.output.split(separator: "\n")
        try #require(lines.count == 3)
        #expect(lines[0] == "created the app notes")
        #expect(lines[1].hasPrefix("api key   ") && lines[1].utf8.count == 42)
        #expect(lines[2].hasPrefix("admin key ") && lines[2].utf8.count == 42)
        #expect(made.errors.contains("shown only once"))
        #expect(try run("app", "create", "notes", "--data", data).output == "the app notes exists already\n")
        let token = try run("token", "create", "--app", "notes", "--user", "u", "--data", data)
        #expect(token.output.utf8.count == 33 && token.output.utf8.dropLast().allSatisfy { isHex($0) })
        let other = try run("token", "create", "--app", "note", "--user", "u", "--data", data)
        #expect(other.code == 1 && other.errors.contains("there is no app note; did you mean notes?"))
        var info = stat()
        #expect(stat(data + "/thicket.db", &info) == 0 && info.st_mode & 0o077 == 0, "for the owner only")
        let check = try run("check", "--data", data)
        #expect(check.code == 0 && check.output.hasPrefix("clean: 0 buckets"))
    }

    @Test("no token is made for a name with blanks or invisible characters, unless a user has that name already")
    func unseenNames() throws {
        try Daemon.command(data, ["app", "create", "notes"], succeeding: true)
        func create(_ user: String) throws -> ChildProcess.Outcome {
            try run("token", "create", "--app", "notes", "--user", user, "--data", data)
        }
        for (user, problem) in [
            ("a ", "ends with a blank (character 2); leave it out"), (" a", "begins with a blank; leave it out"),
            ("a\u{200B}", "ends with U+200B (character 2); leave it out"),
            ("a\n", "holds U+000A (character 2), which is not admitted"), ("", "is empty"),
        ] {
            let refused = try create(user)
            #expect(refused.code == 2 && refused.output.isEmpty, "\(refused)")
            #expect(refused.errors.contains("user name: \(problem)"), "\(refused.errors)")
        }
        let import_ = write("tokens.jsonl", #"{"app":"notes","user":"a ","token":"0123456789abcdef"}"# + "\n")
        #expect(try run("token", "import", import_, "--data", data).code == 0)
        #expect(try create("a ").output.utf8.count == 33)
        #expect(try create("b ").code == 2)
    }

    @Test("keys and tokens are listed without their secrets, and end when they are revoked")
    func keysAndTokens() throws {
        try Daemon.command(data, ["app", "create", "notes"], succeeding: true)
        let key = try run("app", "key", "add", "notes", "--admin", "--data", data).output
        #expect(key.utf8.count == 33)
        let keys: [Substring] = try run("app", "key", "list", "notes", "--data", data).output.split(separator: "\n")
        #expect(keys.count == 3 && keys.count { $0.contains("\tadmin\tmade 2") } == 2)
        #expect(!keys.contains { $0.contains(key.prefix(32)) })
        let id = String(try #require(keys.last).prefix(8))
        #expect(try run("app", "key", "revoke", "notes", id, "--data", data).code == 0)
        let again = try run("app", "key", "revoke", "notes", id, "--data", data)
        #expect(again.code == 1 && again.errors.contains("has no key \(id)"))
        #expect(try run("app", "key", "list", "note", "--data", data).errors.contains("did you mean notes?"))
        for words in [[], ["--lifetime", "90d"], ["--read-only"]] {
            try Daemon.command(
                data, ["token", "create", "--app", "notes", "--user", "ann"] + words, succeeding: true)
        }
        let tokens = try run("token", "list", "--app", "notes", "--user", "ann", "--data", data).output
        #expect(tokens.split(separator: "\n").count == 3)
        #expect(tokens.contains("\tends 2") && tokens.contains("read-only") && tokens.contains("no end"))
        let revoke = ["token", "revoke", "--app", "notes", "--user", "ann"]
        #expect(try Daemon.command(data, revoke).code == 2)
        #expect(try Daemon.command(data, revoke + [String(tokens.prefix(16))]).output == "revoked 1 token\n")
        #expect(try Daemon.command(data, revoke + ["--all"]).output == "revoked 2 tokens\n")
        #expect(try Daemon.command(data, revoke + ["--all"]).code == 1)
        #expect(
            try Daemon.command(data, ["token", "create", "--app", "notes", "--user", "ann", "--lifetime", "9"]).code
                == 2)
    }

    private func isHex(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) }

    @Test("an import accepts all lines or none, and names each line that is invalid")
    func tokenImport() throws {
        try Daemon.command(data, ["app", "create", "notes"], succeeding: true)
        let good = #"{"app":"notes","user":"ann@example.com","token":"0123456789abcdef0123456789abcdef"}"#
        let bad = try run(
            "token", "import", "-", "--data", data,
            input: """
                \(good)
                {"app":"notes","user":"b"}
                not json

                {"app":"other","user":"b","token":"12345678"}
                {"app":"notes","user":"b","tokn":"12345678"}
                {"app":"notes","user":"b","token":"short"}
                {"app":"notes","user":"","token":"12345678"}
                {"app":"notes","user":"b","token":"12345678","read_only":1}
                {"app":"notes","user":"b","token":"1234 5678"}
                """)
        #expect(bad.code == 1 && bad.output.isEmpty)
        for part in [
            "-:2: \"token\" is missing", "-:3: this is not JSON", "-:5: there is no app other",
            "-:6: \"tokn\" is not known; did you mean \"token\"?", "-:7: the token is shorter than 8 bytes",
            "-:8: user name: is empty", "-:9: \"read_only\" is neither true nor false", "-:10: the token holds a space",
            "Nothing was imported.",
        ] { #expect(bad.errors.contains(part), "\(part) in \(bad.errors)") }
        let file = write("tokens", good + "\r\n\n" + good.replacing("0123", with: "abcd") + "\n")
        #expect(try run("token", "import", file, "--data", data).output == "imported 2 tokens\n")
        #expect(try run("token", "import", file, "--data", data).output == "imported 0 tokens, 2 existed already\n")
        let taken = try run(
            "token", "import", "-", "--data", data, input: "\n" + good.replacing("ann", with: "bob"))
        #expect(taken.code == 1 && taken.errors.contains("-:2: this token is in use for another app, user or right"))
    }

    @Test(
        "commands on a folder without data report what is missing",
        arguments: ["check", "backup", "token", "ask", "health"])
    func noData(command: String) throws {
        let words =
            switch command {
            case "backup": ["backup", folder.path + "/b"]
            case "token": ["token", "import", "-"]
            case "ask": ["ask", "a", "u", "b", "index"]
            case "health": ["health", "--listen", "127.0.0.1:1"]
            default: [command]
            }
        let missing = try Daemon.command(data, words)
        #expect(missing.code == (command == "health" ? 4 : 1), "\(missing)")
        mkdir(data, 0o700)
        let empty = try Daemon.command(data, words)
        #expect(empty.code == (command == "health" || command == "ask" ? 4 : 1), "\(empty)")
        #expect(empty.errors.hasPrefix("thicketd: ") && !empty.errors.contains("Error("), "\(empty.errors)")
        #expect(access(data + "/thicket.db", F_OK) != 0)
    }

    @Test("a file that is not a database is refused, with the advice to restore a backup")
    func brokenData() throws {
        try Daemon.command(data, ["app", "create", "notes"], succeeding: true)
        _ = write("data/thicket.db", "this is no database")
        for words in [["check"], ["serve", "--listen", "127.0.0.1:0"], ["app", "create", "b"]] {
            let outcome = try Daemon.command(data, words)
            #expect(outcome.code == 1 && outcome.output.isEmpty, "\(outcome)")
            #expect(outcome.errors.contains("'thicketd restore' the last good backup"), "\(outcome.errors)")
        }
    }
}
