import Glibc
import Synchronization
import Testing
import ThicketBlocking
import ThicketClient
import ThicketProcesses
import ThicketTreesystem

@testable import ThicketCLI

/// `--timeout` bounds the whole wait, wherever the server stalls.
@Suite("thicket: --timeout", .blocking)
struct TimeoutCommandTests {
    /// Long enough that the program itself needs less on a busy machine.
    private static let seconds = 5
    /// A second wait takes longer than this.
    private static let mostMilliseconds = Int64(2 * seconds) * 1_000

    /// Runs the command, which must end with 5 in time.
    ///
    /// - Parameter said: what the message says did not happen.
    private func late(_ words: [String], at address: String, _ bench: CommandBench, said: String = "") throws {
        let begin = Steady.milliseconds()
        let outcome = try bench.run(
            words + ["--server", address, "--app", "notes", "--timeout", "\(Self.seconds)s"],
            variables: ["THICKET_TOKEN": bench.token])
        let taken = Steady.milliseconds() - begin
        #expect(outcome.code == 5, "\(words) \(outcome)")
        #expect(outcome.errors.contains("did not answer within \(Self.seconds) s"), "\(words) \(outcome)")
        #expect(said.isEmpty || outcome.errors.contains(said), "\(words) \(outcome)")
        #expect(taken < Self.mostMilliseconds, "\(words): \(taken) ms")
    }

    @Test(
        "a command ends in time with a server that accepts the connection and never answers",
        arguments: [["get", "n", "k"], ["put", "n", "k", "{}"], ["rm", "n", "k"], ["ls", "n"]])
    func silent(words: [String]) throws {
        let bench = try CommandBench()
        let silent = try SilentServer()
        try withExtendedLifetime(silent) { try late(words, at: silent.address, bench) }
    }

    @Test(
        "a command ends in time with a server that stalls after the upgrade, after auth, or within the index",
        arguments: ["\r\n\r\n", ":auth:", #""index""#])
    func stalls(mark: String) throws {
        let bench = try CommandBench()
        mkdir(bench.path("in"), 0o700)
        for number in 0..<250 { try bench.write("in/k\(number).md", "text \(number)\n") }
        try bench.login()
        try bench.good(["import", "n", bench.path("in")])
        for words in [["ls", "n"], ["get", "n", "k1.md"], ["put", "n", "k1.md", "{}"]] {
            let edge = try FakeEdge(.relay(to: UInt16(bench.server.port), until: mark))
            defer { edge.stop() }
            try late(words, at: edge.address, bench)
            #expect(edge.isStalled)
        }
    }

    @Test("a command ends in time with a server that confirms no edit or sends no old version, history or removals")
    func after() throws {
        let bench = try CommandBench()
        try bench.login()
        try bench.good(["put", "n", "k", #"{"n":1}"#])
        // The answer to the position is the last that passes.
        for (words, said) in [
            (["put", "n", "k", #"{"n":2}"#], "'put n/k' is not confirmed"),
            (["get", "n", "k", "--version", "1"], "cannot read version 1"),
            (["history", "n", "k"], "cannot read the history"), (["ls", "n", "--removed"], "cannot list the removed"),
        ] {
            let edge = try FakeEdge(.relay(to: UInt16(bench.server.port), until: "0:c:["))
            defer { edge.stop() }
            try late(words, at: edge.address, bench, said: said)
        }
    }

    @Test("the time a command has waited is taken from its next wait; without --timeout each wait has the whole time")
    func budget() async {
        let now = Mutex<Int64>(0)
        let whole = WaitBudget(.seconds(4), isWhole: true, clock: { now.withLock { $0 } })
        let free = WaitBudget(.seconds(30), isWhole: false, clock: { now.withLock { $0 } })
        for (took, left): (Int64, Int64) in [(1_500, 2_500), (2_000, 500), (900, 0), (1, 0)] {
            await whole.counting { _ in now.withLock { $0 += took } }
            await free.counting { _ in now.withLock { $0 += took } }
            // An editor's time is not a wait.
            now.withLock { $0 += 60_000 }
            #expect(whole.left == .milliseconds(left) && free.left == .seconds(30))
        }
    }

    // MARK: - A connection that breaks

    private static let lost = SyncStatus.offline(.unreachable("refused"))

    /// - Returns: what the followers of a bucket and of a tree report of these statuses.
    private func reported(_ statuses: [SyncStatus], _ wait: WaitBudget) async -> [ClientError.Code?] {
        func stream() -> AsyncStream<SyncStatus> {
            AsyncStream {
                for status in statuses { $0.yield(status) }
                $0.finish()
            }
        }
        var code: ClientError.Code?
        if case .failure(let error) = await StatusFollower(name: "n", wait: wait).follow(stream()) { code = error.code }
        let tree = await TreeFollower(wait).follow(stream())
        return [code, tree.flatMap { ClientError.Code(rawValue: $0.code.rawValue) }]
    }

    @Test("a server that never answered ends a wait at once; one that answered is waited for, in the next wait, too")
    func broken() async {
        let (never, after) = (WaitBudget(.seconds(30), isWhole: false), WaitBudget(.seconds(30), isWhole: false))
        #expect(await reported([.connecting, Self.lost], never) == [.network, .network])
        // The end of the stream is reported by the one; neither reports the lost connection.
        #expect(await reported([.connecting, .upToDate, Self.lost], after) == [.closed, nil])
        #expect(await reported([Self.lost], after) == [.closed, nil])
        #expect(await reported([Self.lost], never) == [.network, .network])
    }
}
