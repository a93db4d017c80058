import Glibc
import ThicketProtocol

/// The attacks of a hostile tenant on a shared server. All connections carry one user's token, or none.
enum HostileAttack: String, CaseIterable {
    /// Not an attack: a process that keeps a core busy, as every attacker does, without using the server. Its effect on
    /// the tenants is the machine's, and the floor of all attacks.
    case control = "only a busy core"
    case neverReads = "never reads"
    case changes = "floods changes"
    case inits = "floods init"
    case pings = "floods pings"
    case index = "walks indexes"
    case versions = "asks old versions"
    case sockets = "opens sockets"
    case heads = "giant HTTP heads"
    case frames = "giant frames"
    case malformed = "malformed frames"
    case channels = "subscribes to all"
    case lateEdits = "very late edits"
    case costlyDiffs = "costly diffs"

    /// The samples of `/metrics` each of which must have moved: of the limits at which the attack aims. Others move,
    /// too; the server's shares of time (`loop_share`, `shard_share`) depend on the load of the machine.
    var metrics: [String] {
        func limit(_ name: String) -> String { Self.limitMetric + "{limit=\"\(name)\"}" }
        return switch self {
        case .control: []
        case .neverReads: [limit("user_reads")]
        case .changes: [limit("user_changes"), limit("turn")]
        case .inits: [limit("channels"), limit("turn")]
        case .pings: [limit("turn")]
        case .index, .versions: [limit("user_reads")]
        case .sockets: [limit("connections")]
        case .heads: [limit("connections"), limit("gathered_bytes")]
        case .frames: [limit("frame_bytes"), limit("gathered_bytes")]
        case .malformed: ["thicket_websocket_errors_total{code=\"1002\"}"]
        case .channels: [limit("channels"), limit("user_channels")]
        case .lateEdits: [limit("costly_changes")]
        case .costlyDiffs: [limit("costly_changes")]
        }
    }

    static let limitMetric = "thicket_limit_hits_total"

    /// Prepares the attack before the quiet window.
    func prepare(port: UInt16, token: String) throws {
        switch self {
        case .neverReads, .index: try Self.fill(port, token, objects: 1_000, bytes: 4_000)
        case .versions: try Self.type(port, token, versions: 400, bytes: 20_000)
        case .lateEdits: try Self.type(port, token, versions: 1_500, bytes: Self.lateBytes)
        default: break
        }
    }

    /// Attacks until the time is over.
    func run(port: UInt16, token: String, until end: UInt64) {
        switch self {
        case .control: while nanoseconds() < end {}
        case .neverReads: neverRead(port, token, end)
        case .changes: floodChanges(port, token, end)
        case .inits: floodInits(port, token, end)
        case .pings: floodPings(port, token, end)
        case .index: ask(port, token, end) { _ in "0:i:1:::1000" }
        case .versions: ask(port, token, end) { "0:e:text.\(2 + $0 % 300)" }
        case .sockets: openSockets(port, end, head: "GET /sock/1/bench/websocket HTTP/1.1\r\n", count: 9_000)
        case .heads:
            let field: String = "x-field: " + String(repeating: "y", count: 4_000) + "\r\n"
            openSockets(
                port, end, head: "GET / HTTP/1.1\r\n" + String(repeating: field, count: 3), count: 8_000)
        case .frames: sendGiants(port, token, end)
        case .malformed: sendGarbage(port, end)
        case .channels: subscribe(port, token, end)
        case .lateEdits: editLate(port, token, end)
        case .costlyDiffs: editCostly(port, token, end)
        }
    }

    /// Length of the text whose old version is edited.
    static let lateBytes = 100_000

    // MARK: Floods

    static func hello(
        _ token: String, _ name: String, channel: Int = 0, bucket: String = "m", command: String = "i::::1"
    )
        -> String
    {
        "\(channel):init:{\"clientid\":\"\(name)\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"bench\","
            + "\"name\":\"\(bucket)\",\"library\":\"bench\",\"version\":\"1\",\"cmd\":\"\(command)\"}"
    }

    private func neverRead(_ port: UInt16, _ token: String, _ end: UInt64) {
        var swarm = HostileSwarm(port: port, count: 64)
        (swarm.reads, swarm.receiveBytes) = (false, 4_096)
        swarm.run(until: end, opened: { $0.send(Self.hello(token, "deaf-\($0.number)")) }) { socket in
            if socket.sent < 400 { socket.send("0:i:1:::1000") }
        }
    }

    private func floodChanges(_ port: UInt16, _ token: String, _ end: UInt64) {
        let text = String(repeating: "x", count: 100)
        HostileSwarm(port: port, count: 8).run(
            until: end, opened: { $0.send(Self.hello(token, "flood-\($0.number)")) }
        ) { socket in
            for _ in 0..<200 {
                let id = "\(socket.number)-\(socket.generation)-\(socket.sent)"
                socket.send(
                    "0:c:{\"id\":\"k\(socket.sent % 500)\",\"o\":\"M\",\"v\":{\"t\":{\"o\":\"+\",\"v\":\"\(text)\"}},"
                        + "\"ccid\":\"\(id)\"}")
            }
        }
    }

