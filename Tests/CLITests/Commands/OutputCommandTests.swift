import Testing
import ThicketBlocking
import ThicketProcesses

/// Commands whose output has no reader, or no space.
@Suite("thicket: output that cannot be written", .blocking)
struct OutputCommandTests {
    /// Commands that write something to standard output, of all kinds.
    private static let commands = [
        ["--help"], ["version"], ["whoami"], ["status"], ["ls"], ["ls", "notes"], ["ls", "notes", "--long"],
        ["get", "notes", "plan"], ["get", "notes", "plan", "--json"], ["history", "notes", "plan"], ["token", "list"],
        ["audit", "notes"], ["onions", "list"], ["tree", "ls"], ["tree", "ls", "--json"], ["tree", "tree"],
        ["tree", "find"], ["tree", "log"], ["tree", "audit"], ["tree", "cat", "f"], ["tree", "pull"],
        ["tree", "export", "out", "--verbose"],
    ]

    /// A server with one object, one note and two nodes.
    private func homes() throws -> TreeHomes {
        let homes = try TreeHomes()
        try homes.bench.good(["put", "notes", "plan", #"{"a":1}"#])
        #expect(try homes.bench.run(["onions", "new"], input: "Title\ntext").code == 0)
        try homes.bench.write("f", "content")
        for name in ["f", "g"] { try homes.tree("put", homes.path("f"), name) }
        return homes
    }

    /// What the command says, apart from the reminder that belongs to `status`.
    private static func said(_ outcome: ChildProcess.Outcome) -> String {
        outcome.errors.split(separator: "\n").filter { !$0.hasPrefix("reminder:") }.joined(separator: "\n")
    }

    private func run(_ line: String, _ words: [String], _ homes: TreeHomes) throws -> ChildProcess.Outcome {
        try ChildProcess.run(
            ["/bin/bash", "-c", "cd \"$0\" && \(line)", homes.path("."), Programs.thicket] + words, input: "",
            variables: homes.bench.variables("home", [:]))
    }

    @Test("a command whose reader has closed the pipe ends with 1 and says nothing, as cat does")
    func closedPipe() throws {
        let homes = try homes()
        for words in Self.commands {
            // The reader has ended before the command begins.
            let outcome = try run(#"exec 3> >(:); wait $!; "$@" >&3"#, words, homes)
            #expect(outcome.code == 1 && Self.said(outcome).isEmpty, "\(words) \(outcome)")
        }
    }

    @Test("a command whose output does not fit on the disk says so, and ends with 1")
    func fullDisk() throws {
        let homes = try homes()
        for words in Self.commands {
            let outcome = try run(#""$@" > /dev/full"#, words, homes)
            #expect(outcome.code == 1, "\(words) \(outcome)")
            #expect(
                Self.said(outcome) == "thicket: the output could not be written: No space left on device",
                "\(words) \(outcome)")
        }
    }

    @Test("a change is made although its report has no reader, and a failure is told all the same")
    func otherFailures() throws {
        let homes = try homes()
        let made = try run(#"exec 3> >(:); wait $!; "$@" >&3"#, ["tree", "mkdir", "a"], homes)
        #expect(made.code == 1 && made.errors.isEmpty, "\(made)")
        #expect(try homes.tree("ls") == "a/\nf\ng\n")
        let missing = try run(#"exec 3> >(:); wait $!; "$@" >&3"#, ["tree", "cat", "f", "missing"], homes)
        #expect(missing.code == 1 && missing.errors.isEmpty, "the first content has no reader: \(missing)")
        let first = try run(#"exec 3> >(:); wait $!; "$@" >&3"#, ["tree", "cat", "missing"], homes)
        #expect(first.code == 3 && first.errors.contains("missing"), "\(first)")
    }
}
