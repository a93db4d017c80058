import Glibc
import ThicketProtocol

/// A small HTTP client that blocks, for tests: one connection that stays, every wait with a deadline.
public final class TestHTTP {
    public struct Answer: Sendable {
        public let status: Int
        public let fields: HTTPFields
        public let body: String
        /// The version in the answer.
        public var version: Int? { fields["x-simperium-version"].flatMap { Int($0) } }
        /// `code` of an error.
        public var code: String? { member("code") }
        /// `message` of an error.
        public var message: String? { member("message") }

        private func member(_ name: String) -> String? {
            (try? JSONValue(parsing: body))?.objectValue?[name]?.stringValue
        }
    }

    private let line: TestLine
    private var unread: [UInt8] = []
    private let app: String
    /// Sent with every request.
    public var token: String?

    public init(port: Int, app: String = "app", token: String? = "ann-token") throws {
        (self.app, self.token) = (app, token)
        line = try TestLine(port: port)
    }

    /// One request and its answer. `path` follows `/1/APP/`.
    public func ask(
        _ method: String, _ path: String, body: String? = nil, fields: [(String, String)] = []
    ) throws -> Answer {
        try send(method, path, body: body, fields: fields)
        return try receive(headOnly: method == "HEAD")
    }

    /// Sends a request and does not wait for its answer.
    public func send(_ method: String, _ path: String, body: String? = nil, fields: [(String, String)] = []) throws {
        var text = "\(method) /1/\(app)/\(path) HTTP/1.1\r\nhost: test\r\n"
        if let token { text += "x-simperium-token: \(token)\r\n" }
        for (name, value) in fields { text += "\(name): \(value)\r\n" }
        if let body { text += "content-length: \(body.utf8.count)\r\n" }
        try send(raw: text + "\r\n" + (body ?? ""))
    }

    /// A request whose body is these bytes, and its answer.
    public func ask(_ method: String, _ path: String, bytes body: [UInt8]) throws -> Answer {
        try send(method, path, fields: [("content-length", "\(body.count)")])
        guard line.send(body) else { throw TestClient.Failure("a body could not be sent") }
        return try receive(headOnly: false)
    }

    public func send(raw text: String) throws {
        guard line.send(Array(text.utf8)) else { throw TestClient.Failure("the request could not be sent") }
    }

    /// The next answer; a 100 is an answer, too.
    public func receive(headOnly: Bool = false) throws -> Answer {
        let end = try place(of: [13, 10, 13, 10]) + 4
        var reader = HTTPResponseHeadReader()
        let head = try unread[..<end].withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var input = bytes
            return try reader.next(&input)
        }
        guard let head else { throw TestClient.Failure("no head") }
        let length = headOnly ? 0 : head.fields["content-length"].flatMap { Int($0) } ?? 0
        while unread.count < end + length { try readMore() }
        let body = String(decoding: unread[end..<end + length], as: UTF8.self)
        unread.removeFirst(end + length)
        return Answer(status: head.status, fields: head.fields, body: body)
    }

    /// Waits for the server's end of the connection.
    public func end() throws {
        while true {
            do { try readMore() } catch { return }
        }
    }

    /// Disconnects as a client does that is done.
    public func leave() { shutdown(line.descriptor, Int32(SHUT_RDWR)) }

    private func place(of mark: [UInt8]) throws -> Int {
        while true {
            if unread.count >= mark.count {
                for start in 0...(unread.count - mark.count)
                where unread[start..<start + mark.count].elementsEqual(mark) {
                    return start
                }
            }
            try readMore()
        }
    }

    private func readMore() throws {
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        let count = line.receive(&chunk, chunk.count)
        guard count > 0 else {
            throw TestClient.Failure(
                count == 0 ? "the connection ended" : "nothing came for \(TestClient.patience) s")
        }
        unread += chunk[..<count]
    }
}

extension TestServer {
    /// A connection for HTTP requests.
    public func http(token: String? = "ann-token") throws -> TestHTTP { try TestHTTP(port: port, token: token) }
}
