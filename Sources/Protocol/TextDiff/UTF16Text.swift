/// Conversions between `String` and UTF-16 code units, in which all clients count positions.
enum UTF16Text {
    @inline(__always) static func isHigh(_ unit: UInt16) -> Bool { unit & 0xFC00 == 0xD800 }
    @inline(__always) static func isLow(_ unit: UInt16) -> Bool { unit & 0xFC00 == 0xDC00 }
    @inline(__always) static func isSurrogate(_ unit: UInt16) -> Bool { unit & 0xF800 == 0xD800 }

    /// The code units of a string.
    static func units(of text: String) -> [UInt16] {
        var text = text
        return text.withUTF8 { units(of: $0) }
    }

    /// The code units of valid UTF-8.
    static func units(of bytes: UnsafeBufferPointer<UInt8>) -> [UInt16] {
        [UInt16](unsafeUninitializedCapacity: bytes.count) { output, count in
            count = decode(bytes, into: output)
        }
    }

    private static func decode(
        _ bytes: UnsafeBufferPointer<UInt8>, into output: UnsafeMutableBufferPointer<UInt16>
    ) -> Int {
        var place = 0
        var written = 0
        while place < bytes.count {
            let lead = bytes[place]
            if lead < 0x80 {
                if place + 8 <= bytes.count, isASCII(bytes, at: place) {
                    widenEight(bytes, at: place, into: output, at: written)
                    place += 8
                    written += 8
                } else {
                    output[written] = UInt16(lead)
                    place += 1
                    written += 1
                }
            } else if lead < 0xE0 {
                output[written] = UInt16(lead & 0x1F) << 6 | tail(bytes, place + 1)
                place += 2
                written += 1
            } else if lead < 0xF0 {
                output[written] = UInt16(lead & 0x0F) << 12 | tail(bytes, place + 1) << 6 | tail(bytes, place + 2)
                place += 3
                written += 1
            } else {
                let high = UInt32(lead & 0x07) << 18 | UInt32(tail(bytes, place + 1)) << 12
                let scalar = high | UInt32(tail(bytes, place + 2)) << 6 | UInt32(tail(bytes, place + 3))
                let offset = scalar &- 0x10000
                output[written] = 0xD800 | UInt16(truncatingIfNeeded: offset >> 10 & 0x3FF)
                output[written + 1] = 0xDC00 | UInt16(truncatingIfNeeded: offset & 0x3FF)
                place += 4
                written += 2
            }
        }
        return written
    }

    /// Converts eight ASCII bytes at once, because large texts consist mostly of ASCII.
    @inline(__always)
    private static func widenEight(
        _ bytes: UnsafeBufferPointer<UInt8>, at place: Int, into output: UnsafeMutableBufferPointer<UInt16>,
        at written: Int
    ) {
        let eight = UnsafeRawPointer(bytes.baseAddress! + place).loadUnaligned(as: SIMD8<UInt8>.self)
        UnsafeMutableRawPointer(output.baseAddress! + written)
            .storeBytes(of: SIMD8<UInt16>(truncatingIfNeeded: eight), as: SIMD8<UInt16>.self)
    }

    @inline(__always)
    private static func tail(_ bytes: UnsafeBufferPointer<UInt8>, _ place: Int) -> UInt16 {
        UInt16(bytes[place] & 0x3F)
    }

    /// The string of the code units; nil when they contain half of a surrogate pair.
    static func string(of units: [UInt16]) -> String? {
        var isWhole = true
        let text = String(unsafeUninitializedCapacity: units.count * 3) { output in
            guard let count = units.withUnsafeBufferPointer({ encode($0, into: output) }) else {
                isWhole = false
                return 0
            }
            return count
        }
        return isWhole ? text : nil
    }

    /// Whether all surrogates are in pairs.
    static func isWhole(_ units: [UInt16]) -> Bool {
        var place = 0
        while place < units.count {
            if isSurrogate(units[place]) {
                guard isHigh(units[place]), place + 1 < units.count, isLow(units[place + 1]) else { return false }
                place += 1
            }
            place += 1
        }
        return true
    }

