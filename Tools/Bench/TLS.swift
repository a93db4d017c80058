import Glibc
import ThicketProtocol
import ThicketServer

/// TLS of the server beside `openssl s_server`, driven alternately by `openssl s_time`, with the same keys: full
/// handshakes per second and their cost. Then the saving by a ticket, the memory of an idle connection, the cost of
/// encrypting a large response, and a user's waiting time during a flood of handshakes.
func tls(rounds: Int = 5, seconds: Int = 2) throws -> [Figure] {
    guard access(TLSPeer.program, X_OK) == 0 else {
        throw BenchError("the command openssl is missing: apt install openssl")
    }
    var figures: [Figure] = []
    for kind: TLSPeer.Kind in [.p256, .rsa] {
        let ours = try TLSTarget(kind)
        let peer = try TLSPeer(kind, ours)
        var (rates, costs): ([Double], [Double]) = ([], [])
        var (peerRates, peerCosts): ([Double], [Double]) = ([], [])
        for round: Int in 1...rounds {
            let first: TLSPeer.Run = try peer.time(ours.server.process.port, ours.server.process.process, seconds)
            let second: TLSPeer.Run = try peer.time(peer.port, peer.process, seconds)
            rates.append(first.perSecond)
            costs.append(first.cpuMicroseconds)
            peerRates.append(second.perSecond)
            peerCosts.append(second.cpuMicroseconds)
            progress("tls: \(kind.name), round \(round) of \(rounds)")
        }
        figures += [
            Figure(name: "full handshakes, \(kind.name)", samples: rates, unit: "1/s"),
            Figure(name: "  s_server", samples: peerRates, unit: "1/s"),
            Figure(
                name: "  ratio to s_server", samples: zip(rates, peerRates).map { $0 / $1 }, unit: "",
                goal: .atLeast(0.8)),
            Figure(name: "  server CPU a connection", samples: costs, unit: "µs"),
            Figure(name: "  s_server CPU a connection", samples: peerCosts, unit: "µs"),
        ]
        figures += try tickets(ours)
        guard kind == .p256 else { continue }
        figures += try idle(ours) + bulk(ours) + neighbour(ours, peer)
    }
    return figures
}

/// Server CPU of a connection with one request, with and without a ticket.
private func tickets(_ target: TLSTarget, rounds: Int = 5, count: Int = 300) throws -> [Figure] {
    var (full, resumed): ([Double], [Double]) = ([], [])
    for _ in 0..<rounds {
        full.append(try target.visits(count, withTicket: false))
        resumed.append(try target.visits(count, withTicket: true))
    }
    return [
        Figure(name: "server CPU a connection with one request, full", samples: full, unit: "µs"),
        Figure(name: "  resumed", samples: resumed, unit: "µs"),
    ]
}

/// The memory of a WebSocket that has been idle for a while.
private func idle(_ target: TLSTarget, few: Int = 500, many: Int = 2_500) throws -> [Figure] {
    var open: [TLSLine] = []
    func fill(_ count: Int) throws -> Double {
        while open.count < count {
            let line: TLSLine = try target.line()
            try line.upgrade()
            open.append(line)
        }
        return Double(target.server.process.memoryBytes())
    }
    _ = try fill(few)
    let before: Double = try fill(few)
    let after: Double = try fill(many)
    return [
        Figure(
            name: "memory of an idle WebSocket, \(few) to \(many)",
            value: (after - before) / Double(many - few) / 1_024,
            unit: "KiB", goal: .atMost(20))
    ]
}

/// A response of some 100 KB repeatedly over one connection: bytes per second of the server's CPU.
private func bulk(_ target: TLSTarget, rounds: Int = 5, count: Int = 1_000) throws -> [Figure] {
    let plain = try TLSTarget(nil)
    var (secure, open): ([Double], [Double]) = ([], [])
    for _ in 0..<rounds {
        secure.append(try target.download(count))
        open.append(try plain.download(count))
    }
    return [
        Figure(name: "large responses over TLS, MB a second of server CPU", samples: secure, unit: "MB"),
        Figure(name: "  plain", samples: open, unit: "MB"),
        Figure(name: "  ratio to plain", samples: zip(secure, open).map { $0 / $1 }, unit: ""),
    ]
}

/// How long a user waits for a heartbeat's answer while two programs of the lowest priority shake hands without end.
private func neighbour(_ target: TLSTarget, _ peer: TLSPeer, count: Int = 2_000) throws -> [Figure] {
    let line: TLSLine = try target.line()
    try line.upgrade()
    try line.say(initialize(target.server.tokens[0], client: "n", bucket: "b", command: "i::::1"))
    while try !line.hear().contains(":i:") {}
    func times() throws -> [Double] {
        try (0..<count).map { number in
            let start: UInt64 = nanoseconds()
            try line.say("h:\(number)")
            while try line.hear() != "h:\(number + 1)" {}
            return Double(nanoseconds() - start) / 1e6
        }.sorted()
    }
    let quiet: [Double] = try times()
    let flood = try TLSPeer.Flood(target.server.process.port, count: 2)
    let before: Int = try target.handshakes()
    let start: UInt64 = nanoseconds()
    let loud: [Double] = try times()
    let rate: Double = Double(try target.handshakes() - before) / (Double(nanoseconds() - start) / 1e9)
    flood.stop()
    return [
        Figure(name: "a user's heartbeat, quiet p50", value: quantile(quiet, 0.5), unit: "ms"),
        Figure(name: "  p99", value: quantile(quiet, 0.99), unit: "ms"),
        Figure(name: "  while two others only shake hands, p50", value: quantile(loud, 0.5), unit: "ms"),
        Figure(name: "  p99", value: quantile(loud, 0.99), unit: "ms"),
        Figure(name: "  handshakes meanwhile", value: rate, unit: "1/s"),
    ]
}
