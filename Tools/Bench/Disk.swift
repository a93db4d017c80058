import Glibc
import Synchronization
import ThicketPlatform
import ThicketProtocol
import ThicketServer

/// The permanent disk space of a change beside its payload: 16 users with 64 objects each, 256 changes in flight, at
/// the server's full speed; and the largest size of its log meanwhile.
///
/// The file is measured after a clean stop, when all of the log is in it: before and after the changes. The payload is
/// the difference, the key, the client's name and the ccid (16 bytes), though the store keeps a name once for all
/// changes.
func diskUse(changes: Int = 200_000) throws -> [Figure] {
    let (users, objects): (Int, Int) = (16, 64)
    let server = try BenchServer(users: users, starts: false)
    let fill = try OfflineFill(server)
    let keys: [String] = (0..<objects).map { hexID(7, $0) }
    for user: Int in 0..<users {
        let bucket: BucketID = try OfflineFill.bucket("b", user: user)
        for key in keys { try fill.add(key, version: 0, to: bucket) }
    }
    try fill.finish()
    // Start and stop once before the measurement, so that the file has what a server adds at its start.
    try server.process.start()
    server.process.terminate()
    let database: String = server.process.folder + "/thicket.db"
    let before: Int = sizeOfFile(database)
    try server.process.start()
    let words = String(repeating: "words ", count: 26)
    let load = try SocketLoad(server, count: users, depth: 16, client: "bench-client-00000000000000000000") {
        socket, number in
        let diff = "{\"text\":{\"o\":\"r\",\"v\":\"\(words)\(1_000_000 + number)\"}}"
        return "0:c:{\"id\":\"\(keys[number % objects])\",\"o\":\"M\",\"sv\":\(1 + number / objects),\"v\":\(diff),"
            + "\"ccid\":\"\(hexID(socket, number))\"}"
    }
    let log = LargestFile(database + "-wal")
    let run: SocketLoad.Run = try load.run(changes: changes)
    let largest: Int = log.stop()
    guard server.process.terminate() == 0 else { throw BenchError("the server did not end well") }
    try expectChanges(changes + users * objects, in: database)
    // 188 bytes of difference, 32 of key, 35 of the client's name, 16 of the ccid.
    let payload: Int = 25 + words.utf8.count + 7 + 32 + 35 + 16
    let each: Double = Double(sizeOfFile(database) - before) / Double(run.changes)
    return [
        Figure(name: "changes", value: Double(run.changes), unit: ""),
        Figure(name: "rate", value: run.perSecond, unit: "1/s"),
        Figure(name: "what a change says", value: Double(payload), unit: "B"),
        Figure(name: "growth of the file, a change", value: each, unit: "B"),
        Figure(name: "  ratio", value: each / Double(payload), unit: "", goal: .atMost(1.5)),
        Figure(name: "log, largest", value: Double(largest) / 1_048_576, unit: "MiB", goal: .atMost(256e6 / 1_048_576)),
    ]
}

/// Bytes of a file; 0 when there is none.
func sizeOfFile(_ path: String) -> Int {
    var info = stat()
    return stat(path, &info) == 0 ? Int(info.st_size) : 0
}

/// Samples a file's size twenty times a second until it is stopped.
private final class LargestFile: Sendable {
    private let largest = Atomic<Int>(0)
    private let isDone = Atomic<Bool>(false)

    init(_ path: String) {
        _ = OwnThread("file-size") { [self] in
            while !isDone.load(ordering: .relaxed) {
                largest.max(sizeOfFile(path), ordering: .relaxed)
                usleep(50_000)
            }
        }
    }

    /// Stops, and returns the largest size.
    func stop() -> Int {
        isDone.store(true, ordering: .relaxed)
        return largest.load(ordering: .relaxed)
    }
}
