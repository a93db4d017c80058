import Testing

@testable import ThicketCommandLine

let oak = Program(
    name: "oak", summary: "plants trees", version: "1.2.3",
    commands: [
        Command(
            "tree plant", summary: "plant a tree", details: "Digs first.", arguments: [.one("NAME", "its name")],
            options: [
                .value("depth", short: "d", "CM", "how deep", defaultText: "30"),
                .value("kind", "KIND", "what it is", completion: .oneOf(["oak", "elm"])),
                .value("tag", "TAG", "a mark", isRepeatable: true), .flag("dry-run", short: "n", "only say it"),
                .flag("quiet", short: "q", "say nothing"),
            ], examples: [.init("oak tree plant Fangorn", "one tree")]),
        Command("tree fell", summary: "fell trees", arguments: [.atLeastOne("NAME", "which")]),
        Command(
            "count", summary: "count trees: all of them", arguments: [.optional("FILE", "where", .file)],
            options: [.value("from", "DIR", "the wood", isRequired: true, completion: .folder)]),
        Command("serve", summary: "serve"),
    ], footer: "Read on.")

@Suite("Parsing")
struct ParsingTests {
    private func run(_ line: String) -> Invocation? {
        guard case .run(let call) = oak.parse(line.split(separator: " ").map(String.init)) else { return nil }
        return call
    }

    private func refusal(_ line: String) -> String? {
        guard case .refuse(let text) = oak.parse(line.split(separator: " ").map(String.init)) else { return nil }
        return text
    }

    private func printed(_ line: String) -> String? {
        guard case .print(let text) = oak.parse(line.split(separator: " ").map(String.init)) else { return nil }
        return text
    }

    @Test("options are found before, after and between arguments, in every form")
    func forms() throws {
        for line in [
            "tree plant Elm --depth 5 -n", "tree plant -nd5 Elm", "tree plant --depth=5 --dry-run Elm",
            "tree plant -n -d 5 -- Elm",
        ] {
            let call = try #require(run(line), "\(line)")
            #expect(call.command.name == "tree plant")
            #expect(call.value("depth") == "5", "\(line)")
            #expect(call.flag("dry-run") && !call.flag("quiet"), "\(line)")
            #expect(call.argument("NAME") == "Elm", "\(line)")
        }
    }

    @Test("a value may be a negative number, empty, or hold an equals sign")
    func values() throws {
        #expect(run("tree plant Elm --depth -5")?.value("depth") == "-5")
        #expect(run("tree plant Elm --depth=")?.value("depth") == "")
        #expect(run("tree plant Elm --depth=a=b")?.value("depth") == "a=b")
        #expect(run("tree plant -5")?.argument("NAME") == "-5")
        #expect(run("tree plant -- --depth")?.argument("NAME") == "--depth")
        #expect(run("tree plant Elm --tag a --tag b")?.values("tag") == ["a", "b"])
    }

    @Test("several arguments go to the last parameter that takes several")
    func many() {
        #expect(run("tree fell a b c")?.arguments("NAME") == ["a", "b", "c"])
        #expect(run("count --from x")?.argument("FILE") == nil)
    }

    @Test(
        "an unusable line is refused with its reason and a hint",
        arguments: [
            ("", "usage: oak COMMAND"),
            ("tree", "tree needs one more word"),
            ("tree plnt x", "tree has no command 'plnt'"),
            ("cuont", "did you mean 'count'?"),
            ("xyzzy", "there is no command 'xyzzy'"),
            ("--depth 5", "the command comes first"),
            ("tree plant", "NAME is missing: its name"),
            ("tree fell", "NAME is missing: which"),
            ("tree plant a b", "'b' is one word too many"),
            ("tree plant a --dpeth 3", "there is no option --dpeth; did you mean --depth?"),
            ("tree plant a --zzz", "there is no option --zzz\n"),
            ("tree plant a -x", "there is no option -x"),
            ("tree plant a --depth", "--depth needs a value: --depth CM"),
            ("tree plant a --depth --dry-run", "--depth needs a value"),
            ("tree plant a --depth 1 --depth 2", "--depth is given twice"),
            ("tree plant a --dry-run=yes", "--dry-run takes no value"),
            ("count", "--from DIR is missing: the wood"),
            ("completion tcsh", "completion needs the shell"),
        ])
    func refusals(line: String, part: String) throws {
        let text = try #require(refusal(line))
        #expect(text.contains(part), "\(text)")
        #expect(text.hasSuffix("\n"))
    }

