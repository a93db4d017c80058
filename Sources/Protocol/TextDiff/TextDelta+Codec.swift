import ThicketPlatform
extension TextDelta {
    /// Largest count of a token, in UTF-16 code units; far above any text that fits in memory twice.
    static let countMax = 1 << 40

    /// Reads tokens separated by tabs.
    ///
    /// Lenient where clients differ: it accepts empty tokens, counts of zero, adjacent tokens of one kind, text that is
    /// escaped more than needed (or less), and halves of surrogate pairs (wire contract 7.2).
    ///
    /// - Throws: `DeltaError.unknownToken`, `.badCount`, `.badEscape`.
    public init(parsing text: String) throws(DeltaError) {
        var source = text
        let outcome: Result<TextDelta, DeltaError> = source.withUTF8 { bytes in
            do throws(DeltaError) { return .success(try TextDelta(parsing: bytes)) } catch { return .failure(error) }
        }
        self = try outcome.get()
    }

    init(parsing bytes: UnsafeBufferPointer<UInt8>) throws(DeltaError) {
        // Most deltas have only a few edits; memory for the longer ones of a hostile sender grows as they are read.
        self.init(stepsMax: min(bytes.count / 2, 12))
        var start = 0
        var token = 0
        var isBehindGone = false
        while start < bytes.count {
            var end = start
            while end < bytes.count, bytes[end] != 0x09 { end += 1 }
            if end > start { try read(.init(rebasing: bytes[start..<end]), token: token, &isBehindGone) }
            start = end + 1
            token += 1
        }
    }

    private mutating func read(
        _ bytes: UnsafeBufferPointer<UInt8>, token: Int, _ isBehindGone: inout Bool
    ) throws(DeltaError) {
        let body = UnsafeBufferPointer<UInt8>(rebasing: bytes[1...])
        switch bytes[0] {
        case UInt8(ascii: "="):
            retain(try Self.count(body, token: token))
            isBehindGone = false
        case UInt8(ascii: "-"):
            let count = try Self.count(body, token: token)
            delete(count)
            isBehindGone = count == 0
        case UInt8(ascii: "+"):
            guard let units = DeltaText.unescape(body) else { throw .badEscape(token: token) }
            insert(units, isBehindGone: isBehindGone)
            isBehindGone = false
        default: throw .unknownToken(token: token)
        }
        guard sourceLength <= Self.countMax else { throw .badCount(token: token) }
    }

