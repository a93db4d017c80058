import Testing
import ThicketCommandLine

@testable import ThicketCLI

/// The declaration of the program, and what it says about itself.
@Suite("thicket: declaration")
struct ProgramTests {
    private static let commands = ThicketProgram.program.commands

    @Test(
        "every command but version has an example, and every example is a call that can be run",
        arguments: commands.map(\.name))
    func examples(name: String) throws {
        let command = try #require(ProgramTests.commands.first { $0.name == name })
        #expect(!command.examples.isEmpty || name == "version")
        for example in command.examples {
            let calls = ShellWords.calls(of: "thicket", in: example.line)
            #expect(!calls.isEmpty, "no call in: \(example.line)")
            for words in calls {
                guard case .run = ThicketProgram.program.parse(words) else {
                    Issue.record("cannot be run: \(example.line)")
                    continue
                }
            }
        }
    }

    @Test("every command that talks to a server has the options that choose it", arguments: commands.map(\.name))
    func overrides(name: String) throws {
        let offline = [
            "jsondiff", "crypto", "version", "lock", "unlock", "verify-release", "verify-history", "verify-evidence",
        ]
        guard !offline.contains(name) else { return }
        let command = try #require(ProgramTests.commands.first { $0.name == name })
        let options = Set(command.options.map(\.name))
        // A link names the server, and its holder has neither a profile nor a token.
        guard !name.hasPrefix("link ") else {
            return #expect(options.isSuperset(of: ["ca", "proxy", "timeout"]) && !options.contains("token-file"))
        }
        #expect(options.isSuperset(of: ["server", "app", "profile", "ca", "proxy", "timeout"]))
        // Notes open with a password, which a token cannot replace.
        #expect(options.contains("token-file") != name.hasPrefix("onions "))
    }

    @Test("the help lists every exit code once")
    func exitCodes() {
        let help = ThicketProgram.program.help()
        for (code, meaning) in ExitCode.meanings {
            #expect(help.contains("\(code.number) \(meaning)"), "\(code.number)")
        }
        #expect(Set(ExitCode.meanings.map(\.code)).count == ExitCode.meanings.count)
        #expect(ExitCode.meanings.map(\.code.number) == Array(0...9))
    }

    @Test(
        "unusable words are refused, and the message names them",
        arguments: [
            (["put", "notes"], "KEY is missing"),
            (["get", "notes", "plan", "--verson", "3"], "did you mean --version?"),
            (["histroy"], "did you mean 'history'?"), (["ls", "a", "b"], "'b' is one word too many"),
            (["get", "notes", "plan", "--version"], "--version needs a value"), (["rm", "notes"], "KEY is missing"),
            (["login", "--token", "0123"], "--token is refused: every user of this machine can see"),
            (["ls", "--token=0123"], "--token-file FILE"), (["signup", "--password", "x"], "--password-file FILE"),
            (["login", "--tok", "x"], "did you mean --token-file?"),
            (
                ["ls", "--proxy", "http://ann:0123@proxy:3128"],
                "this --proxy is refused: every user of this machine can see"
            ),
            (["login", "--proxy=socks5://ann:0123@proxy"], "THICKET_PROXY"),
        ] as [([String], String)])
    func refused(words: [String], message: String) {
        guard case .refuse(let text) = ThicketProgram.program.parse(words) else {
            Issue.record("\(words) was not refused")
            return
        }
        #expect(text.contains(message), "\(text)")
        #expect(!text.contains("0123"), "a secret is not repeated")
    }

    @Test(
        "times are read with their units",
        arguments: [
            ("30s", .seconds(30)), ("500ms", .milliseconds(500)), ("2m", .seconds(120)), ("1h", .seconds(3_600)),
            ("7", .seconds(7)), ("", nil), ("s", nil), ("-1s", nil), ("1d", nil), ("1.5s", nil),
            ("999999999999999999999s", nil),
        ] as [(String, Duration?)])
    func times(text: String, expected: Duration?) {
        #expect(Duration(written: text) == expected)
    }

    @Test("options take precedence over the environment, and an empty variable counts as absent")
    func settings() throws {
        func call(_ words: [String], _ environment: [String: String]) throws -> Call {
            guard case .run(let invocation) = ThicketProgram.program.parse(words) else { throw Unusable() }
            return Call(invocation, ProcessVariables(clear: environment))
        }
        let environment = ["THICKET_SERVER": "http://e", "THICKET_APP": ""]
        #expect(try call(["ls", "--server", "http://f"], environment).setting("server") == "http://f")
        #expect(try call(["ls"], environment).setting("server") == "http://e")
        #expect(try call(["ls"], environment).setting("app") == nil)
        #expect(throws: Failure.self) { try call(["ls", "--timeout", "soon"], [:]).timeout() }
    }

    private struct Unusable: Error {}
}

/// The calls of a program in a line of shell, roughly: quotes, pipes, redirections, assignments.
private enum ShellWords {
    static func calls(of program: String, in line: String) -> [[String]] {
        var calls = [[String]]()
        for part in words(line).split(separator: "|").map(Array.init) {
            guard let start = part.firstIndex(of: program) else { continue }
            calls.append(Array(part[(start + 1)...].prefix { $0 != "<" && $0 != ">" }))
        }
        return calls
    }

    private static func words(_ line: String) -> [String] {
        var words = [String]()
        var word: String?
        var quote: Character?
        for letter in line {
            if let open = quote {
                if letter == open { quote = nil } else { word = (word ?? "") + String(letter) }
            } else if letter == "'" || letter == "\"" {
                quote = letter
                word = word ?? ""
            } else if letter == " " {
                if let done = word { words.append(done) }
                word = nil
            } else {
                word = (word ?? "") + String(letter)
            }
        }
        if let done = word { words.append(done) }
        return words
    }
}