    private func floodInits(_ port: UInt16, _ token: String, _ end: UInt64) {
        HostileSwarm(port: port, count: 8).run(until: end) { socket in
            for _ in 0..<100 {
                socket.send(
                    Self.hello(
                        token, "init-\(socket.number)", channel: socket.sent % 200, bucket: "m\(socket.sent % 300)"))
            }
        }
    }

    private func floodPings(_ port: UInt16, _ token: String, _ end: UInt64) {
        let batch: [UInt8] = (0..<2_000).flatMap { number in
            number % 2 == 0
                ? WebSocketWriter.frame(.text, Array("h:1".utf8), mask: 7)
                : WebSocketWriter.frame(.ping, [UInt8](), mask: 7)
        }
        HostileSwarm(port: port, count: 16).run(
            until: end, opened: { if $0.number % 2 == 0 { $0.send(Self.hello(token, "ping-\($0.number)")) } }
        ) { $0.send(raw: batch) }
    }

    /// Sends requests as fast as they are answered, with many in flight.
    private func ask(_ port: UInt16, _ token: String, _ end: UInt64, _ question: (Int) -> String) {
        HostileSwarm(port: port, count: 8).run(
            until: end, opened: { $0.send(Self.hello(token, "ask-\($0.number)")) }
        ) { socket in
            while socket.sent - socket.received < 500, socket.pending < 1 << 16 { socket.send(question(socket.sent)) }
        }
    }

    // MARK: Sockets and bytes

    /// Opens as many connections as possible and stops in the middle of a request; then opens and closes more.
    private func openSockets(_ port: UInt16, _ end: UInt64, head: String, count: Int) {
        var open: [HostileSocket] = []
        let bytes: [UInt8] = Array(head.utf8)
        while nanoseconds() < end {
            let socket = HostileSocket(port: port, number: open.count)
            guard socket.connectPlain() else {
                Self.awaitRoom(open, until: end)
                continue
            }
            _ = Glibc.send(socket.descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            if open.count < count { open.append(socket) } else { open[Int.random(in: 0..<count)] = socket }
        }
    }

    /// Waits until the server has closed one of the connections, which frees a place, at most a tenth of a second.
    private static func awaitRoom(_ open: [HostileSocket], until end: UInt64) {
        let left: UInt64 = end - min(nanoseconds(), end)
        var polls: [pollfd] = open.filter(\.isOpen).map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        _ = poll(&polls, nfds_t(polls.count), Int32(min(left / 1_000_000, 100)))
    }

    /// Half of the connections stop in the middle of a frame of 8 MB; the others send whole ones.
    private func sendGiants(_ port: UInt16, _ token: String, _ end: UInt64) {
        let filler = String(repeating: "z", count: 7_000_000)
        let whole: [UInt8] = WebSocketWriter.frame(
            .text,
            Array("0:c:{\"id\":\"g\",\"o\":\"M\",\"v\":{\"t\":{\"o\":\"+\",\"v\":\"\(filler)\"}},\"ccid\":\"g\"}".utf8),
            mask: 9)
        let tooLarge: [UInt8] = [0x81, 0xFF, 0, 0, 0, 0, 0x7F, 0, 0, 0, 1, 2, 3, 4]
        HostileSwarm(port: port, count: 48).run(
            until: end, opened: { if $0.number % 3 != 0 { $0.send(Self.hello(token, "giant-\($0.number)")) } }
        ) { socket in
            guard socket.pending == 0 else { return }
            switch socket.number % 4 {
            case 0, 1:
                if socket.sent < 2 { socket.send(raw: Array(whole.dropLast(100_000))) }
            case 2: socket.send(raw: whole)
            default: socket.send(raw: tooLarge)
            }
        }
    }

    private func sendGarbage(_ port: UInt16, _ end: UInt64) {
        HostileSwarm(port: port, count: 16).run(until: end) { socket in
            switch (socket.number + socket.generation) % 5 {
            case 0: socket.send(raw: [0xFF, 0xFF, 0xFF, 0xFF])
            case 1: socket.send(raw: [0x81, 0x05, 0x68, 0x65, 0x6C, 0x6C, 0x6F])
            case 2: socket.send(raw: WebSocketWriter.frame(.text, [0xFF, 0xFE, 0x80], mask: 1))
            case 3: socket.send("0:c:{\"id\":[[[[[[[\"")
            default: for _ in 0..<100 { socket.send("\(socket.sent):?:\(String(repeating: "[", count: 300))") }
            }
        }
    }

    private func subscribe(_ port: UInt16, _ token: String, _ end: UInt64) {
        HostileSwarm(port: port, count: 200).run(until: end) { socket in
            guard socket.sent < 400 else { return }
            for _ in 0..<20 {
                socket.send(
                    Self.hello(
                        token, "sub-\(socket.number)", channel: socket.sent, bucket: "s\(socket.number)-\(socket.sent)",
                        command: "cv:0"))
            }
        }
    }
}
