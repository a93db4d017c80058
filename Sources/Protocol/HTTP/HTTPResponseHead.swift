/// The head of a response, as read by a client.
public struct HTTPResponseHead: Sendable, Equatable {
    /// The status code, 100...599.
    public let status: Int
    /// The header fields.
    public let fields: HTTPFields

    init(lines: [ArraySlice<UInt8>], limits: HTTPLimits) throws(HTTPFailure) {
        guard let first = lines.first else { throw HTTPFailure(.badStatusLine) }
        status = try Self.status(Array(first))
        fields = try HTTPFields(lines: lines.dropFirst(), limits: limits)
    }

    /// Reads `HTTP/1.1 101 Switching Protocols`; the reason may be empty and is ignored (RFC 9112, 4).
    private static func status(_ line: [UInt8]) throws(HTTPFailure) -> Int {
        guard line.count >= 12, line.starts(with: "HTTP/1.".utf8), HTTPText.isDigit(line[7]), line[8] == 0x20,
            line.count == 12 || line[12] == 0x20, line[9...11].allSatisfy(HTTPText.isDigit)
        else { throw HTTPFailure(.badStatusLine) }
        let status = line[9...11].reduce(0) { $0 * 10 + Int($1) - 0x30 }
        guard (100...599).contains(status) else { throw HTTPFailure(.badStatusLine) }
        return status
    }
}

/// Reads one response head from bytes as they arrive; the bytes after it stay in the input.
public struct HTTPResponseHeadReader {
    private let limits: HTTPLimits
    private var head = HTTPHeadReader()

    /// Makes a reader for one head.
    public init(limits: HTTPLimits = .init()) { self.limits = limits }

    /// Consumes `input` up to the end of the head.
    ///
    /// - Returns: the head, or nil when the input is used up.
    /// - Throws: `HTTPFailure`; the connection must be closed then.
    public mutating func next(_ input: inout UnsafeRawBufferPointer) throws(HTTPFailure) -> HTTPResponseHead? {
        guard try head.consume(&input, limits: limits) else { return nil }
        defer { head = .init() }
        return try HTTPResponseHead(lines: head.lines, limits: limits)
    }
}
