import Testing
import ThicketBlocking
import ThicketProcesses

@testable import ThicketCLI

/// Files with secrets: those of a shell's `<(…)` are pipes.
@Suite("thicket: secrets from pipes", .blocking)
struct SecretFileTests {
    private func bash(_ bench: CommandBench, _ line: String, _ more: [String: String] = [:]) throws
        -> ChildProcess.Outcome
    {
        try ChildProcess.run(["/bin/bash", "-c", line], variables: bench.variables("home", more))
    }

    @Test("tokens, passwords and words come from a pipe as from a file; 'verify' accepts the table of 'words'")
    func pipes() throws {
        let bench = try CommandBench()
        let (program, server) = (Programs.thicket, "--server \(bench.address) --app notes")
        let token = try bash(
            bench, "\(program) login \(server) --token-file <(echo \"$SECRET\")", ["SECRET": bench.token])
        #expect(token.code == 0, "\(token)")

        let output = try Daemon.command(bench.path("data"), ["app", "key", "add", "notes"], succeeding: true).output
        let key = try #require(output.split(separator: "\n").first?.split(separator: " ").last)
        let made = try bash(
            bench,
            "\(program) signup --profile keys \(server) --api-key \(key) --user ann --password-file <(echo sesame)")
        #expect(made.code == 0, "\(made)")
        let verified = try bash(
            bench, "\(program) verify --profile keys --words-file <(\(program) words --profile keys 2>/dev/null)")
        #expect(verified.code == 0 && verified.output.contains("verified"), "\(verified)")
    }
}
