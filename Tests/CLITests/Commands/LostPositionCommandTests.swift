import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// Folders and copies that find a server without what they have, as processes (docs/decisions/0083, 0085).
@Suite("thicket: a server that has lost data", .blocking)
struct LostPositionCommandTests {
    private let bench: CommandBench

    init() throws {
        bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
    }

    private func fill(_ names: [String]) throws {
        for name in names { try bench.write("m/\(name).md", "text of \(name)\n") }
    }

    private func once(_ more: [String] = []) throws -> ChildProcess.Outcome {
        try bench.run(["mirror", bench.path("m"), "n", "--once"] + more)
    }

    /// Replaces the server's data folder by another, with the same app and user.
    private func replaceServer(user: String = "ann@example.com") throws {
        try bench.stopServer()
        let token = try bench.startServer(on: "other", user: user)
        try bench.login(token: token)
    }

    private func restore(_ change: () throws -> Void) throws {
        try Daemon.command(bench.path("data"), ["backup", bench.path("copy.db")], succeeding: true)
        try change()
        try bench.stopServer()
        try Daemon.command(bench.path("data"), ["restore", bench.path("copy.db")], succeeding: true)
        try bench.startServer()
    }

    @Test("with a server on an empty data folder all files survive and are sent to it")
    func emptyServer() throws {
        try fill(["a", "b", "c"])
        #expect(try once().code == 0)
        try replaceServer()
        let outcome = try once()
        #expect(outcome.code == 0, "\(outcome)")
        let lines = ["a", "b", "c"].map { "sent \($0).md again: the server did not have it any more\n" }
        #expect(outcome.output == lines.joined(), "each that was sent again has a line")
        for name in ["a", "b", "c"] {
            #expect(bench.read("m/\(name).md") == "text of \(name)\n")
            #expect(try bench.good(["get", "n", "\(name).md", "--path", "text"], home: "home") == "text of \(name)\n")
        }
        let second = try once()
        #expect(second.code == 0 && second.output.isEmpty, "told once: \(second)")
        #expect(try bench.good(["ls", "n"]) == "a.md  v1\nb.md  v1\nc.md  v1\n", "sent once")
    }

