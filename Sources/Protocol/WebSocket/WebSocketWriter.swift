/// Writes WebSocket frames (RFC 6455, 5.2).
public enum WebSocketWriter {
    /// Encodes one whole frame.
    ///
    /// - Parameters:
    ///   - payload: at most 125 bytes for control frames; a longer one is cut, so that no invalid frame is sent.
    ///   - mask: the mask key of a client's frame, random and new for each frame (RFC 6455, 5.3); nil on the server.
    ///   - isFinal: false for a frame that another one continues.
    ///   - opcode: the kind of frame.
    public static func frame(
        _ opcode: WebSocketOpcode, isFinal: Bool = true, _ payload: UnsafeRawBufferPointer, mask: UInt32? = nil
    ) -> [UInt8] {
        var payload = payload
        if opcode.isControl && payload.count > WebSocketFrameHeader.controlBytesMax {
            payload = .init(rebasing: payload[..<WebSocketFrameHeader.controlBytesMax])
        }
        let size = headerSize(payload.count, isMasked: mask != nil) + payload.count
        return [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            let raw = UnsafeMutableRawBufferPointer(buffer)
            let start = writeHeader(
                first: (isFinal ? 0x80 : 0) | opcode.rawValue, length: payload.count, mask: mask, to: raw)
            let body = UnsafeMutableRawBufferPointer(rebasing: raw[start..<size])
            body.copyMemory(from: payload)
            if let mask { WebSocketMask.apply(mask, to: body) }
            count = size
        }
    }

    /// Encodes one whole frame with a payload in an array.
    public static func frame(
        _ opcode: WebSocketOpcode, isFinal: Bool = true, _ payload: [UInt8], mask: UInt32? = nil
    ) -> [UInt8] {
        payload.withUnsafeBytes { frame(opcode, isFinal: isFinal, $0, mask: mask) }
    }

    /// Encodes a close frame. Without a code the payload is empty; the reason is cut to whole characters within 123
    /// bytes.
    public static func close(
        _ code: WebSocketCloseCode?, reason: String = "", mask: UInt32? = nil
    ) -> [UInt8] {
        guard let code else { return frame(.close, [], mask: mask) }
        var payload = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
        for scalar in reason.unicodeScalars {
            let bytes = Unicode.UTF8.encode(scalar)
            guard let bytes, payload.count + bytes.count <= WebSocketFrameHeader.controlBytesMax else { break }
            payload.append(contentsOf: bytes)
        }
        return frame(.close, payload, mask: mask)
    }

    /// Bytes of the header before a payload of `length` bytes.
    public static func headerSize(_ length: Int, isMasked: Bool) -> Int {
        (length > 0xFFFF ? 10 : length > 125 ? 4 : 2) + (isMasked ? 4 : 0)
    }

    private static func writeHeader(
        first: UInt8, length: Int, mask: UInt32?, to raw: UnsafeMutableRawBufferPointer
    ) -> Int {
        let maskBit: UInt8 = mask == nil ? 0 : 0x80
        var index = 2
        raw[0] = first
        if length > 0xFFFF {
            raw[1] = maskBit | 127
            raw.storeBytes(of: UInt64(length).bigEndian, toByteOffset: 2, as: UInt64.self)
            index = 10
        } else if length > 125 {
            raw[1] = maskBit | 126
            raw.storeBytes(of: UInt16(length).bigEndian, toByteOffset: 2, as: UInt16.self)
            index = 4
        } else {
            raw[1] = maskBit | UInt8(length)
        }
        if let mask {
            raw.storeBytes(of: mask.littleEndian, toByteOffset: index, as: UInt32.self)
            index += 4
        }
        return index
    }
}

/// A frame that is encoded once and sent to many clients: copies share the bytes, also in the queues of slow readers.
public struct SharedFrame: Sendable {
    /// Header and payload, as sent on the wire.
    public let bytes: [UInt8]

    /// Encodes a server's text frame. The caller guarantees that `text` is UTF-8.
    public init(text: [UInt8]) { bytes = WebSocketWriter.frame(.text, text) }
    /// Encodes a server's text frame. The caller guarantees that `text` is UTF-8.
    public init(text: UnsafeRawBufferPointer) { bytes = WebSocketWriter.frame(.text, text) }
    /// Encodes a server's text frame.
    public init(text: String) {
        var text = text
        bytes = text.withUTF8 { WebSocketWriter.frame(.text, UnsafeRawBufferPointer($0)) }
    }
    /// The payload of the frame, for transports that are not WebSockets.
    public var text: ArraySlice<UInt8> {
        guard bytes.count >= 2 else { return [] }
        let short = bytes[1] & 0x7F
        return bytes[min(bytes.count, short == 127 ? 10 : short == 126 ? 4 : 2)...]
    }
    /// Wraps bytes that are encoded frames already.
    public init(encoded bytes: [UInt8]) { self.bytes = bytes }
}
