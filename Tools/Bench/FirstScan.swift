import Glibc
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketReplay
import ThicketSealed

/// The CPU time of the first index scan of a new device alone: the pages of an index go directly into the client's
/// state machine, which keeps them in a file. No server, no network and no waiting, so that a profile shows nothing
/// else.
func firstScans(objects: Int, bytes: Int) throws -> [Figure] {
    var figures: [Figure] = []
    for isSealed: Bool in [false, true] {
        let keys: SealedBucketKeys? = isSealed ? try Replay.randomKeys(app: "bench", bucket: "b") : nil
        let pages: [[UInt8]] = try pages(objects, bytes, keys)
        var samples: [Double] = []
        for round: Int in 0..<3 {
            let path = "/tmp/thicket-walk-\(getpid())-\(round).db"
            defer { for end: String in ["", "-wal", "-shm", ".lock"] { unlink(path + end) } }
            samples.append(try scan(pages, objects, keys, path) / Double(objects) * 1e6)
        }
        figures.append(
            Figure(
                name: "\(isSealed ? "sealed" : "open"): processor time of an object's first look and row",
                samples: samples, unit: "µs"))
    }
    return figures
}

/// - Returns: seconds of processor time.
private func scan(_ pages: [[UInt8]], _ objects: Int, _ keys: SealedBucketKeys?, _ path: String) throws -> Double {
    let store = try SQLiteLocalStore(path: path)
    defer { store.close() }
    let bucket = try BucketName("b")
    var machine: SyncMachine = try SyncMachine(
        options: SyncOptions(app: try AppID("bench"), token: "token"), store: store,
        random: SystemRandomNumberGenerator())
    machine.bucketsWithReaders = []
    _ = try machine.open(bucket, keys: keys, now: 1)
    _ = machine.goOnline(now: 1)
    _ = machine.opened(now: 1)
    _ = machine.received(ServerBatch([Array("0:auth:user@example.com".utf8)]), now: 1)
    let before: Double = ownCPU()
    for page in pages { receive(page, &machine) }
    let taken: Double = ownCPU() - before
    let count: Int = try machine.keys(bucket, after: nil, limit: objects + 1).count
    guard count == objects else { throw BenchError("the walk has brought \(count) of \(objects) objects") }
    return taken
}

/// A separate function, so that a profiler can collect only this: `valgrind --toggle-collect`.
@inline(never)
private func receive(_ page: [UInt8], _ machine: inout SyncMachine) {
    let batch = ServerBatch([page])
    _ = machine.ahead(of: batch, now: 1)
    _ = machine.received(batch, now: 1)
}

/// Pages of a thousand objects, as a server would send them.
private func pages(_ objects: Int, _ bytes: Int, _ keys: SealedBucketKeys?) throws -> [[UInt8]] {
    let text = String(repeating: "words ", count: bytes / 6)
    return try stride(from: 0, to: objects, by: 1_000).map { first in
        let last: Int = min(objects, first + 1_000)
        let entries: [String] = try (first..<last).map { number in
            let name = "key\(number)"
            let object: JSONObject = ["text": .string(text), "n": .number(JSONNumber(Int64(number)))]
            let (key, body): (String, JSONObject) = try keys.map { try sealed(name, object, $0) } ?? (name, object)
            return #"{"id":"\#(key)","v":1,"d":\#(JSONValue.object(body).serializedText)}"#
        }
        let mark: String = last < objects ? #","mark":"m\#(last)""# : ""
        return Array(#"0:i:{"current":"c1","index":[\#(entries.joined(separator: ","))]\#(mark)}"#.utf8)
    }
}

private func sealed(
    _ name: String, _ object: JSONObject, _ keys: SealedBucketKeys
) throws -> (key: String, body: JSONObject) {
    let key: String = keys.serverKey(of: name)
    let log = SealedLog(
        place: keys.place(serverKey: key), appKey: name, incarnation: RandomBytes.make(SealedLog.incarnationBytes),
        object: object)
    let snapshot: [UInt8] = SealedObject(author: AuthorID(rawValue: 1), log: log).sealedSnapshot(
        id: RandomBytes.make(SealedValue.idBytes), nonce: RandomBytes.make(AEADSuite.nonceBytes),
        with: try keys.sealer(serverKey: key))
    return (key, SealedEntity(snapshots: [0: Base64.encodeURL(snapshot)]).object)
}
