import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketProtocol

/// `thicket onions …` with accounts that have keys, and the upgrade to them, with the real programs.
@Suite("thicket: encrypted notes of accounts with keys", .blocking, .serialized)
struct KeyedNotesTests {
    /// A server with a notes app.
    private final class House {
        let bench: CommandBench
        let place: [String: String]

        init() throws {
            bench = try CommandBench()
            let made = try Daemon.command(
                bench.path("data"), ["app", "create", "onions", "--passwords", "notes"], succeeding: true)
            try Daemon.command(bench.path("data"), ["app", "notes", "onions", "on"], succeeding: true)
            let key: Substring? = made.output.split(separator: "\n").first { $0.hasPrefix("api key") }
            place = [
                "THICKET_SERVER": bench.address, "THICKET_APP": "onions",
                "THICKET_API_KEY": String(try #require(key).split(separator: " ").last ?? ""),
            ]
        }

        @discardableResult
        func good(
            _ words: [String], home: String = "home", input: String = "", _ more: [String: String] = [:]
        ) throws -> String {
            let outcome = try run(words, home: home, input: input, more)
            guard outcome.code == 0 else { throw ProcessError("\(words) ended with \(outcome)") }
            return outcome.output
        }

        func run(
            _ words: [String], home: String = "home", input: String = "", _ more: [String: String] = [:]
        ) throws -> ChildProcess.Outcome { try bench.run(words, home: home, input: input, variables: more) }

        /// Whether any file below a folder has the text.
        func holds(_ folder: String, _ text: String) throws -> Bool {
            try ChildProcess.run(["/bin/grep", "-rqaF", text, bench.path(folder)]).code == 0
        }
    }

