import CThicketNet
import Glibc
import ThicketProtocol

/// The data API over persistent connections, one request outstanding each: a single object, index pages of 100, and
/// durable changes; 16 users with 100 objects of 300 bytes each, because that is a small notes app whose scripts poll.
///
/// Alternating with them, `/health/live`: a request that needs only the network loop.
func dataAPI(users: Int = 16, rounds: Int = 7, seconds: Double = 1) throws -> [Figure] {
    let server = try BenchServer(users: users)
    let load = try RESTLoad(server, count: users)
    for object: Int in 0..<100 {
        _ = try load.run(requests: users) { socket, _ in
            load.post(socket, "o\(object)", "{\"n\":\(object),\"text\":\"\(String(repeating: "x", count: 280))\"}")
        }
    }
    let kinds: [RESTLoad.Kind] = [
        RESTLoad.Kind("GET /health/live (floor)") { _, _ in "GET /health/live HTTP/1.1\r\nhost: b\r\n\r\n" },
        RESTLoad.Kind("GET an object") { socket, number in load.get(socket, "i/o\(number % 100)") },
        RESTLoad.Kind("GET an index page of 100") { socket, _ in load.get(socket, "index?limit=100") },
        RESTLoad.Kind("GET an index page of 100 with objects") { socket, _ in load.get(socket, "index?limit=100&data=1")
        },
        RESTLoad.Kind("POST a change, durable") { socket, number in load.post(socket, "o1", "{\"n\":\(1_000 + number)}")
        },
    ]
    for round: Int in 1...rounds {
        for kind in kinds {
            let cpu: Double = server.process.cpuSeconds()
            kind.runs.append(try load.run(seconds: seconds, kind.make))
            let count = Double(kind.runs.last?.requests ?? 1)
            kind.costs.append((server.process.cpuSeconds() - cpu) / count * 1e6)
        }
        progress("rest: round \(round) of \(rounds)")
    }
    let alone: [Double] = try (0..<rounds).map { _ in
        let times: [Double] = try load.run(requests: 300, sockets: 1, kinds[1].make).times
        return quantile(times, 0.5)
    }
    return kinds.flatMap(\.figures) + [Figure(name: "one connection, GET an object p50", samples: alone, unit: "ms")]
}

/// Persistent connections, each with its own user and one request outstanding.
final class RESTLoad {
    struct Run {
        let requests: Int
        let perSecond: Double
        /// Milliseconds, sorted.
        let times: [Double]
    }

    /// One kind of request, and its measurements.
    final class Kind {
        let name: String
        let make: (RESTSocket, Int) -> String
        var runs: [Run] = []
        var costs: [Double] = []

        init(_ name: String, _ make: @escaping (RESTSocket, Int) -> String) { (self.name, self.make) = (name, make) }

        var figures: [Figure] {
            [
                Figure(name: name, samples: runs.map(\.perSecond), unit: "1/s"),
                Figure(name: "  p50", samples: runs.map { quantile($0.times, 0.5) }, unit: "ms"),
                Figure(name: "  p99", samples: runs.map { quantile($0.times, 0.99) }, unit: "ms"),
                Figure(name: "  server CPU a request", samples: costs, unit: "µs"),
            ]
        }
    }

    private let poll: Int32 = epoll_create1(0)
    private let sockets: [RESTSocket]
    private var count = 0

    convenience init(_ server: BenchServer, count: Int) throws {
        try self.init(port: server.process.port, tokens: Array(server.tokens.prefix(count)))
    }

    /// - Parameter tokens: one for each connection.
    init(port: UInt16, tokens: [String]) throws {
        sockets = try tokens.map { try RESTSocket(port: port, token: $0) }
        for (place, socket) in sockets.enumerated() {
            var event = epoll_event()
            event.events = EPOLLIN.rawValue
            event.data.u32 = UInt32(place)
            epoll_ctl(poll, EPOLL_CTL_ADD, socket.descriptor, &event)
        }
    }

    deinit { close(poll) }

    /// Bytes of the newest answer of the first socket, head and body.
    var answerBytes: Int { sockets.first?.answerBytes ?? 0 }

