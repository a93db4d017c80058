import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// The report of `./dev test` about a run that crashed or was aborted.
@Suite("Tests that had begun and not ended", .blocking, .timeLimit(.minutes(15)))
struct UnendedTests {
    private static let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")

    private static func unended(_ lines: [String]) throws -> String {
        let folder = TemporaryFolder()
        let log = folder.path + "/log"
        let file = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        let text: [UInt8] = Array((lines.joined(separator: "\n") + "\n").utf8)
        let isWritten = write(file, text, text.count) == text.count
        close(file)
        try #require(isWritten)
        let outcome = try ChildProcess.run(["/usr/bin/python3", root + "/Tests/unended", log])
        #expect(outcome.code == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
        return outcome.output
    }

    private static let begun = [
        "◇ Test run started.", "◇ Suite \"Doors\" started.", "◇ Test \"opens\" started.", "◇ Test \"closes\" started.",
        "◇ Test rings() started.", "✔ Test \"opens\" passed after 0.1 seconds.",
        "✘ Test rings() failed after 0.2 seconds with 1 issue.",
    ]

    @Test("an aborted run: the report lists the tests that began and neither passed nor failed")
    func givenUp() throws {
        let said = try Self.unended(Self.begun)
        #expect(said.contains("begun and not ended (1;") && said.contains("  \"closes\"\n"), "\(said)")
        #expect(!said.contains("opens") && !said.contains("rings") && !said.contains("crashed"))
    }

    @Test("a crashed run: the report has the message of the crash, too")
    func crashed() throws {
        let said = try Self.unended(
            Self.begun + ["Doors.swift:7: Fatal error: the lock is gone", "Thread 3 crashed:"])
        #expect(said.contains("the run crashed:\n    Doors.swift:7: Fatal error: the lock is gone"), "\(said)")
        #expect(said.contains("  \"closes\"\n"))
    }

    @Test("a finished run: the report is empty")
    func ended() throws {
        #expect(
            try Self.unended(Self.begun + ["✔ Test run with 3 tests in 1 suite passed after 0.3 seconds."]).isEmpty)
    }
}
