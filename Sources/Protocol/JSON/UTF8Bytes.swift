/// UTF-8 sequences by the table of well-formed bytes (Unicode, table 3-7): no overlong forms, no surrogates, nothing
/// above U+10FFFF.
enum UTF8Bytes {
    enum Check {
        case valid(length: Int)
        /// The text ends inside a sequence that is well-formed so far.
        case truncated
        case invalid
    }

    /// The length of the sequence that begins at `pointer` with a byte of 0x80 or above, or its problem.
    @inline(__always)
    static func check(_ pointer: UnsafePointer<UInt8>, available: Int) -> Check {
        let lead = pointer[0]
        if lead >= 0xC2, lead < 0xE0 {
            guard available > 1 else { return .truncated }
            return pointer[1] & 0xC0 == 0x80 ? .valid(length: 2) : .invalid
        }
        if lead >= 0xE0, lead < 0xF0 {
            guard available > 1 else { return .truncated }
            let second = pointer[1]
            let low: UInt8 = lead == 0xE0 ? 0xA0 : 0x80
            let high: UInt8 = lead == 0xED ? 0x9F : 0xBF
            guard second >= low, second <= high else { return .invalid }
            guard available > 2 else { return .truncated }
            return pointer[2] & 0xC0 == 0x80 ? .valid(length: 3) : .invalid
        }
        guard lead >= 0xF0, lead < 0xF5 else { return .invalid }
        guard available > 1 else { return .truncated }
        let second = pointer[1]
        let low: UInt8 = lead == 0xF0 ? 0x90 : 0x80
        let high: UInt8 = lead == 0xF4 ? 0x8F : 0xBF
        guard second >= low, second <= high else { return .invalid }
        guard available > 2 else { return .truncated }
        guard pointer[2] & 0xC0 == 0x80 else { return .invalid }
        guard available > 3 else { return .truncated }
        return pointer[3] & 0xC0 == 0x80 ? .valid(length: 4) : .invalid
    }

    /// Writes a code point that is not a surrogate.
    ///
    /// - Returns: the number of bytes, 1...4.
    @inline(__always)
    static func write(_ scalar: UInt32, to pointer: UnsafeMutablePointer<UInt8>) -> Int {
        if scalar < 0x80 {
            pointer[0] = UInt8(truncatingIfNeeded: scalar)
            return 1
        }
        if scalar < 0x800 {
            pointer[0] = UInt8(truncatingIfNeeded: 0xC0 | scalar >> 6)
            pointer[1] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F)
            return 2
        }
        if scalar < 0x1_0000 {
            pointer[0] = UInt8(truncatingIfNeeded: 0xE0 | scalar >> 12)
            pointer[1] = UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3F)
            pointer[2] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F)
            return 3
        }
        pointer[0] = UInt8(truncatingIfNeeded: 0xF0 | scalar >> 18)
        pointer[1] = UInt8(truncatingIfNeeded: 0x80 | scalar >> 12 & 0x3F)
        pointer[2] = UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3F)
        pointer[3] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3F)
        return 4
    }

    /// UTF-16 code units of well-formed UTF-8.
    static func utf16(_ bytes: UnsafeBufferPointer<UInt8>) -> [UInt16] {
        guard let base = bytes.baseAddress else { return [] }
        let count = bytes.count
        return [UInt16](unsafeUninitializedCapacity: count) { (units, written) in
            guard let out = units.baseAddress else { return }
            var at = 0
            var filled = 0
            while at < count {
                let lead = base[at]
                if lead < 0x80 {
                    out[filled] = UInt16(lead)
                    at += 1
                } else if lead < 0xE0 {
                    out[filled] = UInt16(lead & 0x1F) << 6 | UInt16(base[at + 1] & 0x3F)
                    at += 2
                } else if lead < 0xF0 {
                    out[filled] =
                        UInt16(lead & 0x0F) << 12 | UInt16(base[at + 1] & 0x3F) << 6 | UInt16(base[at + 2] & 0x3F)
                    at += 3
                } else {
                    let high = UInt32(lead & 0x07) << 18 | UInt32(base[at + 1] & 0x3F) << 12
                    let low = UInt32(base[at + 2] & 0x3F) << 6 | UInt32(base[at + 3] & 0x3F)
                    let above = (high | low) - 0x1_0000
                    out[filled] = 0xD800 | UInt16(truncatingIfNeeded: above >> 10)
                    out[filled + 1] = 0xDC00 | UInt16(truncatingIfNeeded: above & 0x3FF)
                    filled += 1
                    at += 4
                }
                filled += 1
            }
            written = filled
        }
    }
}
