import Glibc
import ThicketProtocol

/// What a change costs the server when there are ten times as many users, objects in the bucket, or changes behind it;
/// and what an object costs a new client. Each figure is server CPU, which other work on the machine disturbs least.
func growth() throws -> [Figure] {
    var figures: [Figure] = []
    func compare(_ what: String, _ unit: String, _ cost: (Int) throws -> Double) throws {
        var few: [Double] = []
        var many: [Double] = []
        for _ in 0..<3 {
            few.append(try cost(1))
            many.append(try cost(10))
        }
        figures.append(Figure(name: what, samples: few, unit: unit))
        figures.append(Figure(name: "  ten times as many", samples: many, unit: unit))
        figures.append(Figure(name: "  ratio", value: median(many) / median(few), unit: "", goal: .atMost(1.5)))
    }
    try compare("a change, 64 users", "µs") { try changeCost(users: 64 * $0, objects: 1, history: 1) }
    try compare("a change, 1,000 objects in the bucket", "µs") {
        try changeCost(users: 1, objects: 1_000 * $0, history: 1)
    }
    try compare("a change, 2,000 changes of the object", "µs") {
        try changeCost(users: 1, objects: 1, history: 2_000 * $0)
    }
    try compare("an object of the index, 5,000 objects", "µs") { try indexCost(objects: 5_000 * $0) }
    return figures
}

/// Server CPU of one change of prepared buckets, µs: `users` of one bucket each, 4,096 changes in all.
private func changeCost(users: Int, objects: Int, history: Int) throws -> Double {
    let server: BenchServer = try BenchServer(users: users)
    let loop: LoadLoop = LoadLoop()
    let sockets: [LoadSocket] = try (0..<users).map { number in
        let socket: LoadSocket = try LoadSocket(port: server.process.port, app: BenchServer.app)
        socket.number = number
        loop.add(socket)
        return socket
    }
    try authorize(sockets, on: loop, server: server, bucket: "b")
    if objects > 1 { _ = try fill(sockets[0], on: loop, keys: "o", count: objects) }
    if history > 1 { _ = try fill(sockets[0], on: loop, keys: "k", count: history, sameKey: true) }
    let perUser: Int = max(1, 4_096 / users)
    var done: Int = 0
    var sent: [Int] = .init(repeating: 0, count: users)
    func next(_ socket: LoadSocket) {
        let number: Int = sent[socket.number]
        sent[socket.number] += 1
        if history > 1 {
            socket.send(
                change(of: "k", ccid: "g-\(number)", number: history + number, version: history + number))
        } else {
            socket.send(change(of: "n\(number)", ccid: "g-\(number)", number: number, version: 0))
        }
    }
    // One user has 64 under way; those of one object follow one another, each on the version before it.
    let cpu: Double = server.process.cpuSeconds()
    for socket: LoadSocket in sockets { for _ in 0..<(users == 1 ? 64 : 1) { next(socket) } }
    try loop.run(
        until: { done >= perUser * users },
        take: { socket, bytes in
            let count: Int = occurrences(of: "\"ccids\"", in: bytes)
            done += count
            for _ in 0..<count where sent[socket.number] < perUser { next(socket) }
        })
    return (server.process.cpuSeconds() - cpu) / Double(done) * 1e6
}

/// Server CPU of one object that a new client fetches, µs; pages of 1,000 with their objects, eight clients.
private func indexCost(objects: Int) throws -> Double {
    let server: BenchServer = try BenchServer(users: 1)
    let loop: LoadLoop = LoadLoop()
    let writer: LoadSocket = try LoadSocket(port: server.process.port, app: BenchServer.app)
    loop.add(writer)
    try authorize([writer], on: loop, server: server, bucket: "b")
    _ = try fill(writer, on: loop, keys: "o", count: objects)
    let clients: Int = 8
    let cpu: Double = server.process.cpuSeconds()
    for number: Int in 0..<clients {
        let socket: LoadSocket = try LoadSocket(port: server.process.port, app: BenchServer.app)
        loop.add(socket)
        var found: Int = 0
        socket.send(initialize(server.tokens[0], client: "new-\(number)", bucket: "b", command: "i:1:::1000"))
        try loop.run(
            until: { found >= objects },
            take: { socket, bytes in
                found += occurrences(of: "\"id\"", in: bytes)
                if let mark: String = markOf(bytes) { socket.send("0:i:1:\(mark)::1000") }
            })
        loop.remove(socket)
    }
    return (server.process.cpuSeconds() - cpu) / Double(objects * clients) * 1e6
}

/// The mark of an index page: it stands at the page's end.
private func markOf(_ bytes: UnsafeRawBufferPointer) -> String? {
    let end: String = String(decoding: bytes.suffix(200), as: UTF8.self)
    guard let place = end.range(of: "\"mark\":\"") else { return nil }
    return String(end[place...].prefix { $0 != "\"" })
}

extension String {
    /// The place behind the first `mark`.
    fileprivate func range(of mark: String) -> String.Index? {
        var place: String.Index = startIndex
        while place < endIndex {
            if self[place...].hasPrefix(mark) { return index(place, offsetBy: mark.count) }
            place = index(after: place)
        }
        return nil
    }
}