    @Test("with a profile with keys no password is asked for, the login continues, and no note is on the disk")
    func commands() throws {
        let house = try House()
        try house.good(["signup", "--user", "ann"], house.place.merging(["THICKET_PASSWORD": "sesame"]) { $1 })
        try house.good(["onions", "new"], input: "canary-title\ncanary-text, blue")
        try house.good(["onions", "new"], input: "second")
        let list = try house.good(["onions", "list"])
        #expect(list.split(separator: "\n").map { $0.split(separator: "\t").last } == ["canary-title", "second"])
        try house.good(["onions", "edit", "1"], input: "canary-title\ncanary-text, red")
        #expect(try house.good(["onions", "show", "1"]) == "canary-title\n\ncanary-text, red\n")
        let row: Substring = try #require(try house.good(["onions", "list", "--json"]).split(separator: "\n").first)
        let id = try #require(try JSONValue(parsing: Array(row.utf8))["id"]?.stringValue)
        let object = try house.good(["get", "onions", id, "--json"])
        #expect(object.contains(#""onionVersion":3"#) && !object.contains("canary"))
        let rows: [Substring] = try house.good(["audit", "onions"]).split(separator: "\n")
        #expect(
            rows.contains("  you     canary-title: canary-text, red") && rows.contains { $0 == "  you     second: " })
        let stored: [Substring] = rows.filter { $0.hasPrefix("  server ") }
        #expect(stored.count == 2 && stored.allSatisfy { $0.contains("onionTitle") && !$0.contains("canary") })
        #expect(!rows.contains { $0.contains("the server can read it") }, "what is sealed is not called readable")
        #expect(
            try house.good(["onions", "list", "--user", "Ann"]) == list,
            "it is the same account, not an old one of that name")
        let old = try house.run(
            ["onions", "list", "--old-account", "--user", "x"], ["THICKET_PASSWORD": "p"])
        #expect(old.code == 6, "\(old)")
        #expect(try house.good(["status"]).contains("online"), "the login is as good as before")
        #expect(try !house.holds("home", "canary-t"))
        try house.good(["onions", "rm", "2"])
        // The other machine has the keys by its own login.
        try house.good(
            ["login", "--user", "ann"], home: "other", house.place.merging(["THICKET_PASSWORD": "sesame"]) { $1 })
        #expect(try house.good(["onions", "list", "--json"], home: "other").contains("canary-title"))
        try house.good(["put", "onions", "old", #"{"onionTitle":"AAAA","onionInfo":"AAAA"}"#])
        let audit = try house.good(["audit", "onions"], home: "other")
        #expect(audit.contains("canary-text, red") && audit.contains("do not open") && !audit.contains("can read it"))
        #expect(!house.bench.exists("other/profiles/default/objects"), "and nothing of it is kept")
        try house.good(["rm", "onions", "old"])
        let long = #"{"onionTitle":""# + String(repeating: "A", count: 300) + #"","onionInfo":"AAAA"}"#
        let refused = try house.run(["put", "onions", "long", long])
        #expect(refused.code == 4 && refused.errors.contains("longer than a note's may be"), "\(refused)")
        // Sealed copies have the old app's form, so they are under a password; another password does not open them.
        let copies = ["THICKET_PASSWORD": "of the copies"]
        try house.good(["onions", "export", "--sealed", house.bench.path("sealed")], copies)
        #expect(try #require(house.bench.read("sealed")).contains(#""onionVersion":2"#))
        let none = try house.run(["onions", "export", "--sealed", house.bench.path("x")])
        #expect(none.code == 2 && none.errors.contains("--password-file"), "\(none)")
        try house.good(["onions", "rm", "1"])
        let wrong = try house.run(
            ["onions", "import", house.bench.path("sealed")], ["THICKET_PASSWORD": "another"])
        #expect(wrong.code == 1 && wrong.errors.contains("does not open"), "\(wrong)")
        #expect(try house.good(["onions", "import", house.bench.path("sealed")], copies).contains("took 1 note"))
        #expect(try house.good(["onions", "show", "1"]) == "canary-title\n\ncanary-text, red\n")
        // A wrong password deletes nothing; the right one the notes, then the account.
        let guess = try house.run(["onions", "delete"], ["THICKET_PASSWORD": "guess"])
        #expect(guess.code == 6, "\(guess)")
        #expect(try house.good(["onions", "list"]).contains("canary-title"))
        try house.good(["onions", "delete"], ["THICKET_PASSWORD": "sesame"])
        #expect(try house.run(["onions", "list"]).code == 6)
    }

    @Test("an old account is upgraded: its notes open with new keys, and the old login has ended")
    func upgrade() throws {
        let house = try House()
        house.bench.isCheap = false
        let old = house.place.merging(
            ["THICKET_USER": "canary-old-name", "THICKET_PASSWORD": "canary-old-password"]) { $1 }
        try house.good(["onions", "signup"], old)
        for number in 1...3 {
            try house.good(["onions", "new", "--old-account"], input: "note \(number)\ntext \(number)", old)
        }
        let user = try house.good(["onions", "list", "--json", "--old-account"], old)
        let same = try house.run(
            ["onions", "upgrade", "--new-user", "ann"],
            old.merging(["THICKET_NEW_PASSWORD": "canary-old-password"]) { $1 })
        #expect(same.code == 2 && same.errors.contains("take another"), "\(same)")
        let new = ["THICKET_NEW_PASSWORD": "canary-new-password"]
        let wrong = try house.run(
            ["onions", "upgrade", "--new-user", "ann"],
            old.merging(new) { $1 }.merging(["THICKET_PASSWORD": "canary-guess"]) { $1 })
        #expect(wrong.code == 6 && wrong.errors.contains("nothing was upgraded: the old user name"), "\(wrong)")
        #expect(!wrong.errors.contains("not finished"), "\(wrong)")
        let silent = try house.run(["onions", "upgrade", "--new-user", "ann"], old)
        #expect(silent.code == 2 && silent.errors.contains("to ask for the new password at"), "\(silent)")
        let done = try house.good(["onions", "upgrade", "--new-user", "ann"], old.merging(new) { $1 })
        #expect(done.contains("3 notes sealed") && done.contains("thicket words"), "\(done)")
        #expect(try house.run(["onions", "list", "--old-account"], old).code == 6)
        #expect(!house.bench.exists("home"), "nothing is kept")
        // Again, as after an answer that was lost: nothing is left to do.
        let again = try house.good(["onions", "upgrade", "--new-user", "ann"], old.merging(new) { $1 })
        #expect(again.contains("0 notes sealed"), "\(again)")
        let login = try house.run(
            ["login", "--user", "ann"], house.place.merging(["THICKET_PASSWORD": "canary-new-password"]) { $1 })
        #expect(login.code == 0 && login.errors.contains("recovery words"), "\(login)")
        #expect(try house.good(["onions", "list", "--json"]) == user, "the same notes, made when they were made")
        #expect(try house.good(["onions", "show", "3"]) == "note 3\n\ntext 3\n")
        for canary in ["canary-old-name", "canary-old-password", "canary-new-password"] {
            #expect(try !house.holds("data", canary), "\(canary)")
        }
        #expect(try house.holds("data", "ann"), "the search finds what is there")
    }

    /// Whether the system shows the process as stopped: the letter after the name in brackets.
    private static func isStopped(_ id: pid_t) -> Bool {
        let file = open("/proc/\(id)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(file, &bytes, bytes.count)
        let text: Substring? = String(decoding: bytes[..<max(0, count)], as: UTF8.self).split(separator: ")").last
        return text?.first { $0 != " " } == "T"
    }

    @Test("the view asks for the account's password, again after a lock, and forgets it in between")
    func view() throws {
        let house = try House()
        let password = "Canary-keyed-77-sesame"
        try house.good(["signup", "--user", "ann"], house.place.merging(["THICKET_PASSWORD": password]) { $1 })
        try house.good(["onions", "new"], input: "Canary title 88\ncanary info 89")
        let terminal = try PseudoTerminal(
            [Programs.thicket, "onions", "view"], variables: house.bench.variables("home", [:]))
        try terminal.wait(forShown: "Password (not shown)")
        terminal.type("a guess\r")
        try terminal.wait(forShown: "the password is wrong")
        terminal.type(password + "\r")
        try terminal.wait(forShown: "Canary title 88")
        terminal.type("\r")
        try terminal.wait(forShown: "canary info 89")
        // Ctrl-Z: the program stops when it no longer holds a secret, and the terminal shows what it showed before.
        terminal.type("\u{1A}")
        try terminal.wait(until: "it has given the terminal back and stopped") {
            !terminal.screen.isAlternate && Self.isStopped(terminal.id)
        }
        let needle = MemoryScan.Needle(password.utf8)
        // Where the system permits the look: a process that refuses it is root's then.
        func isForgotten() -> Bool { MemoryScan.hits(of: [needle], in: terminal.id).map { $0[0] == 0 } ?? true }
        #expect(isForgotten())
        terminal.signal(SIGCONT)
        try terminal.wait(forShown: "Password (not shown)")
        #expect(terminal.screen.isAlternate && !terminal.screen.shows("Canary title 88"))
        #expect(isForgotten())
        terminal.type(password + "\r")
        try terminal.wait(forShown: "1  Canary title 88")
        #expect(!terminal.everShowed("Canary-keyed"))
        terminal.type("q")
        #expect(try terminal.finish() == 0)
        #expect(try house.good(["onions", "list"]).contains("Canary title 88"), "the profile's login goes on")
    }

    @Test("a note that cannot be saved before a lock waits sealed, and is on the screen again after the login")
    func draft() throws {
        let house = try House()
        let password = "sesame"
        try house.good(["signup", "--user", "ann"], house.place.merging(["THICKET_PASSWORD": password]) { $1 })
        for number in 1...10 { try house.good(["onions", "new"], input: "note \(number)") }
        let terminal = try PseudoTerminal(
            [Programs.thicket, "onions", "view"], variables: house.bench.variables("home", [:]))
        try terminal.wait(forShown: "Password (not shown)")
        terminal.type(password + "\r")
        try terminal.wait(forShown: "note 10")
        // There are ten notes, so the server accepts no eleventh; Ctrl-L tries to save.
        terminal.type("ncanary eleven\u{C}")
        try terminal.wait(forShown: "comes again after the login")
        try house.good(["onions", "rm", "1"])
        terminal.type(password + "\r")
        try terminal.wait(forShown: "as a new note")
        terminal.type("\u{13}")
        try terminal.wait(forShown: "10  canary eleven")
        terminal.type("q")
        #expect(try terminal.finish() == 0)
        #expect(try house.good(["onions", "list"]).contains("canary eleven"))
    }
}
