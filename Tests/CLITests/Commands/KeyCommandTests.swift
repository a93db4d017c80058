import Glibc
import Testing
import ThicketBlocking
import ThicketClient
import ThicketCrypto
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Accounts whose keys stay on the machine, with the real programs.
@Suite("thicket: accounts with keys", .blocking)
struct KeyCommandTests {
    private func apiKey(_ bench: CommandBench) throws -> String {
        let output = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        return String(try #require(output.split(separator: "\n").first).split(separator: " ").last ?? "")
    }

    /// The limits of a process as the kernel lists them.
    private static func limits(of id: pid_t) -> String? {
        let file = open("/proc/\(id)/limits", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(file, &bytes, bytes.count)
        return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    }

    @Test("a lost answer is reported as unknown, with a way to find out; a refusal says what was not done, and why")
    func lostAnswers() {
        let lost = Failure(
            "nothing was deleted", keys: .unknown(ClientError(.network, "the line went dead")),
            lost: Failure.lostDeletion)
        #expect(!lost.text.contains("nothing was deleted") && lost.text.contains("it is not known whether"))
        #expect(
            lost.text.contains("the line went dead")
                && lost.text.contains("'thicket status' shows it: when the server does not accept the token"))
        #expect(lost.code == .offline)
        let refused = Failure("nothing was deleted", keys: .wrongPassword(isChanged: false), lost: "x")
        #expect(
            refused.text == "nothing was deleted: the name or the password is wrong" && refused.code == .unauthorized)
    }

    @Test(
        "--timeout bounds the wait for answers about accounts, too",
        arguments: [
            ["login", "--user", "ann"], ["recover", "--user", "ann"],
            ["onions", "list", "--old-account", "--user", "ann"],
        ])
    func timeout(words: [String]) throws {
        let silent = try SilentServer()
        let place = TemporaryFolder("silent")
        let variables = [
            "THICKET_HOME": place.path + "/home", "SWIFT_BACKTRACE": "enable=no", "THICKET_PASSWORD": "p",
            "THICKET_NEW_PASSWORD": "q", "THICKET_SERVER": silent.address,
            "THICKET_APP": "notes", "THICKET_API_KEY": "0123456789abcdef",
        ]
        var words = words
        var input = ""
        if words[0] == "recover" {
            words += ["--words-file", "-"]
            input = String(repeating: "abandon ", count: 23) + "art"
        }
        let outcome = try ChildProcess.run(
            [Programs.thicket] + words + ["--timeout", "1s"], input: input, variables: variables)
        #expect(outcome.code == 5 && outcome.errors.contains("timed out after"), "\(outcome)")
        #expect(!outcome.errors.contains("timed out after 30"), "\(outcome)")
    }

