import ThicketProtocol
import ThicketServer

/// Server CPU of a missed change, read from disk: behind ten times as many changes that are not requested, and among
/// those of ten times as many users, which are between them in the log.
func missedGrowth() throws -> [Figure] {
    try compare(
        "10,000 behind", small: MissedLoad(users: 1, behind: 10_000), large: MissedLoad(users: 1, behind: 100_000))
        + compare("10 users", small: MissedLoad(users: 10, behind: 0), large: MissedLoad(users: 100, behind: 0))
}

private func compare(_ what: String, small: MissedLoad, large: MissedLoad) throws -> [Figure] {
    progress("growth: missed changes, \(what): both stores filled")
    var costs: [[Double]] = [[], []]
    for round: Int in 0..<growthRounds {
        for load in round % 2 == 0 ? [small, large] : [large, small] {
            costs[load === small ? 0 : 1].append(try load.catchUp())
        }
    }
    return growthFigures("a missed change, \(what)", costs[0], costs[1])
}

/// A server on which each user has missed as many changes. The last user, whose bucket was created last, requests them.
private final class MissedLoad {
    /// More than are kept in memory (`tail-changes-max`).
    private static let missed = 2_000
    private static let inFlight = 8
    private static let askedAtOnce = 3

    private let server: BenchServer
    private let loop = LoadLoop()
    private let reader: Int
    private var position = ""

    init(users: Int, behind: Int) throws {
        reader = users - 1
        server = try BenchServer(users: users, starts: false)
        let filling = try OfflineFill(server)
        let bucket: BucketID = try OfflineFill.bucket("b", user: reader)
        for number: Int in 0..<behind { try filling.add("old\(number % 100)", version: number / 100, to: bucket) }
        try filling.finish()
        try server.process.start()
        let sockets: [LoadSocket] = try connect(0..<users, to: server, on: loop)
        defer { for socket in sockets { loop.remove(socket) } }
        position = try fill(sockets[reader], on: loop, keys: "k", count: 1)
        try changeAll(sockets, on: loop, each: Self.missed, inFlight: Self.inFlight) { socket, number in
            change(of: "o\(number)", ccid: "missed-\(socket.number)-\(number)", number: number, version: 0)
        }
    }

    /// µs of CPU per missed change, for a few clients one after the other.
    func catchUp() throws -> Double {
        let cpu: Double = server.process.cpuSeconds()
        for _ in 0..<Self.askedAtOnce {
            let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
            loop.add(socket)
            defer { loop.remove(socket) }
            var found = 0
            socket.send(initialize(server.tokens[reader], client: "late", bucket: "b", command: "cv:\(position)"))
            try loop.run(
                until: { found >= Self.missed },
                receive: { _, bytes in found += occurrences(of: "\"ccids\"", in: bytes) })
            guard found == Self.missed else { throw BenchError("\(found) changes came of \(Self.missed)") }
        }
        return (server.process.cpuSeconds() - cpu) / Double(Self.askedAtOnce * Self.missed) * 1e6
    }
}