    /// Writes code units as UTF-8; nil when they contain half of a surrogate pair. Needs 3 bytes per unit.
    static func encode(
        _ units: UnsafeBufferPointer<UInt16>, into output: UnsafeMutableBufferPointer<UInt8>
    ) -> Int? {
        var place = 0
        var written = 0
        while place < units.count {
            let unit = units[place]
            place += 1
            if unit < 0x80 {
                output[written] = UInt8(truncatingIfNeeded: unit)
                written += 1
            } else if unit < 0x800 {
                output[written] = 0xC0 | UInt8(truncatingIfNeeded: unit >> 6)
                output[written + 1] = continuation(UInt32(unit))
                written += 2
            } else if !isSurrogate(unit) {
                output[written] = 0xE0 | UInt8(truncatingIfNeeded: unit >> 12)
                output[written + 1] = continuation(UInt32(unit) >> 6)
                output[written + 2] = continuation(UInt32(unit))
                written += 3
            } else {
                guard isHigh(unit), place < units.count, isLow(units[place]) else { return nil }
                let scalar = 0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(units[place] & 0x3FF))
                place += 1
                output[written] = 0xF0 | UInt8(truncatingIfNeeded: scalar >> 18)
                output[written + 1] = continuation(scalar >> 12)
                output[written + 2] = continuation(scalar >> 6)
                output[written + 3] = continuation(scalar)
                written += 4
            }
        }
        return written
    }

    @inline(__always)
    private static func continuation(_ bits: UInt32) -> UInt8 { 0x80 | UInt8(truncatingIfNeeded: bits & 0x3F) }

    /// The offset of the `count`-th code unit after the byte `start`; nil after the end or inside a pair.
    static func offset(in bytes: UnsafeBufferPointer<UInt8>, from start: Int, units count: Int) -> Int? {
        var place = start
        var left = count
        while left > 0 {
            while left >= 8, place + 8 <= bytes.count, isASCII(bytes, at: place) {
                place += 8
                left -= 8
            }
            guard left > 0 else { break }
            guard place < bytes.count else { return nil }
            let lead = bytes[place]
            let width = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
            left -= width == 4 ? 2 : 1
            place += width
        }
        return left == 0 ? place : nil
    }

    /// Whether the eight bytes from `place` are ASCII.
    @inline(__always)
    private static func isASCII(_ bytes: UnsafeBufferPointer<UInt8>, at place: Int) -> Bool {
        let word = UnsafeRawPointer(bytes.baseAddress! + place).loadUnaligned(as: UInt64.self)
        return word & 0x8080_8080_8080_8080 == 0
    }

    /// Whether all bytes are ASCII.
    static func isASCII(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var place = 0
        while place + 8 <= bytes.count {
            guard isASCII(bytes, at: place) else { return false }
            place += 8
        }
        while place < bytes.count {
            guard bytes[place] < 0x80 else { return false }
            place += 1
        }
        return true
    }

    /// Whether any character takes two code units: its UTF-8 begins with a byte of 0xF0 or above.
    static func hasPairs(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let base = bytes.baseAddress else { return false }
        var place = 0
        while place + 8 <= bytes.count {
            let word = EightBytes.load(base + place)
            // Combines the four high bits of each byte in its highest bit.
            guard word & word << 1 & word << 2 & word << 3 & EightBytes.highBits == 0 else { return true }
            place += 8
        }
        while place < bytes.count {
            guard bytes[place] < 0xF0 else { return true }
            place += 1
        }
        return false
    }

    /// Counts the code units of valid UTF-8: all bytes but continuation bytes, and the first bytes of pairs twice.
    static func count(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        guard let base = bytes.baseAddress else { return 0 }
        var count = bytes.count
        var place = 0
        while place + 8 <= bytes.count {
            let word = EightBytes.load(base + place)
            place += 8
            guard word & EightBytes.highBits != 0 else { continue }
            let continuations = word & ~(word << 1) & EightBytes.highBits
            let isPair = word & word << 1 & word << 2 & word << 3 & EightBytes.highBits
            count += isPair.nonzeroBitCount - continuations.nonzeroBitCount
        }
        while place < bytes.count {
            let byte = bytes[place]
            count += (byte >= 0xF0 ? 1 : 0) - (byte & 0xC0 == 0x80 ? 1 : 0)
            place += 1
        }
        return count
    }
}

extension String {
    /// Length in UTF-16 code units, in which deltas count. Faster than `utf16.count` on a text that is read for the
    /// first time.
    package var utf16Length: Int { withBytes(UTF16Text.count) }
}
