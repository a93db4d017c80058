import ThicketPlatform
/// A message or control frame of the peer. Payloads behind a pointer are not copied, and valid until the reader is
/// called again.
public enum WebSocketEvent {
    /// A whole text message; its UTF-8 is checked.
    case text(UnsafeRawBufferPointer)
    /// A whole binary message.
    case binary(UnsafeRawBufferPointer)
    /// A whole text message that arrived in pieces. Its memory belongs to the receiver, which need not copy it.
    case gatheredText([UInt8])
    /// A whole binary message that arrived in pieces, in memory that belongs to the receiver.
    case gatheredBinary([UInt8])
    /// A ping; the answer is a pong with the same payload, at most 125 bytes.
    case ping(UnsafeRawBufferPointer)
    /// The answer to a ping, or an unsolicited pong.
    case pong(UnsafeRawBufferPointer)
    /// The last event. `code` is nil when the peer gave none; the reason is valid UTF-8.
    case close(code: WebSocketCloseCode?, reason: UnsafeRawBufferPointer)
}

/// Reads a peer's WebSocket frames from bytes as they arrive (RFC 6455); does no I/O itself.
///
/// A frame that is complete in the input is unmasked and returned in place, without a copy. The reader allocates memory
/// only for a partial frame or an unfinished message, and frees it with the message; an idle reader has two words.
public struct WebSocketReader: ~Copyable {
    /// Bytes of one message at most, over all its fragments. A frame that would exceed it is refused when its header
    /// arrives.
    public let messageBytesMax: Int
    private let role: WebSocketRole
    private let acceptsBinary: Bool
    private var isOver = false
    private var gathering: WebSocketGathering?

    /// Makes a reader for a new connection.
    ///
    /// - Parameters:
    ///   - role: this side's end of the connection.
    ///   - messageBytesMax: bytes of one message at most, 1 or more.
    ///   - acceptsBinary: when false, the header of a binary message ends the connection with 1003.
    public init(role: WebSocketRole, messageBytesMax: Int, acceptsBinary: Bool = true) {
        self.role = role
        self.messageBytesMax = messageBytesMax
        self.acceptsBinary = acceptsBinary
    }

    /// True after a close frame or a failure: all later input is consumed and ignored.
    public var isFinished: Bool { isOver }
    /// Whether the reader has allocated memory, which it does only inside a frame or a fragmented message.
    public var holdsBytes: Bool { gathering != nil }

    /// Bytes of the unfinished message so far.
    public var gatheredBytes: Int { gathering?.message.count ?? 0 }

    /// Consumes `input` up to the end of the next event.
    ///
    /// - Parameter input: the consumed bytes are removed from its front; its bytes are unmasked in place.
    /// - Returns: the event, or nil when the input is used up.
    /// - Throws: `WebSocketFailure` once; the reader is finished then.
    public mutating func next(
        _ input: inout UnsafeMutableRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketEvent? {
        guard !isOver else {
            input = .init(rebasing: input[input.endIndex...])
            gathering = nil
            return nil
        }
        do {
            return try nextEvent(&input)
        } catch {
            isOver = true
            throw error
        }
    }

    /// Discards an unfinished message; all later input is consumed and ignored.
    ///
    /// Must not be called while an event's payload is in use.
    public mutating func finish() {
        isOver = true
        gathering = nil
    }

    private mutating func nextEvent(
        _ input: inout UnsafeMutableRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketEvent? {
        if let gathering, gathering.forgetControl() { self.gathering = nil }
        while !input.isEmpty {
            if gathering?.header == nil {
                guard let header = try readHeader(&input) else { return nil }
                try check(header)
                if let event = try wholeFrame(header, &input) { return event }
                begin(header)
            }
            if let event = try readPayload(&input) { return event }
        }
        return nil
    }

    /// Takes the header from the input, together with the bytes of it that arrived before.
    private mutating func readHeader(
        _ input: inout UnsafeMutableRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        if let gathering, gathering.headerCount > 0 {
            return try gathering.continueHeader(&input, role: role)
        }
        if let header: WebSocketFrameHeader = try .parse(UnsafeRawBufferPointer(input), role: role) {
            input.removeFirst(header.size)
            return header
        }
        let gathering = holder()
        return try gathering.continueHeader(&input, role: role)
    }

    /// Checks the rules that depend on the message to which the frame belongs.
    private func check(_ header: WebSocketFrameHeader) throws(WebSocketFailure) {
        guard !header.opcode.isControl else { return }
        let isInside = gathering?.messageOpcode != nil
        if header.opcode == .continuation && !isInside { throw WebSocketFailure(.continuationWithoutStart) }
        if header.opcode != .continuation && isInside { throw WebSocketFailure(.startInsideMessage) }
        if header.opcode == .binary && !acceptsBinary { throw WebSocketFailure(.binaryNotAccepted) }
        let gathered = gathering?.message.count ?? 0
        guard header.length <= messageBytesMax - gathered else { throw WebSocketFailure(.messageTooBig) }
    }

    /// The fast path: a control frame or an unfragmented message that is complete in the input.
    private mutating func wholeFrame(
        _ header: WebSocketFrameHeader, _ input: inout UnsafeMutableRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketEvent? {
        let isWhole = header.isFinal && header.opcode != .continuation
        guard isWhole && header.length <= input.count else { return nil }
        let payload = UnsafeMutableRawBufferPointer(rebasing: input[..<header.length])
        WebSocketMask.apply(header.mask, to: payload)
        input.removeFirst(header.length)
        let bytes = UnsafeRawBufferPointer(payload)
        if header.opcode == .text && !UTF8Validator.isValid(bytes) { throw WebSocketFailure(.invalidUTF8) }
        return try event(header.opcode, bytes)
    }

    private mutating func begin(_ header: WebSocketFrameHeader) {
        holder().begin(header)
    }

    private mutating func readPayload(
        _ input: inout UnsafeMutableRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketEvent? {
        guard let gathering, try gathering.consumePayload(&input), let frame = try gathering.finishFrame() else {
            return nil
        }
        switch frame {
        case .control(let opcode, let payload): return try event(opcode, payload)
        case .message(let opcode, let bytes):
            // The message belongs to the receiver now; the reader must not hold a second reference to it.
            self.gathering = nil
            return opcode == .binary ? .gatheredBinary(bytes) : .gatheredText(bytes)
        case .fragment: return nil
        }
    }

    private mutating func event(
        _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer
    ) throws(WebSocketFailure) -> WebSocketEvent {
        switch opcode {
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        case .close:
            isOver = true
            return try Self.closeEvent(payload)
        case .binary: return .binary(payload)
        case .text, .continuation: return .text(payload)
        }
    }

    private static func closeEvent(_ payload: UnsafeRawBufferPointer) throws(WebSocketFailure) -> WebSocketEvent {
        if payload.isEmpty { return .close(code: nil, reason: payload) }
        guard payload.count >= 2 else { throw WebSocketFailure(.shortClose) }
        let code = WebSocketCloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
        guard code.mayBeSent else { throw WebSocketFailure(.invalidCloseCode) }
        let reason = UnsafeRawBufferPointer(rebasing: payload[2...])
        guard UTF8Validator.isValid(reason) else { throw WebSocketFailure(.invalidUTF8) }
        return .close(code: code, reason: reason)
    }

    private mutating func holder() -> WebSocketGathering {
        if let gathering { return gathering }
        let fresh = WebSocketGathering()
        gathering = fresh
        return fresh
    }
}
