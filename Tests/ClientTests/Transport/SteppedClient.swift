import Glibc
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketClient

/// The real transport and the real machine on a clock that the test steps: a tick of the relay is a time in which
/// heartbeats are due.
final class SteppedClient {
    /// Milliseconds of the machine's clock that one tick of the link takes.
    ///
    /// What the kernels on the path buffer (32 KiB) must be sent within the patience for an answer to a heartbeat.
    private static let tick: Int64 = 1_000
    private static let turnsMax = 20_000

    var machine: SyncMachine
    private(set) var statuses = [SyncStatus]()
    private(set) var hangUps = 0
    private(set) var clock: Int64 = 0
    private let transport: CurlWebSocketTransport
    private let relay: SlowRelay
    private var pipeEnds: [Int32] = [-1, -1]

    /// - Parameter certificates: file of the authority to trust; with it the relay's far end speaks TLS.
    init(_ relay: SlowRelay, seed: UInt64, certificates: String? = nil) throws {
        self.relay = relay
        machine = try SyncMachine(
            options: SyncOptions(app: AppID("app"), token: "ann-token"), store: MemoryLocalStore(),
            random: SeededRandom(seed: seed))
        var options = TransportOptions()
        options.certificateFile = certificates
        let scheme: String = certificates == nil ? "http" : "https"
        transport = CurlWebSocketTransport(
            endpoint: try Endpoint("\(scheme)://127.0.0.1:\(relay.port)"), target: "/sock/1/app/websocket",
            options: options)
        guard pipe(&pipeEnds) == 0 else { throw TransportFailure("no pipe") }
    }

    deinit { for end in pipeEnds { Glibc.close(end) } }

    func open(_ bucket: BucketName) throws { perform(try machine.open(bucket, now: clock)) }

    func set(_ bucket: BucketName, _ key: String, _ text: String) throws {
        perform(try machine.set(bucket, EntityKey(key), to: ["t": .string(text)], now: clock))
    }

    func close() { transport.close() }

    /// Continues until `isDone`, and allows these bytes at each tick of the link.
    func play(up: Int, down: Int, until isDone: (SyncMachine) -> Bool) throws {
        for _ in 0..<Self.turnsMax {
            try turn()
            if isDone(machine) { return }
            // The link's next tick comes when the last one is used up: then time has passed for the machine as well.
            if relay.isUsedUp {
                clock += Self.tick
                relay.allow(up: up, down: down)
            }
            transport.wait(wake: pipeEnds[0], milliseconds: 5)
        }
        throw TransportFailure("it never came to an end; last: \(String(describing: statuses.last))")
    }

    /// Continues without a step of the clock until all that may pass upwards has passed.
    func playUntilUsed() throws {
        for _ in 0..<Self.turnsMax {
            try turn()
            if relay.isUsedUp { return }
            transport.wait(wake: pipeEnds[0], milliseconds: 5)
        }
        throw TransportFailure("nobody used what the relay lets pass upwards")
    }

    private func turn() throws {
        for event in transport.events(limit: 256) {
            switch event {
            case .opened: perform(machine.opened(now: clock))
            case .moved: perform(machine.moved(now: clock))
            case .text(let text): perform(machine.received([text], now: clock))
            case .closed(let closure): throw TransportFailure("the connection ended: \(closure.detail)")
            }
        }
        if let due = machine.deadline, due <= clock { perform(machine.tick(now: clock)) }
    }

    private func perform(_ actions: [SyncAction]) {
        for action in actions {
            switch action {
            case .connect: transport.connect()
            case .disconnect:
                hangUps += 1
                transport.close()
            case .send(let text): transport.send(text)
            case .status(let status): statuses.append(status)
            case .tokenEnded, .tokenGood: break
            case .event, .fetched, .removals: break
            }
        }
    }
}
