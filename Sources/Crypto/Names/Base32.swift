/// base32 (RFC 4648, 6) in lower case and without padding: safe in names of files and keys where case is ignored.
///
/// Strict: each sequence of bytes has exactly one text, and any other text is refused.
public enum Base32 {
    private static let alphabet: [UInt8] = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)

    /// Encodes bytes: eight letters for five bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        String(unsafeUninitializedCapacity: encodedCount(bytes.count)) { room in
            bytes.withUnsafeBytes { write($0, to: room) }
            return encodedCount(bytes.count)
        }
    }

    /// Whether the letters are exactly the text of the bytes.
    public static func isText(_ letters: UnsafeRawBufferPointer, of bytes: UnsafeRawBufferPointer) -> Bool {
        guard letters.count == encodedCount(bytes.count) else { return false }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: letters.count) { room in
            write(bytes, to: room)
            return room.indices.allSatisfy { room[$0] == letters[$0] }
        }
    }

    private static func encodedCount(_ bytes: Int) -> Int { (bytes * 8 + 4) / 5 }

    private static func write(_ bytes: UnsafeRawBufferPointer, to room: UnsafeMutableBufferPointer<UInt8>) {
        alphabet.withUnsafeBufferPointer { alphabet in
            var (bits, width, place): (UInt32, Int, Int) = (0, 0, 0)
            for byte in bytes {
                (bits, width) = (bits << 8 | UInt32(byte), width + 8)
                while width >= 5 {
                    width -= 5
                    room[place] = alphabet[Int(bits >> UInt32(width) & 31)]
                    place += 1
                }
                bits &= (1 << UInt32(width)) - 1
            }
            if width > 0 { room[place] = alphabet[Int(bits << UInt32(5 - width) & 31)] }
        }
    }

    /// Decodes a text.
    ///
    /// - Returns: nil for other characters (including capitals), padding, an impossible length, or unused bits that are
    ///   not zero.
    public static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes = [UInt8]()
        var (bits, width): (UInt32, Int) = (0, 0)
        for letter in text {
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
        // A last letter is permitted only if it contains bits of a whole byte.
        return width < 5 && bits == 0 ? bytes : nil
    }
}
