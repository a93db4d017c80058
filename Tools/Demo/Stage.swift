import Glibc
import Synchronization
import ThicketClient
import ThicketReplay
import ThicketSealed
import ThicketServerProcess

/// Observes the clients, disturbs them by plan, and draws the progress.
///
/// The server is killed when a third and when two thirds of the edits are typed. Each client is disconnected once, at
/// the longest stretch that the recording lets it type alone, and reconnected after it.
actor Stage: Replay.Observer {
    private let server: ServerBox
    private let bucket: String
    private let keys: SealedBucketKeys?
    private let total: Int
    /// Where each client is disconnected, as an index of its own edits; nil when that is done.
    private var cutOffAt: [Int?]
    private var killAt: [Int]
    private let paceSeconds: Double
    private let begin = ContinuousClock.Instant.now
    private var sessions = [Session]()
    private var typed: [Int]
    private var lastWords: [String]
    private var isOffline: [Bool]
    private var offlineSince: [Int]
    private var isServerUp = true
    /// Runs while one client is blocked and another is disconnected.
    private var patience: Task<Void, Never>?
    private var drawnLines = 0
    private var lastDrawn = ContinuousClock.Instant.now
    private let isTerminal = isatty(1) == 1

    /// - Parameters:
    ///   - keys: of a sealed bucket.
    ///   - paceSeconds: shortest duration of the typing; 0 types as fast as possible.
    init(server: ServerBox, bucket: String, keys: SealedBucketKeys?, trace: Trace, paceSeconds: Double) throws {
        self.server = server
        self.keys = keys
        self.bucket = bucket
        self.paceSeconds = paceSeconds
        total = trace.transactions.count
        killAt = [total / 3, total * 2 / 3]
        let clients = trace.agentCount
        (typed, offlineSince) = ([Int](repeating: 0, count: clients), [Int](repeating: 0, count: clients))
        lastWords = [String](repeating: "", count: clients)
        isOffline = [Bool](repeating: false, count: clients)
        let carrier = try TraceCarrier(trace)
        cutOffAt = (0..<clients).map { client in
            // One client after the other, not at the very ends, where only little is merged.
            let count = carrier.byAgent[client].count
            let bounds = [client, client + 1].map { count * (clients + 8 * $0) / (10 * clients) }
            return carrier.stretchesAlone(of: client).first { (bounds[0]..<bounds[1]).contains($0.start) }?.start
        }
    }

    func opened(_ sessions: [Session]) { self.sessions = sessions }

    func typed(client: Int, count: Int, inserted: String) async {
        typed[client] = count
        lastWords[client] = String((lastWords[client] + inserted.replacing("\n", with: " ")).suffix(34))
        // The next kill waits until the server is up again: the clients type on meanwhile.
        if let next = killAt.first, typedByAll >= next, isServerUp { await killServer() }
        if let place = cutOffAt[client], count > place {
            cutOffAt[client] = nil
            // Typed edits are sent first, otherwise the other client would wait for them and not for a merge.
            try? await sent(by: client)
            isOffline[client] = true
            offlineSince[client] = count
            await sessions[client].goOffline()
            report("client \(client) is cut off, and types on")
        }
        draw(isForced: false)
        await keepPace()
    }

    private var typedByAll: Int { typed.reduce(0, +) }

    private func sent(by client: Int) async throws {
        let session = sessions[client]
        let bucket =
            if let keys { try await session.bucket(bucket, sealedBy: keys) } else { try await session.bucket(bucket) }
        try await bucket.waitUntilSynced(timeout: .seconds(10))
    }

    /// A client that is blocked for long needs another's edits: no client may be offline then.
    func blocked(client: Int) {
        guard isOffline.contains(true) else { return }
        let before = typed[client]
        patience?.cancel()
        patience = Task {
            try? await Task.sleep(for: .milliseconds(500))
            guard !Task.isCancelled, typed[client] == before else { return }
            for other in typed.indices { await comeBack(other) }
        }
    }

    func ending() async {
        for client in typed.indices { await comeBack(client) }
        while !killAt.isEmpty { await killServer() }
        draw(isForced: true)
    }

    func finish() {
        draw(isForced: true)
        drawnLines = 0
    }

    private func killServer() async {
        killAt.removeFirst()
        isServerUp = false
        report("the server is killed (SIGKILL)")
        server.kill()
        draw(isForced: true)
        // Long enough for every client to notice and continue without the server.
        try? await Task.sleep(for: .milliseconds(900))
        do {
            try server.start()
        } catch {
            fail("the server does not come back: \(error)")
        }
        isServerUp = true
        report("the server is back")
    }

    private func comeBack(_ client: Int) async {
        guard isOffline[client] else { return }
        isOffline[client] = false
        report("client \(client) is back, with \(typed[client] - offlineSince[client]) edits made alone")
        await sessions[client].goOnline()
    }

    /// Delays typing to `paceSeconds`, so that a viewer can follow.
    private func keepPace() async {
        let due = paceSeconds * Double(typedByAll) / Double(max(total, 1))
        let early = due - begin.duration(to: .now) / .seconds(1)
        if early > 0.005 { try? await Task.sleep(for: .seconds(early)) }
    }

    // MARK: Drawing

    private func report(_ text: String) {
        erase()
        say("  \(typedByAll * 100 / max(total, 1)) %  \(text)")
        draw(isForced: true)
    }

    private func erase() {
        if drawnLines > 0 { write("\u{1B}[\(drawnLines)A\u{1B}[J") }
        drawnLines = 0
    }

    private func draw(isForced: Bool) {
        guard isTerminal, isForced || lastDrawn.duration(to: .now) > .milliseconds(60) else { return }
        lastDrawn = .now
        erase()
        for client in typed.indices { write(line(client)) }
        write("  server    \(isServerUp ? "up" : "\u{1B}[31mkilled\u{1B}[0m")\n")
        drawnLines = typed.count + 1
    }

    /// One client: its progress, its connection, and the last words that it typed.
    private func line(_ client: Int) -> String {
        let state = isOffline[client] ? "cut off" : isServerUp ? "online " : "alone  "
        let colour = isOffline[client] || !isServerUp ? "33" : "32"
        let filled = min(20, typed[client] * 20 * typed.count / max(total, 1))
        let bar = String(repeating: "█", count: filled) + String(repeating: "·", count: 20 - filled)
        return "  client \(client)  \(bar) \u{1B}[\(colour)m\(state)\u{1B}[0m \(lastWords[client])▏\n"
    }

    private func write(_ text: String) {
        let bytes: [UInt8] = Array(text.utf8)
        _ = Glibc.write(1, bytes, bytes.count)
    }
}

/// The server, shared by the main task and the stage.
/// `@unchecked`: a lock guards the process, which the stage kills and starts while the main task only waits.
final class ServerBox: @unchecked Sendable {
    private let server: ServerProcess
    private let lock: Mutex<Void> = Mutex(())
    let folder: String
    let address: String

    init(_ server: ServerProcess) {
        self.server = server
        folder = server.folder
        address = server.address
    }

    func kill() { lock.withLock { _ in server.kill() } }
    func start() throws { try lock.withLock { _ in try server.start() } }
    func admin(_ arguments: [String]) throws -> String { try lock.withLock { _ in try server.admin(arguments) } }
}
