import Glibc
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketSQLite
import ThicketServerProcess

/// Look-ups with proofs in a log of many users, by id and by name, over connections of 16 users; beside them
/// `/health/live`, a request that needs only the network loop.
///
/// Each user has an entry for its id, and one for its name: the log has twice as many entries as users.
func keyLogLookUps(users count: Int, rounds: Int = 5) throws -> [Figure] {
    let server = try BenchServer(users: 16, starts: false)
    progress("people: \(2 * count) entries of the key log are signed")
    try fillLog(server.process.folder + "/thicket.db", users: count)
    try server.process.start()
    let start = nanoseconds()
    // The log is built in memory at its first use. Connections that wait for it without a request would be closed.
    _ = try RESTLoad(server, count: 1).run(requests: 1, patience: 600) { socket, _ in lookUp(socket, user(0)) }
    let building = Double(nanoseconds() - start) / 1e9
    let load = try RESTLoad(server, count: 16)
    let memory = server.process.memoryBytes()
    let kinds = [
        RESTLoad.Kind("GET /health/live (floor)") { _, _ in "GET /health/live HTTP/1.1\r\nhost: b\r\n\r\n" },
        RESTLoad.Kind("a look-up by id") { socket, number in lookUp(socket, user(number * 7_919 % count)) },
        RESTLoad.Kind("a look-up by name") { socket, number in
            lookUp(socket, "?name=\(name(number * 7_919 % count))", separator: "")
        },
    ]
    var bytes = [Double]()
    for _ in 0..<rounds {
        for kind in kinds {
            let cpu = server.process.cpuSeconds()
            // A user has 600 look-ups a minute, and 120 by name.
            kind.runs.append(try load.run(requests: 16 * 20, kind.make))
            kind.costs.append((server.process.cpuSeconds() - cpu) / Double(16 * 20) * 1e6)
            if kind.name.hasSuffix("id") { bytes.append(Double(load.answerBytes)) }
        }
    }
    let costs = zip(kinds[1].costs, kinds[0].costs).map { ($0 - $1) / 1e3 }
    return kinds.flatMap(\.figures) + [
        Figure(name: "entries of the log", value: Double(2 * count), unit: ""),
        Figure(name: "first look-up: the log is built in memory", value: building, unit: "s"),
        Figure(name: "memory of the server with it", value: Double(memory) / 1_048_576, unit: "MiB"),
        Figure(name: "answer with proofs, head and body", samples: bytes, unit: "B", goal: .atMost(4_096)),
        Figure(name: "server time of a look-up over the floor", samples: costs, unit: "ms", goal: .atMost(1)),
    ]
}

private func user(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 32 - digits.count) + digits
}

private func name(_ number: Int) -> String { "person\(number)@example.com" }

private func lookUp(_ socket: RESTSocket, _ user: String, separator: String = "/") -> String {
    let path = "/1/\(BenchServer.app)/keys\(separator)\(user)"
    return "GET \(path) HTTP/1.1\r\nhost: b\r\nx-simperium-token: \(socket.token)\r\n\r\n"
}

/// Writes a log of users who all have the same keys: the proofs are as long as with different ones.
private func fillLog(_ path: String, users count: Int) throws {
    let identity = Ed25519.SigningKey.random()
    let encryption = X25519.PrivateKey.random().publicKey
    let database = try Database(path: path, mode: .readWrite)
    _ = try database.text("PRAGMA journal_mode")
    try database.execute("PRAGMA synchronous=OFF")
    try database.transaction(.immediate) { () throws(SQLiteError) in
        for number in 0..<(2 * count) {
            let owner = user(number / 2)
            let entry: KeyLogEntry
            do throws(KeyLogError) {
                let user =
                    number % 2 == 0
                    ? owner : try KeyLogHandle.name(KeyLogHandle.folded(name(number / 2)), app: BenchServer.app)
                entry = try .first(
                    app: BenchServer.app, user: user, identity: identity, encryption: encryption, validFrom: 1)
            } catch { throw SQLiteError(extended: 1, message: "\(error)") }
            try database.statement(
                "INSERT INTO key_entry (app, place, user, number, bytes) VALUES (?1, ?2, ?3, 0, ?4)"
            ).bind(1, BenchServer.app).bind(2, Int64(number)).bind(3, entry.user).bind(4, entry.bytes).run()
            guard number % 2 == 0 else { continue }
            try database.statement(
                """
                INSERT INTO account (user, app, name, folded, scheme, salt, verifier, created, changed)
                VALUES (?1, ?2, ?3, ?3, 0, x'00', x'00', 0, 0)
                """
            ).bind(1, owner).bind(2, BenchServer.app).bind(3, name(number / 2)).run()
        }
    }
}

/// Sign-ups with entries for the key log, alternating with sign-ups without, 8 connections: what the log costs them.
func signUpsBeside(rounds: Int = 7, count: Int = 160) throws -> [Figure] {
    let stand = try PeopleStand(settings: ["--registrations-per-minute", "1000000"])
    let load = try RESTLoad(port: stand.process.port, tokens: (0..<8).map { "\($0)" })
    let people = try (0..<(2 * rounds * count)).map { number in
        try NewPerson(number, withEntries: number / count % 2 == 0)
    }
    var (with, without) = ([Double](), [Double]())
    var next = 0
    for _ in 0..<rounds {
        for isWith in [true, false] {
            let run = try load.run(requests: count) { _, _ in
                defer { next += 1 }
                return people[next].request(key: stand.apiKey)
            }
            if isWith { with.append(run.perSecond) } else { without.append(run.perSecond) }
        }
    }
    return [
        Figure(name: "sign-ups without entries, 8 connections", samples: without, unit: "1/s"),
        Figure(name: "sign-ups with entries for id and name", samples: with, unit: "1/s"),
        Figure(
            name: "  ratio", samples: zip(with, without).map { $0 / $1 }, unit: "", goal: .atLeast(0.5)),
    ]
}

/// The request with which a device signs up.
private struct NewPerson {
    private let body: String

    init(_ number: Int, withEntries: Bool) throws {
        let proof = Digest256.of(Array("proof \(number)".utf8)).bytes
        let name = "new\(number)@example.com"
        func text(_ count: Int) -> String { Base64.encodeURL([UInt8](repeating: 7, count: count)) }
        var entries = ""
        if withEntries {
            let user = try AccountPlace.userID(app: BenchServer.app, recoveryDigest: Hash.sha256(proof))
            let identity = Ed25519.SigningKey.random()
            let encryption = X25519.PrivateKey.random().publicKey
            let users = [user, try KeyLogHandle.name(KeyLogHandle.folded(name), app: BenchServer.app)]
            let list = try users.map { user in
                let entry = try KeyLogEntry.first(
                    app: BenchServer.app, user: user, identity: identity, encryption: encryption, validFrom: 1)
                return "\"\(Base64.encodeURL(entry.bytes))\""
            }
            entries = ",\"entries\":[\(list.joined(separator: ","))]"
        }
        body =
            "{\"u\":\"\(name)\",\"a\":\"\(text(32))\",\"kdf\":1,\"salt\":\"\(text(16))\",\"access\":\"\(text(61))\","
            + "\"bundle\":\"\(text(200))\",\"recover\":\"\(Base64.encodeURL(proof))\"\(entries)}"
    }

    func request(key: String) -> String {
        "POST /1/\(BenchServer.app)/auth/signup HTTP/1.1\r\nhost: b\r\nx-simperium-api-key: \(key)\r\n"
            + "content-length: \(body.utf8.count)\r\n\r\n\(body)"
    }
}
