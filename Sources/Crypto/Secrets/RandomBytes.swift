// Linux only: OpenSSL; on Apple platforms: CommonCrypto and SecRandomCopyBytes behind the same functions.
internal import COpenSSL

/// Unpredictable bytes from OpenSSL's generator (seeded by the kernel).
public enum RandomBytes {
    /// Random bytes.
    ///
    /// - Parameter count: number of bytes.
    public static func make(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { fill($0) }
        return bytes
    }

    /// Fills memory with random bytes.
    public static func fill(_ room: UnsafeMutableRawBufferPointer) {
        let isDone = RAND_bytes(room.octets, Int32(room.count)) == 1
        precondition(isDone, "the kernel gave no random bytes: nothing safe can be done")
    }

    /// Lower-case hex of `count` random bytes.
    public static func hex(_ count: Int) -> String { Hex.encode(make(count)) }
}

/// Hexadecimal encoding in lower case.
public enum Hex {
    /// Encodes bytes as lower-case hex digits.
    public static func encode(_ bytes: [UInt8]) -> String {
        let digits: [UInt8] = Array("0123456789abcdef".utf8)
        var text = [UInt8]()
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes hex digits of either case; nil for other characters or an odd number of digits.
    public static func decode(_ text: String) -> [UInt8]? {
        var bytes = [UInt8]()
        var high: UInt8?
        for byte in text.utf8 {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x41...0x46: digit = byte - 0x41 + 10
            case 0x61...0x66: digit = byte - 0x61 + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return high == nil ? bytes : nil
    }
}
