import Glibc
import ThicketProtocol

/// Connects a socket for each of these users, on channel 0 of its bucket.
func connect(
    _ users: Range<Int>, to server: BenchServer, on loop: LoadLoop, bucket: String = "b"
) throws -> [LoadSocket] {
    let sockets: [LoadSocket] = try users.map { user in
        let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
        socket.number = user
        loop.add(socket)
        return socket
    }
    try authorize(sockets, on: loop, server: server, bucket: bucket)
    return sockets
}

/// Sends `init` on channel 0 of each socket and waits until all are answered: `auth`, then the index.
func authorize(
    _ sockets: [LoadSocket], on loop: LoadLoop, server: BenchServer, bucket: String, client: String = "bench"
) throws {
    var answered = 0
    for socket in sockets {
        socket.received = 0
        socket.send(
            initialize(
                server.tokens[socket.number], client: "\(client)-\(socket.number)", bucket: bucket, command: "i::::1"))
    }
    try loop.run(
        until: { answered == sockets.count },
        receive: { socket, _ in
            socket.received += 1
            if socket.received == 2 { answered += 1 }
        })
}

/// An `init` on channel 0 with its first command.
func initialize(_ token: String, client: String, bucket: String, command: String) -> String {
    "0:init:{\"clientid\":\"\(client)\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"\(BenchServer.app)\","
        + "\"name\":\"\(bucket)\",\"library\":\"bench\",\"version\":\"1\",\"cmd\":\"\(command)\"}"
}

/// Not a number without values, so that an empty list meets no goal.
func quantile(_ sorted: [Double], _ share: Double) -> Double {
    sorted.isEmpty ? .nan : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
}

func contains(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
    let needle: [UInt8] = text.withUTF8Buffer { Array($0) }
    guard bytes.count >= needle.count else { return false }
    return (0...(bytes.count - needle.count)).contains { start in
        bytes[start] == needle[0] && bytes[start..<(start + needle.count)].elementsEqual(needle)
    }
}

/// Median seconds of appending 280 bytes × `group` and `fdatasync` on the disk that the server uses, and changes per
/// second: the floor of any durable server here.
func rawAppend(group: Int, rounds: Int) throws -> (medianSeconds: Double, perSecond: Double) {
    var template: [CChar] = Array("/tmp/thicket-floor-XXXXXX".utf8CString)
    let file: Int32 = mkstemp(&template)
    guard file >= 0 else { throw BenchError("no temporary file: errno \(errno)") }
    defer {
        close(file)
        unlink(template)
    }
    let bytes = [UInt8](repeating: 7, count: 280 * group)
    var times: [Double] = []
    for _ in 0..<rounds {
        let start: UInt64 = nanoseconds()
        guard write(file, bytes, bytes.count) == bytes.count, fdatasync(file) == 0 else {
            throw BenchError("append: errno \(errno)")
        }
        times.append(Double(nanoseconds() - start) / 1e9)
    }
    times.sort()
    return (quantile(times, 0.5), Double(group * rounds) / times.reduce(0, +))
}

/// A change of an object of 240 bytes: the first creates it, the others replace one of its fields.
func change(of key: String, ccid: String, number: Int, version: Int) -> String {
    let source: String = version == 0 ? "" : "\"sv\":\(version),"
    return "0:c:{\"id\":\"\(key)\",\"o\":\"M\",\(source)\"v\":\(diffText(number: number, version: version)),"
        + "\"ccid\":\"\(ccid)\"}"
}

/// The difference in such a change.
func diffText(number: Int, version: Int) -> String {
    if version > 0 { return "{\"n\":{\"o\":\"r\",\"v\":\(number)}}" }
    return "{\"text\":{\"o\":\"+\",\"v\":\"\(String(repeating: "x", count: 200))\"},\"n\":{\"o\":\"+\",\"v\":-1}}"
}

