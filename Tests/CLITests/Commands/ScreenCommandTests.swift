import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

@testable import ThicketCLI

/// What a terminal shows and what a pipe gets, with the real programs. Python's pty is the terminal.
@Suite("thicket: what a terminal is shown", .blocking)
struct ScreenCommandTests {
    private static let text = "a\u{202E}b\u{9B}2J\u{1B}[31m\u{7F}\u{200B}\u{2066}c"

    private func onTerminal(_ bench: CommandBench, _ words: [String]) throws -> String {
        let program = """
            import os, pty, sys
            child, terminal = pty.fork()
            if child == 0:
                os.execv(sys.argv[1], sys.argv[1:])
            shown = b""
            while True:
                try:
                    more = os.read(terminal, 65536)
                except OSError:
                    break
                if not more:
                    break
                shown += more
            os.waitpid(child, 0)
            sys.stdout.buffer.write(shown)
            """
        return try ChildProcess.run(
            ["/usr/bin/python3", "-c", program, Programs.thicket] + words, variables: bench.variables("home", [:])
        ).output
    }

    @Test(
        "control characters, direction marks and marks of no width are escaped on a terminal and kept in a pipe",
        arguments: [
            ["get", "notes", "k", "--path", "t"], ["get", "notes", "k"], ["get", "notes", "k", "--json"],
            ["history", "notes", "k"], ["history", "notes", "k", "--json"], ["ls", "notes", "--long"],
            ["ls", "notes", "--long", "--json"],
        ])
    func shown(words: [String]) throws {
        let bench = try CommandBench()
        try bench.login()
        let object = #"{"t":"a\u202Eb\u009B2J\u001B[31m\u007F\u200B\u2066c"}"#
        #expect(try bench.run(["put", "notes", "k", "-"], input: object).code == 0)
        let terminal = try onTerminal(bench, words)
        #expect(terminal.contains("\\u{202e}") && terminal.contains("\\u{9b}"), "\(terminal)")
        for scalar in ["\u{202E}", "\u{9B}", "\u{7F}", "\u{200B}", "\u{2066}", "\u{1B}[31m"] {
            #expect(!terminal.contains(scalar), "\(words): \(terminal)")
        }
        let piped = try bench.good(words)
        for scalar in ["\u{202E}", "\u{9B}", "\u{7F}", "\u{200B}", "\u{2066}"] {
            #expect(piped.contains(scalar), "\(words): \(piped)")
        }
    }
}
