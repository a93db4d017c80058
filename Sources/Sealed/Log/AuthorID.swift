import ThicketCrypto

/// Who wrote an operation: the 8 bytes of a device's id. Their order decides between two insertions at one place.
public struct AuthorID: Sendable, Hashable, Comparable {
    public static let byteCount = 8
    /// The bytes as one big-endian number: the order of numbers is that of the bytes.
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// - Returns: nil unless there are 8 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads base64url.
    init?(text: String) {
        guard let bytes = Base64.decodeURL(Array(text.utf8)[...]) else { return nil }
        self.init(bytes)
    }

    public var bytes: [UInt8] { rawValue.bigEndianBytes }

    /// base64url, as it stands in operations and snapshots.
    var text: String { Base64.encodeURL(bytes) }

    public static func < (left: AuthorID, right: AuthorID) -> Bool { left.rawValue < right.rawValue }
}

extension FixedWidthInteger {
    /// The bytes, the most significant first.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
