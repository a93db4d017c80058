import Glibc
import ThicketProtocol
import ThicketSQLite

/// A client that missed `count` changes requests them. Floor: reading the same rows from the server's file.
func catchUp(changes count: Int, rounds: Int = 7) throws -> [Figure] {
    let server = try BenchServer(users: 1)
    let loop = LoadLoop()
    let writer = try LoadSocket(port: server.process.port, app: BenchServer.app)
    loop.add(writer)
    try authorize([writer], on: loop, server: server, bucket: "b")
    let first: String = try fill(writer, on: loop, keys: "k", count: 1)
    _ = try fill(writer, on: loop, keys: "o", count: count)
    var times: [Double] = []
    var floors: [Double] = []
    var costs: [Double] = []
    for _ in 0..<rounds {
        let cpu: Double = server.process.cpuSeconds()
        let start: UInt64 = nanoseconds()
        let socket = try LoadSocket(port: server.process.port, app: BenchServer.app)
        loop.add(socket)
        var found = 0
        socket.send(initialize(server.tokens[0], client: "late", bucket: "b", command: "cv:\(first)"))
        try loop.run(
            until: { found >= count }, receive: { _, bytes in found += occurrences(of: "\"ccids\"", in: bytes) })
        times.append(Double(nanoseconds() - start) / 1e6)
        costs.append((server.process.cpuSeconds() - cpu) / Double(count) * 1e6)
        loop.remove(socket)
        floors.append(try readFloor(server.process.folder + "/thicket.db", count: count))
    }
    return [
        Figure(name: "catch-up of \(count) changes", samples: times, unit: "ms"),
        Figure(name: "server CPU a change", samples: costs, unit: "µs"),
        Figure(name: "floor: the same rows read from the file", samples: floors, unit: "ms"),
        Figure(name: "ratio to the floor", samples: zip(times, floors).map { $0 / $1 }, unit: ""),
    ]
}

private func readFloor(_ path: String, count: Int) throws -> Double {
    let database = try Database(path: path, mode: .readOnly)
    let rows: Statement = try database.prepare("SELECT k, sv, ev, client, ccid, diff FROM chg WHERE gid > ?1")
    let start: UInt64 = nanoseconds()
    var found = 0
    var bytes = 0
    try rows.bind(1, 1).forEach { row in
        found += 1
        bytes += row.text(0).utf8.count + row.bytes(4).count + row.bytes(5).count + Int(row.integer(2) & 1)
    }
    guard found >= count, bytes > 0 else { throw BenchError("the file has \(found) changes of \(count)") }
    return Double(nanoseconds() - start) / 1e6
}

/// Creates `count` objects over one socket, 256 changes in flight. Returns the newest position.
func fill(
    _ socket: LoadSocket, on loop: LoadLoop, keys: String, count: Int, start: Int = 0, sameKey: Bool = false
) throws -> String {
    var sent = 0
    var done = 0
    var position = ""
    func sendMore() {
        while sent < count, sent - done < 256 {
            let number: Int = start + sent
            let key: String = sameKey ? keys : "\(keys)\(number)"
            socket.send(change(of: key, ccid: "\(keys)-\(number)", number: number, version: sameKey ? number : 0))
            sent += 1
        }
    }
    sendMore()
    try loop.run(
        until: { done >= count },
        receive: { _, bytes in
            done += occurrences(of: "\"ccids\"", in: bytes)
            if done >= count { position = lastPosition(in: bytes) }
            sendMore()
        })
    return position
}

/// The `cv` of the last change of a message.
private func lastPosition(in bytes: UnsafeRawBufferPointer) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let part: Substring = text.components(after: "\"cv\":\"").last else { return "" }
    return String(part.prefix { $0 != "\"" })
}

extension String {
    fileprivate func components(after mark: String) -> [Substring] {
        var found: [Substring] = []
        let wanted: [UInt8] = Array(mark.utf8)
        var rest: Substring.UTF8View = Substring(self).utf8
        while let place = rest.firstIndex(of: wanted[0]) {
            rest = rest[place...]
            if rest.starts(with: wanted) {
                rest = rest.dropFirst(wanted.count)
                found.append(Substring(rest))
            } else {
                rest = rest.dropFirst()
            }
        }
        return found
    }
}
