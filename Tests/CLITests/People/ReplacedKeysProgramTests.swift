import Glibc
import Testing
import ThicketBlocking
import ThicketCrypto
import ThicketKeyLog
import ThicketProcesses
import ThicketSQLite

/// `thicket keys --rotate` as people use it: whole programs on several machines (treesystem 4.12, K13).
@Suite("thicket keys --rotate, and whole programs", .blocking)
struct ReplacedKeysProgramTests {
    private let bench: CommandBench
    private let place: [String]

    init() throws {
        bench = try CommandBench()
        place = try bench.appWords()
        for name in ["ann", "bob"] { try enter("signup", name, home: name) }
        try enter("login", "ann", home: "second")
    }

    private func enter(_ word: String, _ name: String, home: String) throws {
        try bench.enter(word, name, home: home, at: place)
    }

    private func send(_ text: String, _ from: String, to name: String) throws {
        try bench.good(["tree", "send", name, "--text", text], home: from)
    }

    private func inbox(_ home: String) throws -> String { try bench.good(["tree", "inbox"], home: home) }

    @Test("a user replaces the keys on one machine: the other one and the contacts go on, and nothing is lost")
    func replaced() throws {
        try send("before", "bob", to: "ann")
        #expect(try inbox("ann").contains("before"))
        let number = try bench.good(["verify", "ann"], home: "bob")
        try bench.good(["verify", "ann", "--matches", number.filter { $0 != "\n" }], home: "bob")
        let done = try bench.good(["keys", "--rotate"], home: "ann")
        #expect(done.contains("new keys"), "\(done)")

        // Bob's look-up is of this hour: he seals to the keys from before, which still open.
        try send("between", "bob", to: "ann")
        try send("from the second machine", "second", to: "bob")
        let next = try bench.run(["verify", "ann"], home: "bob")
        #expect(next.code == 0 && next.output != number && next.errors.contains("ann has new keys"), "\(next)")
        #expect(try bench.good(["contacts"], home: "bob").contains("rotated"))
        #expect(try bench.good(["keylog"], home: "bob").contains("as made by this account"))
        try send("after", "bob", to: "ann")
        for home in ["ann", "second"] {
            let shown = try inbox(home)
            for text in ["before", "between", "after"] { #expect(shown.contains(text), "\(home) \(text): \(shown)") }
            #expect(try bench.good(["keylog"], home: home).contains("as made by this account"))
        }
        #expect(try inbox("bob").contains("from the second machine"))
        // The machine that did not replace them can do it next.
        try bench.good(["keys", "--rotate"], home: "second")
        try send("again", "ann", to: "bob")
        #expect(try inbox("bob").contains("again"))
    }

    @Test("a user replaces only the key to which others seal: compared numbers stay, and messages open on all machines")
    func exchangeOnly() throws {
        try send("before", "bob", to: "ann")
        let number = try bench.good(["verify", "ann"], home: "bob")
        try bench.good(["verify", "ann", "--matches", number.filter { $0 != "\n" }], home: "bob")
        let misused = try bench.run(["keys", "--exchange-only"], home: "ann")
        #expect(misused.code == 2 && misused.errors.contains("--rotate"), "\(misused)")
        let done = try bench.good(["keys", "--rotate", "--exchange-only"], home: "ann")
        #expect(done.contains("stay"), "\(done)")
        #expect(try bench.good(["verify", "ann"], home: "bob") == number)
        #expect(try bench.good(["contacts"], home: "bob").contains("compared"))
        try send("after", "bob", to: "ann")
        try send("from the second machine", "second", to: "bob")
        for home in ["ann", "second"] {
            let shown = try inbox(home)
            for text in ["before", "after"] { #expect(shown.contains(text), "\(home) \(text): \(shown)") }
            #expect(try bench.good(["keylog"], home: home).contains("as made by this account"))
        }
        #expect(try inbox("bob").contains("from the second machine"))
    }

    @Test("A14: new keys that the old ones have not signed are an alarm with evidence, and are not used")
    func unsigned() throws {
        try bench.good(["contacts", "add", "bob"], home: "ann")
        try bench.stopServer()
        try addUnsignedRotation(of: "bob")
        try bench.startServer()
        let refused = try bench.run(["verify", "bob"], home: "ann")
        #expect(refused.code == 9 && refused.errors.contains("ALARM"), "\(refused)")
        let unsent = try bench.run(["tree", "send", "bob", "--text", "hello"], home: "ann")
        #expect(unsent.code == 9 && unsent.errors.contains("nothing was sent"), "\(unsent)")
        let found = try bench.run(["keylog", "--evidence", bench.path("evidence.json")], home: "ann")
        #expect(found.code == 9, "\(found)")
        let checked = try bench.run(["verify-evidence", bench.path("evidence.json")], home: "stranger")
        #expect(checked.code == 0 && checked.output.hasPrefix("proven: "), "\(checked)")
        #expect(try bench.good(["contacts"], home: "ann").contains("alarm"))
    }

    /// Appends rotations to the chains of an account and of its name, signed by another key than the one before.
    private func addUnsignedRotation(of name: String) throws {
        let (identity, other) = (Ed25519.SigningKey.random(), Ed25519.SigningKey.random())
        let encryption = X25519.PrivateKey.random().publicKey
        let database = try Database(path: bench.path("data/thicket.db"), mode: .readWrite)
        let user = try #require(try database.text("SELECT user FROM account WHERE folded = '\(name)'"))
        for owner in [user, try KeyLogHandle.name(name, app: "notes")] {
            let bytes = try #require(
                try database.statement("SELECT bytes FROM key_entry WHERE user = ?1 ORDER BY number DESC LIMIT 1")
                    .bind(1, owner).first { $0.bytes(0) })
            let last = try KeyLogEntry(bytes)
            let entry = try last.rotated(
                to: identity, encryption: encryption, signedBy: other, validFrom: last.validFrom + 1)
            try database.statement(
                """
                INSERT INTO key_entry (app, place, user, number, bytes)
                SELECT 'notes', max(place) + 1, ?1, ?2, ?3 FROM key_entry
                """
            ).bind(1, owner).bind(2, Int64(entry.sequence)).bind(3, entry.bytes).run()
        }
    }
}
