import Glibc
import ThicketClient
import ThicketProtocol
import ThicketSQLite

/// A new client fetches `count` objects of 300 bytes into a SQLite store. Floor: the same rows read from SQLite,
/// parsed, and inserted into the client's schema, in one transaction.
func firstSync(objects count: Int) async throws -> [Figure] {
    let server = try BenchServer(users: 1)
    let fill: Double = try fillBucket(server, count: count)
    let floor: Double = try copyFloor(count: count, folder: server.process.folder)
    let cpuBefore: Double = server.process.cpuSeconds()
    let ownBefore: Double = ownCPU()
    let start: UInt64 = nanoseconds()
    let session: Session = try await Thicket.connect(
        server: server.process.address, app: BenchServer.app, token: server.tokens[0],
        store: .file(server.process.folder + "/first.db"))
    let bucket: Bucket = try await session.bucket("b")
    try await bucket.waitUntilSynced(timeout: .seconds(600))
    let elapsed: Double = Double(nanoseconds() - start) / 1e9
    let ownAfter: Double = ownCPU()
    let found: Int = try await bucket.keys().count
    await session.close()
    guard found == count else { throw BenchError("the client has \(found) objects of \(count)") }
    return [
        Figure(name: "first sync of \(count) objects", value: elapsed, unit: "s"),
        Figure(name: "objects", value: Double(count) / elapsed, unit: "1/s"),
        Figure(name: "client CPU", value: ownAfter - ownBefore, unit: "s"),
        Figure(name: "server CPU", value: server.process.cpuSeconds() - cpuBefore, unit: "s"),
        Figure(name: "floor: read, parse, insert", value: floor, unit: "s"),
        Figure(name: "ratio to the floor", value: elapsed / floor, unit: "", goal: .atMost(3)),
        Figure(name: "(filling the bucket)", value: fill, unit: "s"),
    ]
}

/// An object of about 300 bytes.
func benchBody(_ number: Int) -> String {
    "{\"title\":\"Object number \(number)\",\"text\":\"" + String(repeating: "words and more ", count: 16)
        + "\",\"n\":\(number),\"done\":false}"
}

/// Creates the objects, 256 changes in flight.
func fillBucket(_ server: BenchServer, count: Int) throws -> Double {
    let start: UInt64 = nanoseconds()
    try writeChanges(server, count: count) { number in
        "{\"id\":\"key\(number)\",\"o\":\"M\",\"d\":\(benchBody(number)),\"ccid\":\"c\(number)\"}"
    }
    return Double(nanoseconds() - start) / 1e9
}

/// Sends changes to the first user's bucket `b`, 256 in flight, until all are acknowledged.
func writeChanges(_ server: BenchServer, count: Int, _ change: (_ number: Int) -> String) throws {
    let loop = LoadLoop()
    let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
    loop.add(socket)
    try authorize([socket], on: loop, server: server, bucket: "b")
    var (sent, acknowledged): (Int, Int) = (0, 0)
    func sendMore() {
        while sent < count, sent - acknowledged < 256 {
            socket.send("0:c:" + change(sent))
            sent += 1
        }
    }
    sendMore()
    try loop.run(
        until: { acknowledged >= count },
        receive: { _, bytes in
            acknowledged += occurrences(of: "\"ccids\"", in: bytes)
            sendMore()
        })
}

func occurrences(of text: StaticString, in bytes: UnsafeRawBufferPointer) -> Int {
    let needle: [UInt8] = text.withUTF8Buffer { Array($0) }
    var count = 0
    var index = 0
    while index + needle.count <= bytes.count {
        let isThere: Bool =
            bytes[index] == needle[0] && bytes[index..<(index + needle.count)].elementsEqual(needle)
        count += isThere ? 1 : 0
        index += isThere ? needle.count : 1
    }
    return count
}

/// The least that any client must do: read as many rows from one SQLite file, parse them, insert them into another.
private func copyFloor(count: Int, folder: String) throws -> Double {
    let source = try Database(path: folder + "/floor-source.db", mode: .create)
    try source.execute("PRAGMA journal_mode=WAL")
    try source.execute("CREATE TABLE object (key TEXT PRIMARY KEY, version INTEGER, body BLOB) WITHOUT ROWID")
    try insert(into: source, (0..<count).map { ("key\($0)", Array(benchBody($0).utf8)) })
    let start: UInt64 = nanoseconds()
    let target = try Database(path: folder + "/floor-target.db", mode: .create)
    try target.execute("PRAGMA locking_mode=EXCLUSIVE")
    try target.execute("PRAGMA journal_mode=WAL")
    try target.execute(
        """
        CREATE TABLE entity (
            id INTEGER PRIMARY KEY, bucket INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL DEFAULT 0,
            is_there INTEGER NOT NULL DEFAULT 0, is_live INTEGER NOT NULL DEFAULT 0, walk INTEGER NOT NULL DEFAULT 0,
            UNIQUE (bucket, key));
        CREATE TABLE ghost (id INTEGER PRIMARY KEY, object BLOB NOT NULL);
        """)
    let read: Statement = try source.statement("SELECT key, body FROM object")
    try target.execute("BEGIN")
    while try read.step() {
        let bytes: [UInt8] = read.bytes(1)
        _ = try JSONDocument(parsing: bytes)
        try target.statement("INSERT INTO entity VALUES (NULL, 1, ?1, 1, 1, 1, 1)").bind(1, read.text(0)).run()
        try target.statement("INSERT INTO ghost VALUES (?1, ?2)").bind(1, target.lastInsertRow)
            .bind(2, bytes).run()
    }
    try target.execute("COMMIT")
    return Double(nanoseconds() - start) / 1e9
}

private func insert(into database: Database, _ rows: [(String, [UInt8])]) throws {
    let statement: Statement = try database.statement("INSERT INTO object VALUES (?1, 1, ?2)")
    try database.execute("BEGIN")
    for (key, bytes) in rows {
        statement.bind(1, key).bind(2, bytes)
        try statement.run()
    }
    try database.execute("COMMIT")
}
