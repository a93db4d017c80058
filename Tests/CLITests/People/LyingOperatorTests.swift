import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketKeyLog
import ThicketProcesses
import ThicketSQLite

/// Whole programs against an operator that lies with its own database, its own log's key, and a copy of its data
/// folder (treesystem 5.3). The accused cannot deny it: the evidence is a file, and another machine without a login and
/// without a server checks it.
@Suite("An operator that lies, and whole programs", .blocking)
struct LyingOperatorTests {
    private let bench: CommandBench
    private let place: [String]

    init() throws {
        bench = try CommandBench()
        place = try bench.appWords()
        for name in ["ann", "bob"] { try signUp(name) }
    }

    private func signUp(_ name: String) throws {
        try bench.enter("signup", name, home: name, at: place)
    }

    /// The key log as an account sees it: what it prints and how it ends.
    private func keyLog(_ home: String, _ more: [String] = []) throws -> ChildProcess.Outcome {
        try bench.run(["keylog"] + more, home: home)
    }

    /// Expects an alarm, and that a stranger can check its evidence.
    private func expectAlarm(_ home: String, _ words: String) throws {
        let outcome = try keyLog(home, ["--evidence", bench.path("evidence.json")])
        #expect(outcome.code == 9, "\(outcome)")
        #expect(outcome.errors.contains(words), "\(outcome)")
        let checked = try bench.run(["verify-evidence", bench.path("evidence.json")], home: "stranger")
        #expect(checked.code == 0 && checked.output.hasPrefix("proven: "), "\(checked)")
        #expect(!bench.exists("stranger"), "the check needs no login and leaves nothing")
    }

    @Test("A6: of two logs under one key, the second one that an account is shown is an alarm with evidence")
    func twoLogs() throws {
        try bench.stopServer()
        let copied = try ChildProcess.run(["/bin/cp", "-r", bench.path("data"), bench.path("data-2")])
        #expect(copied.code == 0)
        try bench.startServer()
        try signUp("cleo")
        let honest = try keyLog("ann")
        #expect(honest.code == 0, "\(honest)")
        // From now on the operator shows another log, signed with the same key.
        try bench.stopServer()
        let other = try Daemon(folder: bench.path("data-2"), port: bench.server.port)
        defer { try? other.kill() }
        try signUp("dave")
        // Bob has seen nothing else.
        #expect(try keyLog("bob").code == 0)
        try expectAlarm("ann", "two")
        // The alarm stays, whatever the server shows afterwards, and no key is handed out.
        let verified = try bench.run(["verify", "bob"], home: "ann")
        #expect(verified.code == 9, "\(verified)")
        try expectReports("ann")
        try expectLiveAlarm("ann", from: "bob")
    }

    /// Every command on the account prints the alarm, whatever it does, with evidence that is written once.
    private func expectReports(_ home: String) throws {
        var files = Set<String>()
        for words in [["contacts"], ["tree", "ls"], ["tree", "ls", "--offline"]] {
            let outcome = try bench.run(words, home: home)
            #expect(outcome.errors.contains("ALARM heads: "), "\(words) \(outcome)")
            #expect(outcome.errors.count(of: "ALARM") == 1, "\(words) \(outcome)")
            let place = try #require(outcome.errors.split(separator: "\n").first { $0.contains("Evidence: ") })
            let path = try #require(place.split(separator: " ").first { $0.hasSuffix(".json;") }).dropLast()
            files.insert(String(path))
        }
        #expect(files.count == 1)
        let checked = try bench.run(["verify-evidence", try #require(files.first)], home: "stranger")
        #expect(checked.code == 0 && checked.output.hasPrefix("proven: "), "\(checked)")
        // Others see none of it.
        #expect(try !bench.run(["contacts"], home: "dave").errors.contains("ALARM"))
    }

    /// A running `tree watch` prints the alarm when a message makes it look a user up.
    private func expectLiveAlarm(_ home: String, from author: String) throws {
        for format in [[], ["--json"]] {
            let watch = try bench.start(["tree", "watch"] + format, home: home)
            try watch.wait(for: format.isEmpty ? "watching" : "connected")
            try bench.good(["tree", "send", home, "--text", "hello"], home: author)
            try watch.wait(for: format.isEmpty ? "! ALARM: " : #""event":"alarm","code":"fork""#)
            watch.signal(SIGINT)
            let outcome = try watch.finish()
            #expect(outcome.code == 0 && outcome.errors.contains("ALARM heads: "), "\(outcome)")
        }
    }

    @Test("A5: a key that the operator adds for an account stops its contacts and alarms its owner, with evidence")
    func addedKey() throws {
        let digits = try bench.good(["verify", "bob"], home: "ann").filter { $0 != "\n" }
        #expect(try bench.good(["verify", "ann"], home: "bob").filter { $0 != "\n" } == digits)
        try bench.good(["verify", "bob", "--matches", digits], home: "ann")
        try bench.stopServer()
        try addReset(to: "bob")
        try bench.startServer()
        let stopped = try bench.run(["verify", "bob"], home: "ann")
        #expect(stopped.code != 0 && !stopped.output.contains(digits), "\(stopped)")
        #expect(stopped.errors.contains("bob"), "\(stopped)")
        try expectAlarm("bob", "the holder of the key before denies it")
    }

    /// Appends an entry with the operator's own keys to the chains of an account and of its name, as a server does with
    /// a reset that it has authorised.
    private func addReset(to name: String) throws {
        let identity = Ed25519.SigningKey.random()
        let encryption = X25519.PrivateKey.random().publicKey
        let database = try Database(path: bench.path("data/thicket.db"), mode: .readWrite)
        let user = try #require(
            try database.text("SELECT user FROM account WHERE folded = '\(name)'"))
        for owner in [user, try KeyLogHandle.name(name, app: "notes")] {
            let bytes = try #require(
                try database.statement("SELECT bytes FROM key_entry WHERE user = ?1 ORDER BY number DESC LIMIT 1")
                    .bind(1, owner).first { $0.bytes(0) })
            let last = try KeyLogEntry(bytes)
            let entry = try last.reset(to: identity, encryption: encryption, validFrom: last.validFrom + 1)
            try database.statement(
                """
                INSERT INTO key_entry (app, place, user, number, bytes)
                SELECT 'notes', max(place) + 1, ?1, ?2, ?3 FROM key_entry
                """
            ).bind(1, owner).bind(2, Int64(entry.sequence)).bind(3, entry.bytes).run()
        }
    }
}

extension String {
    /// How often a text is in this one.
    fileprivate func count(of text: String) -> Int { ranges(of: text).count }
}
