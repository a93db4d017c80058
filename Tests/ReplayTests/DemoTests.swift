import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses
import ThicketReplay

/// `thicket-demo` as a new user runs it: a process, with its exit code and its output.
@Suite("thicket-demo", .blocking)
struct DemoTests {
    private let folder = TemporaryFolder("demo")

    private func run(_ words: [String]) throws -> ChildProcess.Outcome {
        let program: String = Programs.thicketd.dropLast("thicketd".count) + "thicket-demo"
        return try ChildProcess.run([program] + words, variables: ["SWIFT_BACKTRACE": "enable=no"], seconds: 120)
    }

    private func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = folder.path + "/" + name
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw ProcessError("cannot write \(path)") }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else { throw ProcessError("cannot write \(path)") }
        return path
    }

    private static let text = """
        Two people write about an oak.

        It stands behind the house, é, and 🌲 is its neighbour.

        Nobody knows how old it is. The third paragraph is longer than the others, so that both have work.
        """

    @Test("a generated session ends in MATCH, with a clean store, exit code 0 and the server killed twice")
    func match() throws {
        var generator = TraceGenerator(seed: 7, texts: [Self.text])
        let path = try write("session.json.gz", Gzip.pack(generator.make(editsMin: 700).json()))
        let outcome = try run(["--fast", path])
        #expect(outcome.code == 0, "\(outcome)")
        let lines: [Substring] = outcome.output.split(separator: "\n")
        #expect(lines.last?.hasPrefix("MATCH:") == true, "\(outcome.output)")
        #expect(lines.contains { $0.hasPrefix("thicketd check: clean") }, "\(outcome.output)")
        #expect(outcome.output.ranges(of: "killed").count >= 4, "\(outcome.output)")
        let open: Substring = try #require(lines.first { $0.hasPrefix("  open  ") }, "\(outcome.output)")
        #expect(!open.contains(" 0 of ") && open.contains(#"{"text":"#), "\(open)")
        let sealed: Substring = try #require(lines.first { $0.hasPrefix("  sealed  ") }, "\(outcome.output)")
        #expect(sealed.contains(" 0 of ") && sealed.contains(#"{"z":1,"s":{""#), "\(sealed)")
    }

    @Test("a session of three ends with the recorded text on all 3 clients and a fresh one")
    func three() throws {
        var generator = TraceGenerator(seed: 8, texts: [Self.text], authors: 3)
        let path = try write("three.json", generator.make(editsMin: 400).json())
        let outcome = try run(["--fast", path])
        #expect(outcome.code == 0 && outcome.output.hasPrefix("Three people type "), "\(outcome)")
        #expect(
            outcome.output.hasSuffix("all 3 clients and a fresh one hold exactly the recorded text.\n"), "\(outcome)")
    }

    @Test("a missing, damaged or other trace, or a wrong option, ends with exit code 1 and one line that names it")
    func badTraces() throws {
        let table: [(path: String, says: String)] = [
            (folder.path + "/none.json", "cannot read the trace '\(folder.path)/none.json'"),
            (try write("words.json", Array("no json".utf8)), "the trace is not JSON"),
            (try write("cut.json.gz", Array(Gzip.pack(Array("{}".utf8)).dropLast(9))), "not a whole gzip file"),
            (try write("empty.json", Array("{}".utf8)), "field 'endContent' is missing"),
            (
                try write("parent.json", Array(Self.badParent.utf8)),
                "transaction 0 of the trace: a parent does not precede it"
            ),
            (
                try write("one.json", Array(#"{"startContent":"","endContent":"","txns":[]}"#.utf8)),
                "a concurrent trace of two to five people"
            ),
        ]
        for (path, says) in table {
            let outcome = try run(["--fast", path])
            #expect(outcome.code == 1 && outcome.output.isEmpty, "\(path): \(outcome)")
            #expect(outcome.errors.hasPrefix("demo: ") && outcome.errors.contains(says), "\(outcome.errors)")
            #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
        }
        for (words, says) in [
            (["--people", "6"], "--people takes a number from 2 to 5, not '6'"),
            (["--people"], "--people takes a number from 2 to 5, not nothing"),
            (["--people", "3", "x.json"], "no --people with it"),
        ] {
            let outcome = try run(words)
            #expect(outcome.code == 1 && outcome.errors.contains(says), "\(outcome)")
        }
        let option = try run(["--slow"])
        #expect(option.code == 1 && option.errors.contains("there is no option --slow"))
    }

    @Test("demo tree: a folder arrives over a pulled cable and kills, and the server has none of its names and bytes")
    func tree() throws {
        let outcome = try run(["tree", "--size", "24MiB"])
        #expect(outcome.code == 0, "\(outcome)")
        for event in ["the cable is pulled", "the server is killed", "Alice's program is killed"] {
            #expect(outcome.output.contains(event), "\(outcome.output)")
        }
        #expect(outcome.output.contains("17 in Alice's folder, 0 at the server.\nMATCH: "), "\(outcome.output)")
    }

    @Test("demo chat: three people write through a killed server, a new phone has it all, and the server none of it")
    func chat() throws {
        let outcome = try run(["chat"])
        #expect(outcome.code == 0, "\(outcome)")
        for event in [
            "the server is killed", "2 conversations after", "7 with the people, 0 at the server.", "\nMATCH: ",
        ] {
            #expect(outcome.output.contains(event), "\(outcome.output)")
        }
        let misused = try run(["chat", "--people", "2"])
        #expect(misused.code == 1 && misused.errors.contains("does not know --people"), "\(misused)")
    }

    @Test("demo tree with a size or a word that it does not know ends with exit code 1, and one line that names it")
    func treeMisused() throws {
        for (words, says) in [
            (["--size", "1MiB"], "not '1MiB'"), (["--size"], "not 'nothing'"), (["--size", "2"], "not '2'"),
            (["--people", "2"], "does not know --people"),
        ] {
            let outcome = try run(["tree"] + words)
            #expect(outcome.code == 1 && outcome.output.isEmpty && outcome.errors.contains(says), "\(outcome)")
        }
    }

    private static let badParent =
        #"{"kind":"concurrent","numAgents":2,"endContent":"","txns":[{"agent":0,"parents":[3],"patches":[]}]}"#
}
