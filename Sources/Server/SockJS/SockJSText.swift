import ThicketProtocol

/// JSON strings as SockJS writes them. Besides what JSON requires, it escapes characters that browsers are known to
/// change in transit: U+200C–200F, U+2028–202F, U+2060–206F and U+FFF0–FFFF (sockjs-protocol 0.3.3, "JSON Unicode
/// Encoding").
enum SockJSText {
    /// Appends `text` with its quotes. The caller guarantees that it is UTF-8.
    ///
    /// - Parameter hidesTags: escapes `<` too, for text inside an HTML page.
    static func append<Bytes: Collection<UInt8>>(_ text: Bytes, to json: inout [UInt8], hidesTags: Bool = false) {
        json.append(quote)
        // Uses the memory of an array or slice without a copy.
        let isDone: Void? = text.withContiguousStorageIfAvailable { escape($0, to: &json, hidesTags: hidesTags) }
        if isDone == nil {
            Array(text).withUnsafeBufferPointer { escape($0, to: &json, hidesTags: hidesTags) }
        }
        json.append(quote)
    }

    /// The string with its quotes, as an element of a frame.
    static func element<Bytes: Collection<UInt8>>(_ text: Bytes) -> [UInt8] {
        var json = [UInt8]()
        json.reserveCapacity(text.count + text.count / 4 + 2)
        append(text, to: &json)
        return json
    }

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    private static func escape(_ text: UnsafeBufferPointer<UInt8>, to json: inout [UInt8], hidesTags: Bool) {
        var start = 0
        var at = 0
        while at < text.count {
            let byte = text[at]
            let isPlain =
                byte >= 0x20 && byte != quote && byte != backslash && byte != 0xE2 && byte != 0xEF
                && (byte != UInt8(ascii: "<") || !hidesTags)
            if isPlain {
                at += 1
                continue
            }
            let length = byte >= 0x80 ? 3 : 1
            guard length == 1 || isFragile(text, at) else {
                at += 1
                continue
            }
            json.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<at]))
            length == 1 ? append(escapeOf: byte, to: &json) : append(unit: unit(text, at), to: &json)
            at += length
            start = at
        }
        json.append(contentsOf: UnsafeBufferPointer(rebasing: text[start..<text.count]))
    }

    /// Whether the three-byte character at `at` is one that browsers change.
    private static func isFragile(_ text: UnsafeBufferPointer<UInt8>, _ at: Int) -> Bool {
        guard at + 2 < text.count else { return false }
        switch (text[at], text[at + 1], text[at + 2]) {
        case (0xE2, 0x80, 0x8C...0x8F), (0xE2, 0x80, 0xA8...0xAF), (0xE2, 0x81, 0xA0...0xAF), (0xEF, 0xBF, 0xB0...0xBF):
            return true
        default: return false
        }
    }

    private static func unit(_ text: UnsafeBufferPointer<UInt8>, _ at: Int) -> UInt16 {
        UInt16(text[at] & 0x0F) << 12 | UInt16(text[at + 1] & 0x3F) << 6 | UInt16(text[at + 2] & 0x3F)
    }

    private static func append(escapeOf byte: UInt8, to json: inout [UInt8]) {
        switch byte {
        case quote, backslash: json.append(contentsOf: [backslash, byte])
        case 0x08: json.append(contentsOf: [backslash, UInt8(ascii: "b")])
        case 0x09: json.append(contentsOf: [backslash, UInt8(ascii: "t")])
        case 0x0A: json.append(contentsOf: [backslash, UInt8(ascii: "n")])
        case 0x0C: json.append(contentsOf: [backslash, UInt8(ascii: "f")])
        case 0x0D: json.append(contentsOf: [backslash, UInt8(ascii: "r")])
        default: append(unit: UInt16(byte), to: &json)
        }
    }

    private static func append(unit: UInt16, to json: inout [UInt8]) {
        json.append(contentsOf: [backslash, UInt8(ascii: "u")])
        for shift: UInt16 in [12, 8, 4, 0] {
            let digit = UInt8(unit >> shift & 0x0F)
            json.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
    }
}
