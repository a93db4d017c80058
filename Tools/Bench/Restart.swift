import CThicketNet
import Glibc
import ThicketProtocol
import ThicketSQLite
import ThicketServer

/// From the start of the program to readiness and to the first acknowledged change, in a store of `count` objects:
/// after a clean stop, after SIGKILL under load, and after SIGKILL with a log that a reader has kept from restarting.
/// Goal: 200 ms, also for the slowest.
func restart(objects count: Int) throws -> [Figure] {
    let server = try BenchServer(users: 1)
    _ = try fillBucket(server, count: count)
    server.process.terminate()
    var figures: [Figure] = []
    var clean: [(ready: Double, acknowledged: Double)] = []
    for round: Int in 0..<5 {
        clean.append(try timedStart(server, change: "clean-\(round)"))
        server.process.terminate()
    }
    figures += summary("clean stop", clean)
    var killed: [(ready: Double, acknowledged: Double)] = []
    var logBytes = 0
    for round: Int in 0..<5 {
        try server.process.start()
        try load(server, changes: 60_000, prefix: "k\(round)-", killing: true)
        logBytes = max(logBytes, fileBytes(server.process.folder + "/thicket.db-wal"))
        killed.append(try timedStart(server, change: "killed-\(round)"))
        server.process.terminate()
    }
    figures.append(Figure(name: "SIGKILL: write-ahead log, largest", value: Double(logBytes) / 1_048_576, unit: "MiB"))
    figures += summary("SIGKILL", killed)
    return figures + (try longLogs(server))
}

private func longLogs(_ server: BenchServer) throws -> [Figure] {
    var starts: [(ready: Double, acknowledged: Double)] = []
    var bytes = 0
    for round: Int in 0..<5 {
        bytes = max(bytes, try killWithLongLog(server, "long\(round)-"))
        starts.append(try timedStart(server, change: "long-\(round)"))
        server.process.terminate()
    }
    return [Figure(name: "held read, SIGKILL: write-ahead log, largest", value: Double(bytes) / 1_048_576, unit: "MiB")]
        + summary("held read, SIGKILL", starts)
}

/// A read that stays open keeps the log from restarting, as a backup of a large store does. It ends with the server:
/// while any process has the store open, the log's index stays, and the next server reads nothing of the log.
/// - Returns: bytes of the log.
private func killWithLongLog(_ server: BenchServer, _ prefix: String) throws -> Int {
    try server.process.start()
    do {
        let held = try Database(path: server.process.folder + "/thicket.db", mode: .readOnly)
        try held.begin(.deferred)
        _ = try held.integer("SELECT count(*) FROM bucket")
        try load(server, changes: 60_000, prefix: prefix, killing: true)
        // The read is open until here.
        withExtendedLifetime(held) { held.rollback() }
    }
    return fileBytes(server.process.folder + "/thicket.db-wal")
}

/// Longest time of a start, ms.
private let goal: Figure.Goal = .atMost(200)

private func summary(_ name: String, _ starts: [(ready: Double, acknowledged: Double)]) -> [Figure] {
    let (ready, acknowledged): ([Double], [Double]) = (
        starts.map { $0.ready * 1_000 }, starts.map { $0.acknowledged * 1_000 }
    )
    return [
        Figure(name: "\(name): ready, median", samples: ready, unit: "ms", goal: goal),
        Figure(name: "\(name): ready, slowest", value: ready.max() ?? .nan, unit: "ms", goal: goal),
        Figure(name: "\(name): first change acknowledged, median", samples: acknowledged, unit: "ms", goal: goal),
        Figure(name: "\(name): first change, slowest", value: acknowledged.max() ?? .nan, unit: "ms", goal: goal),
    ]
}

/// Longest wait for a server to report that it is ready.
private let readySeconds: Double = 30

/// Starts the server; seconds until it reports that it is ready, and until a change to the large bucket is
/// acknowledged.
private func timedStart(_ server: BenchServer, change: String) throws -> (ready: Double, acknowledged: Double) {
    let begin: UInt64 = nanoseconds()
    try server.process.start()
    let deadline: UInt64 = begin + UInt64(readySeconds * 1e9)
    while try httpStatus(server.process.port, "/health/ready") != 200 {
        guard nanoseconds() < deadline else { throw BenchError("the server is not ready after \(readySeconds) s") }
        usleep(500)
    }
    let ready: Double = Double(nanoseconds() - begin) / 1e9
    try load(server, changes: 1, prefix: change)
    return (ready, Double(nanoseconds() - begin) / 1e9)
}

