import ThicketProtocol
import ThicketServer

/// A server's memory when its caches have more data than their bounds, and with ten times that data: the sum of the
/// bounds has to hold, whatever the size of the data.
///
/// The caches get about a tenth of their usual bounds, and are full within seconds. Half of the users change each of
/// their objects; the others read their indexes and send a ccid that was archived long ago. All users of the small
/// store are connected at once, and as many of the large one, group after group.
func memory() throws -> [Figure] {
    let small = try MemoryLoad(users: MemoryLoad.usersAtOnce)
    progress("memory: the small store is filled")
    let large = try MemoryLoad(users: 10 * MemoryLoad.usersAtOnce)
    progress("memory: the large store is filled")
    let rounds = 3
    for round: Int in 1...rounds {
        try small.round()
        try large.round()
        progress("memory: round \(round) of \(rounds)")
    }
    return [Figure(name: "just started", samples: small.started + large.started, unit: "MiB")]
        + small.figures("\(small.objects) objects") + large.figures("ten times as many")
        + [Figure(name: "ten times as many: ratio", samples: zip(large.most, small.most).map { $0 / $1 }, unit: "")]
}

/// A cache by the name of its gauge, and its bound.
private struct BoundedCache {
    let gauge: String
    let settings: [String]
    let mebibytes: Double

    /// Bounds as `docs/OPERATIONS.md`, "Memory", counts them.
    static let all: [BoundedCache] = [
        .init(gauge: "objects", settings: ["--object-cache-bytes", "24MiB"], mebibytes: 24),
        .init(gauge: "buckets", settings: ["--bucket-cache-bytes", "4MiB"], mebibytes: 4),
        .init(gauge: "tails", settings: ["--tail-bytes-total-max", "3MiB"], mebibytes: 3),
        .init(gauge: "change_ids", settings: ["--change-id-cache-bytes", "1MiB"], mebibytes: 1),
        .init(gauge: "segments", settings: ["--segment-cache-bytes", "4MiB"], mebibytes: 4),
        .init(gauge: "index_pages", settings: ["--index-cache-bytes", "4MiB"], mebibytes: 4),
        .init(gauge: "walks", settings: ["--walk-objects-max", "40000"], mebibytes: 40_000 * 60 / 1_048_576.0),
    ]

    /// Pages of the writer, of two readers a quarter each, of the background twice a quarter; write-behind heads at one
    /// and a half times their number, 300 bytes and a short key each.
    static let others: (settings: [String], mebibytes: Double) = (
        ["--page-cache-bytes", "2MiB", "--reader-threads", "2", "--late-heads-max", "1024"],
        2 * 2 + 1_536 * 320 / 1_048_576.0
    )

    static let settings: [String] = all.flatMap(\.settings) + others.settings
    static let sum: Double = all.reduce(0) { $0 + $1.mebibytes } + others.mebibytes
}

/// One server with a bucket for each of its users.
private final class MemoryLoad {
    static let usersAtOnce = 24
    /// Enough that maintenance makes segments of a bucket and archives its ccids.
    private static let objectsEach = 5_000
    private static let inFlight = 100
    /// MiB for memory outside of caches: one group of changes, answers in flight, the ends of heaps that the C library
    /// keeps, and holes between blocks in use (`docs/OPERATIONS.md`).
    private static let slack: Double = 24

    let objects: Int
    private(set) var started: [Double] = []
    /// The server's most memory of each round, MiB.
    private(set) var most: [Double] = []
    private var fullest: [String: [Double]] = [:]
    private let users: Int
    private let server: BenchServer
    /// The version of each object of the users that change theirs.
    private var version = 1

    init(users: Int) throws {
        self.users = users
        objects = users * Self.objectsEach
        server = try BenchServer(users: users, settings: BoundedCache.settings, starts: false)
        let fill = try OfflineFill(server)
        for user: Int in 0..<users {
            let bucket: BucketID = try OfflineFill.bucket("b", user: user)
            for object: Int in 0..<Self.objectsEach { try fill.add("o\(object)", version: 0, to: bucket) }
        }
        try fill.finish()
    }

