import ThicketProtocol

/// A ccid as its column holds it: 32 lower-case hex digits as 16 bytes, a lower-case UUID as these 16 bytes and a mark
/// byte, any other ccid as its text.
enum PackedChangeID: Hashable {
    case bytes([UInt8])
    case text(String)

    /// Mark byte after the 16 bytes of a UUID.
    private static let dashed: UInt8 = 1

    init(_ changeID: ChangeID) {
        self = changeID.text.withBytes { text in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.packedBytesMax) { place in
                guard let base = place.baseAddress else { return .text(changeID.text) }
                let count = Self.pack(text, to: base)
                return count == 0 ? .text(changeID.text) : .bytes(Array(place.prefix(count)))
            }
        }
    }

    /// Maximum bytes of a packed ccid.
    static let packedBytesMax = 17

    /// Packs a ccid into memory with space for `packedBytesMax` bytes.
    /// - Returns: number of packed bytes; 0 for a ccid that is stored as its text.
    static func pack(_ text: UnsafeBufferPointer<UInt8>, to place: UnsafeMutablePointer<UInt8>) -> Int {
        guard text.count == 32 || text.count == 36, let base = text.baseAddress else { return 0 }
        var (at, written) = (0, 0)
        while at < text.count {
            if text.count == 36, at == 8 || at == 13 || at == 18 || at == 23 {
                guard base[at] == UInt8(ascii: "-") else { return 0 }
                at += 1
            }
            guard let high = value(base[at]), let low = value(base[at + 1]) else { return 0 }
            place[written] = high << 4 | low
            (at, written) = (at + 2, written + 1)
        }
        guard text.count == 36 else { return written }
        place[written] = dashed
        return written + 1
    }

    /// The original ccid; nil for a blob of any other length or mark.
    var changeIDText: String? {
        switch self {
        case .text(let text): return text
        case .bytes(let bytes):
            guard bytes.count == 16 || (bytes.count == 17 && bytes[16] == Self.dashed) else { return nil }
            var text = [UInt8]()
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

    @inline(__always)
    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x57
        default: nil
        }
    }
}