/// Edits of objects in the large bucket, 256 in flight.
/// - Parameter killing: kills the server when that many are acknowledged and as many as usual are in flight.
private func load(_ server: BenchServer, changes: Int, prefix: String, killing: Bool = false) throws {
    let loop = LoadLoop()
    let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
    loop.add(socket)
    try authorize([socket], on: loop, server: server, bucket: "b")
    var sent = 0
    var acknowledged = 0
    func sendMore() {
        while killing || sent < changes, sent - acknowledged < 256 {
            let key: Int = sent * 7_919 % 50_000
            socket.send(
                "0:c:{\"id\":\"key\(key)\",\"o\":\"M\",\"v\":{\"m\(prefix)\":{\"o\":\"+\",\"v\":\(sent)}},"
                    + "\"ccid\":\"\(prefix)-\(sent)\"}")
            sent += 1
        }
    }
    sendMore()
    try loop.run(
        until: { acknowledged >= changes },
        receive: { _, bytes in
            acknowledged += occurrences(of: "\"ccids\"", in: bytes)
            sendMore()
        })
    guard killing else { return }
    server.process.kill()
    guard sent > acknowledged else { throw BenchError("nothing was on its way when the server was killed") }
}

private func fileBytes(_ path: String) -> Int {
    var info = stat()
    return stat(path, &info) == 0 ? Int(info.st_size) : 0
}

/// Status of a GET over a new connection; 0 without an answer.
private func httpStatus(_ port: UInt16, _ path: String) throws -> Int {
    let file: Int32 = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(file) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let result: Int32 = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    guard result == 0 else { return 0 }
    let request: [UInt8] = Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".utf8)
    guard write(file, request, request.count) == request.count else { return 0 }
    var answer = [UInt8](repeating: 0, count: 512)
    let count: Int = read(file, &answer, answer.count)
    guard count > 12 else { return 0 }
    return Int(String(decoding: answer[9..<12], as: UTF8.self)) ?? 0
}

/// The first change in a bucket that is not in memory, with `count` earlier changes: the work of the shard's thread
/// before it can decide, while all ccids are in the log (as after an upgrade) and when maintenance has archived them.
func coldBucket(changes count: Int) throws -> [Figure] {
    var template: [CChar] = Array("/tmp/thicket-cold-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BenchError("no temporary folder") }
    let folder: String = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
        for name: String in ["", "-wal", "-shm"] { unlink(folder + "/thicket.db" + name) }
        rmdir(folder)
    }
    let store = try SQLiteStore(path: folder + "/thicket.db")
    let id: BucketID = BucketID(app: try AppID("bench"), user: try UserID("u@example.com"), name: try BucketName("b"))
    let core: ShardCore = ShardCore(store: try store.makeWriter())
    func change(_ number: Int, _ name: String) throws -> SubmittedChange {
        SubmittedChange(
            origin: ChangeOrigin(connection: 1, channel: 0), bucket: id, clientID: try ClientID("bench"),
            library: .thicket, canWrite: true,
            request: ChangeRequest(
                key: "key\(number % 10_000)", ccid: "\(name)-\(number)", operation: .modify,
                object: .value(["n": .number(JSONNumber(Int64(number))), "by": .string(name)])),
            now: 1_700_000_000_000)
    }
    for number: Int in 0..<count {
        _ = core.receive(.change(try change(number, "c")))
        if number % 1_000 == 999 { _ = core.commit() }
    }
    _ = core.commit()
    func coldStart(_ name: String) throws -> (first: Double, second: Double) {
        let core: ShardCore = ShardCore(store: try store.makeWriter())
        var times: [Double] = []
        for number: Int in 1...2 {
            let begin: UInt64 = nanoseconds()
            _ = core.receive(.change(try change(number, name)))
            times.append(Double(nanoseconds() - begin) / 1e6)
            guard core.commit().appliedCount == 1 else { throw BenchError("the change was not applied") }
        }
        return (times[0], times[1])
    }
    let unarchived: (first: Double, second: Double) = try coldStart("walked")
    let maintenance: any StoreMaintenance = try store.makeMaintenance(RetentionSettings())
    var slowest: Double = 0
    let begin: UInt64 = nanoseconds()
    while let batch: MaintenanceBatch = try maintenance.nextBatch(now: 1_700_000_000_000) {
        let start: UInt64 = nanoseconds()
        _ = try core.apply(batch)
        slowest = max(slowest, Double(nanoseconds() - start) / 1e6)
    }
    let settling: Double = Double(nanoseconds() - begin) / 1e9
    let archived: [(first: Double, second: Double)] = try (0..<5).map { try coldStart("settled\($0)") }
    return [
        Figure(name: "changes in the bucket", value: Double(count), unit: ""),
        Figure(name: "first change, nothing settled", value: unarchived.first, unit: "ms"),
        Figure(name: "first change, median of 5", value: quantile(archived.map(\.first).sorted(), 0.5), unit: "ms"),
        Figure(name: "first change, slowest", value: archived.map(\.first).max() ?? 0, unit: "ms"),
        Figure(name: "second change, slowest", value: archived.map(\.second).max() ?? 0, unit: "ms"),
        Figure(name: "settling everything, and other background work", value: settling, unit: "s"),
        Figure(name: "largest piece of it on the shard's thread", value: slowest, unit: "ms"),
    ]
}
