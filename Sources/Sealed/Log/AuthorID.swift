import ThicketCrypto
import ThicketPlatform

/// The author of an operation: the 8 bytes of a device's id. Their order decides between two insertions at one place.
public struct AuthorID: Sendable, Hashable, Comparable {
    /// Bytes of an author's id.
    public static let byteCount = 8
    /// The bytes as one big-endian number, which has the same order as the bytes.
    public let rawValue: UInt64

    /// The id with this big-endian value.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// - Returns: nil unless 8 bytes are given.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.byteCount else { return nil }
        rawValue = bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads base64url.
    init?(text: String) {
        guard let bytes = Base64.decodeURL(Array(text.utf8)[...]) else { return nil }
        self.init(bytes)
    }

    /// The 8 bytes, the most significant first.
    public var bytes: [UInt8] { rawValue.bigEndianBytes }

    /// base64url, as written in operations and snapshots.
    var text: String { Base64.encodeURL(bytes) }

    /// Compares the bytes in order.
    public static func < (left: AuthorID, right: AuthorID) -> Bool { left.rawValue < right.rawValue }
}

extension FixedWidthInteger {
    /// The bytes, the most significant first.
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}
