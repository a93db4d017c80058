import Glibc
import ThicketPlatform
import ThicketProtocol

/// A small HTTP client that blocks, for tests: one connection, whole answers or chunk by chunk, every wait with a
/// deadline.
public final class HTTPPeer {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    public struct Answer {
        public let status: Int
        public let fields: HTTPFields
        public var body = ""
    }

    private let line: TestLine
    private var unread: [UInt8] = []

    public init(port: Int) throws {
        line = try TestLine(port: port)
    }

    /// One request on a new connection, and its whole answer.
    public static func ask(
        _ port: Int, _ method: String, _ path: String, _ fields: [String: String] = [:], body: String = ""
    ) throws -> Answer {
        try HTTPPeer(port: port).ask(method, path, fields, body: body)
    }

    /// One request, and its whole answer; the connection may be used again.
    public func ask(
        _ method: String, _ path: String, _ fields: [String: String] = [:], body: String = ""
    ) throws -> Answer {
        try send(method, path, fields, body: body)
        return try answer()
    }

    /// Sends a request and waits for nothing.
    public func send(
        _ method: String, _ path: String, _ fields: [String: String] = [:], body: String = "", version: String = "1.1"
    ) throws {
        var head = "\(method) \(path) HTTP/\(version)\r\nHost: 127.0.0.1\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if method == "POST" || !body.isEmpty { head += "Content-Length: \(body.utf8.count)\r\n" }
        try send(raw: Array((head + "\r\n" + body).utf8))
    }

    /// Sends bytes as they are.
    public func send(raw bytes: [UInt8]) throws {
        guard line.send(bytes) else { throw Failure(description: "a request could not be sent: error \(errno)") }
    }

    /// The next answer with its body, which has a length.
    public func answer() throws -> Answer {
        var answer = try head()
        let count = answer.fields["content-length"].flatMap { Int($0) } ?? 0
        answer.body = String(decoding: try take(count), as: UTF8.self)
        return answer
    }

    /// The head of the next answer.
    public func head() throws -> Answer {
        var heads = HTTPResponseHeadReader()
        while true {
            let (head, used) = try unread.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                var input = bytes
                let head = try heads.next(&input)
                return (head, bytes.count - input.count)
            }
            unread.removeFirst(used)
            if let head { return Answer(status: head.status, fields: head.fields) }
            try fill()
        }
    }

    /// The next chunk; nil at the end of the body.
    public func chunk() throws -> String? {
        var line = [UInt8]()
        while line.suffix(2) != [13, 10] { line += try take(1) }
        guard let count = Int(String(decoding: line.dropLast(2), as: UTF8.self), radix: 16) else {
            throw Failure(description: "no chunk: \(String(decoding: line, as: UTF8.self))")
        }
        let body = try take(count)
        guard try take(2) == [13, 10] else { throw Failure(description: "a chunk without its end") }
        return count == 0 ? nil : String(decoding: body, as: UTF8.self)
    }

    /// Everything until the server ends the connection.
    public func rest() throws -> String {
        while (try? fill()) != nil {}
        defer { unread = [] }
        return String(decoding: unread, as: UTF8.self)
    }

    /// Exactly this many bytes.
    public func take(_ count: Int) throws -> [UInt8] {
        while unread.count < count { try fill() }
        defer { unread.removeFirst(count) }
        return Array(unread[..<count])
    }

    /// Disconnects: `isReset` resets the connection, otherwise it is closed in order.
    public func close(isReset: Bool = false) {
        if isReset {
            var hard = linger(l_onoff: 1, l_linger: 0)
            setsockopt(line.descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        }
        shutdown(line.descriptor, Int32(isReset ? SHUT_RDWR : SHUT_WR))
    }

    private func fill() throws {
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        let count = line.receive(&bytes, bytes.count)
        guard count > 0 else {
            let isLate = count < 0 && errno == EAGAIN
            throw Failure(description: isLate ? "nothing came for \(TestClient.patience) s" : "the connection ended")
        }
        unread += bytes[..<count]
    }
}
