import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

/// `thicket onions …` against a real server, as a user at a terminal and as a script.
@Suite("thicket: encrypted notes", .blocking)
struct OnionCommandTests {
    /// A server with a notes app, and an account on it.
    private final class Notes {
        let bench: CommandBench
        let key: String
        let variables: [String: String]

        init(_ password: String = "World", serverWords: [String] = []) throws {
            bench = try CommandBench()
            let made = try Daemon.command(
                bench.path("data"), ["app", "create", "onions", "--passwords", "notes"], succeeding: true)
            try Daemon.command(bench.path("data"), ["app", "notes", "onions", "on"], succeeding: true)
            key = String(
                try #require(made.output.split(separator: "\n").first { $0.hasPrefix("api key") }).split(separator: " ")
                    .last ?? "")
            try bench.write("password", password + "\n")
            variables = [
                "THICKET_SERVER": bench.address, "THICKET_APP": "onions", "THICKET_API_KEY": key,
                "THICKET_USER": "canary-user-71", "THICKET_PASSWORD_FILE": bench.path("password"),
            ]
            try good(["signup"])
        }

        @discardableResult
        func good(_ words: [String], input: String = "") throws -> String {
            let outcome = try run(words, input: input)
            guard outcome.code == 0 else { throw ProcessError("onions \(words) ended with \(outcome)") }
            return outcome.output
        }

        func run(_ words: [String], input: String = "") throws -> ChildProcess.Outcome {
            let kind = words.first == "signup" ? [] : ["--old-account"]
            return try bench.run(["onions"] + words + kind, input: input, variables: variables)
        }
    }

    @Test("notes are created, listed, shown, changed and removed; nothing of them is on this machine's disk")
    func lifecycle() throws {
        let notes = try Notes()
        try notes.good(["new"], input: "Router\n\nadmin, blue\nsecond é日\n")
        try notes.good(["new"], input: "Other\n")
        let list: [Substring] = try notes.good(["list"]).split(separator: "\n")
        #expect(list.count == 2 && list[0].hasPrefix("1\t") && list[0].hasSuffix("\tRouter"))
        #expect(try notes.good(["show", "1"]) == "Router\n\nadmin, blue\nsecond é日\n")
        try notes.good(["edit", "1"], input: try notes.good(["show", "1"]).replacing("blue", with: "red"))
        let id = String(list[0].split(separator: "\t")[1])
        #expect(try notes.good(["show", id, "--json"]).contains(#""info":"admin, red\nsecond é日""#))
        try notes.good(["rm", id, "2"])
        #expect(try notes.good(["list", "--json"]).isEmpty)
        #expect(!notes.bench.exists("home"))
    }

    @Test("a command that cannot be done says why, with its exit code")
    func refusals() throws {
        let notes = try Notes()
        let long = try notes.run(["new"], input: String(repeating: "x", count: 31))
        #expect(long.code == 4 && long.errors.contains("31") && long.errors.contains("30"))
        #expect(try notes.run(["show", "1"]).code == 3)
        #expect(try notes.run(["show", "abcdef"]).code == 3)
        try notes.bench.write("password", "wrong")
        let wrong = try notes.run(["list"])
        #expect(wrong.code == 6 && wrong.errors.contains("user name or the password is wrong"))
        #expect(!wrong.errors.contains("canary-user-71"))
        #expect(try notes.run(["list", "--password", "x"]).code == 2)
        for words in [["new"], ["edit", "1"]] {
            let nothing = try notes.run(words, input: "\n")
            #expect(nothing.code == 2 && nothing.errors.contains("nothing came in"), "\(words)")
        }
        let nowhere = try notes.bench.run(["onions", "list", "--old-account"])
        #expect(nowhere.code == 2 && nowhere.errors.contains("--api-key"))
    }