    @Test(
        "a wrong data folder's objects arrive, ours stay, and a text that differs is kept beside it"
    )
    func wrongServer() throws {
        try fill(["a", "b"])
        #expect(try once().code == 0)
        try replaceServer()
        try bench.good(["put", "n", "a.md", #"{"text":"theirs\n"}"#], home: "second", token: bench.newToken)
        try bench.good(["put", "n", "z.md", #"{"text":"z\n"}"#], home: "second", token: bench.newToken)
        let outcome = try once()
        #expect(outcome.code == 0, "\(outcome)")
        #expect(outcome.output.contains("a.conflict-1.md"), "it is told: \(outcome)")
        #expect(bench.read("m/a.md") == "theirs\n" && bench.read("m/a.conflict-1.md") == "text of a\n")
        #expect(bench.read("m/b.md") == "text of b\n" && bench.read("m/z.md") == "z\n")
        #expect(
            try bench.good(["ls", "n"])
                == "a.conflict-1.md  v1\na.md             v1\nb.md             v1\nz.md             v1\n")
    }

    @Test(
        "after a restore from an older backup later files survive, and a newer text is kept beside the older"
    )
    func restored() throws {
        try fill(["a", "same"])
        #expect(try once().code == 0)
        try restore {
            try bench.write("m/a.md", "newer\n")
            try fill(["late"])
            #expect(try once().code == 0)
        }
        let outcome = try once()
        #expect(outcome.code == 0, "\(outcome)")
        #expect(bench.read("m/late.md") == "text of late\n" && bench.read("m/same.md") == "text of same\n")
        #expect(outcome.output.contains("sent late.md again: the server did not have it any more\n"), "\(outcome)")
        #expect(outcome.output.ranges(of: " again: ").count == 1, "the backup has the others: \(outcome)")
        #expect(try bench.good(["get", "n", "late.md", "--path", "text"]) == "text of late\n")
        #expect(bench.read("m/a.md") == "text of a\n" && bench.read("m/a.conflict-1.md") == "newer\n")
        #expect(outcome.output.contains("a.conflict-1.md") && outcome.errors.contains("newer"), "\(outcome)")
        #expect(!bench.exists("m/same.conflict-1.md"))
        // What was compared again is followed as before.
        try bench.good(["put", "n", "same.md", #"{"text":"changed\n"}"#])
        try bench.good(["rm", "n", "late.md"])
        #expect(try once().code == 0)
        #expect(bench.read("m/same.md") == "changed\n" && !bench.exists("m/late.md"))
        #expect(!bench.exists("m/same.conflict-1.md"))
    }

    @Test("a mirror that runs while its server is restored keeps and sends what the backup lacks")
    func live() throws {
        try fill(["a"])
        let mirror = try bench.start(["mirror", bench.path("m"), "n"])
        try mirror.wait(for: "sent a.md")
        try mirror.wait(for: "mirroring")
        #expect(Steady.waitFor { (try? bench.good(["get", "n", "a.md"])) } != nil)
        try restore {
            try fill(["late"])
            try mirror.wait(for: "sent late.md")
            let isThere = Steady.waitFor {
                let found = try? bench.run(
                    ["get", "n", "late.md", "--path", "text"], home: "reader", token: bench.token)
                return found?.output == "text of late\n" ? true : nil
            }
            #expect(isThere == true)
        }
        try mirror.wait(for: "connected")
        let isBack = Steady.waitFor {
            let found = try? bench.run(["get", "n", "late.md", "--path", "text"], home: "fresh", token: bench.token)
            return found?.output == "text of late\n" ? true : nil
        }
        #expect(isBack == true)
        try mirror.wait(for: "sent late.md again: the server did not have it any more")
        #expect(bench.read("m/late.md") == "text of late\n" && bench.read("m/a.md") == "text of a\n")
        mirror.signal(SIGINT)
        #expect(try mirror.finish().code == 0)
    }

    @Test("if the mirror's copy is deleted no file is; an absent object is sent, and a text that differs kept beside")
    func lostCopy() throws {
        try fill(["absent", "differs", "same"])
        #expect(try once().code == 0)
        for name in ["bucket.db", "bucket.db-wal", "bucket.db-shm"] { unlink(bench.path("m/.thicket/" + name)) }
        try bench.good(["rm", "n", "absent.md"])
        try bench.good(["put", "n", "differs.md", #"{"text":"theirs\n"}"#])
        let outcome = try once()
        #expect(outcome.code == 0, "\(outcome)")
        #expect(bench.read("m/absent.md") == "text of absent\n" && bench.read("m/same.md") == "text of same\n")
        #expect(bench.read("m/differs.md") == "theirs\n")
        #expect(bench.read("m/differs.conflict-1.md") == "text of differs\n")
        #expect(try bench.good(["get", "n", "absent.md", "--path", "text"]) == "text of absent\n")
    }

    @Test("every command's copy sends again what an emptied server does not have")
    func otherCommands() throws {
        try bench.good(["put", "n", "k", #"{"x":1}"#])
        try replaceServer()
        #expect(try bench.good(["ls", "n"]) == "k  v1\n" || bench.good(["ls", "n"]) == "k  v1\n")
        #expect(try bench.run(["get", "n", "k"], home: "second", token: bench.newToken).output.contains("1"))
    }

    @Test("two mirrors of one bucket that find an emptied server reach the same state, and no text is doubled")
    func two() throws {
        mkdir(bench.path("o"), 0o700)
        try fill(["a", "b"])
        #expect(try once().code == 0)
        try bench.good(["mirror", bench.path("o"), "n", "--once"])
        try replaceServer()
        let other = try bench.start(["mirror", bench.path("o"), "n", "--once"])
        #expect(try once().code == 0)
        #expect(try other.finish().code == 0)
        for folder in ["m", "o", "m"] { try bench.good(["mirror", bench.path(folder), "n", "--once"]) }
        for name in ["a", "b"] {
            #expect(bench.read("m/\(name).md") == "text of \(name)\n")
            #expect(bench.read("o/\(name).md") == "text of \(name)\n")
        }
        #expect(try bench.good(["ls", "n"]) == "a.md  v1\nb.md  v1\n")
    }

    // MARK: - Mass removals

    private static let many = (10..<40).map { "f\($0)" }

    @Test("an emptied folder removes nothing from the bucket, whatever it held; --allow-removals does")
    func emptiedFolder() throws {
        try fill(["a", "b", "c"])
        #expect(try once().code == 0)
        for name in ["a", "b", "c"] { unlink(bench.path("m/\(name).md")) }
        let outcome = try once()
        #expect(outcome.code == 1 && outcome.errors.contains("--allow-removals 3"), "\(outcome)")
        #expect(try bench.good(["ls", "n"]).split(separator: "\n").count == 3)
        #expect(try once(["--allow-removals", "2"]).code == 1)
        #expect(try once(["--allow-removals", "3"]).code == 0)
        #expect(try bench.good(["ls", "n"]).isEmpty)
        #expect(try once(["--allow-removals", "x"]).code == 2)
    }

    @Test("more than 20 missing files that are more than half of all stop the mirror, also while it runs")
    func manyFiles() throws {
        try fill(Self.many)
        #expect(try once().code == 0)
        for name in Self.many.prefix(21) { unlink(bench.path("m/\(name).md")) }
        let outcome = try once()
        #expect(outcome.code == 1 && outcome.errors.contains("21 of 30 objects"), "\(outcome)")
        #expect(try bench.good(["ls", "n"]).split(separator: "\n").count == 30)
        try fill(Self.many)
        let mirror = try bench.start(["mirror", bench.path("m"), "n"])
        try mirror.wait(for: "mirroring")
        for name in Self.many { unlink(bench.path("m/\(name).md")) }
        let ended = try mirror.finish()
        #expect(ended.code == 1 && ended.errors.contains("--allow-removals"), "\(ended)")
        #expect(try bench.good(["ls", "n"]).split(separator: "\n").count == 30)
    }

    @Test(
        "removing more than 20 objects and more than half of all leaves the files; live mirrors end with 1"
    )
    func manyObjects() throws {
        try fill(Self.many)
        let live = try bench.start(["mirror", bench.path("m"), "n"])
        try live.wait(for: "mirroring")
        for name in Self.many { try live.wait(for: "sent \(name).md") }
        #expect(
            Steady.waitFor { (try? bench.good(["ls", "n"]).split(separator: "\n").count) == 30 ? true : nil } == true)
        try bench.good(["rm", "n"] + Self.many.prefix(25).map { $0 + ".md" })
        let ended = try live.finish()
        #expect(ended.code == 1 && ended.errors.contains("of 30 files would be removed"), "\(ended)")
        let outcome = try once()
        #expect(outcome.code == 1 && outcome.errors.contains("25 of 30 files"), "\(outcome)")
        for name in Self.many { #expect(bench.exists("m/\(name).md")) }
        #expect(try once(["--allow-removals", "all"]).code == 0)
        #expect(Self.many.filter { bench.exists("m/\($0).md") }.count == 5)
    }
}