    func get(_ socket: RESTSocket, _ path: String) -> String {
        "GET /1/\(BenchServer.app)/notes/\(path) HTTP/1.1\r\nhost: b\r\nx-simperium-token: \(socket.token)\r\n\r\n"
    }

    func post(_ socket: RESTSocket, _ key: String, _ body: String) -> String {
        "POST /1/\(BenchServer.app)/notes/i/\(key) HTTP/1.1\r\nhost: b\r\nx-simperium-token: \(socket.token)\r\n"
            + "content-length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Runs a number of requests, or as many as are answered in a time, over the first sockets.
    /// - Parameters:
    ///   - patience: seconds without an answer after which the run fails.
    ///   - make: makes the next request of a socket from an increasing number.
    func run(
        requests: Int = .max, seconds: Double = 1_000, sockets most: Int = .max, patience: Int32 = 30,
        _ make: (RESTSocket, Int) -> String
    ) throws -> Run {
        let begin: UInt64 = nanoseconds()
        let end: UInt64 = begin + UInt64(seconds * 1e9)
        var (sent, answered): (Int, Int) = (0, 0)
        var times: [Double] = []
        func next(_ socket: RESTSocket) throws {
            guard sent < requests, nanoseconds() < end else { return }
            sent += 1
            count += 1
            try socket.send(make(socket, count))
        }
        for socket in sockets.prefix(most) { try next(socket) }
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        while answered < sent {
            let ready: Int32 = epoll_wait(poll, &events, 64, patience * 1_000)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { throw BenchError("nothing was answered for \(patience) s") }
            for event in events.prefix(Int(ready)) {
                let socket: RESTSocket = sockets[Int(event.data.u32)]
                guard try socket.receive() else { continue }
                answered += 1
                times.append(Double(nanoseconds() - socket.sentAt) / 1e6)
                try next(socket)
            }
        }
        let taken: Double = Double(nanoseconds() - begin) / 1e9
        return Run(requests: answered, perSecond: Double(answered) / taken, times: times.sorted())
    }
}

/// One connection of the load.
final class RESTSocket {
    let descriptor: Int32
    let token: String
    private(set) var sentAt: UInt64 = 0
    private(set) var answerBytes = 0
    private var answer: [UInt8] = []
    /// Bytes of the current answer, once its head has arrived.
    private var length: Int?
    private var chunk = [UInt8](repeating: 0, count: 256 << 10)

    init(port: UInt16, token: String) throws {
        self.token = token
        descriptor = try LoadSocket.connection(port: port)
    }

    deinit { close(descriptor) }

    func send(_ request: String) throws {
        let bytes: [UInt8] = Array(request.utf8)
        sentAt = nanoseconds()
        guard write(descriptor, bytes, bytes.count) == bytes.count else { throw BenchError("a request was not sent") }
    }

    /// - Returns: whether the answer is complete.
    /// - Throws: if it is not a success.
    func receive() throws -> Bool {
        let got: Int = read(descriptor, &chunk, chunk.count)
        guard got > 0 else { throw BenchError("the server closed a connection") }
        answer += chunk[..<got]
        if length == nil { length = try wholeLength() }
        guard let length, answer.count >= length else { return false }
        answerBytes = length
        answer.removeAll(keepingCapacity: true)
        self.length = nil
        return true
    }

    /// Bytes of head and body; nil while the head is not complete.
    private func wholeLength() throws -> Int? {
        let mark: [UInt8] = [13, 10, 13, 10]
        guard let end: Int = answer.indices.dropLast(3).first(where: { answer[$0..<$0 + 4].elementsEqual(mark) }) else {
            return nil
        }
        let head = String(decoding: answer[..<end], as: UTF8.self)
        guard head.hasPrefix("HTTP/1.1 200") else { throw BenchError("not answered with 200: \(head)") }
        let lines: [Substring] = head.split(separator: "\r\n")
        guard let line: Substring = lines.first(where: { $0.hasPrefix("content-length: ") }),
            let body: Int = Int(line.dropFirst(16))
        else { throw BenchError("no length: \(head)") }
        return end + 4 + body
    }
}