    private static func count(_ digits: UnsafeBufferPointer<UInt8>, token: Int) throws(DeltaError) -> Int {
        guard !digits.isEmpty else { throw .badCount(token: token) }
        var value = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { throw .badCount(token: token) }
            value = value * 10 + Int(digit &- 0x30)
            guard value <= countMax else { throw .badCount(token: token) }
        }
        return value
    }

    /// The tokens as written on the wire: `=n`, `-n`, `+text`, separated by tabs; empty for an empty text that stays
    /// empty. Escaped as by JavaScript's `encodeURI`, but with plain spaces.
    public var encoded: String {
        var bytes = [UInt8]()
        write(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private func write(to bytes: inout [UInt8]) {
        for (place, operation) in operations.enumerated() {
            if place > 0 { bytes.append(0x09) }
            switch operation {
            case .retain(let count):
                bytes.append(UInt8(ascii: "="))
                Self.writeDecimal(count, to: &bytes)
            case .delete(let count):
                bytes.append(UInt8(ascii: "-"))
                Self.writeDecimal(count, to: &bytes)
            case .insert(let units):
                bytes.append(UInt8(ascii: "+"))
                DeltaText.escape(units, to: &bytes)
            }
        }
    }

    private static func writeDecimal(_ value: Int, to bytes: inout [UInt8]) {
        var digits: UInt64 = 1
        while UInt64(value) / digits >= 10 { digits *= 10 }
        while digits > 0 {
            bytes.append(0x30 + UInt8(UInt64(value) / digits % 10))
            digits /= 10
        }
    }
}

/// The text of a `+` token.
enum DeltaText {
    /// `A–Z a–z 0–9 ; , / ? : @ & = + $ - _ . ! ~ * ' ( ) #` and space (wire contract 7.2).
    private static let isPlain = {
        var table = Array(repeating: false, count: 128)
        for byte in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789;,/?:@&=+$-_.!~*'()# ".utf8 {
            table[Int(byte)] = true
        }
        return table
    }()

    /// Escapes the text; each half of a pair becomes three bytes, as the older libraries write it.
    static func escape(_ units: [UInt16], to bytes: inout [UInt8]) {
        let plain = isPlain
        bytes.reserveCapacity(bytes.count + units.count)
        var place = 0
        while place < units.count {
            let unit = units[place]
            place += 1
            if unit < 0x80 {
                if plain[Int(unit)] { bytes.append(UInt8(unit)) } else { escape(UInt8(unit), to: &bytes) }
            } else if unit < 0x800 {
                escape(0xC0 | UInt8(truncatingIfNeeded: unit >> 6), to: &bytes)
                escape(0x80 | UInt8(truncatingIfNeeded: unit & 0x3F), to: &bytes)
            } else if UTF16Text.isHigh(unit), place < units.count, UTF16Text.isLow(units[place]) {
                let scalar = 0x10000 + (UInt32(unit & 0x3FF) << 10 | UInt32(units[place] & 0x3FF))
                place += 1
                escape(0xF0 | UInt8(truncatingIfNeeded: scalar >> 18), to: &bytes)
                escape(0x80 | UInt8(truncatingIfNeeded: scalar >> 12 & 0x3F), to: &bytes)
                escape(0x80 | UInt8(truncatingIfNeeded: scalar >> 6 & 0x3F), to: &bytes)
                escape(0x80 | UInt8(truncatingIfNeeded: scalar & 0x3F), to: &bytes)
            } else {
                escape(0xE0 | UInt8(truncatingIfNeeded: unit >> 12), to: &bytes)
                escape(0x80 | UInt8(truncatingIfNeeded: unit >> 6 & 0x3F), to: &bytes)
                escape(0x80 | UInt8(truncatingIfNeeded: unit & 0x3F), to: &bytes)
            }
        }
    }

    private static func escape(_ byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(Hex.upperDigit(byte >> 4))
        bytes.append(Hex.upperDigit(byte & 0x0F))
    }

    /// Decodes all percent escapes; nil for `%` without two hex digits and for bytes that are not UTF-8. Three-byte
    /// forms of surrogate halves are accepted.
    static func unescape(_ text: UnsafeBufferPointer<UInt8>) -> [UInt16]? {
        var units = [UInt16]()
        units.reserveCapacity(text.count)
        var place = 0
        while place < text.count {
            guard let lead = byte(text, &place) else { return nil }
            if lead < 0x80 {
                units.append(UInt16(lead))
                continue
            }
            guard let scalar = multibyte(lead, text, &place) else { return nil }
            if scalar < 0x10000 {
                units.append(UInt16(scalar))
            } else {
                units.append(0xD800 | UInt16((scalar - 0x10000) >> 10))
                units.append(0xDC00 | UInt16((scalar - 0x10000) & 0x3FF))
            }
        }
        return units
    }

    private static func multibyte(_ lead: UInt8, _ text: UnsafeBufferPointer<UInt8>, _ place: inout Int) -> UInt32? {
        let (tails, first, least): (Int, UInt32, UInt32)
        switch lead {
        case 0xC2...0xDF: (tails, first, least) = (1, UInt32(lead & 0x1F), 0x80)
        case 0xE0...0xEF: (tails, first, least) = (2, UInt32(lead & 0x0F), 0x800)
        case 0xF0...0xF4: (tails, first, least) = (3, UInt32(lead & 0x07), 0x10000)
        default: return nil
        }
        var scalar = first
        for _ in 0..<tails {
            guard place < text.count, let next = byte(text, &place), next & 0xC0 == 0x80 else { return nil }
            scalar = scalar << 6 | UInt32(next & 0x3F)
        }
        return scalar >= least && scalar <= 0x10FFFF ? scalar : nil
    }

    @inline(__always)
    private static func byte(_ text: UnsafeBufferPointer<UInt8>, _ place: inout Int) -> UInt8? {
        let byte = text[place]
        place += 1
        guard byte == UInt8(ascii: "%") else { return byte }
        guard place + 2 <= text.count, let high = nibble(text[place]), let low = nibble(text[place + 1])
        else { return nil }
        place += 2
        return high << 4 | low
    }

    @inline(__always)
    private static func nibble(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}
