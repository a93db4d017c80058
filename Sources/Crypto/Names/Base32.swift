/// base32 (RFC 4648, 6) in lower case and without padding: safe in names of files and keys that ignore case.
///
/// Without leniency: one text for each sequence of bytes, and nothing else is read.
public enum Base32 {
    private static let alphabet: [UInt8] = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Eight letters for five bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count * 8 + 4) / 5)
        var (bits, width): (UInt32, Int) = (0, 0)
        for byte: UInt8 in bytes {
            (bits, width) = (bits << 8 | UInt32(byte), width + 8)
            while width >= 5 {
                width -= 5
                text.append(alphabet[Int(bits >> UInt32(width) & 31)])
            }
            bits &= (1 << UInt32(width)) - 1
        }
        if width > 0 { text.append(alphabet[Int(bits << UInt32(5 - width) & 31)]) }
        return String(decoding: text, as: UTF8.self)
    }

    /// - Returns: nil for other letters (capitals too), padding, a length that no bytes have, or unused bits that are not
    ///   zero.
    public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (bits, width): (UInt32, Int) = (0, 0)
        for letter: UInt8 in text {
            let value: UInt8
            switch letter {
            case 0x61...0x7A: value = letter - 0x61
            case 0x32...0x37: value = letter - 0x32 + 26
            default: return nil
            }
            (bits, width) = (bits << 5 | UInt32(value), width + 5)
            guard width >= 8 else { continue }
            width -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(width)))
            bits &= (1 << UInt32(width)) - 1
        }
        // A last letter that adds no whole byte has a reason only if it holds bits of one.
        return width < 5 && bits == 0 ? bytes : nil
    }
}
