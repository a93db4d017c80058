/// The bytes of a frame or message that is not all there yet. Exists only as long as something is missing.
final class WebSocketGathering {
    /// The frame whose payload is being read; nil between frames.
    private(set) var header: WebSocketFrameHeader?
    /// Bytes of an incomplete header so far.
    private(set) var headerCount: Int = 0
    private var headerBytes: (UInt64, UInt64) = (0, 0)
    /// Payload bytes of the frame so far.
    private var payloadCount: Int = 0
    /// What the open message is; nil outside one.
    private(set) var messageOpcode: WebSocketOpcode?
    private(set) var message: ByteBuffer = .init()
    private var control: ByteBuffer = .init()
    private var utf8: UTF8Validator = .init()
    private var deliveredMessage: Bool = false

    /// Bytes reserved for a message of which only the header is there; then twice as much as has come, and from
    /// `ByteBuffer.wholeFrom` on all of it.
    static let reservedMax: Int = 64 << 10

    /// Frees what was handed out by the last event.
    ///
    /// - Returns: whether nothing is held any more.
    func forgetDelivered() -> Bool {
        if header == nil { control.free() }
        if deliveredMessage {
            (deliveredMessage, messageOpcode, utf8) = (false, nil, .init())
            message.free()
        }
        return header == nil && headerCount == 0 && messageOpcode == nil
    }

    /// Adds input to the header's first bytes until the header can be read.
    func continueHeader(
        _ input: inout UnsafeMutableRawBufferPointer, role: WebSocketRole
    ) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        let before: Int = headerCount
        let taken: Int = min(WebSocketFrameHeader.sizeMax - before, input.count)
        let result: Result<WebSocketFrameHeader?, WebSocketFailure> = withUnsafeMutableBytes(of: &headerBytes) { held in
            held[before...].copyBytes(from: input[..<taken])
            let known: UnsafeRawBufferPointer = .init(rebasing: held[..<(before + taken)])
            return Result { () throws(WebSocketFailure) in try WebSocketFrameHeader.parse(known, role: role) }
        }
        guard let parsed: WebSocketFrameHeader = try result.get() else {
            headerCount += taken
            input.removeFirst(taken)
            return nil
        }
        headerCount = 0
        input.removeFirst(parsed.size - before)
        return parsed
    }

    /// Starts on the payload of `header`.
    func begin(_ header: WebSocketFrameHeader) {
        self.header = header
        payloadCount = 0
        guard !header.opcode.isControl else { return control.reserve(header.length) }
        if header.opcode != .continuation { messageOpcode = header.opcode }
        // A header is only a promise: what it announces is reserved as it comes.
        if header.isFinal && message.isEmpty { message.reserve(min(header.length, Self.reservedMax)) }
    }

    /// Adds input to the payload.
    ///
    /// - Returns: whether the frame is complete.
    /// - Throws: at the first byte that cannot be UTF-8 in a text message.
    func takePayload(_ input: inout UnsafeMutableRawBufferPointer) throws(WebSocketFailure) -> Bool {
        guard let header else { return false }
        let taken: Int = min(header.length - payloadCount, input.count)
        let piece: UnsafeMutableRawBufferPointer = .init(rebasing: input[..<taken])
        WebSocketMask.apply(header.mask, offset: payloadCount, to: piece)
        input.removeFirst(taken)
        payloadCount += taken
        let bytes: UnsafeRawBufferPointer = .init(piece)
        if header.opcode.isControl {
            control.append(bytes)
        } else {
            if messageOpcode == .text && utf8.firstInvalid(in: bytes) != nil { throw WebSocketFailure(.invalidUTF8) }
            // Never more than a message of one frame needs. Fragments grow the buffer freely, or many small ones would
            // cost the square of the message's length.
            let missing: Int = header.length - payloadCount
            message.append(bytes, upTo: header.isFinal ? message.count + bytes.count + missing : .max)
        }
        return payloadCount == header.length
    }

    /// Ends the frame.
    ///
    /// - Returns: what it completed: a control frame or a message; nil for a fragment that is not the last.
    func finishFrame() throws(WebSocketFailure) -> (WebSocketOpcode, UnsafeRawBufferPointer)? {
        guard let header else { return nil }
        self.header = nil
        if header.opcode.isControl { return (header.opcode, control.bytes) }
        guard header.isFinal, let messageOpcode else { return nil }
        if messageOpcode == .text && !utf8.isComplete { throw WebSocketFailure(.invalidUTF8) }
        deliveredMessage = true
        return (messageOpcode, message.bytes)
    }
}

/// Bytes that grow at the end and whose address stays until the next change; freed as a whole.
struct ByteBuffer: ~Copyable {
    /// Bytes from which all the rest is reserved at once, if it is known: the kernel gives pages as they are written, and
    /// to copy megabytes to a larger place would keep the caller for milliseconds.
    static let wholeFrom: Int = 1 << 20

    private var base: UnsafeMutableRawPointer?
    private(set) var capacity: Int = 0
    private(set) var count: Int = 0

    var isEmpty: Bool { count == 0 }
    var bytes: UnsafeRawBufferPointer { .init(start: base, count: count) }

    deinit { base?.deallocate() }

    /// Makes room for exactly `size` bytes in all.
    mutating func reserve(_ size: Int) {
        guard size > capacity else { return }
        let larger: UnsafeMutableRawPointer = .allocate(byteCount: size, alignment: 16)
        if let base {
            larger.copyMemory(from: base, byteCount: count)
            base.deallocate()
        }
        base = larger
        capacity = size
    }

    /// - Parameter total: bytes that it will hold in the end, when that is known.
    mutating func append(_ more: UnsafeRawBufferPointer, upTo total: Int = .max) {
        guard let source: UnsafeRawPointer = more.baseAddress, more.count > 0 else { return }
        if count + more.count > capacity {
            let next: Int = capacity >= Self.wholeFrom && total != .max ? total : min(max(capacity * 2, 64), total)
            reserve(max(count + more.count, next))
        }
        base?.advanced(by: count).copyMemory(from: source, byteCount: more.count)
        count += more.count
    }

    mutating func free() {
        base?.deallocate()
        (base, capacity, count) = (nil, 0, 0)
    }
}
