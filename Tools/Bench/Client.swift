import Glibc
import ThicketClient
import ThicketProtocol
import ThicketSQLite
import ThicketServerProcess

/// The costs of a client on its own machine: catching up after an absence, durable edits, memory for its objects.
func client() async throws -> [Figure] {
    try await catchUp(objects: 10_000, changes: 10_000) + localEdits(count: 1_000) + memory(objects: 100_000)
}

/// The client was disconnected while 10,000 objects of 300 bytes were changed once each.
///
/// Floor: the least that any client must do: read as many diffs from SQLite, parse them, and write the resulting
/// bodies.
private func catchUp(objects: Int, changes: Int) async throws -> [Figure] {
    let server = try BenchServer(users: 1)
    _ = try fillBucket(server, count: objects)
    let path: String = server.process.folder + "/client.db"
    try await visit(server, path)
    try writeChanges(server, count: changes) { number in
        "{\"id\":\"key\(number)\",\"o\":\"M\",\"sv\":1,\"v\":\(diffOf(number)),\"ccid\":\"d\(number)\"}"
    }
    let floor: Double = try applyFloor(count: changes, folder: server.process.folder)
    let (cpu, serverCPU): (Double, Double) = (ownCPU(), server.process.cpuSeconds())
    let start: UInt64 = nanoseconds()
    try await visit(server, path)
    let elapsed: Double = Double(nanoseconds() - start) / 1e9
    let each: Double = 1e6 / Double(changes)
    return [
        Figure(name: "catch-up of \(changes) changes", value: elapsed, unit: "s"),
        Figure(name: "catch-up: changes", value: Double(changes) / elapsed, unit: "1/s"),
        Figure(name: "catch-up: client CPU a change", value: (ownCPU() - cpu) * each, unit: "µs"),
        Figure(
            name: "catch-up: server CPU a change", value: (server.process.cpuSeconds() - serverCPU) * each, unit: "µs"),
        Figure(name: "floor: read, parse, apply, write", value: floor, unit: "s"),
        Figure(name: "catch-up: ratio to the floor", value: elapsed / floor, unit: ""),
    ]
}

private func visit(_ server: BenchServer, _ path: String) async throws {
    let session: Session = try await Thicket.connect(
        server: server.process.address, app: BenchServer.app, token: server.tokens[0], store: .file(path))
    let bucket: Bucket = try await session.bucket("b")
    try await bucket.waitUntilSynced(timeout: .seconds(600))
    await session.close()
}

private func diffOf(_ number: Int) -> String { "{\"n\":{\"o\":\"r\",\"v\":\(number + 1_000_000)}}" }

private func applyFloor(count: Int, folder: String) throws -> Double {
    let source = try Database(path: folder + "/diffs.db", mode: .create)
    try source.execute("CREATE TABLE diff (id INTEGER PRIMARY KEY, v BLOB)")
    let target = try Database(path: folder + "/bodies.db", mode: .create)
    try target.execute("PRAGMA journal_mode=WAL")
    try target.execute("CREATE TABLE object (key TEXT PRIMARY KEY, version INTEGER, body BLOB) WITHOUT ROWID")
    try source.execute("BEGIN")
    try target.execute("BEGIN")
    for number: Int in 0..<count {
        try source.statement("INSERT INTO diff VALUES (?1, ?2)").bind(1, Int64(number))
            .bind(2, Array(diffOf(number).utf8)).run()
        try target.statement("INSERT INTO object VALUES (?1, 1, ?2)").bind(1, "key\(number)")
            .bind(2, Array(benchBody(number).utf8)).run()
    }
    try source.execute("COMMIT")
    try target.execute("COMMIT")
    let start: UInt64 = nanoseconds()
    let read: Statement = try source.statement("SELECT id, v FROM diff")
    try target.execute("BEGIN")
    while try read.step() {
        let key = "key\(read.integer(0))"
        let diff: ObjectDiff = try ObjectDiff(try JSONValue(parsing: read.bytes(1)))
        let before: [UInt8]? = try target.statement("SELECT body FROM object WHERE key = ?1").bind(1, key)
            .first { $0.bytes(0) }
        guard let object: JSONObject = try JSONValue(parsing: before ?? []).objectValue else { continue }
        try target.statement("UPDATE object SET version = 2, body = ?2 WHERE key = ?1").bind(1, key)
            .bind(2, try JSONDiff.apply(diff, to: object).serialized()).run()
    }
    try target.execute("COMMIT")
    return Double(nanoseconds() - start) / 1e9
}

/// Edits of objects of 300 bytes without a connection, until the call returns. With `.power`, each is then on disk.
private func localEdits(count: Int) async throws -> [Figure] {
    var template: [CChar] = Array("/tmp/thicket-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BenchError("no temporary folder in /tmp: errno \(errno)") }
    let folder: String = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer { for name: String in ["a.db", "a.db-wal", "a.db-shm", "a.db.lock"] { unlink("\(folder)/\(name)") } }
    let before: Double = try rawAppend(group: 1, rounds: 200).medianSeconds
    var figures: [Figure] = []
    for (name, durability): (String, StoreDurability) in [("on the disk", .power), ("in the store", .program)] {
        var options = SessionOptions()
        (options.startsOnline, options.durability) = (false, durability)
        let session: Session = try await Thicket.connect(
            server: "http://127.0.0.1:9", app: "bench", token: "t", store: .file(folder + "/a.db"), options: options)
        let bucket: Bucket = try await session.bucket("b")
        var times: [Double] = []
        for number: Int in 0..<count {
            let object: JSONObject = JSONObject([
                ("text", .string(String(repeating: "x", count: 280))), ("n", .number(JSONNumber(Int64(number)))),
            ])
            let start: UInt64 = nanoseconds()
            try await bucket.set("key\(number)", to: object)
            times.append(Double(nanoseconds() - start) / 1e3)
        }
        await session.close()
        times.sort()
        figures.append(Figure(name: "edit \(name): p50", value: quantile(times, 0.5), unit: "µs"))
        figures.append(Figure(name: "edit \(name): p99", value: quantile(times, 0.99), unit: "µs"))
    }
    let after: Double = try rawAppend(group: 1, rounds: 200).medianSeconds
    figures.append(Figure(name: "floor: one append and fdatasync p50", value: (before + after) / 2 * 1e6, unit: "µs"))
    return figures
}

/// Bytes that a session holds for a synced bucket, beyond a session with an empty bucket.
private func memory(objects: Int) async throws -> [Figure] {
    let server = try BenchServer(users: 1)
    _ = try fillBucket(server, count: objects)
    let path: String = server.process.folder + "/client.db"
    try await visit(server, path)
    let before: Int = heapBytes()
    let session: Session = try await Thicket.connect(
        server: server.process.address, app: BenchServer.app, token: server.tokens[0], store: .file(path))
    let bucket: Bucket = try await session.bucket("b")
    try await bucket.waitUntilSynced(timeout: .seconds(600))
    let held: Int = heapBytes() - before
    await session.close()
    return [
        Figure(name: "memory of a session, \(objects) objects", value: Double(held) / 1_024, unit: "KiB"),
        Figure(name: "memory an object", value: Double(held) / Double(objects), unit: "B"),
    ]
}

/// Proportional resident memory of this process in bytes, after the heap has returned its unused memory.
private func heapBytes() -> Int {
    // Not in the module map: int malloc_trim(size_t).
    if let symbol: UnsafeMutableRawPointer = dlsym(nil, "malloc_trim") {
        _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
    }
    return ServerProcess.memoryBytes(of: getpid())
}
