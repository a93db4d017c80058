import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol

@testable import ThicketCLI

/// Accounts with the real programs; passwords are typed at a terminal, read from files, or in the environment.
@Suite("thicket: logging in", .blocking)
struct LoginCommandTests {
    /// Words that name the server and an account of its app.
    private func words(_ bench: CommandBench, _ user: String, key: String) -> [String] {
        ["--server", bench.address, "--app", "notes", "--api-key", key, "--sent-password", "--user", user]
    }

    private func apiKey(_ bench: CommandBench) throws -> String {
        let output = try Daemon.command(
            bench.path("data"), ["app", "key", "add", "notes"], succeeding: true
        ).output
        return String(try #require(output.split(separator: "\n").first).split(separator: " ").last ?? "")
    }

    @Test(
        "a name with an invisible end makes no account, before a password is asked for; a login says what is wrong"
    )
    func unseenNames() throws {
        let bench = try CommandBench()
        let key = try apiKey(bench)
        let sent = words(bench, "ann ", key: key)
        let keyed = sent.filter { $0 != "--sent-password" }
        for words in [sent, keyed] {
            let refused = try bench.run(["signup"] + words)
            #expect(refused.code == 2 && refused.output.isEmpty, "\(refused)")
            #expect(
                refused.errors.contains(
                    "no account was made: the user name ends with a blank (character 4); leave it out"))
            let login = try bench.run(
                ["login"] + words, variables: ["THICKET_PASSWORD": "open sesame"])
            #expect(login.code != 0, "\(login)")
            #expect(login.errors.contains("the user name ends with a blank (character 4); leave it out"), "\(login)")
        }
    }

    @Test("at a terminal the password is asked for twice, is not shown, and the terminal is restored")
    func typed() throws {
        let bench = try CommandBench()
        let key = try apiKey(bench)
        func terminal(_ words: [String]) throws -> PseudoTerminal {
            try PseudoTerminal([Programs.thicket] + words, variables: bench.variables("home", [:]))
        }
        let different = try terminal(["signup"] + words(bench, "ann", key: key))
        try different.wait(forPrinted: "Password: ")
        #expect(!different.echoes)
        different.type("open sesame\n")
        try different.wait(forPrinted: "Once more: ")
        different.type("open season\r")
        #expect(try different.finish() == 2)
        #expect(different.echoes && different.printed.contains("differ") && !different.printed.contains("sesame"))

        let signup = try terminal(["signup"] + words(bench, "ann", key: key))
        try signup.wait(forPrinted: "Password: ")
        signup.type("wrong\u{15}open seaame\u{7F}\u{7F}\u{7F}\u{7F}same\n")
        try signup.wait(forPrinted: "Once more: ")
        signup.type("open sesame\n")
        #expect(try signup.finish() == 0)
        #expect(signup.printed.contains("made the account ann") && signup.printed.contains("logged in to"))
        #expect(signup.echoes && !signup.printed.contains("same"))
        #expect(try bench.good(["whoami"]) == "ann\n")

        let wrong = try terminal(["passwd"])
        try wrong.wait(forPrinted: "Password now: ")
        wrong.type("open season\n")
        #expect(try wrong.finish() == 6)
        #expect(wrong.printed.contains("the password is wrong") && !wrong.printed.contains("New password"))
        let changed = try terminal(["passwd"])
        try changed.wait(forPrinted: "Password now: ")
        changed.type("open sesame\n")
        for label in ["New password: ", "Once more: "] {
            try changed.wait(forPrinted: label)
            changed.type("open barley\n")
        }
        #expect(try changed.finish() == 0)
        #expect(try bench.good(["token", "list"]).split(separator: "\n").count == 1, "no login is left behind")

        for ending in ["\u{3}", "SIGTERM"] {
            let ended = try terminal(["login"])
            try ended.wait(forPrinted: "Password: ")
            ended.type("open se")
            if ending == "SIGTERM" { ended.signal(SIGTERM) } else { ended.type(ending) }
            #expect(try ended.finish() == (ending == "SIGTERM" ? nil : 1))
            #expect(ended.echoes, "after \(ending)")
        }
        let token = try terminal(
            ["login", "--profile", "other", "--server", bench.address, "--app", "notes"])
        try token.wait(forPrinted: "Token (not shown): ")
        token.type(bench.token + "\n")
        #expect(try token.finish() == 0 && !token.printed.contains(bench.token))
        #expect(try bench.good(["whoami", "--profile", "other"]) == "ann@example.com\n")
    }

