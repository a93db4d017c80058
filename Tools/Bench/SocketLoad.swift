import Glibc
import ThicketProtocol

/// Sockets of one user each, every one with `depth` changes in flight: when one is answered, the next is sent.
final class SocketLoad {
    /// The result of one run.
    struct Run {
        /// From a change's sending to its acknowledgement, ascending, ms. Only with one change in flight per socket.
        var times: [Double] = []
        var changes = 0
        var seconds: Double = 0

        var perSecond: Double { Double(changes) / seconds }
    }

    private let server: BenchServer
    private let loop = LoadLoop()
    private let sockets: [LoadSocket]
    private let depth: Int
    private let message: (_ socket: Int, _ number: Int) -> String
    /// Of each socket.
    private var sent: [Int]

    /// - Parameters:
    ///   - count: of sockets; the server must have as many users.
    ///   - message: the socket's change of that number, counted from 0.
    init(
        _ server: BenchServer, count: Int, depth: Int = 1, bucket: String = "b", client: String = "bench",
        message: @escaping (_ socket: Int, _ number: Int) -> String
    ) throws {
        (self.server, self.depth, self.message) = (server, depth, message)
        sent = .init(repeating: 0, count: count)
        sockets = try (0..<count).map { number in
            let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
            socket.number = number
            return socket
        }
        for socket in sockets { loop.add(socket) }
        try authorize(sockets, on: loop, server: server, bucket: bucket, client: client)
    }

    /// Sends for a time, and waits for the changes in flight.
    func run(seconds: Double) throws -> Run {
        let end: UInt64 = nanoseconds() + UInt64(seconds * 1e9)
        return try run { _ in nanoseconds() < end }
    }

    /// Sends a number of changes.
    func run(changes: Int) throws -> Run { try run { $0 < changes } }

    private func run(while continues: (_ sent: Int) -> Bool) throws -> Run {
        var run = Run()
        var (total, refused): (Int, Int) = (0, 0)
        let start: UInt64 = nanoseconds()
        func next(_ socket: LoadSocket) {
            guard continues(total) else { return }
            socket.sentAt = nanoseconds()
            socket.send(message(socket.number, sent[socket.number]))
            sent[socket.number] += 1
            total += 1
        }
        for _ in 0..<depth { for socket in sockets { next(socket) } }
        try loop.run(
            until: { run.changes == total || refused > 0 },
            receive: { socket, bytes in
                if contains(bytes, "\"error\"") { refused += 1 }
                let count: Int = occurrences(of: "\"ccids\"", in: bytes)
                if depth == 1, count == 1 { run.times.append(Double(nanoseconds() - socket.sentAt) / 1e6) }
                run.changes += count
                for _ in 0..<count { next(socket) }
            })
        guard refused == 0 else { throw BenchError("the server refused a change: the figures would mean nothing") }
        run.seconds = Double(nanoseconds() - start) / 1e9
        run.times.sort()
        return run
    }
}

/// 32 hex digits, as clients make them.
func hexID(_ socket: Int, _ number: Int) -> String {
    let (high, low): (String, String) = (String(socket, radix: 16), String(number, radix: 16))
    return high + String(repeating: "0", count: 32 - high.count - low.count) + low
}
