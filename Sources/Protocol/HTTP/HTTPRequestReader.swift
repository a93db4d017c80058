/// Reads the server's side of HTTP/1.1 from bytes as they arrive: strict, incremental, without I/O.
///
/// One reader serves one connection from start to end. After a failure the connection must be closed, because the start
/// of the next message is unknown.
public struct HTTPRequestReader {
    private enum Body {
        case none
        case length(missing: Int)
        case chunked(HTTPChunkedBody)
    }

    private let limits: HTTPLimits
    private var head = HTTPHeadReader()
    private var request: HTTPRequest?
    private var body = Body.none
    private var mustSendContinue = false

    /// Makes a reader for a new connection.
    public init(limits: HTTPLimits = .init()) { self.limits = limits }

    /// Whether a request has begun and is not complete.
    public var isInsideRequest: Bool { request != nil || head.isStarted }

    /// Whether the head of a request is complete and its body is not.
    public var isInsideBody: Bool { request != nil }

    /// Bytes held of a request that is not complete.
    public var gatheredBytes: Int { head.bytes.count + (request?.body.count ?? 0) }

    /// Whether "100 Continue" must be sent now. Returns true once per request that asks for it, while its body has not
    /// begun.
    public mutating func takeContinue() -> Bool {
        defer { mustSendContinue = false }
        return mustSendContinue
    }

    /// Consumes `input` up to the end of the next request.
    ///
    /// - Parameter input: the consumed bytes are removed from its front; the rest belongs to the next request.
    /// - Returns: the request with its body, or nil when the input is used up.
    /// - Throws: `HTTPFailure` with the status of the answer.
    public mutating func next(_ input: inout UnsafeRawBufferPointer) throws(HTTPFailure) -> HTTPRequest? {
        if request == nil {
            guard try head.consume(&input, limits: limits) else { return nil }
            let parsed = try HTTPRequest(lines: head.lines, limits: limits)
            head = .init()
            try begin(parsed)
        }
        guard try consumeBody(&input), let complete = request else { return nil }
        request = nil
        (body, mustSendContinue) = (.none, false)
        return complete
    }

    private mutating func begin(_ parsed: HTTPRequest) throws(HTTPFailure) {
        switch try HTTPBodyFraming(parsed, limits: limits) {
        case .none: body = .none
        case .length(let length): body = .length(missing: length)
        case .chunked: body = .chunked(.init())
        }
        request = parsed
        if case .none = body { return }
        mustSendContinue = parsed.expectsContinue
    }

    private mutating func consumeBody(_ input: inout UnsafeRawBufferPointer) throws(HTTPFailure) -> Bool {
        if !input.isEmpty { mustSendContinue = false }
        switch body {
        case .none: return true
        case .length(let missing):
            let taken = min(missing, input.count)
            request?.body.append(contentsOf: input[..<taken])
            input = .init(rebasing: input[taken...])
            body = .length(missing: missing - taken)
            return taken == missing
        case .chunked(var decoder):
            var joined = request?.body ?? []
            request?.body = []
            body = .none
            let isComplete = try decoder.consume(&input, into: &joined, limits: limits)
            body = .chunked(decoder)
            request?.body = joined
            return isComplete
        }
    }
}