    @Test("copies are exported in clear or sealed, readable by their owner only, and are imported once")
    func copies() throws {
        let notes = try Notes()
        try notes.good(["new"], input: "Router\nadmin")
        try notes.good(["new"], input: "Other\nthing")
        for (file, words) in [("clear", []), ("sealed", ["--sealed"])] {
            try notes.good(["export", notes.bench.path(file)] + words)
            var status = stat()
            #expect(stat(notes.bench.path(file), &status) == 0 && status.st_mode & 0o777 == 0o600)
            let text = try #require(notes.bench.read(file))
            #expect(text.contains("Router") == (file == "clear") && text.contains("onionTitle") == (file == "sealed"))
            #expect(try notes.good(["import", notes.bench.path(file)]).contains("2 existed already"))
        }
        // An existing copy is not overwritten unasked.
        let kept = notes.bench.read("clear")
        let taken = try notes.run(["export", "--sealed", notes.bench.path("clear")])
        #expect(taken.code == 1 && taken.errors.contains("--force") && notes.bench.read("clear") == kept, "\(taken)")
        try notes.good(["export", "--force", notes.bench.path("clear")])
        try notes.good(["rm", "1", "2"])
        for file in ["sealed", "clear"] {
            #expect(
                try notes.good(["import", notes.bench.path(file)]).contains(file == "sealed" ? "took 2" : "took 0"))
        }
        #expect(try notes.good(["show", "1"]) == "Router\n\nadmin\n")
        try notes.bench.write(
            "bad", #"{"results":[{"onionTitle":"AAAA","onionInfo":"AAAA"},{"title":"t","info":"i"}]}"#)
        let bad = try notes.run(["import", notes.bench.path("bad")])
        #expect(bad.code == 1 && bad.output.contains("took 1") && bad.errors.contains("note 1 was not taken"))
    }

    @Test("deleting removes the notes and the account")
    func delete() throws {
        let notes = try Notes()
        try notes.good(["new"], input: "t")
        try notes.good(["delete"])
        #expect(try notes.run(["list"]).code == 6)
    }

    @Test(
        "the view shows notes, accepts typing and locks; then neither password nor notes are in its memory"
    )
    func view() throws {
        let password = "Canary-9f2c-pässwörd"
        let notes = try Notes(password)
        try notes.good(["new"], input: "Canary title 55\ncanary info 56")
        var variables = notes.variables
        variables["THICKET_PASSWORD_FILE"] = nil
        let terminal = try PseudoTerminal(
            [Programs.thicket, "onions", "view", "--old-account"], variables: notes.bench.variables("home", variables))
        try terminal.wait(forShown: "Password (not shown)")
        terminal.type(password + "\r")
        try terminal.wait(forShown: "Canary title 55")
        let needle = MemoryScan.Needle(password.utf8)
        // Where the system permits the look: a process that refuses it is root's then.
        let before = MemoryScan.hits(of: [needle], in: terminal.id)
        #expect(before.map { $0[0] > 0 } ?? true)
        terminal.type("\r")
        try terminal.wait(forShown: "canary info 56")
        terminal.type("e")
        try terminal.wait(forShown: "title 15/30")
        terminal.type("!")
        // Ctrl-L saves what is being written, then locks.
        terminal.type("\u{C}")
        try terminal.wait(forShown: "Password (not shown)")
        #expect(!terminal.screen.shows("Canary"))
        // The note is saved, and the server informed, behind the locked screen.
        try terminal.wait(until: "the password is not in its memory any more") {
            MemoryScan.hits(of: [needle], in: terminal.id).map { $0[0] == 0 } ?? true
        }
        #expect(!terminal.everShowed("Canary-9f2c"))
        terminal.type("\u{1B}")
        #expect(try terminal.finish() == 0)
        if before == nil { print("the memory of another process cannot be read here: not looked at") }
        #expect(try notes.good(["list"]).contains("Canary title 55!"))
    }

    /// The view, logged in, with its list on the screen.
    private static func view(_ notes: Notes, words: [String] = [], first: String) throws -> PseudoTerminal {
        let terminal = try PseudoTerminal(
            [Programs.thicket, "onions", "view", "--old-account"] + words,
            variables: notes.bench.variables("home", notes.variables.filter { $0.key != "THICKET_PASSWORD_FILE" }))
        try terminal.wait(forShown: "Password (not shown)")
        terminal.type("World\r")
        try terminal.wait(forShown: first)
        return terminal
    }

