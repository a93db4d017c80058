import Glibc
import Synchronization
import ThicketClient
import ThicketReplay

/// Watches the two typists, disturbs them by plan, and draws what happens.
///
/// The plan, by share of all edits typed: at 15 % the first is cut off, at 33 % the server is killed, at 50 % the second
/// is cut off, at 66 % the server is killed again. A client that is cut off stays so until it needs the other's words.
actor Stage: Replay.Observer {
    private enum Act {
        case cutOff(Int)
        case killServer
    }

    private let server: ServerBox
    private let total: Int
    private var plan: [(share: Int, act: Act)] = [
        (15, .cutOff(0)), (33, .killServer), (50, .cutOff(1)), (66, .killServer),
    ]
    private var sessions: [Session] = []
    private var typed: [Int] = [0, 0]
    private var offline: [Bool] = [false, false]
    private var offlineSince: [Int] = [0, 0]
    private var isServerUp: Bool = true
    private var drawn: Bool = false
    private var lastDrawn: ContinuousClock.Instant = .now
    private let isTerminal: Bool = isatty(1) == 1

    init(server: ServerBox, total: Int) {
        self.server = server
        self.total = total
    }

    func opened(_ sessions: [Session]) { self.sessions = sessions }

    func typed(client: Int, typed count: Int) async {
        typed[client] = count
        let share: Int = (typed[0] + typed[1]) * 100 / max(total, 1)
        if let next: (share: Int, act: Act) = plan.first, share >= next.share {
            plan.removeFirst()
            await perform(next.act)
        }
        if offline[client], count - offlineSince[client] > total / 12 { await comeBack(client) }
        draw(isForced: false)
    }

    func blocked(client: Int) async {
        // Whoever waits needs what the other has typed: nobody can be offline then.
        for other: Int in 0..<2 where offline[other] { await comeBack(other) }
    }

    func ending() async {
        for client: Int in 0..<2 where offline[client] { await comeBack(client) }
        draw(isForced: true)
    }

    func finish() {
        draw(isForced: true)
        drawn = false
    }

    private func perform(_ act: Act) async {
        switch act {
        case .cutOff(let client):
            offline[client] = true
            offlineSince[client] = typed[client]
            tell("client \(client) is cut off and types on")
            await sessions[client].goOffline()
        case .killServer:
            isServerUp = false
            tell("the server is killed (SIGKILL)")
            server.kill()
            draw(isForced: true)
            // Long enough that both notice and type on without it.
            try? await Task.sleep(for: .milliseconds(700))
            do {
                try server.start()
            } catch {
                fail("the server does not come back: \(error)")
            }
            isServerUp = true
            tell("the server is back")
        }
    }

    private func comeBack(_ client: Int) async {
        guard offline[client] else { return }
        offline[client] = false
        tell("client \(client) is back, with \(typed[client] - offlineSince[client]) edits made alone")
        await sessions[client].goOnline()
    }

    // MARK: Drawing

    private func tell(_ text: String) {
        erase()
        say("  \((typed[0] + typed[1]) * 100 / max(total, 1)) %  \(text)")
    }

    private func erase() {
        if drawn { write("\u{1B}[3A\u{1B}[J") }
        drawn = false
    }

    private func draw(isForced: Bool) {
        guard isTerminal, isForced || lastDrawn.duration(to: .now) > .milliseconds(60) else { return }
        lastDrawn = .now
        erase()
        write(bar("client 0", typed[0], offline[0] ? "cut off" : isServerUp ? "online" : "alone"))
        write(bar("client 1", typed[1], offline[1] ? "cut off" : isServerUp ? "online" : "alone"))
        write("  server    \(isServerUp ? "up" : "\u{1B}[31mkilled\u{1B}[0m")\n")
        drawn = true
    }

    private func bar(_ name: String, _ count: Int, _ state: String) -> String {
        let filled: Int = min(40, count * 80 / max(total, 1))
        let colour: String = state == "online" ? "32" : "33"
        return "  \(name)  [" + String(repeating: "█", count: filled) + String(repeating: "·", count: 40 - filled)
            + "] \(count) edits  \u{1B}[\(colour)m\(state)\u{1B}[0m\n"
    }

    private func write(_ text: String) {
        let bytes: [UInt8] = Array(text.utf8)
        _ = Glibc.write(1, bytes, bytes.count)
    }
}

/// The server as the main task and the stage share it.
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
