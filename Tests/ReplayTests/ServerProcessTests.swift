import Glibc
import Testing
import ThicketProcesses
import ThicketServerProcess

@testable import ThicketReplay

/// Starts servers as the demo, the benchmarks and tests do; here with programs that are not servers.
@Suite("Starting a server", .timeLimit(.minutes(15)))
struct ServerProcessTests {
    /// The error of a server that ends before it listens.
    private static func failure(of script: String) throws -> String {
        let folder = TemporaryFolder()
        let program = folder.path + "/program"
        let file = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0o700)
        try #require(file >= 0)
        let text: [UInt8] = Array("#!/bin/sh\n\(script)\n".utf8)
        let isWritten = write(file, text, text.count) == text.count
        close(file)
        try #require(isWritten)
        let server = try ServerProcess(program: program)
        let first = Self.message { try server.start() }
        // A second start gives the same error.
        let second = Self.message { try server.start() }
        #expect(first == second)
        return first
    }

    private static func message(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "it started"
        } catch {
            return "\(error)"
        }
    }

    @Test("the error of a server that ends at once has its status and its output")
    func endsAtOnce() throws {
        let message = try Self.failure(of: "echo \"the disk is full\" >&2\nexit 3")
        #expect(message.contains("ended at once (status 768)") && message.contains("the disk is full"), "\(message)")
    }

    @Test("a server has its three descriptors, and none that its parent had open")
    func descriptors() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        // A descriptor without close-on-exec.
        let far: Int32 = fcntl(ends[1], F_DUPFD, 200)
        defer { for end in ends + [far] { close(end) } }
        try #require(far >= 200)
        let message = try Self.failure(of: "ls /proc/self/fd >&2\nexit 1")
        // The fourth is the one that `ls` reads.
        #expect(message.hasSuffix(": 0\n1\n2\n3\n"), "\(message)")
    }

    @Test("a missing program gives an error with its path")
    func missing() throws {
        let server = try ServerProcess(program: "/nonexistent/thicketd")
        #expect(Self.message { try server.start() }.contains("cannot start /nonexistent/thicketd"))
    }
}