    /// The titles, oldest first.
    private static func titles(_ notes: Notes) throws -> [String] {
        try notes.good(["list"]).split(separator: "\n").map { String($0.split(separator: "\t").last ?? "") }
    }

    /// Types the rest of a title and saves it, as often as needed: a client that found no server for a while looks for
    /// it again after a pause, which may be longer than one save waits.
    private static func save(_ terminal: PseudoTerminal, typing text: String, row: String) throws {
        // The end of the message that is shown then; the rest of it may be in several rows.
        let advice = "asks again"
        terminal.type(text)
        // A pause is a minute at most, and a save of these waits for 20 s.
        for _ in 0..<10 {
            // Any key removes the last answer. Ctrl-B does nothing else.
            terminal.type("\u{2}")
            try terminal.wait(until: "the last answer is gone") { !terminal.screen.shows(advice) }
            terminal.type("\u{13}")
            try terminal.wait(until: "'\(row)' is shown, or why not") {
                terminal.screen.shows(row) || terminal.screen.shows(advice)
            }
            if terminal.screen.shows(row) { return }
        }
        throw ProcessError("ten saves were not confirmed: \(terminal.screen.rows)")
    }

    @Test(
        "an unconfirmed save is reported as such; saving again changes the same note and makes no second one"
    )
    func unconfirmed() throws {
        let notes = try Notes()
        try notes.good(["new"], input: "old")
        // Long enough for a server that answers, short enough to wait for the end of.
        let terminal = try Self.view(notes, words: ["--timeout", "20s"], first: "1  old")
        try notes.bench.stopServer()
        terminal.type("nfresh\u{13}")
        // In plain words, in as many rows as they need.
        func reported() -> String { terminal.screen.rows.joined(separator: " ") }
        func saysWhy() -> Bool {
            ["not saved yet: ", "not synced in time: ", " asks again"].allSatisfy { reported().contains($0) }
        }
        try terminal.wait(until: "it says why, and what to do", saysWhy)
        #expect(!reported().contains("OfflineReason"))
        try notes.bench.startServer()
        try Self.save(terminal, typing: " fruit", row: "2  fresh fruit")
        #expect(try Self.titles(notes) == ["old", "fresh fruit"])
        // The same with an existing note.
        terminal.type("\r")
        try terminal.wait(forShown: "e changes")
        terminal.type("e")
        try terminal.wait(forShown: "Change the note")
        try notes.bench.stopServer()
        terminal.type("er\u{13}")
        try terminal.wait(until: "it says so again", saysWhy)
        try notes.bench.startServer()
        try Self.save(terminal, typing: "!", row: "1  older!")
        #expect(try Self.titles(notes) == ["older!", "fresh fruit"])
        terminal.type("q")
        #expect(try terminal.finish() == 0)
    }

    @Test("text that the terminal marks as pasted is text in a note, and nothing in the list")
    func pasted() throws {
        let notes = try Notes()
        let terminal = try Self.view(notes, first: "no notes yet")
        #expect(terminal.screen.marksPastes)
        terminal.type("\u{1B}[200~q\u{1B}[201~n\u{1B}[200~a q\rb\u{1B}[201~")
        try terminal.wait(forShown: "a q b")
        terminal.type("\u{13}")
        try terminal.wait(forShown: "1  a q b")
        terminal.type("q")
        #expect(try terminal.finish() == 0)
        #expect(!terminal.screen.marksPastes)
        #expect(try Self.titles(notes) == ["a q b"])
    }

    @Test("a terminal that is closed, and SIGTERM, end the view after a last save", arguments: [SIGHUP, SIGTERM])
    func closed(signal: Int32) throws {
        let notes = try Notes()
        let terminal = try Self.view(notes, first: "no notes yet")
        // Ctrl-A selects all of it: the screen shows that when everything was typed.
        terminal.type("nkept\rto the letter\u{1}")
        try terminal.wait(forShown: "13 selected")
        terminal.signal(signal)
        #expect(try terminal.finish() == 0)
        #expect(try notes.good(["show", "1"]) == "kept\n\nto the letter\n")
    }
}