/// 64 sockets of 64 users, one change outstanding each: durable changes per second and the time to the acknowledgement.
///
/// Floor, alternating with it: the store's statements in a bare loop, in groups of as many changes with as many bytes,
/// on as many buckets of one object, with the settings of a server.
func changes(seconds: Double, sockets count: Int, rounds: Int = 7) throws -> [Figure] {
    let server = try BenchServer(users: count)
    let load: SocketLoad = try SocketLoad(server, count: count) { socket, number in
        change(of: "object-number-0", ccid: hexID(socket, number), number: number, version: number)
    }
    // Each object exists and is in memory.
    _ = try load.run(changes: 20 * count)
    let shape = StoreWork.Shape(
        buckets: count, objects: 1, diff: Array(diffText(number: 1_000, version: 1).utf8), bodyBytes: 240)
    func floor(_ round: Int) throws -> Double {
        try storeRate(shape, group: count, groups: 150, seed: UInt64(round), isBare: true)
    }
    // The floor of `store`, with many buckets: not a real load, but the one that the goal names.
    func storeFloor(_ round: Int) throws -> Double {
        try storeRate(group: count, groups: 150, seed: UInt64(round), isBare: true)
    }
    var floors: [Double] = [try floor(0)]
    var storeFloors: [Double] = [try storeFloor(0)]
    var runs: [SocketLoad.Run] = []
    var (costs, serverShares, ownShares): ([Double], [Double], [Double]) = ([], [], [])
    let cores: Double = Double(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    for round: Int in 1...rounds {
        let (cpu, own, start): (Double, Double, UInt64) = (server.process.cpuSeconds(), ownCPU(), nanoseconds())
        runs.append(try load.run(seconds: seconds / Double(rounds)))
        let machine: Double = Double(nanoseconds() - start) / 1e9 * cores
        ownShares.append((ownCPU() - own) / machine * 100)
        serverShares.append((server.process.cpuSeconds() - cpu) / machine * 100)
        costs.append((server.process.cpuSeconds() - cpu) / Double(runs[round - 1].changes) * 1e6)
        floors.append(try floor(round))
        storeFloors.append(try storeFloor(round))
    }
    let sync: (medianSeconds: Double, perSecond: Double) = try rawAppend(group: count, rounds: 200)
    func ratios(_ floors: [Double]) -> [Double] {
        runs.enumerated().map { $1.perSecond / ((floors[$0] + floors[$0 + 1]) / 2) }
    }
    return [
        Figure(name: "changes, \(count) sockets", samples: runs.map(\.perSecond), unit: "1/s"),
        Figure(name: "acknowledgement p50", samples: runs.map { quantile($0.times, 0.5) }, unit: "ms"),
        Figure(name: "acknowledgement p99", samples: runs.map { quantile($0.times, 0.99) }, unit: "ms"),
        Figure(name: "server CPU per change", samples: costs, unit: "µs"),
        Figure(name: "server's share of all \(Int(cores)) cores", samples: serverShares, unit: "%"),
        Figure(name: "generator's share of all \(Int(cores)) cores", samples: ownShares, unit: "%"),
        Figure(name: "floor: the store's SQL in a bare loop, groups of \(count)", samples: floors, unit: "1/s"),
        Figure(name: "floor: one append and fdatasync of \(count)", value: sync.medianSeconds * 1e3, unit: "ms"),
        Figure(name: "ratio to the floor", samples: ratios(floors), unit: "", goal: .atLeast(0.6)),
        Figure(name: "floor of store: 2,000 buckets, groups of \(count)", samples: storeFloors, unit: "1/s"),
        Figure(name: "ratio to the floor of store", samples: ratios(storeFloors), unit: "", goal: .atLeast(0.6)),
    ]
}

/// The value of `THICKET_BENCH_SOCKETS`; 64 without it.
func socketsOfChanges() throws -> Int {
    guard let text: UnsafeMutablePointer<CChar> = getenv("THICKET_BENCH_SOCKETS") else { return 64 }
    guard let count: Int = Int(String(cString: text)), 1...1_000 ~= count else {
        throw BenchError("THICKET_BENCH_SOCKETS is \"\(String(cString: text))\": a number from 1 to 1000 is needed")
    }
    return count
}

/// One writer, many receivers of the same bucket, one change at a time.
func fanout(receivers: Int, rounds: Int) throws -> [Figure] {
    let server = try BenchServer(users: 1)
    let loop = LoadLoop()
    let sockets: [LoadSocket] = try (0...receivers).map { _ in
        let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
        loop.add(socket)
        return socket
    }
    try authorize(sockets, on: loop, server: server, bucket: "b")
    let sync: Double = try rawAppend(group: 1, rounds: 200).medianSeconds
    var acks: [Double] = []
    var everywhere: [Double] = []
    let cpuBefore: Double = server.process.cpuSeconds()
    for round: Int in 0..<rounds {
        var missing: Int = sockets.count
        let start: UInt64 = nanoseconds()
        sockets[0].send(change(of: "k", ccid: "c-\(round)", number: round, version: round))
        try loop.run(
            until: { missing == 0 },
            receive: { socket, _ in
                if socket === sockets[0] { acks.append(Double(nanoseconds() - start) / 1e6) }
                missing -= 1
            })
        everywhere.append(Double(nanoseconds() - start) / 1e6)
    }
    let cpu: Double = server.process.cpuSeconds() - cpuBefore
    acks.sort()
    everywhere.sort()
    return [
        Figure(name: "1 → \(receivers): acknowledgement p50", value: quantile(acks, 0.5), unit: "ms"),
        Figure(name: "all receivers have it p50", value: quantile(everywhere, 0.5), unit: "ms"),
        Figure(name: "all receivers have it p99", value: quantile(everywhere, 0.99), unit: "ms"),
        Figure(name: "server CPU per delivery", value: cpu / Double(rounds * (receivers + 1)) * 1e6, unit: "µs"),
        Figure(name: "floor: one append and fdatasync", value: sync * 1e3, unit: "ms"),
    ]
}

/// Memory of the server per connection with one authorised channel: the slope between two counts.
func idle(from few: Int, to many: Int) throws -> [Figure] {
    let users = 100
    let server = try BenchServer(users: users)
    let loop = LoadLoop()
    var sockets: [LoadSocket] = []
    func grow(to count: Int) throws {
        while sockets.count < count {
            let batch: [LoadSocket] = try (0..<min(250, count - sockets.count)).map { index in
                let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
                socket.number = (sockets.count + index) % users
                loop.add(socket)
                return socket
            }
            try authorize(batch, on: loop, server: server, bucket: "b")
            sockets += batch
        }
    }
    let start: UInt64 = nanoseconds()
    try grow(to: few)
    let base: Int = server.process.memoryBytes()
    try grow(to: many)
    let full: Int = server.process.memoryBytes()
    let elapsed: Double = Double(nanoseconds() - start) / 1e9
    return [
        Figure(
            name: "memory a connection (slope \(few) to \(many))", value: Double(full - base) / Double(many - few),
            unit: "B", goal: .atMost(2_048)),
        Figure(name: "server memory with \(many) connections", value: Double(full) / 1_048_576, unit: "MiB"),
        Figure(name: "connect and authorise", value: Double(many) / elapsed, unit: "1/s"),
    ]
}
