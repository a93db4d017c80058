import ThicketPlatform
/// The bytes of a frame or message that has not arrived completely. Exists only while something is missing.
final class WebSocketGathering {
    /// The frame whose payload is being read; nil between frames.
    private(set) var header: WebSocketFrameHeader?
    /// Bytes received of an incomplete header.
    private(set) var headerCount = 0
    private var headerBytes: (UInt64, UInt64) = (0, 0)
    /// Bytes received of the frame's payload.
    private var payloadCount = 0
    /// The kind of the open message; nil outside a message.
    private(set) var messageOpcode: WebSocketOpcode?
    private(set) var message = [UInt8]()
    /// The payload of a control frame. Kept until the reader is called again.
    private var control: UnsafeMutableRawBufferPointer?
    private var utf8 = UTF8Validator()

    /// Bytes reserved for a message of which only the header has arrived; later the capacity doubles.
    static let reservedMax = 64 << 10
    /// Capacity from which all the rest of a frame is reserved at once: the kernel allocates pages only when they are
    /// written, and copying megabytes to a larger buffer would block the caller for milliseconds.
    static let wholeFrom = 1 << 20

    /// A complete frame.
    enum Frame {
        /// A control frame; its payload is valid until the next call.
        case control(WebSocketOpcode, UnsafeRawBufferPointer)
        case message(WebSocketOpcode, [UInt8])
        /// A frame that is not the last of its message.
        case fragment
    }

    deinit { control?.deallocate() }

    /// Frees the control frame that the last event returned.
    ///
    /// - Returns: whether nothing is held any more.
    func forgetControl() -> Bool {
        if header == nil {
            control?.deallocate()
            control = nil
        }
        return header == nil && headerCount == 0 && messageOpcode == nil
    }

    /// Adds input to the bytes of an incomplete header until the header can be parsed.
    func continueHeader(
        _ input: inout UnsafeMutableRawBufferPointer, role: WebSocketRole
    ) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        let before = headerCount
        let taken = min(WebSocketFrameHeader.sizeMax - before, input.count)
        let result = withUnsafeMutableBytes(of: &headerBytes) { held in
            held[before...].copyBytes(from: input[..<taken])
            let known = UnsafeRawBufferPointer(rebasing: held[..<(before + taken)])
            return Result { () throws(WebSocketFailure) in try WebSocketFrameHeader.parse(known, role: role) }
        }
        guard let parsed = try result.get() else {
            headerCount += taken
            input.removeFirst(taken)
            return nil
        }
        headerCount = 0
        input.removeFirst(parsed.size - before)
        return parsed
    }

    /// Starts the payload of `header`.
    func begin(_ header: WebSocketFrameHeader) {
        self.header = header
        payloadCount = 0
        guard !header.opcode.isControl else {
            // 125 bytes at most.
            control = .allocate(byteCount: header.length, alignment: 1)
            return
        }
        if header.opcode != .continuation { messageOpcode = header.opcode }
        // The length in a header is only a claim: memory for it is reserved as the payload arrives.
        if header.isFinal && message.isEmpty { message.reserveCapacity(min(header.length, Self.reservedMax)) }
    }

    /// Adds input to the payload.
    ///
    /// - Returns: whether the frame is complete.
    /// - Throws: at the first byte that cannot be UTF-8 in a text message.
    func consumePayload(_ input: inout UnsafeMutableRawBufferPointer) throws(WebSocketFailure) -> Bool {
        guard let header else { return false }
        let taken = min(header.length - payloadCount, input.count)
        let piece = UnsafeMutableRawBufferPointer(rebasing: input[..<taken])
        WebSocketMask.apply(header.mask, offset: payloadCount, to: piece)
        input.removeFirst(taken)
        payloadCount += taken
        let bytes = UnsafeRawBufferPointer(piece)
        if header.opcode.isControl {
            control.map {
                UnsafeMutableRawBufferPointer(rebasing: $0[(payloadCount - taken)...]).copyMemory(from: bytes)
            }
        } else {
            if messageOpcode == .text && utf8.firstInvalid(in: bytes) != nil { throw WebSocketFailure(.invalidUTF8) }
            // Never more than a message of one frame needs. For fragments the buffer doubles without that bound;
            // otherwise many small fragments would cost the square of the message's length.
            let missing = header.length - payloadCount
            append(bytes, upTo: header.isFinal ? message.count + bytes.count + missing : .max)
        }
        return payloadCount == header.length
    }

    /// - Parameter total: bytes of the complete message, if that is known.
    private func append(_ more: UnsafeRawBufferPointer, upTo total: Int) {
        let (needed, room) = (message.count + more.count, message.capacity)
        if needed > room {
            let isRestReserved = room >= Self.wholeFrom && total != .max
            message.reserveCapacity(max(needed, isRestReserved ? total : min(max(room * 2, 64), total)))
        }
        message.append(contentsOf: more)
    }

    /// Ends the frame; nil outside a frame.
    func finishFrame() throws(WebSocketFailure) -> Frame? {
        guard let header else { return nil }
        self.header = nil
        if header.opcode.isControl {
            return .control(header.opcode, UnsafeRawBufferPointer(control ?? .init(start: nil, count: 0)))
        }
        guard header.isFinal, let messageOpcode else { return .fragment }
        if messageOpcode == .text && !utf8.isComplete { throw WebSocketFailure(.invalidUTF8) }
        defer { (message, self.messageOpcode, utf8) = ([], nil, .init()) }
        return .message(messageOpcode, message)
    }
}
