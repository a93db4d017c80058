import ThicketProtocol
import ThicketServer

/// Server CPU of one object that a new client fetches, in pages of 1,000 with their objects: for the first client after
/// a change, for which the pages are made, and for later ones, which may get cached pages. At ten times the objects of
/// a bucket, the users of the server, and the versions of each object; for the last two also if the user's objects have
/// not been requested since the start, and each is read from the log.
func indexGrowth() throws -> [Figure] {
    try compare("5,000 objects", small: IndexLoad(objects: 5_000), large: IndexLoad(objects: 50_000))
        + compare(
            "100 users", small: IndexLoad(objects: 500, users: 100), large: IndexLoad(objects: 500, users: 1_000))
        + compare(
            "10 versions of each", small: IndexLoad(objects: 200, users: 20, versions: 10),
            large: IndexLoad(objects: 200, users: 20, versions: 100))
}

private func compare(_ what: String, small: IndexLoad, large: IndexLoad) throws -> [Figure] {
    progress("growth: index, \(what): both stores filled")
    var made: [[Double]] = [[], []]
    var kept: [[Double]] = [[], []]
    var cold: [[Double]] = [[], []]
    for round: Int in 0..<growthRounds {
        for load in round % 2 == 0 ? [small, large] : [large, small] {
            let place: Int = load === small ? 0 : 1
            try load.edit(round)
            made[place].append(try load.fetch(client: "first-\(round)"))
            kept[place].append(try load.fetch(client: "next-\(round)"))
            if load.users > 1 { cold[place].append(try load.fetchCold()) }
        }
    }
    return growthFigures("an object of the index, first client, \(what)", made[0], made[1])
        + growthFigures("an object of the index, the next client, \(what)", kept[0], kept[1])
        + (cold[0].isEmpty ? [] : growthFigures("an object of a cold index, \(what)", cold[0], cold[1]))
}

/// A server with one bucket of `objects` objects for each of its users. The last user reads repeatedly.
private final class IndexLoad {
    /// Users of one round that have not requested anything yet.
    private static let coldUsers = 2

    let users: Int
    private let server: BenchServer
    private let loop = LoadLoop()
    private let objects: Int
    private let versions: Int
    private let writer: LoadSocket
    /// The next user that has not requested anything.
    private var coldUser = 1

    init(objects: Int, users: Int = 1, versions: Int = 1) throws {
        self.objects = objects
        self.users = users
        self.versions = versions
        server = try BenchServer(users: users, starts: false)
        let fill = try OfflineFill(server)
        let buckets: [BucketID] = try (0..<users).map { try OfflineFill.bucket("b", user: $0) }
        // User after user, so that no user's rows are adjacent.
        for object: Int in 0..<objects {
            for version: Int in 0..<versions {
                for bucket in buckets { try fill.add("o\(object)", version: version, to: bucket) }
            }
        }
        try fill.finish()
        try server.process.start()
        writer = try LoadSocket(port: server.process.port, app: BenchServer.app)
        writer.number = users - 1
        loop.add(writer)
        try authorize([writer], on: loop, server: server, bucket: "b")
        // Work that a server does once after its start does not belong to the index.
        _ = try fetch(client: "warm", user: 0)
        try server.process.awaitIdle()
    }

    func edit(_ round: Int) throws {
        var isDone = false
        writer.send(change(of: "o0", ccid: "edit-\(round)", number: round, version: round + versions))
        try loop.run(until: { isDone }, receive: { _, bytes in isDone = contains(bytes, "\"ccids\"") })
    }

    /// µs of CPU per object, for users that are new to the server.
    func fetchCold() throws -> Double {
        let costs: [Double] = try (coldUser..<coldUser + Self.coldUsers).map { try fetch(client: "cold", user: $0) }
        coldUser += Self.coldUsers
        return costs.reduce(0, +) / Double(Self.coldUsers)
    }

    /// µs of CPU per object.
    func fetch(client: String, user: Int? = nil) throws -> Double {
        let cpu: Double = server.process.cpuSeconds()
        let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
        loop.add(socket)
        defer { loop.remove(socket) }
        var found = 0
        let token: String = server.tokens[user ?? writer.number]
        socket.send(initialize(token, client: client, bucket: "b", command: "i:1:::1000"))
        try loop.run(
            until: { found >= objects },
            receive: { socket, bytes in
                found += occurrences(of: "\"id\"", in: bytes)
                if let mark: String = markOf(bytes) { socket.send("0:i:1:\(mark)::1000") }
            })
        guard found == objects else { throw BenchError("the index has \(found) objects of \(objects)") }
        return (server.process.cpuSeconds() - cpu) / Double(objects) * 1e6
    }
}

/// The mark of an index page, at the page's end.
func markOf(_ bytes: UnsafeRawBufferPointer) -> String? {
    let end: [UInt8] = Array(bytes.suffix(200))
    let name: [UInt8] = Array("\"mark\":\"".utf8)
    guard let place = end.indices.last(where: { end[$0...].starts(with: name) }) else { return nil }
    return String(decoding: end[(place + name.count)...].prefix { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
}
