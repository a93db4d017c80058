/// The XOR mask of RFC 6455, 5.3. It does not hide anything; it keeps proxies from taking a frame for a request.
public enum WebSocketMask {
    /// Masks or unmasks `bytes` in place.
    ///
    /// - Parameters:
    ///   - key: the four mask bytes in wire order, read as a little-endian number.
    ///   - offset: bytes of the same payload before these; only its last two bits matter.
    ///   - bytes: the payload, changed in place.
    public static func apply(_ key: UInt32, offset: Int = 0, to bytes: UnsafeMutableRawBufferPointer) {
        guard key != 0, let base = bytes.baseAddress else { return }
        let shift = UInt32(offset & 3) * 8
        let turned = shift == 0 ? key : (key >> shift) | (key << (32 - shift))
        let word = (UInt64(turned) | UInt64(turned) << 32).littleEndian
        let block = SIMD4<UInt64>(repeating: word)
        let count = bytes.count
        var index = 0
        while index + 32 <= count {
            let masked = base.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt64>.self) ^ block
            base.storeBytes(of: masked, toByteOffset: index, as: SIMD4<UInt64>.self)
            index += 32
        }
        while index + 8 <= count {
            let masked = base.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ word
            base.storeBytes(of: masked, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        while index < count {
            let byte = UInt8(truncatingIfNeeded: turned >> (UInt32(index & 3) * 8))
            bytes[index] ^= byte
            index += 1
        }
    }
}
