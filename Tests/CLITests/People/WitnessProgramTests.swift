import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Whole programs: a server, a witness of its key log on another machine, and people that require it (treesystem 4.12).
@Suite("A witness of the key log, and whole programs", .blocking)
struct WitnessProgramTests {
    private let bench: CommandBench
    private let place: [String]

    init() throws {
        bench = try CommandBench()
        place = try bench.appWords()
        for name in ["ann", "bob"] { try signUp(name) }
        try bench.write("witness.token", try bench.token(user: "witness"))
    }

    private func signUp(_ name: String) throws {
        try bench.enter("signup", name, home: name, at: place)
    }

    private func witness() throws -> ChildProcess.Outcome {
        try ChildProcess.run([
            Programs.thicketd, "keylog", "witness", "--of", bench.address, "--app", "notes",
            "--key", bench.path("witness.key"), "--state", bench.path("witness.state"),
            "--token-file", bench.path("witness.token"),
        ])
    }

    /// Makes the witness's key, and restarts the server with it.
    private func accepted() throws -> String {
        let first = try witness()
        let key = try #require(first.errors.split(separator: "\n").first?.split(separator: " ").last)
        #expect(first.code == 1 && first.errors.contains("accepts no confirmations"), "\(first)")
        try bench.stopServer()
        try bench.startServer(["--keylog-witnesses", String(key)])
        return String(key)
    }

    @Test(
        "a user that requires a witness gets no keys before it has confirmed the log, learns why, and goes on afterwards"
    )
    func required() throws {
        let key = try accepted()
        let late = try bench.run(["keylog", "--require-witness", key], home: "ann")
        #expect(late.code == 1 && late.errors.contains("the required witness \(key.prefix(16))"), "\(late)")
        let refused = try bench.run(["verify", "bob"], home: "ann")
        #expect(refused.code == 1 && refused.errors.contains("not-witnessed"), "\(refused)")
        let unsent = try bench.run(["tree", "send", "bob", "--text", "hello"], home: "ann")
        #expect(unsent.code == 1 && unsent.errors.contains("--no-witness"), "\(unsent)")
        let confirmed = try witness()
        #expect(confirmed.code == 0 && confirmed.output.contains("confirmed 4 entries"), "\(confirmed)")
        let shown = try bench.good(["keylog"], home: "ann")
        #expect(shown.contains("required witness: \(key)") && shown.contains("confirmed by the required"), "\(shown)")
        try bench.good(["verify", "bob"], home: "ann")
        try bench.good(["tree", "send", "bob", "--text", "hello"], home: "ann")
        // A server without the witness's confirmations: required again, it is missed; without it everything goes on.
        try bench.stopServer()
        try bench.startServer()
        let missed = try bench.run(["keylog", "--require-witness", key, "--json"], home: "bob")
        #expect(missed.code == 1 && missed.output.contains(#""witnessed":null"#), "\(missed)")
        #expect(try bench.run(["verify", "ann"], home: "bob").code == 1)
        try bench.good(["keylog", "--no-witness"], home: "bob")
        try bench.good(["verify", "ann"], home: "bob")
    }

    @Test("A6: a witness that is shown two histories confirms none of them, and its evidence proves it to anyone")
    func twoHistories() throws {
        let key = try accepted()
        #expect(try witness().code == 0)
        try bench.stopServer()
        let copied = try ChildProcess.run(["/bin/cp", "-r", bench.path("data"), bench.path("data-2")])
        #expect(copied.code == 0)
        try bench.startServer(["--keylog-witnesses", key])
        try signUp("cleo")
        #expect(try witness().code == 0)
        // From now on the operator shows another log, signed with the same key.
        try bench.stopServer()
        let other = try Daemon(folder: bench.path("data-2"), port: bench.server.port)
        defer { try? other.kill() }
        try signUp("dave")
        for _ in 0..<2 {
            let found = try witness()
            #expect(found.code == 1 && found.errors.contains("FORK"), "\(found)")
        }
        let evidence = bench.path("witness.state.evidence.json")
        let checked = try bench.run(["verify-evidence", evidence], home: "stranger")
        #expect(checked.code == 0 && checked.output.hasPrefix("proven: "), "\(checked)")
    }
}
