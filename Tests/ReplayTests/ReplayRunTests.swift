import Synchronization
import Testing
import ThicketClient
import ThicketProtocol
import ThicketServerProcess
import ThicketTestSupport

@testable import ThicketReplay

/// Real clients, a real `thicketd` in its own process, real files.
@Suite("Recorded typing through real clients and a real server", .serialized)
struct ReplayRunTests {
    static func replay(_ trace: Trace, observer: (any Replay.Observer)? = nil, server: ServerProcess) async throws
        -> Replay.Report
    {
        try server.admin(["app", "create", "replay"])
        let printed = try server.admin(["token", "create", "--app", "replay", "--user", "a@example.com"])
        let token: Substring = try #require(printed.split(whereSeparator: { " \n".contains($0) }).last)
        try server.start()
        var options = Replay.Options(
            server: server.address, app: "replay", token: String(token), key: "page")
        // Blocking tests hold the few threads that tasks share; a client may wait for one of them.
        options.patience = .seconds(600)
        let folder = server.folder
        options.store = { $0 < 0 ? .memory : .file("\(folder)/client\($0).db") }
        let report = try await Replay(trace, options: options, observer: observer).run()
        #expect(try server.admin(["check"]).hasPrefix("clean"))
        #expect(server.terminate() == 0, "SIGTERM ends the server with exit code 0")
        return report
    }

    static func made(edits: Int, authors: Int = 2) -> Trace {
        var generator = TraceGenerator(
            seed: 42, texts: ["One paragraph of words.\n\nAnother, with 🌲 and é.\n\nA third that is longer than both."],
            authors: authors)
        return generator.make(editsMin: edits)
    }

    @Test("a generated session of two ends in its recorded text on all clients")
    func generated() async throws {
        let report = try await Self.replay(Self.made(edits: 1_500), server: ServerProcess())
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits >= 1_500)
        #expect(report.bytesSent > 0)
    }

    @Test("a generated session of three ends in its recorded text on all clients, with the server killed once")
    func three() async throws {
        let killer = Killer(try ServerProcess(), at: [500])
        let report = try await Self.replay(Self.made(edits: 900, authors: 3), observer: killer, server: killer.server)
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits >= 900 && killer.kills == 1)
    }

    @Test("a server command that fails throws an error with the command's message")
    func refused() throws {
        let server = try ServerProcess()
        let failure = #expect(throws: ServerProcessError.self) {
            try server.admin(["token", "create"])
        }
        #expect(failure?.description.contains("--app") == true, "\(failure?.description ?? "no error")")
    }

    @Test("a session loses nothing when the server is killed twice")
    func killed() async throws {
        let killer = Killer(try ServerProcess(), at: [400, 900])
        let report = try await Self.replay(
            Self.made(edits: 1_500), observer: killer, server: killer.server)
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(killer.kills == 2)
    }

    @Test("a replay refuses an object that already exists, whatever counts it holds")
    func existing() async throws {
        let server = try ServerProcess()
        try server.admin(["app", "create", "replay"])
        let printed = try server.admin(["token", "create", "--app", "replay", "--user", "a@example.com"])
        let token: Substring = try #require(printed.split(whereSeparator: { " \n".contains($0) }).last)
        try server.start()
        let session = try await Thicket.connect(server: server.address, app: "replay", token: String(token))
        let bucket = try await session.bucket("replay")
        try await bucket.set("page", to: ["text": "", "typed0": 1_000_000, "typed1": 1_000_000])
        try await bucket.waitUntilSynced(timeout: .seconds(300))
        await session.close()
        let options = Replay.Options(
            server: server.address, app: "replay", token: String(token), key: "page")
        await #expect(throws: ReplayError.self) { _ = try await Replay(Self.made(edits: 50), options: options).run() }
        #expect(server.terminate() == 0)
    }

    @Test("a report names the first difference with its client and position")
    func difference() async throws {
        var trace = Self.made(edits: 200)
        let place = trace.endContent.unicodeScalars.count - 5
        let scalars = Array(trace.endContent.unicodeScalars)
        trace.endContent = ""
        trace.endContent.unicodeScalars.append(contentsOf: scalars[..<place] + ["\u{2603}"] + scalars[(place + 1)...])
        let report = try await Self.replay(trace, server: ServerProcess())
        #expect(report.difference?.client == "client 0")
        #expect(report.difference?.position == place)
    }

    @Test(
        "the beginning of two friends' concurrent session ends in its recorded text through real clients",
        .enabled(if: Vectors.has("editing-traces")))
    func friends() async throws {
        // The whole session, 26,078 edits, is a part of `./dev bench traces`.
        let trace = try Trace(path: Vectors.path("editing-traces/friendsforever.json.gz")).prefix(5_000)
        let report = try await Self.replay(trace, server: ServerProcess())
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits >= 4_500)
    }

    @Test(
        "a document by two clients in turn ends in its recorded text: sveltecomponent, start of automerge-paper",
        .enabled(if: Vectors.has("editing-traces")), arguments: ["sveltecomponent", "automerge-paper"])
    func sequential(name: String) async throws {
        let trace = try Trace(path: Vectors.path("editing-traces/\(name).json.gz")).prefix(2_500)
        let report = try await Self.replay(trace, server: ServerProcess())
        #expect(report.difference == nil, "\(String(describing: report.difference))")
        #expect(report.edits >= 2_200)
    }
}

/// Kills the server at given counts of typed edits, and starts it again.
/// `@unchecked`: the replay's tasks use the process one at a time, under `state`'s lock.
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
            guard let next = state.at.first, state.typed.values.reduce(0, +) >= next else { return }
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
