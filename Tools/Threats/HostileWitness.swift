import Glibc
import Synchronization
import ThicketProcesses
import ThicketProtocol

/// Well-behaved clients beside the attack: a WebSocket that writes, a connection of the data API, a polling session.
/// Each sends requests all the time and has to be answered.
final class HostileWitness: Sendable {
    /// The observations of these clients.
    struct Report: Sendable {
        var rounds = 0
        /// Milliseconds of the slowest answer.
        var slowest: Int64 = 0
        var fault: String?
    }

    private let report = Mutex<Report>(.init())
    private let isRunning = Atomic<Bool>(true)
    private let thread = Mutex<pthread_t>(pthread_t())
    private let port: UInt16
    private let token: String

    init(port: UInt16, token: String) { (self.port, self.token) = (port, token) }

    var current: Report { report.withLock { $0 } }

    /// Starts its own thread and waits for the first answers, whatever else runs in this process.
    func start() throws(ProcessError) {
        let result = thread.withLock { (thread: inout pthread_t) in
            pthread_create(
                &thread, nil,
                { (context: UnsafeMutableRawPointer?) in
                    if let context { Unmanaged<HostileWitness>.fromOpaque(context).takeRetainedValue().run() }
                    return nil
                }, Unmanaged.passRetained(self).toOpaque())
        }
        guard result == 0 else { throw ProcessError("no thread: \(result)") }
        let isSeen = Steady.waitFor { current.rounds > 0 || current.fault != nil ? true : nil }
        guard isSeen == true else { throw ProcessError("no client was answered before anything was sent") }
    }

    /// Ends after the present round.
    func stop() {
        isRunning.store(false, ordering: .relaxed)
        pthread_join(thread.withLock { $0 }, nil)
    }

    /// Runs until `stop`, or the first fault.
    private func run() {
        do throws(ProcessError) {
            let socket = try WireSocket(port: port, app: ThreatHouse.app)
            try socket.open("witness", app: ThreatHouse.app, token: token, clientID: "witness")
            let data = try Caller(port: port)
            let poll = try Caller(port: port)
            let opened = try poll.ask("POST", "/sock/1/notes/000/witness/xhr", body: "")
            guard opened.text == "o\n" else { throw ProcessError("the session did not open: \(opened.text)") }
            var round = 0
            while isRunning.load(ordering: .relaxed) {
                try time { () throws(ProcessError) in try write(socket, round) }
                try time { () throws(ProcessError) in try read(data, round) }
                try time { () throws(ProcessError) in try beat(poll, round) }
                round += 1
                report.withLock { $0.rounds = round }
                _ = Glibc.poll(nil, 0, 10)
            }
        } catch {
            report.withLock { $0.fault = "\(error)" }
        }
    }

    private func time(_ body: () throws(ProcessError) -> Void) throws(ProcessError) {
        let begun = Steady.milliseconds()
        try body()
        let passed = Steady.milliseconds() - begun
        report.withLock { $0.slowest = max($0.slowest, passed) }
    }

    /// Sends a change and waits for its acknowledgement.
    private func write(_ socket: WireSocket, _ round: Int) throws(ProcessError) {
        let (operation, source) = round == 0 ? ("+", "") : ("r", "\"sv\":\(round),")
        socket.send(
            #"0:c:{"id":"k","o":"M",\#(source)"ccid":"w\#(round)","v":{"n":{"o":"\#(operation)","v":\#(round)}}}"#)
        let version = try socket.next { (message: ServerMessage) -> Version? in
            guard case .channel(0, .changes(let events)) = message else { return nil }
            return switch events.first {
            case .applied(let change)?: change.ev
            default: -1
            }
        }
        guard version == round + 1 else { throw ProcessError("change \(round) made version \(version)") }
    }

    private func read(_ data: Caller, _ round: Int) throws(ProcessError) {
        let reply = try data.ask("GET", "/1/notes/witness/i/k", [("x-simperium-token", token)])
        guard reply.status == 200, reply.text == "{\"n\":\(round)}" else {
            throw ProcessError("the object was \(reply.status) \(reply.text) in round \(round)")
        }
    }

    private func beat(_ poll: Caller, _ round: Int) throws(ProcessError) {
        let taken = try poll.ask("POST", "/sock/1/notes/000/witness/xhr_send", body: "[\"h:\(round)\"]")
        guard taken.status == 204 else { throw ProcessError("a message was answered \(taken.status)") }
        let answer = try poll.ask("POST", "/sock/1/notes/000/witness/xhr", body: "")
        guard answer.text == "a[\"h:\(round + 1)\"]\n" else { throw ProcessError("a heartbeat was \(answer.text)") }
    }
}