    @Test(
        "an account works through sign-up, use, listing, an end elsewhere, a new login without a lost edit, and logout")
    func account() throws {
        let bench = try CommandBench()
        let ann = words(bench, "ann", key: try apiKey(bench))
        try bench.write("password", "open sesame\n")
        let made = try bench.run(
            ["signup"] + ann + ["--password-file", bench.path("password")])
        #expect(made.code == 0 && made.output.contains("made the account ann"), "\(made)")
        #expect(try bench.run(["signup"] + ann, home: "x", variables: ["THICKET_PASSWORD": "another"]).code == 4)
        try bench.good(["put", "notes", "draft", "{}", "--offline"])
        let bob = Array(ann.dropLast()) + ["bob"]
        let early = try bench.run(["signup"] + bob, variables: ["THICKET_PASSWORD": "another"])
        #expect(early.code == 1 && early.errors.contains("never sent"), "\(early)")
        #expect(
            try bench.run(["login"] + bob, home: "x", variables: ["THICKET_PASSWORD": "another"]).code == 6,
            "no account was made that could not be kept")
        #expect(try bench.run(["login", "--token-file", "-"] + ann).code == 2)
        let wrong = try bench.run(
            ["login"] + ann + ["--password-file", "-"], home: "x", input: "open season\n")
        #expect(wrong.code == 6 && wrong.errors.contains("the user name or the password is wrong"), "\(wrong)")
        #expect(!bench.exists("x/profiles"))
        try bench.good(["put", "notes", "k", #"{"a":1}"#])
        let login = try bench.run(
            ["login"] + ann + ["--password-file", "-"], home: "x", input: "open sesame\r\n")
        #expect(login.code == 0 && login.output.contains("as ann"), "\(login)")
        #expect(try bench.good(["get", "notes", "k", "--json"], home: "x") == #"{"a":1}"# + "\n")
        #expect(try bench.good(["whoami", "--json"]).contains(#""login":"account""#))

        let list = try bench.good(["token", "list"])
        #expect(
            list.split(separator: "\n").count == 2
                && list.split(separator: "\n").filter { $0.hasPrefix("*") }.count == 1)
        #expect(try bench.good(["devices", "--json"]).split(separator: "\n").count == 2)
        let other: Substring = try #require(
            list.split(separator: "\n").first { !$0.hasPrefix("*") }?.split(separator: " ").first)
        let own: Substring = try #require(
            list.split(separator: "\n").first { $0.hasPrefix("*") }?.split(separator: " ").dropFirst().first)
        #expect(try bench.run(["token", "revoke", "nothing"]).code == 3)
        #expect(try bench.run(["token", "revoke", String(own)]).errors.contains("thicket logout"))
        try bench.good(["token", "revoke", String(other.prefix(8))])
        try bench.good(["put", "notes", "k", #"{"a":2}"#, "--offline"], home: "x")
        for command in [["ls", "notes"], ["put", "notes", "l", "{}"], ["devices"], ["watch", "notes"]] {
            let ended = try bench.run(command, home: "x")
            #expect(ended.code == 6 && ended.errors.contains("Run 'thicket login'."), "\(command) \(ended)")
        }
        #expect(try bench.run(["login"], home: "x", variables: ["THICKET_PASSWORD": "open sesame"]).code == 0)
        try bench.good(["ls", "notes"], home: "x")
        #expect(try bench.good(["get", "notes", "k", "--json"]) == #"{"a":2}"# + "\n")

        let new = ["THICKET_NEW_PASSWORD": "open barley", "THICKET_PASSWORD": "open season"]
        let guess = try bench.run(["password"], variables: new)
        #expect(guess.code == 6 && guess.errors.contains("the password is wrong"), "\(guess)")
        try bench.good(
            ["password"], variables: ["THICKET_NEW_PASSWORD": "open barley", "THICKET_PASSWORD": "open sesame"])
        #expect(try bench.good(["token", "list"]).split(separator: "\n").count == 1, "the other login is over")
        #expect(try bench.run(["ls", "notes"], home: "x").code == 6)
        let token = try bench.good(["token", "print"])
        try bench.good(["logout"])
        #expect(!bench.exists("home/profiles/default"))
        let refused = try bench.run(
            ["login", "--server", bench.address, "--app", "notes", "--token-file", "-"], input: token)
        #expect(refused.code == 6, "the server has ended the token")
        try bench.good(["login"], home: "x", variables: ["THICKET_PASSWORD": "open barley"])
        #expect(try bench.run(["account", "delete"], home: "x", variables: ["THICKET_PASSWORD": "guess"]).code == 6)
        try bench.good(["account", "delete"], home: "x", variables: ["THICKET_PASSWORD": "open barley"])
        #expect(try bench.run(["ls", "notes"], home: "x").code == 6)
        #expect(try bench.run(["login"], home: "x", variables: ["THICKET_PASSWORD": "open barley"]).code == 6)
    }

    @Test("a partner's user logs in by password, and a command renews the expired token, for the next command too")
    func partner() throws {
        let bench = try CommandBench()
        func operate(_ words: [String]) throws -> [String: String] {
            let output = try Daemon.command(bench.path("data"), words, succeeding: true).output
            return Dictionary(
                output.split(separator: "\n").compactMap { line in
                    let parts = line.split(separator: " ")
                    guard let last: Substring = parts.last, parts.count > 1 else { return nil }
                    return (parts.dropLast().joined(separator: " "), String(last))
                }, uniquingKeysWith: { one, _ in one })
        }
        let keys = try operate(["partner", "create"])
        let (id, authKey) = (try #require(keys["partner"]), try #require(keys["auth key"]))
        _ = try operate(["partner", "passwords", id])
        _ = try operate(["app", "create", "shop", "--partner", id])
        let who = [
            "--partner", "--server", bench.address, "--app", "shop", "--api-key", try #require(keys["api key"]),
            "--user", "ann@example.com",
        ]
        let password = ["THICKET_PASSWORD": "correct horse"]
        try bench.good(["signup"] + who, variables: password)
        try bench.good(["put", "notes", "k", #"{"a":1}"#])
        #expect(try bench.good(["devices"]).hasPrefix("* "))

        let home = try ProfileHome(["THICKET_HOME": bench.path("home")])
        var kept = try #require(try home.read("default"))
        let old = try Self.ended(kept.token, authKey)
        kept.token = old
        try home.write(kept, "default")
        #expect(try bench.good(["get", "notes", "k", "--json"]) == #"{"a":1}"# + "\n")
        let renewed = try #require(try home.read("default")).token
        #expect(renewed != old)
        #expect(try bench.good(["token", "print"]) == renewed + "\n")
        try bench.good(["logout"])
        #expect(try bench.run(["login"] + who, variables: ["THICKET_PASSWORD": "wrong horse"]).code == 6)
        try bench.good(["login"] + who, variables: password)
    }

    /// The same token as it will be when it has expired.
    private static func ended(_ token: String, _ key: String) throws -> String {
        let parts: [ArraySlice<UInt8>] = Array(token.utf8).split(separator: 0x2E)
        let payload = try #require(Base64.decodeURL(parts[1]))
        var claims = try #require(try JSONValue(parsing: payload).objectValue)
        let end = try #require(claims["exp"]?.intValue)
        claims["exp"] = .number(JSONNumber(end - 3_600))
        if let start = claims["iat"]?.intValue { claims["iat"] = .number(JSONNumber(start - 3_600)) }
        let signed = String(decoding: parts[0], as: UTF8.self) + "." + Base64.encodeURL(claims.serialized())
        return signed + "." + Base64.encodeURL(Hash.hmacSHA512(key: Array(key.utf8), Array(signed.utf8)[...]))
    }

    @Test("a profile that other users may read is not used, and the message says what to do")
    func readable() throws {
        let bench = try CommandBench()
        try bench.login()
        let path: String = bench.path("home/profiles/default/profile.json")
        for mode: mode_t in [0o644, 0o640, 0o604, 0o620] {
            chmod(path, mode)
            let outcome = try bench.run(["ls", "notes"])
            #expect(outcome.code == 1 && outcome.errors.contains("chmod 600"), "\(outcome)")
        }
        chmod(path, 0o600)
        try bench.good(["ls", "notes"])
    }

    @Test("without terminal, file or variable nothing is asked, and a secret as an argument is refused unrepeated")
    func refused() throws {
        let bench = try CommandBench()
        let key = try apiKey(bench)
        // In its own session, which has no terminal.
        let alone = try ChildProcess.run(
            ["/usr/bin/setsid", "--wait", Programs.thicket, "login"] + words(bench, "ann", key: key),
            variables: bench.variables("home", [:]))
        #expect(alone.code == 2 && alone.errors.contains("no terminal"), "\(alone)")
        for words in [["login", "--token", bench.token], ["login", "--user", "ann", "--password=\(key)"]] {
            let outcome = try bench.run(words)
            #expect(outcome.code == 2 && outcome.errors.contains("is refused"), "\(outcome)")
            #expect(!outcome.errors.contains(bench.token) && !outcome.errors.contains(key))
        }
        let help = try bench.good(["login", "--help"])
        #expect(!help.contains("--token ") && !help.contains("--password "))
        #expect(try !bench.good(["completion", "bash"]).contains("--password "))
    }

    @Test(
        "editing keys work on a line that is not shown",
        arguments: [
            ("abc\n", "abc"), ("abc\r", "abc"), ("ab\u{7F}c\n", "ac"), ("é\u{8}e\n", "e"), ("abc\u{15}x\n", "x"),
            ("a\u{1B}[Cb\u{1B}OHc\n", "abc"), ("a\u{1A}b\u{4}", "ab"), ("\u{4}", nil), ("ab\u{3}", nil),
            ("\u{7F}\u{7F}a\n", "a"), (String(repeating: "x", count: SecretLine.bytesMax + 1), nil),
        ] as [(String, String?)])
    func line(typed: String, expected: String?) {
        var line = SecretLine()
        var last = SecretLine.Step.more
        for byte in typed.utf8 where last == .more { last = line.enter(byte) }
        #expect((last == .done ? line.text : nil) == expected)
        #expect(last != .more)
    }
}
