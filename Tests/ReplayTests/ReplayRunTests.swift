import Synchronization
import Testing
import ThicketClient
import ThicketProtocol
import ThicketServerProcess
import ThicketTestSupport

@testable import ThicketReplay

/// Real clients, a real `thicketd` in a process of its own, real files.
@Suite("Recorded typing through real clients and a real server", .serialized)
struct ReplayRunTests {
    static func replay(_ trace: Trace, observer: (any Replay.Observer)? = nil, server: ServerProcess) async throws
        -> Replay.Report
    {
        try server.admin(["app", "create", "replay"])
        let printed: String = try server.admin(["token", "create", "--app", "replay", "--user", "a@example.com"])
        let token: Substring = try #require(printed.split(whereSeparator: { " \n".contains($0) }).last)
        try server.start()
        var options: Replay.Options = Replay.Options(
            server: server.address, app: "replay", token: String(token), key: "page")
        // Tests that block hold the few threads that tasks share; a client may wait for one of them.
        options.patience = .seconds(600)
        let folder: String = server.folder
        options.store = { $0 < 0 ? .memory : .file("\(folder)/client\($0).db") }
        let report: Replay.Report = try await Replay(trace, options: options, observer: observer).run()
        #expect(try server.admin(["check"]).hasPrefix("clean"))
        #expect(server.terminate() == 0, "SIGTERM ends the server with exit code 0")
        return report
    }

    static func made(edits: Int, authors: Int = 2) -> Trace {
        var generator: TraceGenerator = TraceGenerator(
            seed: 42, texts: ["One paragraph of words.\n\nAnother, with 🌲 and é.\n\nA third that is longer than both."],
            authors: authors)
        return generator.make(editsMin: edits)
    }

    @Test("a made session of two ends in its recorded text on both clients and on a fresh one")
    func generated() async throws {
        let report: Replay.Report = try await Self.replay(Self.made(edits: 1_500), server: ServerProcess())
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits >= 1_500)
        #expect(report.bytesSent > 0)
    }

    @Test("a made session of three ends in its recorded text on all clients, the server killed on the way")
    func three() async throws {
        let killer = Killer(try ServerProcess(), at: [500])
        let report = try await Self.replay(Self.made(edits: 900, authors: 3), observer: killer, server: killer.server)
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits >= 900 && killer.kills == 1)
    }

    @Test("a command of the server that fails is told with what it said")
    func refused() throws {
        let server: ServerProcess = try ServerProcess()
        let failure: ServerProcessError? = #expect(throws: ServerProcessError.self) {
            try server.admin(["token", "create"])
        }
        #expect(failure?.description.contains("--app") == true, "\(failure?.description ?? "no error")")
    }

    @Test("a server killed twice on the way loses nothing")
    func killed() async throws {
        let killer: Killer = Killer(try ServerProcess(), at: [400, 900])
        let report: Replay.Report = try await Self.replay(
            Self.made(edits: 1_500), observer: killer, server: killer.server)
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(killer.kills == 2)
    }

    @Test("an object that is there already is not replayed into, whatever it counts")
    func existing() async throws {
        let server: ServerProcess = try ServerProcess()
        try server.admin(["app", "create", "replay"])
        let printed: String = try server.admin(["token", "create", "--app", "replay", "--user", "a@example.com"])
        let token: Substring = try #require(printed.split(whereSeparator: { " \n".contains($0) }).last)
        try server.start()
        let session: Session = try await Thicket.connect(server: server.address, app: "replay", token: String(token))
        let bucket: Bucket = try await session.bucket("replay")
        try await bucket.set("page", to: ["text": "", "typed0": 1_000_000, "typed1": 1_000_000])
        try await bucket.waitUntilSynced(timeout: .seconds(300))
        await session.close()
        let options: Replay.Options = Replay.Options(
            server: server.address, app: "replay", token: String(token), key: "page")
        await #expect(throws: ReplayError.self) { _ = try await Replay(Self.made(edits: 50), options: options).run() }
        #expect(server.terminate() == 0)
    }

    @Test("the first difference is named with its client and place")
    func difference() async throws {
        var trace: Trace = Self.made(edits: 200)
        let place: Int = trace.endContent.unicodeScalars.count - 5
        let scalars: [Unicode.Scalar] = Array(trace.endContent.unicodeScalars)
        trace.endContent = ""
        trace.endContent.unicodeScalars.append(contentsOf: scalars[..<place] + ["\u{2603}"] + scalars[(place + 1)...])
        let report: Replay.Report = try await Self.replay(trace, server: ServerProcess())
        #expect(report.difference?.client == "client 0")
        #expect(report.difference?.position == place)
    }

    @Test("two friends at once: friendsforever", .enabled(if: Vectors.has("editing-traces")))
    func friends() async throws {
        let trace: Trace = try Trace(path: Vectors.path("editing-traces/friendsforever.json.gz"))
        let report: Replay.Report = try await Self.replay(trace, server: ServerProcess())
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits == 26_078)
    }

    @Test(
        "one document by two clients in turn: sveltecomponent and the start of automerge-paper",
        .enabled(if: Vectors.has("editing-traces")), arguments: ["sveltecomponent", "automerge-paper"])
    func sequential(name: String) async throws {
        let trace: Trace = try Trace(path: Vectors.path("editing-traces/\(name).json.gz")).prefix(20_000)
        let report: Replay.Report = try await Self.replay(trace, server: ServerProcess())
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits >= 18_000)
    }
}

/// Kills the server at given counts of typed edits, and starts it again.
/// `@unchecked`: the process is touched by the replay's tasks one at a time, under `state`'s lock.
final class Killer: Replay.Observer, @unchecked Sendable {
    let server: ServerProcess
    private let state: Mutex<(typed: [Int: Int], at: [Int], kills: Int)>

    init(_ server: ServerProcess, at: [Int]) {
        self.server = server
        state = Mutex(([:], at, 0))
    }

    var kills: Int { state.withLock { $0.kills } }

    func opened(_ sessions: [Session]) async {}
    func blocked(client: Int) async {}
    func ending() async {}

    func typed(client: Int, count: Int, inserted: String) async {
        state.withLock { state in
            state.typed[client] = count
            guard let next: Int = state.at.first, state.typed.values.reduce(0, +) >= next else { return }
            state.at.removeFirst()
            state.kills += 1
            server.kill()
            do {
                try server.start()
            } catch {
                Issue.record("the server does not come back: \(error)")
            }
        }
    }
}
