/// Percent-encoding of one part of a path or query (RFC 3986, 2.1).
public enum PercentCoding {
    /// Decodes one part.
    /// - Returns: nil when a `%` is not followed by two hex digits or the result is not UTF-8.
    public static func decode(_ text: Substring) -> String? {
        var bytes = [UInt8]()
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x41...0x46: digit - 0x41 + 10
        case 0x61...0x66: digit - 0x61 + 10
        default: nil
        }
    }
}
