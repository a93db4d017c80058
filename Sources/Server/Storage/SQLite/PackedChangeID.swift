import ThicketProtocol

/// A ccid as its column holds it: 32 lower-case hex digits as 16 bytes, a lower-case UUID as those 16 and a mark,
/// anything else as its text.
enum PackedChangeID: Hashable {
    case bytes([UInt8])
    case text(String)

    /// Follows the 16 bytes of a UUID.
    private static let dashed: UInt8 = 1
    private static let dashes: Set<Int> = [8, 13, 18, 23]

    init(_ changeID: ChangeID) {
        let text: [UInt8] = Array(changeID.text.utf8)
        if text.count == 32, let bytes: [UInt8] = Self.unhex(text[...]) {
            self = .bytes(bytes)
        } else if text.count == 36, Self.dashes.allSatisfy({ text[$0] == 0x2D }),
            let bytes: [UInt8] = Self.unhex(
                text.enumerated().filter { !Self.dashes.contains($0.offset) }.map(\.element)[...])
        {
            self = .bytes(bytes + [Self.dashed])
        } else {
            self = .text(changeID.text)
        }
    }

    /// The ccid as it was written; nil for bytes of another length.
    var changeIDText: String? {
        switch self {
        case .text(let text): return text
        case .bytes(let bytes):
            guard bytes.count == 16 || (bytes.count == 17 && bytes[16] == Self.dashed) else { return nil }
            var text: [UInt8] = []
            text.reserveCapacity(36)
            for (place, byte) in bytes.prefix(16).enumerated() {
                if bytes.count == 17 && (place == 4 || place == 6 || place == 8 || place == 10) { text.append(0x2D) }
                text.append(Self.digit(byte >> 4))
                text.append(Self.digit(byte & 15))
            }
            return String(decoding: text, as: UTF8.self)
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x57
        default: nil
        }
    }

    private static func unhex(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var place: Int = text.startIndex
        while place + 1 < text.endIndex {
            guard let high: UInt8 = value(text[place]), let low: UInt8 = value(text[place + 1]) else { return nil }
            bytes.append(high << 4 | low)
            place += 2
        }
        return bytes
    }
}
