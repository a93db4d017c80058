import ThicketProtocol

/// The parameters of a request's target. Of a repeated parameter the last value counts: some clients append the next
/// `mark` to the previous one (wire contract, 8.2).
struct RESTQuery {
    private var values = [(name: [UInt8], value: String)]()

    init(_ query: Substring?) {
        for pair in (query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts.count > 1 ? Self.decode(parts[1], plusIsSpace: true) : ""
            values.append((Array(Self.decode(parts[0], plusIsSpace: true).utf8), value))
        }
    }

    /// nil when the parameter is missing or empty.
    subscript(_ name: StaticString) -> String? {
        let value = values.last { pair in name.withUTF8Buffer { pair.name.elementsEqual($0) } }?.value
        return value?.isEmpty == true ? nil : value
    }

    /// All values of a parameter that may be repeated.
    func all(_ name: StaticString) -> [String] {
        values.filter { pair in name.withUTF8Buffer { pair.name.elementsEqual($0) } }.map(\.value)
    }

    /// Whether a switch such as `response=1` is on.
    func isOn(_ name: StaticString) -> Bool {
        guard let value = self[name] else { return false }
        return !["0", "false", "no"].contains { $0.utf8.elementsEqual(value.utf8) }
    }

    /// Decodes percent-encoding once. A `%` that begins no escape is kept, because not all clients encode it.
    static func decode(_ text: Substring.UTF8View, plusIsSpace: Bool = false) -> String {
        var bytes = [UInt8]()
        var rest = text
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = escaped(rest.prefix(2)) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func escaped(_ digits: Substring.UTF8View) -> UInt8? {
        guard digits.count == 2 else { return nil }
        var value: UInt8 = 0
        for digit in digits {
            switch digit {
            case 0x30...0x39: value = value << 4 | (digit - 0x30)
            case 0x41...0x46: value = value << 4 | (digit - 0x41 + 10)
            case 0x61...0x66: value = value << 4 | (digit - 0x61 + 10)
            default: return nil
            }
        }
        return value
    }
}
