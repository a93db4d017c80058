/// Normalises pasted text with a secret to the intended characters.
///
/// Full-width forms become the corresponding ASCII characters (as in NFKC), blanks and line ends of any script become a
/// blank, dashes of any kind a hyphen. Invisible characters are removed: byte order marks, joiners, soft hyphens,
/// variation selectors, direction marks. Everything else stays, including bytes that are not UTF-8.
public enum PastedText {
    /// The normalised text; never longer than `text`.
    public static func plain(_ text: SecureBytes) -> SecureBytes {
        var written = 0
        let room = SecureBytes(count: text.count) { room in
            text.withUnsafeBytes { bytes in written = fold(bytes, to: room) }
        }
        return room.part(0..<written)
    }

    /// - Returns: the number of bytes written.
    private static func fold(_ bytes: UnsafeRawBufferPointer, to room: UnsafeMutableRawBufferPointer) -> Int {
        var (place, written) = (0, 0)
        while place < bytes.count {
            let (scalar, length) = scalar(in: bytes, at: place)
            defer { place += length }
            guard let scalar else {
                room[written] = bytes[place]
                written += 1
                continue
            }
            switch meaning(of: scalar) {
            case .nothing: continue
            case .ascii(let byte):
                room[written] = byte
                written += 1
            case .itself:
                for offset in 0..<length { room[written + offset] = bytes[place + offset] }
                written += length
            }
        }
        return written
    }

    private enum Meaning {
        case nothing
        case ascii(UInt8)
        case itself
    }

    private static func meaning(of scalar: Unicode.Scalar) -> Meaning {
        switch scalar.value {
        case 0x0A: .ascii(0x0A)
        // Line separators end a line.
        case 0x85, 0x2028, 0x2029: .ascii(0x0A)
        case 0x21...0x7E: .itself
        case 0xAD, 0x034F, 0x061C, 0x180E, 0x200B...0x200F, 0x202A...0x202E, 0x2060...0x2064, 0x2066...0x206F,
            0xFE00...0xFE0F, 0xFEFF, 0xE0000...0xE007F, 0xE0100...0xE01EF:
            .nothing
        case 0xFF01...0xFF5E: .ascii(UInt8(scalar.value - 0xFEE0))
        case 0x2010...0x2015, 0x2212, 0xFE58, 0xFE63: .ascii(0x2D)
        default: scalar.properties.isWhitespace ? .ascii(0x20) : .itself
        }
    }

    /// The character that begins at a place and its number of bytes; nil and 1 where the bytes are not UTF-8.
    private static func scalar(in bytes: UnsafeRawBufferPointer, at place: Int) -> (Unicode.Scalar?, Int) {
        let first = bytes[place]
        let length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
        guard first < 0x80 || (0xC2...0xF4).contains(first), place + length <= bytes.count else { return (nil, 1) }
        var value = length == 1 ? UInt32(first) : UInt32(first) & (0x7F >> UInt32(length))
        for offset in 1..<max(length, 1) {
            let next = bytes[place + offset]
            guard next & 0xC0 == 0x80 else { return (nil, 1) }
            value = value << 6 | UInt32(next & 0x3F)
        }
        let least: UInt32 = length == 3 ? 0x800 : length == 4 ? 0x10000 : 0
        guard value >= least, let scalar = Unicode.Scalar(value) else { return (nil, 1) }
        return (scalar, length)
    }
}
