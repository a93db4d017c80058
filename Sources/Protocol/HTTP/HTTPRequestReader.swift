/// Reads the server's side of HTTP/1.1 from bytes as they arrive: strict, incremental, without I/O.
///
/// One reader serves one connection from start to end. After a failure the connection must be closed, because the start
/// of the next message is unknown.
public struct HTTPRequestReader {
    /// What `next` has found.
    public enum Event {
        /// A request with its whole body.
        case request(HTTPRequest)
        /// A head whose body of `length` bytes follows in pieces.
        case head(HTTPRequest, length: Int)
        /// The next bytes of that body; valid as long as the input. The last piece completes the request.
        case piece(UnsafeRawBufferPointer, isLast: Bool)
    }

    private enum Body {
        case none
        case length(missing: Int)
        /// Its bytes are passed on and not kept.
        case streamed(missing: Int)
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
        guard case .request(let request)? = try next(&input, streams: { _ in nil }) else { return nil }
        return request
    }

    /// Consumes `input` up to the end of the next request, or of the next part of one whose body is not kept.
    ///
    /// - Parameters:
    ///   - input: the consumed bytes are removed from its front.
    ///   - streams: called once for each head; returns the most bytes of a body that is passed on in pieces, nil for
    ///     a request that is returned with its body. Chunked bodies are never passed on in pieces.
    /// - Returns: nil when the input is used up.
    /// - Throws: `HTTPFailure` with the status of the answer.
    public mutating func next(
        _ input: inout UnsafeRawBufferPointer, streams: (HTTPRequest) -> Int?
    ) throws(HTTPFailure) -> Event? {
        if request == nil {
            guard try head.consume(&input, limits: limits) else { return nil }
            let parsed = try HTTPRequest(lines: head.lines, limits: limits)
            head = .init()
            try begin(parsed, streamedMax: streams(parsed))
            if case .streamed(let length) = body { return .head(parsed, length: length) }
        }
        if case .streamed(let missing) = body { return nextPiece(&input, missing) }
        guard try consumeBody(&input), let complete = request else { return nil }
        endRequest()
        return .request(complete)
    }

    private mutating func nextPiece(_ input: inout UnsafeRawBufferPointer, _ missing: Int) -> Event? {
        guard !input.isEmpty else { return nil }
        let piece = UnsafeRawBufferPointer(rebasing: input[..<min(missing, input.count)])
        input = .init(rebasing: input[piece.count...])
        (body, mustSendContinue) = (.streamed(missing: missing - piece.count), false)
        let isLast = piece.count == missing
        if isLast { endRequest() }
        return .piece(piece, isLast: isLast)
    }

    private mutating func endRequest() {
        request = nil
        (body, mustSendContinue) = (.none, false)
    }

    /// - Parameter streamedMax: most bytes of a body that is passed on in pieces; nil: the body is kept.
    private mutating func begin(_ parsed: HTTPRequest, streamedMax: Int?) throws(HTTPFailure) {
        var limits = limits
        let isStreamed = streamedMax != nil && parsed.fields.count(of: "content-length") == 1
        if let streamedMax, isStreamed { limits.bodyBytesMax = streamedMax }
        switch try HTTPBodyFraming(parsed, limits: limits) {
        case .none: body = .none
        case .length(let length) where isStreamed: body = .streamed(missing: length)
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
        case .none, .streamed: return true
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