    @Test("help is found wherever it is asked for, and is not a value")
    func help() throws {
        for line in ["--help", "-h", "help"] { #expect(printed(line)?.contains("Commands:\n") == true) }
        for line in ["tree plant --help", "help tree plant", "tree plant x --depth 5 -h"] {
            let text = try #require(printed(line), "\(line)")
            #expect(text.contains("usage: oak tree plant NAME [OPTIONS]"))
            #expect(text.contains("-d, --depth CM"))
            #expect(text.contains("(default 30)"))
            #expect(text.contains("# one tree\n  oak tree plant Fangorn"))
        }
        #expect(printed("tree --help")?.contains("tree fell") == true)
        #expect(run("tree plant -- --help")?.argument("NAME") == "--help")
        #expect(printed("--version") == "oak 1.2.3\n")
        #expect(printed("count --help")?.contains("usage: oak count [FILE] --from DIR") == true)
    }

    @Test("no line of a help text is longer than its width")
    func width() {
        for command in oak.commands {
            for line in oak.help(for: command).split(separator: "\n") {
                #expect(line.count <= Program.helpColumns)
            }
        }
        #expect(HelpText.wrapped("aa bb cc", columns: 5) == ["aa bb", "cc"])
    }

    @Test(
        "the nearest name is found for one slip in three letters",
        arguments: [
            ("dta", "data"), ("daat", "data"), ("listne", "listen"), ("lsten", "listen"), ("list", "listen"),
            ("qqq", nil), ("d", nil),
        ] as [(String, String?)])
    func suggestions(word: String, nearest: String?) {
        #expect(Suggestion.nearest(to: word, in: ["data", "listen", "log-level"]) == nearest)
    }

    @Test("a progress line fits its terminal and says what is left")
    func progress() {
        let line = ProgressBar.line("importing", done: 500, total: 1_000, elapsed: .seconds(2), columns: 80)
        #expect(line.hasPrefix("importing  [####"))
        #expect(line.hasSuffix("]  50 %  500/1000  250/s  3 s left"))
        for columns in [10, 30, 50, 200] {
            let line = ProgressBar.line("work", done: 7, total: 9, elapsed: .seconds(1), columns: columns)
            #expect(line.count < columns)
        }
        #expect(ProgressBar.line("work", done: 7, total: nil, elapsed: .zero, columns: 80) == "work  7")
        #expect(ProgressBar.line("work", done: 0, total: 0, elapsed: .zero, columns: 80) == "work  0")
    }

    @Test(
        "an unusable number is refused with the accepted range, and no other number replaces it",
        arguments: [
            ("7", 7), ("1", 1), ("90", 90), ("0", nil), ("91", nil), ("x", nil), ("", nil), ("1.5", nil), ("-3", nil),
        ] as [(String, Int?)])
    func numbers(text: String, number: Int?) {
        let call = run("tree plant A --depth=\(text)")
        do throws(BadValue) {
            #expect(try call?.number("depth", else: 30, in: 1...90) == number)
        } catch {
            #expect(number == nil)
            #expect(error.text == "--depth needs a number from 1 to 90, not '\(text)'")
        }
    }

    @Test("values that are not usable numbers are refused as well", arguments: ["nan", "inf", "1e999", "0x", "one"])
    func noNumbers(text: String) {
        let call = run("tree plant A --depth=\(text)")
        #expect(throws: BadValue.self) { try call?.number("depth", else: 1.5, in: 0.1...100) }
    }

    @Test("a program's exit code shows whether its arguments were understood")
    func exitCodes() async {
        let bad: @Sendable (Invocation) async throws(BadValue) -> Int32 = { (_) throws(BadValue) in throw BadValue("no")
        }
        #expect(await oak.main(["serve"]) { _ in 7 } == 7)
        #expect(await oak.main(["serve", "--nonsense"]) { _ in 7 } == 2)
        #expect(await oak.main(["serve"], bad) == 2)
        #expect(await oak.main(["--version"]) { _ in 7 } == 0)
    }
}
