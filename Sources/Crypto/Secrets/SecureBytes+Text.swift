/// Encodes secrets as letters, and decodes them, without an intermediate `String` or array (spec 3.7).
///
/// Letters are computed without tables: neither the time nor the accessed memory depends on them.
extension SecureBytes {
    /// base64url without padding (RFC 4648, 5), as `Base64.encodeURL` writes it, as a secret.
    public var base64URL: SecureBytes {
        SecureBytes(count: (count * 8 + 5) / 6) { room in
            withUnsafeBytes { bytes in
                Sextets.write(bytes, width: 6, to: room, letter: Sextets.base64URL)
            }
        }
    }

    /// Decodes base64url, as strictly as `Base64.decodeURL`.
    ///
    /// - Returns: nil for a text that is not base64url.
    public convenience init?(base64URL text: UnsafeRawBufferPointer) {
        guard text.count % 4 != 1 else { return nil }
        var isRead = false
        self.init(count: text.count * 6 / 8) { room in
            isRead = Sextets.read(text, width: 6, to: room, value: Sextets.value)
        }
        guard isRead else { return nil }
    }
}

/// Encodes groups of bits as letters.
enum Sextets {
    /// - Parameter room: memory for all letters, one byte each.
    static func write(
        _ bytes: UnsafeRawBufferPointer, width: Int, to room: UnsafeMutableRawBufferPointer,
        letter: (UInt32) -> UInt8
    ) {
        let mask: UInt32 = 1 << UInt32(width) - 1
        var (bits, count, place): (UInt32, Int, Int) = (0, 0, 0)
        for byte in bytes {
            (bits, count) = (bits << 8 | UInt32(byte), count + 8)
            while count >= width {
                count -= width
                room[place] = letter(bits >> UInt32(count) & mask)
                place += 1
            }
            bits &= 1 << UInt32(count) - 1
        }
        if count > 0 { room[place] = letter(bits << UInt32(width - count) & mask) }
    }

    /// - Parameters:
    ///   - room: memory for the whole bytes that the letters encode.
    ///   - value: the value of a letter, with the high bit set for other characters.
    /// - Returns: false for other characters, or unused bits that are not zero.
    static func read(
        _ text: UnsafeRawBufferPointer, width: Int, to room: UnsafeMutableRawBufferPointer,
        value: (UInt8) -> UInt8
    ) -> Bool {
        var (bits, count, place, seen): (UInt32, Int, Int, UInt8) = (0, 0, 0, 0)
        for letter in text {
            let value = value(letter)
            seen |= value
            (bits, count) = (bits << UInt32(width) | UInt32(value & 0x7F), count + width)
            guard count >= 8 else { continue }
            count -= 8
            room[place] = UInt8(truncatingIfNeeded: bits >> UInt32(count))
            place += 1
            bits &= 1 << UInt32(count) - 1
        }
        return seen & 0x80 == 0 && bits == 0
    }

    static func base64URL(_ value: UInt32) -> UInt8 {
        let v = Int32(value)
        // 'A' + v, with an offset for each run of the alphabet.
        var letter = 65 + v
        letter += past(v, 25) & 6
        letter -= past(v, 51) & 75
        letter -= past(v, 61) & 13
        letter += past(v, 62) & 49
        return UInt8(truncatingIfNeeded: letter)
    }

    static func value(_ letter: UInt8) -> UInt8 {
        let c = Int32(letter)
        var value: Int32 = 0x80
        value += within(c, 65, 90) & (c - 65 - 0x80)
        value += within(c, 97, 122) & (c - 97 + 26 - 0x80)
        value += within(c, 48, 57) & (c - 48 + 52 - 0x80)
        value += within(c, 45, 45) & (62 - 0x80)
        value += within(c, 95, 95) & (63 - 0x80)
        return UInt8(truncatingIfNeeded: value)
    }

    /// All ones when `value` is greater than `bound`, otherwise zero.
    static func past(_ value: Int32, _ bound: Int32) -> Int32 { (bound - value) >> 31 }
    /// All ones when `value` is in `low`...`high`, otherwise zero.
    static func within(_ value: Int32, _ low: Int32, _ high: Int32) -> Int32 {
        past(value, low - 1) & ~past(value, high)
    }
}
