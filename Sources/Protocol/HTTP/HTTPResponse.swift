/// A response to be written.
public struct HTTPResponse: Sendable, Equatable {
    /// The status code, 100...599.
    public var status: Int
    /// The fields without content-length, connection and date, which `encoded(for:date:)` adds.
    public var fields: HTTPFields
    /// The body; empty without one.
    public var body: [UInt8]
    /// Whether the connection is closed after the response.
    public var closes: Bool
    /// Bytes of a body that is sent apart from this value, and of the body that a HEAD request does not get; nil: those
    /// of `body`.
    public var bodyLength: Int?

    /// Makes a response.
    public init(status: Int, fields: HTTPFields = [], body: [UInt8] = [], closes: Bool = false) {
        (self.status, self.fields, self.body, self.closes) = (status, fields, body, closes)
    }

    /// A response with a short text as its body.
    public static func text(_ status: Int, _ text: String, closes: Bool = false) -> HTTPResponse {
        .init(
            status: status, fields: [.init("content-type", "text/plain; charset=utf-8")], body: Array(text.utf8),
            closes: closes)
    }

    /// A response with a JSON body.
    public static func json(_ status: Int, _ body: [UInt8]) -> HTTPResponse {
        .init(status: status, fields: [.init("content-type", "application/json")], body: body)
    }

    /// The answer to a request that was refused; the connection is closed after it.
    public static func refusal(_ failure: HTTPFailure) -> HTTPResponse {
        var writer = JSONWriter()
        writer.raw("{\"code\":")
        writer.write(string: failure.code)
        writer.raw(",\"message\":")
        writer.write(string: "The request was refused: \(failure.words).")
        writer.raw(",\"hint\":")
        writer.write(string: failure.hint)
        writer.raw("}")
        var response = HTTPResponse.json(failure.status, writer.bytes)
        response.closes = true
        if failure.status == 426 {
            response.fields.append("upgrade", "websocket")
            response.fields.append("sec-websocket-version", "13")
        }
        return response
    }

    /// The bytes on the wire.
    ///
    /// - Parameters:
    ///   - request: the request that it answers: HEAD gets no body, and HTTP/1.0 is told if the connection stays open.
    ///   - date: the value of the date field; nil leaves it out.
    public func encoded(for request: HTTPRequest?, date: String? = nil) -> [UInt8] {
        let keepsAlive = !closes && (request?.keepsAlive ?? false)
        var head = beginning
        if status >= 200 && status != 204 && status != 304 { head += "content-length: \(bodyLength ?? body.count)\r\n" }
        if let date { head += "date: \(date)\r\n" }
        if status >= 200 {
            if !keepsAlive { head += "connection: close\r\n" }
            if keepsAlive && request?.minorVersion == 0 { head += "connection: keep-alive\r\n" }
        }
        head += "\r\n"
        var bytes = [UInt8](head.utf8)
        if request?.method != "HEAD" { bytes.append(contentsOf: body) }
        return bytes
    }

    private var beginning: String {
        var head = "HTTP/1.1 \(status) \(Self.reason(status))\r\n"
        for field in fields.all { head += "\(field.name): \(Self.singleLine(field.value))\r\n" }
        return head
    }

    /// The head alone, of a response of unknown length: the body is chunked for HTTP/1.1 (RFC 9112, 7.1), and ends with
    /// the connection for HTTP/1.0.
    public func streamHead(for request: HTTPRequest, date: String? = nil) -> [UInt8] {
        var head = beginning
        if request.minorVersion >= 1 { head += "transfer-encoding: chunked\r\n" }
        if let date { head += "date: \(date)\r\n" }
        if request.minorVersion == 0 || !request.keepsAlive { head += "connection: close\r\n" }
        return Array((head + "\r\n").utf8)
    }

    /// One chunk of a body. `bytes` must not be empty: an empty chunk ends the body.
    public static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        var chunk = [UInt8]()
        chunk.reserveCapacity(bytes.count + 20)
        chunk.append(contentsOf: String(bytes.count, radix: 16).utf8)
        chunk.append(contentsOf: [0x0D, 0x0A])
        chunk.append(contentsOf: bytes)
        chunk.append(contentsOf: [0x0D, 0x0A])
        return chunk
    }

    /// The end of a chunked body.
    public static let lastChunk: [UInt8] = Array("0\r\n\r\n".utf8)

    /// Replaces control bytes by blanks, so that no value can end its own line, whatever it was made from.
    private static func singleLine(_ value: String) -> String {
        guard value.utf8.contains(where: { !HTTPText.isFieldContent($0) }) else { return value }
        return String(decoding: value.utf8.map { HTTPText.isFieldContent($0) ? $0 : 0x20 }, as: UTF8.self)
    }

    private static func reason(_ status: Int) -> String { reasons[status] ?? "Status" }

    private static let reasons: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
        206: "Partial Content",
        304: "Not Modified", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
        405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
        411: "Length Required",
        412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long", 416: "Range Not Satisfiable",
        417: "Expectation Failed",
        426: "Upgrade Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        500: "Internal Server Error", 501: "Not Implemented", 503: "Service Unavailable", 504: "Gateway Timeout",
        505: "HTTP Version Not Supported", 507: "Insufficient Storage",
    ]
}
