import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// What a mirror reports about files that the server refuses, and about those it has not confirmed.
@Suite("thicket mirror: refused files", .blocking)
struct MirrorRefusalTests {
    /// Larger than the server keeps objects.
    private static let large = String(repeating: "y", count: 1_150_000)

    private func bench() throws -> CommandBench {
        let bench = try CommandBench()
        try bench.login()
        mkdir(bench.path("m"), 0o700)
        return bench
    }

    @Test(
        "each --once run names a refused file, ends with 4 and never calls it sent or the same; a smaller one is sent"
    )
    func once() throws {
        let bench = try bench()
        try bench.write("m/big.md", Self.large)
        try bench.write("m/fine.md", "fine\n")
        let once = ["mirror", bench.path("m"), "docs", "--once"]
        for round in 0..<3 {
            let outcome = try bench.run(once)
            #expect(outcome.code == 4, "\(round) \(outcome)")
            #expect(outcome.errors.contains("big.md is left alone: the server refused it: it is too large (413)"))
            #expect(outcome.output == (round == 0 ? "sent fine.md\n" : ""), "\(round) \(outcome.output)")
            #expect(
                outcome.errors.contains("are the same except for what is named above: 1 file\n"), "\(outcome.errors)")
        }
        // Beside another problem the refusal decides the exit code.
        try bench.write("m/half.json", "{ half")
        #expect(try bench.run(once).code == 4)
        try bench.write("m/half.json", "{}")
        #expect(bench.exists("m/big.md"), "the file stays")
        try bench.write("m/big.md", "small\n")
        let smaller = try bench.run(once)
        #expect(smaller.code == 0 && smaller.output == "sent big.md\nsent half.json\n", "\(smaller)")
        #expect(smaller.errors.contains("are the same: 3 files\n"), "\(smaller)")
        #expect(try bench.good(["get", "docs", "big.md", "--path", "text"]) == "small\n")
        #expect(try bench.good(once).isEmpty)
    }

    @Test("a refused change leaves the server's object as it is, and restoring the file ends the refusal")
    func changed() throws {
        let bench = try bench()
        try bench.write("m/a.md", "first\n")
        let once = ["mirror", bench.path("m"), "docs", "--once"]
        #expect(try bench.good(once) == "sent a.md\n")
        try bench.write("m/a.md", Self.large)
        for _ in 0..<2 {
            let outcome = try bench.run(once)
            #expect(outcome.code == 4 && outcome.output.isEmpty && outcome.errors.contains("a.md is left alone"))
        }
        #expect(try bench.good(["get", "docs", "a.md", "--path", "text"]) == "first\n")
        try bench.write("m/a.md", "first\n")
        #expect(try bench.run(once).code == 0)
        #expect(try bench.good(["get", "docs", "a.md", "--path", "text"]) == "first\n")
        // A refused file that is deleted counts as deleted.
        try bench.write("m/a.md", Self.large)
        #expect(try bench.run(once).code == 4)
        unlink(bench.path("m/a.md"))
        #expect(try bench.good(once) == "removed a.md from the bucket\n")
        #expect(try bench.run(["get", "docs", "a.md"]).code == 3)
    }

    @Test(
        "with a read-only token files and deletions are named with 401, none is called sent or removed, code 6"
    )
    func readOnly() throws {
        let bench = try bench()
        for key in ["a.md", "b.md"] { try bench.good(["put", "docs", key, #"{"text":"there\n"}"#]) }
        try bench.login(home: "reader", token: try bench.token(readOnly: true))
        let once = ["mirror", bench.path("m"), "docs", "--once"]
        try bench.good(once, home: "reader")
        try bench.write("m/a.md", "here\n")
        try bench.write("m/new.md", "new\n")
        unlink(bench.path("m/b.md"))
        for _ in 0..<2 {
            let outcome = try bench.run(once, home: "reader")
            #expect(outcome.code == 6 && outcome.output.isEmpty, "\(outcome)")
            for name in ["a.md", "b.md", "new.md"] {
                #expect(
                    outcome.errors.contains("\(name) is left alone: the server refused it: the token permits"),
                    "\(outcome)")
            }
            #expect(outcome.errors.contains("except for what is named above: 0 files\n"), "\(outcome)")
        }
        // Another token sends all of it.
        let sent = try bench.good(once)
        #expect(sent == "sent a.md\nremoved b.md from the bucket\nsent new.md\n", "\(sent)")
    }

    @Test(
        "live: a refused file is named when it is refused and at the next start; 'sent' is said of the smaller one")
    func live() throws {
        let bench = try bench()
        try bench.write("m/big.md", Self.large)
        for round in 0..<2 {
            let mirror = try bench.start(["mirror", bench.path("m"), "docs"])
            try mirror.wait(for: "big.md is left alone: the server refused it: it is too large (413)")
            if round == 1 {
                try mirror.wait(for: "mirroring")
                try bench.write("m/big.md", "small\n")
                try mirror.wait(for: "sent big.md")
                #expect(try bench.good(["get", "docs", "big.md", "--path", "text"]) == "small\n")
            }
            mirror.signal(SIGINT)
            let outcome = try mirror.finish()
            #expect(outcome.code == 0 && outcome.output == (round == 0 ? "" : "sent big.md\n"), "\(outcome)")
        }
    }

    @Test(
        "live without a server: a kept change is reported as kept, and as sent once confirmed, also by the next run"
    )
    func away() throws {
        let bench = try bench()
        try bench.write("m/gone.md", "gone\n")
        let mirror = try bench.start(["mirror", bench.path("m"), "docs"])
        try mirror.wait(for: "sent gone.md")
        try bench.stopServer()
        try mirror.wait(for: "offline (")
        try bench.write("m/late.md", "late\n")
        try mirror.wait(for: "kept late.md: it is sent when the server answers")
        unlink(bench.path("m/gone.md"))
        try mirror.wait(for: "kept the removal of gone.md")
        try bench.startServer()
        try mirror.wait(for: "sent late.md")
        try mirror.wait(for: "removed gone.md from the bucket")
        #expect(try bench.good(["ls", "docs"]) == "late.md  v1\n")
        try bench.stopServer()
        try mirror.wait(for: "offline (", times: 2)
        try bench.write("m/later.md", "later\n")
        try mirror.wait(for: "kept later.md")
        mirror.signal(SIGINT)
        #expect(try mirror.finish().output.contains("sent later.md") == false)
        try bench.startServer()
        #expect(try bench.good(["mirror", bench.path("m"), "docs", "--once"]) == "sent later.md\n")
        #expect(try bench.good(["mirror", bench.path("m"), "docs", "--once"]).isEmpty)
    }
}
