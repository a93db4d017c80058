import Glibc
import Testing
import ThicketProcesses
import ThicketServerProcess

@testable import ThicketReplay

/// Servers that are started for demo, benchmarks and tests; here programs that are none.
@Suite("Starting a server", .timeLimit(.minutes(15)))
struct ServerProcessTests {
    /// What a server says that ends before it listens.
    private static func failure(of script: String) throws -> String {
        let folder: TemporaryFolder = .init()
        let program: String = folder.path + "/program"
        let file: Int32 = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0o700)
        try #require(file >= 0)
        let text: [UInt8] = Array("#!/bin/sh\n\(script)\n".utf8)
        let isWritten: Bool = write(file, text, text.count) == text.count
        close(file)
        try #require(isWritten)
        let server: ServerProcess = try .init(program: program)
        let first: String = Self.message { try server.start() }
        // It can be tried again.
        let second: String = Self.message { try server.start() }
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

    @Test("a server that ends at once: the error has its status and what it said")
    func endsAtOnce() throws {
        let message: String = try Self.failure(of: "echo \"the disk is full\" >&2\nexit 3")
        #expect(message.contains("ended at once (status 768)") && message.contains("the disk is full"), "\(message)")
    }

    @Test("a server has its three descriptors, and none that its starter had open")
    func descriptors() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        // Not to be closed when a program is started.
        let far: Int32 = fcntl(ends[1], F_DUPFD, 200)
        defer { for end: Int32 in ends + [far] { close(end) } }
        try #require(far >= 200)
        let message: String = try Self.failure(of: "ls /proc/self/fd >&2\nexit 1")
        // The fourth is the list's own.
        #expect(message.hasSuffix(": 0\n1\n2\n3\n"), "\(message)")
    }

    @Test("a program that is not there is told")
    func missing() throws {
        let server: ServerProcess = try .init(program: "/nonexistent/thicketd")
        #expect(Self.message { try server.start() }.contains("cannot start /nonexistent/thicketd"))
    }
}
