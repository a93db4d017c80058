import Testing
import ThicketBlocking
import ThicketProcesses

/// An answer that is not the server's is reported as it came.
@Suite("thicket: a proxy answers the upgrade", .blocking)
struct ProxyAnswerTests {
    private func answer(_ status: Int, _ fields: [String] = []) -> FakeEdge.Manner {
        let lines = ["HTTP/1.1 \(status) X", "Content-Length: 5", "Connection: close"] + fields
        return .answer(lines.joined(separator: "\r\n") + "\r\n\r\nwords")
    }

    private func run(_ words: [String], _ edge: FakeEdge, _ bench: CommandBench) throws -> ChildProcess.Outcome {
        try bench.run(
            words + ["--server", edge.address, "--app", "notes"], variables: ["THICKET_TOKEN": bench.token])
    }

    @Test(
        "the status that came is explained, the exit code is 5, and no login is asked for",
        arguments: [
            (502, "does not reach it"), (503, "does not accept connections now"), (504, "does not reach it"),
            (429, "too many requests"), (403, "the login was not checked"), (401, "the login was not checked"),
            (407, "user name and password"), (200, "removes the header 'Upgrade'"),
            (404, "removes the header 'Upgrade'"), (302, "names another address"), (500, "failed"),
        ])
    func status(status: Int, words: String) throws {
        let bench = try CommandBench()
        for command in [["ls", "n"], ["put", "n", "k", "{}"]] {
            let edge = try FakeEdge(answer(status))
            defer { edge.stop() }
            let outcome = try run(command, edge, bench)
            #expect(outcome.code == 5 && outcome.output.isEmpty, "\(outcome)")
            #expect(outcome.errors.contains("HTTP \(status) in place of a WebSocket: "), "\(outcome)")
            #expect(outcome.errors.contains(words), "\(outcome)")
            // The port of the address may contain the same digits.
            let reason = outcome.errors.replacing(edge.address, with: "")
            #expect(!reason.contains("refusedUpgrade") && !reason.contains("400"), "\(outcome)")
            #expect(!outcome.errors.contains("thicket login"), "\(outcome)")
            #expect(edge.connections == 1, "an answer like this is not retried")
        }
    }

    @Test("retry-after is reported in seconds, and a redirect with its address")
    func details() throws {
        let bench = try CommandBench()
        for (status, field, words) in [
            (503, "Retry-After: 17", "try again in 17 s"), (429, "retry-after: 2", "try again in 2 s"),
            (302, "Location: https://elsewhere.example/x", "https://elsewhere.example/x"),
        ] {
            let edge = try FakeEdge(answer(status, [field]))
            defer { edge.stop() }
            let outcome = try run(["get", "n", "k"], edge, bench)
            #expect(outcome.code == 5 && outcome.errors.contains(words), "\(outcome)")
        }
    }

    @Test("a login through it keeps nothing; the address of a redirect does not drive the terminal")
    func others() throws {
        let bench = try CommandBench()
        try bench.login()
        let edge = try FakeEdge(answer(502))
        defer { edge.stop() }
        let login = try bench.run(
            ["login", "--server", edge.address, "--app", "notes"], home: "new",
            variables: ["THICKET_TOKEN": bench.token])
        #expect(login.code == 5 && login.errors.contains("HTTP 502"), "\(login)")
        #expect(!bench.exists("new/profiles/default/profile.json"))
        // A redirect's address is foreign text.
        let moved = try FakeEdge(answer(302, ["Location: http://x/\u{1B}[31m"]))
        defer { moved.stop() }
        #expect(try !run(["ls", "n"], moved, bench).errors.contains("\u{1B}"))
    }
}
