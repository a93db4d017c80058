import ThicketPlatform
extension JSONScanner {
    /// Reads the string whose opening quote is at `position`, and checks its UTF-8 and its escapes.
    ///
    /// - Returns: its tape word; offset and length include the quotes.
    @inline(__always)
    mutating func scanString() throws(JSONError) -> UInt64 {
        let start = position
        var at = start + 1
        var kind = JSONTape.Kind.string
        while true {
            while at + 8 <= count {
                let marks = EightBytes.special(EightBytes.load(base + at))
                if marks != 0 {
                    at += EightBytes.first(marks)
                    break
                }
                at += 8
            }
            guard at < count else { throw JSONError(.unexpectedEnd, at: count) }
            let byte = base[at]
            if byte == UInt8(ascii: "\"") {
                position = at + 1
                return JSONTape.word(kind, offset: start, length: position - start)
            }
            if byte == UInt8(ascii: "\\") {
                kind = JSONTape.Kind.escapedString
                at = try escapeEnd(at)
            } else if byte >= 0x80 {
                at = try multibyteEnd(at)
            } else if byte < 0x20 {
                throw JSONError(.controlCharacter, at: at)
            } else {
                at += 1
            }
        }
    }

    /// Checks a run of bytes of 0x80 and above.
    @inline(__always)
    private func multibyteEnd(_ start: Int) throws(JSONError) -> Int {
        var at = start
        repeat {
            switch UTF8Bytes.check(base + at, available: count - at) {
            case .valid(let length): at += length
            case .truncated: throw JSONError(.unexpectedEnd, at: count)
            case .invalid: throw JSONError(.invalidUTF8, at: at)
            }
        } while at < count && base[at] >= 0x80
        return at
    }

    /// Checks the escape whose backslash is at `start`; a surrogate pair is one escape.
    private func escapeEnd(_ start: Int) throws(JSONError) -> Int {
        guard start + 1 < count else { throw JSONError(.unexpectedEnd, at: count) }
        switch base[start + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return start + 2
        case UInt8(ascii: "u"):
            break
        default:
            throw JSONError(.invalidEscape, at: start)
        }
        let unit = try codeUnit(start)
        guard unit & 0xF800 == 0xD800 else { return start + 6 }
        guard unit < 0xDC00 else { throw JSONError(.loneSurrogate, at: start) }
        guard start + 6 < count else { throw JSONError(.unexpectedEnd, at: count) }
        guard base[start + 6] == UInt8(ascii: "\\") else { throw JSONError(.loneSurrogate, at: start) }
        guard start + 7 < count else { throw JSONError(.unexpectedEnd, at: count) }
        guard base[start + 7] == UInt8(ascii: "u") else { throw JSONError(.loneSurrogate, at: start) }
        guard try codeUnit(start + 6) & 0xFC00 == 0xDC00 else { throw JSONError(.loneSurrogate, at: start) }
        return start + 12
    }

    /// The four hex digits of the `\u` escape at `start`.
    private func codeUnit(_ start: Int) throws(JSONError) -> UInt32 {
        var unit: UInt32 = 0
        for place in (start + 2)..<(start + 6) {
            guard place < count else { throw JSONError(.unexpectedEnd, at: count) }
            guard let digit = Hex.value(base[place]) else {
                throw JSONError(.invalidEscape, at: start)
            }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }
}

/// Decodes the escapes of strings that the scanner has checked.
enum JSONEscapes {
    /// Decodes the checked text between the quotes to `out`, which must have capacity for as many bytes.
    ///
    /// - Returns: the number of bytes written.
    static func decode(_ raw: UnsafeBufferPointer<UInt8>, to out: UnsafeMutablePointer<UInt8>) -> Int {
        guard let base = raw.baseAddress else { return 0 }
        let count = raw.count
        var at = 0
        var written = 0
        while at < count {
            let byte = base[at]
            if byte != UInt8(ascii: "\\") {
                out[written] = byte
                at += 1
                written += 1
                continue
            }
            let escape = base[at + 1]
            if escape != UInt8(ascii: "u") {
                out[written] = plain(escape)
                at += 2
                written += 1
                continue
            }
            var scalar = unit(base + at)
            at += 6
            if scalar & 0xFC00 == 0xD800 {
                scalar = 0x1_0000 + (scalar & 0x3FF) << 10 + unit(base + at) & 0x3FF
                at += 6
            }
            written += UTF8Bytes.write(scalar, to: out + written)
        }
        return written
    }

    private static func plain(_ escape: UInt8) -> UInt8 {
        switch escape {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: escape
        }
    }

    private static func unit(_ escape: UnsafePointer<UInt8>) -> UInt32 {
        var unit: UInt32 = 0
        for place in 2..<6 { unit = unit << 4 | UInt32(Hex.value(escape[place]) ?? 0) }
        return unit
    }
}
