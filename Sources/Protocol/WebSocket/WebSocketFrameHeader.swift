/// The header before a frame's payload, 2 to 14 bytes (RFC 6455, 5.2).
struct WebSocketFrameHeader {
    /// Bytes of the longest header: two, eight of length, four of mask.
    static let sizeMax = 14
    /// Payload bytes of a control frame at most (RFC 6455, 5.5).
    static let controlBytesMax = 125

    let opcode: WebSocketOpcode
    let isFinal: Bool
    /// The mask as a little-endian number; 0 for unmasked frames, which changes nothing.
    let mask: UInt32
    /// Payload bytes.
    let length: Int
    /// Bytes of the header itself.
    let size: Int

    /// Reads the header at the start of `bytes`; nil while it is incomplete.
    ///
    /// - Throws: when the first two bytes break a rule, as soon as they have arrived, and when the length breaks one.
    static func parse(
        _ bytes: UnsafeRawBufferPointer, role: WebSocketRole
    ) throws(WebSocketFailure) -> WebSocketFrameHeader? {
        guard bytes.count >= 2 else { return nil }
        let (first, second): (UInt8, UInt8) = (bytes[0], bytes[1])
        let opcode = try checkedOpcode(first, second, role: role)
        let short = Int(second & 0x7F)
        let lengthSize = short == 127 ? 8 : short == 126 ? 2 : 0
        let maskSize = role == .server ? 4 : 0
        let size = 2 + lengthSize + maskSize
        guard bytes.count >= 2 + lengthSize else { return nil }
        let length = try length(bytes, short: short)
        guard bytes.count >= size else { return nil }
        var mask: UInt32 = 0
        if maskSize > 0 {
            mask = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 2 + lengthSize, as: UInt32.self))
        }
        return .init(opcode: opcode, isFinal: first & 0x80 != 0, mask: mask, length: length, size: size)
    }

    private static func checkedOpcode(
        _ first: UInt8, _ second: UInt8, role: WebSocketRole
    ) throws(WebSocketFailure) -> WebSocketOpcode {
        guard first & 0x70 == 0 else { throw WebSocketFailure(.reservedBits) }
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw WebSocketFailure(.reservedOpcode)
        }
        let isMasked = second & 0x80 != 0
        if role == .server && !isMasked { throw WebSocketFailure(.missingMask) }
        if role == .client && isMasked { throw WebSocketFailure(.unexpectedMask) }
        if opcode.isControl {
            guard first & 0x80 != 0 else { throw WebSocketFailure(.fragmentedControl) }
            guard second & 0x7F <= controlBytesMax else { throw WebSocketFailure(.longControl) }
        }
        return opcode
    }

    /// The payload length, which must be encoded in the fewest bytes (RFC 6455, 5.2).
    private static func length(_ bytes: UnsafeRawBufferPointer, short: Int) throws(WebSocketFailure) -> Int {
        switch short {
        case 126:
            let length = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
            guard length > 125 else { throw WebSocketFailure(.overlongLength) }
            return Int(length)
        case 127:
            let length = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
            guard length <= UInt64(Int64.max) else { throw WebSocketFailure(.negativeLength) }
            guard length > 0xFFFF else { throw WebSocketFailure(.overlongLength) }
            return Int(length)
        default: return short
        }
    }
}
