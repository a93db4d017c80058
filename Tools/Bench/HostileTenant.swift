import Glibc
import ThicketProtocol

/// A well-behaved user: one change at a time, at a steady pace.
final class HostileTenant {
    let number: Int
    private let socket: LoadSocket
    private let scratch: UnsafeMutableRawBufferPointer = .allocate(byteCount: 1 << 16, alignment: 64)
    private var version = 0
    private var isWaiting = false
    private var due: UInt64 = 0
    private var pace: UInt64 = 0
    /// The time from which the change in flight counts; 0: from when it is sent.
    private var begun: UInt64 = 0
    private var times: [Double] = []

    init(port: UInt16, token: String, number: Int) throws {
        self.number = number
        socket = try LoadSocket(port: port, app: BenchServer.app)
        socket.send(HostileAttack.hello(token, "tenant-\(number)", bucket: "b"))
    }

    deinit { scratch.deallocate() }

    var descriptor: Int32 { socket.descriptor }
    var nextDue: UInt64 { isWaiting ? .max : due }

    func begin(at time: UInt64, pace: UInt64) {
        (due, self.pace, times) = (isWaiting ? due : time, pace, [])
    }

    /// Whether it has no change in flight.
    var isIdle: Bool { !isWaiting }

    /// - Parameter sends: false only receives.
    func turn(sends: Bool = true) throws {
        let isConnected: Bool = try socket.drain(scratch) { bytes in
            guard isWaiting, contains(bytes, "\"ccids\"") else { return }
            isWaiting = false
            version += 1
            let now: UInt64 = nanoseconds()
            times.append(Double(now - begun) / 1e6)
            due += pace
            begun = due < now ? due : 0
        }
        guard isConnected else { throw BenchError("the server closed the connection of tenant \(number)") }
        guard sends, !isWaiting, nanoseconds() >= due else { return }
        isWaiting = true
        if begun == 0 { begun = nanoseconds() }
        let field: String =
            version == 0
            ? "\"t\":{\"o\":\"+\",\"v\":\"\(String(repeating: "x", count: 200))\"},\"n\":{\"o\":\"+\",\"v\":0}"
            : "\"n\":{\"o\":\"r\",\"v\":\(version)}"
        let source: String = version == 0 ? "" : "\"sv\":\(version),"
        socket.send(
            "0:c:{\"id\":\"k\",\"o\":\"M\",\(source)\"v\":{\(field)},\"ccid\":\"t\(number)-\(version)\"}")
    }

    /// The measured times, including the changes that are due and have no answer yet.
    func measuredTimes(at now: UInt64) -> [Double] {
        var all: [Double] = times
        var late: UInt64 = isWaiting ? begun : now
        while late < now {
            all.append(Double(now - late) / 1e6)
            late += pace
        }
        return all
    }

    /// The server's page of metrics.
    static func metrics(port: UInt16) throws -> String {
        let socket = HostileSocket(port: port, number: 0)
        guard socket.connectPlain() else { throw BenchError("no metrics: connection refused") }
        let request: [UInt8] = Array("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".utf8)
        _ = Glibc.send(socket.descriptor, request, request.count, Int32(MSG_NOSIGNAL))
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count: Int = recv(socket.descriptor, &chunk, chunk.count, 0)
            if count > 0 {
                answer += chunk[..<count]
                continue
            }
            let page = String(decoding: answer, as: UTF8.self)
            guard count == 0, page.hasPrefix("HTTP/1.1 200"), page.contains("\nthicket_connections ") else {
                throw BenchError("no metrics: \(answer.count) bytes, errno \(count < 0 ? errno : 0)")
            }
            return page
        }
    }
}