    @Test("a sign-up or a recovery reports all that it lacks at once", arguments: ["signup", "recover"])
    func missing(command: String) throws {
        let bench = try CommandBench()
        let nothing = try bench.run([command])
        #expect(nothing.code == 2, "\(nothing)")
        for name in ["--server", "--app", "--user", "--api-key"] {
            #expect(nothing.errors.contains("  \(name) "))
        }
        let some = try bench.run([command, "--server", bench.address, "--user", "ann"])
        for name in ["--app", "--api-key"] { #expect(some.errors.contains("  \(name) ")) }
        for name in ["--server", "--user"] { #expect(!some.errors.contains("  \(name) ")) }
    }

    @Test("an account survives sign-up, verify, a second machine, a new password, recovery by words and by pieces")
    func lifecycle() throws {
        let bench = try CommandBench()
        let ann = [
            "--server", bench.address, "--app", "notes", "--api-key", try apiKey(bench), "--user", "ann",
        ]
        let one = ["THICKET_PASSWORD": "canary sesame"]
        let made = try bench.run(["signup"] + ann, variables: one)
        #expect(made.code == 0 && made.output.contains("made the account ann"), "\(made)")
        #expect(made.errors.contains("recovery words") && made.errors.contains("thicket verify"))
        #expect(try bench.run(["signup"] + ann, home: "y", variables: one).code == 4)
        try bench.good(["put", "notes", "k", #"{"a":1}"#])

        let shown = try bench.run(["words"])
        let words: [Substring] = shown.output.split { $0 == " " || $0 == "\n" }.filter { !$0.hasSuffix(".") }
        #expect(words.count == 24, "\(shown)")
        try bench.write("words", words.joined(separator: "\n") + "\n")
        try bench.write("less", words.dropLast().joined(separator: " "))
        let less = try bench.run(["verify", "--words-file", bench.path("less")])
        #expect(less.code == 2 && less.errors.contains("not 24 words"), "\(less)")
        try bench.write("wrong", (words.dropLast() + ["thicket"]).joined(separator: " "))
        let slip = try bench.run(["verify", "--words-file", bench.path("wrong")])
        #expect(slip.code == 2 && slip.errors.contains("word 24") && !slip.errors.contains(words[0]), "\(slip)")
        #expect(try bench.good(["verify", "--words-file", bench.path("words")]).contains("verified"))
        #expect(try !bench.run(["status"]).errors.contains("reminder"))

        let wrong = try bench.run(
            ["login"] + ann, home: "x", variables: ["THICKET_PASSWORD": "guess"])
        #expect(wrong.code == 6 && wrong.errors.contains("is wrong") && !bench.exists("x/profiles"), "\(wrong)")
        let login = try bench.run(["login"] + ann, home: "x", variables: one)
        #expect(login.code == 0 && !login.errors.contains("reminder"), "\(login)")
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "x") == #"{"a":1}"# + "\n")
        #expect(try bench.good(["words"], home: "x") == shown.output)

        let two = ["THICKET_PASSWORD": "canary sesame", "THICKET_NEW_PASSWORD": "canary barley"]
        #expect(try bench.good(["passwd"], variables: two).contains("Sealed content stays unchanged"))
        // The other machine is signed out, and still shows whose login has ended.
        let ended = try bench.run(["status"], home: "x")
        #expect(ended.code == 6 && ended.output.contains("user     ann\n"), "\(ended)")
        #expect(try bench.run(["ls", "notes"], home: "x").code == 6)
        let old = try bench.run(["login"], home: "x", variables: one)
        #expect(old.code == 6 && old.errors.contains("it was changed since"), "\(old)")

        let pieces = try bench.good(["words", "--pieces", "3", "--needed", "2"])
        let parts: [Substring] = pieces.split(separator: "# ")
        try bench.write("pieces", "# \(parts[2])# \(parts[0])")
        let few = try {
            try bench.write("few", "# \(parts[1])")
            return try bench.run(["verify", "--pieces-file", bench.path("few")])
        }()
        #expect(few.code == 2 && few.errors.contains("2 different pieces are needed"), "\(few)")
        let three = ["THICKET_NEW_PASSWORD": "canary lentil"]
        let back = try bench.run(
            ["recover"] + ann + ["--pieces-file", bench.path("pieces")], home: "z", variables: three)
        #expect(back.code == 0, "\(back)")
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "z") == #"{"a":1}"# + "\n")

        // T2: nothing of it is stored in the clear.
        for home in ["home", "x", "z"] {
            let kept = try #require(bench.read("\(home)/profiles/default/keys.json"))
            #expect(kept.contains("sealed") && !kept.contains("access_key") && !kept.contains("canary"))
            var status = stat()
            #expect(
                stat(bench.path("\(home)/profiles/default/keys.json"), &status) == 0 && status.st_mode & 0o777 == 0o600)
        }
        #expect(
            try bench.good(["account", "delete"], home: "z", variables: ["THICKET_PASSWORD": "canary lentil"]).contains(
                "deleted"))
        #expect(try bench.run(["ls", "notes"], home: "z").code == 6)
    }