    /// All users, group by group, on a server that has just started.
    func round() throws {
        try server.process.start()
        defer { server.process.terminate() }
        started.append(resident())
        var most: Double = 0
        var full: [String: Double] = [:]
        for first in stride(from: 0, to: users, by: Self.usersAtOnce) {
            try turn(first..<first + Self.usersAtOnce)
            most = max(most, resident())
            try look(&full)
        }
        self.most.append(most)
        for (gauge, mebibytes) in full { fullest[gauge, default: []].append(mebibytes) }
        version += 1
    }

    func figures(_ what: String) -> [Figure] {
        let goal: Double = (started.max() ?? .nan) + BoundedCache.sum + Self.slack
        return [
            Figure(name: "\(what): server memory at most", samples: most, unit: "MiB", goal: .atMost(goal.rounded()))
        ]
            + BoundedCache.all.map { cache in
                Figure(
                    name: "  \(what): \(cache.gauge)", samples: fullest[cache.gauge] ?? [], unit: "MiB",
                    goal: .atMost(cache.mebibytes))
            }
    }

    private func resident() -> Double { Double(server.process.memoryBytes()) / 1_048_576 }

    private func turn(_ users: Range<Int>) throws {
        let loop = LoadLoop()
        let sockets: [LoadSocket] = try connect(users, to: server, on: loop)
        let writers: [LoadSocket] = sockets.filter { $0.number % 2 == 0 }
        try changeAll(writers, on: loop, each: Self.objectsEach, inFlight: Self.inFlight) { _, number in
            change(of: "o\(number)", ccid: "m-\(version)-\(number)", number: version, version: version)
        }
        let readers: [LoadSocket] = sockets.filter { $0.number % 2 == 1 }
        for _ in 1...2 { try readIndexes(readers, loop) }
        try sendArchived(readers, loop)
    }

    /// Reads all pages but the last, so that the index scans stay open.
    private func readIndexes(_ sockets: [LoadSocket], _ loop: LoadLoop) throws {
        let page = 1_000
        let pages: Int = Self.objectsEach / page - 1
        for socket in sockets { socket.send("0:i:1:::\(page)") }
        var answers: [Int: Int] = [:]
        try loop.run(
            until: { sockets.allSatisfy { answers[$0.number] == pages } },
            receive: { socket, bytes in
                guard let mark: String = markOf(bytes) else { return }
                answers[socket.number, default: 0] += 1
                if answers[socket.number] ?? 0 < pages { socket.send("0:i:1:\(mark)::\(page)") }
            })
    }

    /// Sends a change of the filling again: the server has to look up its ccid.
    private func sendArchived(_ sockets: [LoadSocket], _ loop: LoadLoop) throws {
        for socket in sockets {
            let ccid = "fill-\(socket.number * Self.objectsEach)"
            socket.send(change(of: "o0", ccid: ccid, number: 0, version: 1))
        }
        var known = 0
        try loop.run(
            until: { known == sockets.count },
            receive: { _, bytes in
                if contains(bytes, "\"error\":409") { known += 1 }
            })
    }

    /// Records the fullness of each cache, by its gauge.
    private func look(_ full: inout [String: Double]) throws {
        let page: String = try HostileTenant.metrics(port: server.process.port)
        for cache in BoundedCache.all {
            let name = "thicket_cache_bytes{cache=\"\(cache.gauge)\"} "
            guard let line: Substring = page.split(separator: "\n").first(where: { $0.hasPrefix(name) }),
                let bytes: Double = Double(line.dropFirst(name.utf8.count))
            else { throw BenchError("the server has no gauge \(name)") }
            full[cache.gauge] = max(full[cache.gauge] ?? 0, bytes / 1_048_576)
        }
    }
}