    @Test(
        "a new machine gets the keys by a code and four words; audit shows what the server stores, none in the clear"
    )
    func pair() throws {
        let bench = try CommandBench()
        let place = ["--server", bench.address, "--app", "notes", "--api-key", try apiKey(bench)]
        let password = ["THICKET_PASSWORD": "canary sesame"]
        try bench.good(["signup"] + place + ["--user", "ann"], variables: password)
        try bench.good(["put", "notes", "k", #"{"a":1}"#])
        let new = try bench.start(["pair", "--yes"] + place, home: "x")
        let code: Substring = try #require(try new.firstLine().split(separator: " ").last)
        let limits = try #require(Self.limits(of: new.id))
        let core: Substring = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
        #expect(core.split(separator: " ").dropFirst(4).first == "0", "no core file with keys in it")
        let given = try bench.good(["pair", String(code).uppercased()])
        let outcome = try new.finish()
        #expect(outcome.code == 0, "\(outcome)")
        let words: Substring = try #require(given.split(separator: "\n").last { $0.hasPrefix("    ") })
        #expect(outcome.output.contains(words) && words.split(separator: " ").count == 4)
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "x") == #"{"a":1}"# + "\n")
        #expect(try bench.good(["words"], home: "x") == bench.good(["words"]))
        #expect(try bench.good(["token", "list"]).split(separator: "\n").count == 2)
        let again = try bench.run(["pair", String(code)])
        #expect(again.code == 1 && again.errors.contains("for one answer"), "\(again)")
        let slip = try bench.run(["pair", "abcd"])
        #expect(slip.code == 2, "\(slip)")

        let audit = try bench.good(["audit"])
        for part in ["password", "access key", "bundle", "N 2^17", "this machine", "sealed bytes"] {
            #expect(audit.contains(part), "\(part)")
        }
        #expect(!audit.contains("canary"))
        #expect(try bench.good(["audit", "notes"]).contains("the server can read it"), "an open bucket says so")
    }

    @Test(
        "at a terminal passwd checks the old password before it asks for a new one, and leaves no extra login behind"
    )
    func typedPassword() throws {
        let bench = try CommandBench()
        let ann = [
            "--server", bench.address, "--app", "notes", "--api-key", try apiKey(bench), "--user", "ann",
        ]
        try bench.good(["signup"] + ann, variables: ["THICKET_PASSWORD": "canary sesame"])
        func passwd(_ old: String) throws -> PseudoTerminal {
            let terminal = try PseudoTerminal(
                [Programs.thicket, "passwd"], variables: bench.variables("home", [:]))
            try terminal.wait(forPrinted: "Password now: ")
            terminal.type(old + "\n")
            return terminal
        }
        let wrong = try passwd("canary barley")
        #expect(try wrong.finish() == 6)
        #expect(wrong.printed.contains("is wrong") && !wrong.printed.contains("New password"))
        let different = try passwd("canary sesame")
        try different.wait(forPrinted: "New password: ")
        different.type("one\n")
        try different.wait(forPrinted: "Once more: ")
        different.type("another\n")
        #expect(try different.finish() == 2)
        #expect(try bench.good(["token", "list"]).split(separator: "\n").count == 1)
        let right = try passwd("canary sesame")
        try right.wait(forPrinted: "New password: ")
        right.type("canary lentil\n")
        try right.wait(forPrinted: "Once more: ")
        right.type("canary lentil\n")
        #expect(try right.finish() == 0)
        #expect(right.printed.contains("the password is changed") && !right.printed.contains("lentil"))
        #expect(try bench.good(["token", "list"]).split(separator: "\n").count == 1)
        try bench.good(["login"] + ann, home: "x", variables: ["THICKET_PASSWORD": "canary lentil"])
    }

    @Test("pair on a machine with the keys says how to give them; on a machine whose login has ended it waits for them")
    func pairedAlready() throws {
        let bench = try CommandBench()
        let place = ["--server", bench.address, "--app", "notes", "--api-key", try apiKey(bench)]
        let password = ["THICKET_PASSWORD": "canary sesame"]
        try bench.good(["signup"] + place + ["--user", "ann"], variables: password)
        for words in [["pair"], ["pair"] + place] {
            let reported = try bench.run(words)
            #expect(reported.code == 4 && reported.errors.contains("has the keys of ann already"), "\(reported)")
            #expect(reported.errors.contains("thicket pair CODE") && reported.output.isEmpty)
        }
        for words in [["pair", "--discard"], ["pair", "--profile", "other"] + place] {
            let other = try bench.start(words)
            #expect(try other.firstLine().hasPrefix("thicket pair "))
            other.signal(SIGKILL)
            _ = try other.finish()
        }
        try bench.good(["login"] + place + ["--user", "ann"], home: "x", variables: password)
        try bench.good(["passwd"], home: "x", variables: password.merging(["THICKET_NEW_PASSWORD": "other"]) { $1 })
        let over = try bench.start(["pair", "--yes"])
        let code: Substring = try #require(try over.firstLine().split(separator: " ").last)
        try bench.good(["pair", String(code)], home: "x")
        #expect(try over.finish().code == 0)
        try bench.good(["put", "notes", "k", "{}"])
    }

    @Test(
        "renewed words void the old ones, other machines continue and are informed, and a killed command is resumed"
    )
    func renew() throws {
        let bench = try CommandBench()
        let ann = [
            "--server", bench.address, "--app", "notes", "--api-key", try apiKey(bench), "--user", "ann",
        ]
        let password = ["THICKET_PASSWORD": "canary sesame"]
        try bench.good(["signup"] + ann, variables: password)
        try bench.good(["login"] + ann, home: "x", variables: password)
        func list(_ output: String) -> String {
            output.split { $0 == " " || $0 == "\n" }.filter { !$0.hasSuffix(".") }.joined(separator: " ")
        }
        let old = try bench.good(["words"])
        try bench.write("old", list(old))
        try bench.good(["verify", "--words-file", bench.path("old")])
        let wrong = try bench.run(
            ["words", "--renew"], variables: ["THICKET_PASSWORD": "guess"])
        #expect(wrong.code == 6 && wrong.errors.contains("was not changed") && wrong.output.isEmpty, "\(wrong)")
        #expect(try bench.good(["words"]) == old)
        let renewed = try bench.run(["words", "--renew"], variables: password)
        #expect(renewed.code == 0, "\(renewed)")
        for part in ["still opens everything", "Other machines go on", "thicket verify"] {
            #expect(renewed.errors.contains(part), "\(part)")
        }
        try bench.write("new", list(renewed.output))
        #expect(list(renewed.output).split(separator: " ").count == 24 && renewed.output != old)
        #expect(try bench.good(["words"]) == renewed.output)
        #expect(try bench.run(["status"]).errors.contains("reminder"), "what is on paper is not the key")
        let stale = try bench.run(["verify", "--words-file", bench.path("old")])
        #expect(stale.code == 1 && stale.errors.contains("not of this account"), "\(stale)")
        #expect(try bench.good(["verify", "--words-file", bench.path("new")]).contains("verified"))

        // The other machine: its copies and its login are good, and each command that needs the key says what to do.
        try bench.good(["put", "notes", "k", #"{"a":1}"#], home: "x")
        for words in [["words"], ["audit"], ["verify", "--words-file", bench.path("old")]] {
            let reported = try bench.run(words, home: "x")
            #expect(reported.code == 4 && reported.errors.contains("thicket login"), "\(words) \(reported)")
            #expect(reported.output.isEmpty || words == ["audit"], "\(words): no old words are shown")
        }
        for (file, part) in [
            ("old", "not the newer ones at the server"), ("new", "'thicket login' first"),
        ] {
            let reported = try bench.run(["verify", "--words-file", bench.path(file)], home: "x")
            #expect(reported.errors.contains(part) && !reported.errors.contains("is right"), "\(reported)")
        }
        let passwd = ["THICKET_PASSWORD": "canary sesame", "THICKET_NEW_PASSWORD": "canary barley"]
        #expect(try bench.run(["passwd"], home: "x", variables: passwd).code == 4)
        try bench.good(["login"], home: "x", variables: password)
        #expect(try bench.good(["words"], home: "x") == renewed.output)
        let thief = try bench.run(
            ["recover"] + ann + ["--words-file", bench.path("old")], home: "thief",
            variables: ["THICKET_NEW_PASSWORD": "thief"])
        #expect(thief.code == 6 && !bench.exists("thief/profiles"), "\(thief)")
        try bench.good(
            ["recover"] + ann + ["--words-file", bench.path("new")], home: "z",
            variables: ["THICKET_NEW_PASSWORD": "canary lentil"])
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "z") == #"{"a":1}"# + "\n")
        #expect(try bench.good(["words"], home: "z") == renewed.output)
        // No server is running that could say whether the words are the newest.
        try bench.stopServer()
        let alone = try bench.run(["verify", "--words-file", bench.path("new")], home: "z")
        #expect(alone.code == 5 && alone.errors.contains("still the newest is not known"), "\(alone)")
        #expect(!alone.errors.contains("is right"), "\(alone)")
    }

    @Test(
        "after a kill between the server's change of the key and its storage here any next command finds the new key"
    )
    func killed() async throws {
        let bench = try CommandBench()
        let key = try apiKey(bench)
        let ann = ["--server", bench.address, "--app", "notes", "--api-key", key, "--user", "ann"]
        let password = ["THICKET_PASSWORD": "canary sesame"]
        try bench.good(["signup"] + ann, variables: password)
        let old = try bench.good(["words"])
        let home = try ProfileHome(["THICKET_HOME": bench.path("home")])
        let kept = try #require(try home.readKeys("default")).open()
        let token = try #require(try home.read("default")).token
        let next = AccessKey.random()
        try home.writeKeys(DeviceKeys(kept, next: next), "default")
        // Not done yet: the words shown are the valid ones, and the key that is to follow stays stored.
        #expect(try bench.good(["words"]) == old)
        #expect(try home.readKeys("default")?.next == next)
        let accounts = try ThicketApp(server: bench.address, app: "notes", apiKey: key, store: .memory)
            .accounts(stretch: CheapPasswords.cheap)
        _ = try await accounts.changeAccessKey(
            of: kept, to: next, accessToken: token, password: SecureBytes(copying: Array("canary sesame".utf8)))
        try bench.stopServer()
        let offline = try bench.run(["words"])
        #expect(offline.code == 5 && offline.output.isEmpty && offline.errors.contains("not known"), "\(offline)")
        try bench.startServer()
        let shown = try bench.run(["words"])
        #expect(shown.code == 0 && shown.output != old && shown.errors.contains("was changed"), "\(shown)")
        #expect(try home.readKeys("default")?.accessKey == next && home.readKeys("default")?.next == nil)
        #expect(try bench.good(["words"]) == shown.output)
        // The same when the change itself is requested again: no third key.
        let again = try #require(try home.readKeys("default")).open()
        let third = AccessKey.random()
        try home.writeKeys(DeviceKeys(again, next: third), "default")
        _ = try await accounts.changeAccessKey(
            of: again, to: third, accessToken: token, password: SecureBytes(copying: Array("canary sesame".utf8)))
        let renewed = try bench.run(["words", "--renew"])
        #expect(renewed.code == 0, "\(renewed)")
        #expect(try home.readKeys("default")?.accessKey == third)
        #expect(try bench.good(["words"]) == renewed.output)
    }

    @Test("a password in the environment is gone, also for the system, when the program works")
    func environment() throws {
        let bench = try CommandBench()
        let place = ["--server", bench.address, "--app", "notes", "--api-key", try apiKey(bench)]
        let names = ProcessVariables.secretNames.map(Call.variable)
        var variables = bench.variables("x", [:])
        for name in names { variables[name] = "canary-9a17" }
        let child = try ChildProcess([Programs.thicket, "pair", "--yes"] + place, variables: variables)
        _ = try child.firstLine()
        let file = open("/proc/\(child.id)/environ", O_RDONLY | O_CLOEXEC)
        try #require(file >= 0 || errno == EACCES)
        if file >= 0 {
            defer { close(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            let count = read(file, &bytes, bytes.count)
            let text = String(decoding: bytes[..<max(0, count)], as: UTF8.self)
            #expect(text.contains("THICKET_HOME="), "the rest is there")
            #expect(!text.contains("canary"))
        }
        let hits = MemoryScan.hits(of: [MemoryScan.Needle("canary-9a17".utf8)], in: child.id)
        // Each secret is in the one place that is wiped at the end.
        #expect(hits.map { $0[0] <= names.count } ?? true)
        child.signal(SIGKILL)
        _ = try child.finish()
    }

    @Test("words, codes and passcodes are not arguments, and help says where they come from")
    func arguments() throws {
        let bench = try CommandBench()
        for words in [["recover", "--words", "abandon"], ["verify", "--words=abandon"]] {
            let outcome = try bench.run(words)
            #expect(outcome.code == 2 && outcome.errors.contains("--words-file") && !outcome.errors.contains("abandon"))
        }
        try bench.login()
        for words in [["words"], ["verify"], ["keys"]] {
            let outcome = try bench.run(words)
            #expect(outcome.code == 2 && !outcome.errors.isEmpty, "\(words) \(outcome)")
        }
    }
}
