public import ThicketCrypto

/// An id of 128 random bits. Its text is lower-case base32 without padding: 26 letters, the two unused bits zero, so
/// that each id has exactly one text.
public protocol Identifier128: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The bits, the first byte the highest.
    var value: UInt128 { get }
    /// The id of these bits.
    init(_ value: UInt128)
}

extension Identifier128 {
    /// Bytes of an id.
    public static var bytesCount: Int { 16 }
    /// Letters of its text.
    public static var letterCount: Int { 26 }

    /// A new id.
    ///
    /// - Parameter random: returns the requested number of random bytes.
    public static func random(_ random: (Int) -> [UInt8] = RandomBytes.make) -> Self {
        guard let id = Self(octets: random(bytesCount)) else { preconditionFailure("\(bytesCount) random bytes") }
        return id
    }

    /// Reads 16 bytes.
    ///
    /// - Returns: nil for another number of bytes.
    public init?(octets: some Collection<UInt8>) {
        guard octets.count == Self.bytesCount else { return nil }
        self.init(octets.reduce(UInt128(0)) { $0 << 8 | UInt128($1) })
    }

    /// Reads the text.
    ///
    /// - Returns: nil for another length, other characters (including capitals), or unused bits that are not zero.
    public init?(text: String) {
        guard text.utf8.count == Self.letterCount, let octets = Base32.decode(text.utf8) else { return nil }
        self.init(octets: octets)
    }

    /// The 16 bytes in order.
    public var octets: [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
    /// The text.
    public var text: String { Base32.encode(octets) }
    /// The text.
    public var description: String { text }

    /// The order of the bytes. Texts sort otherwise: base32's digits have higher values than its letters.
    public static func < (left: Self, right: Self) -> Bool { left.value < right.value }
}

/// Identifies a node in its tree. Never changes: not by a move, nor by a new name or key.
public struct NodeID: Identifier128 {
    /// The bits, the first byte the highest.
    public let value: UInt128
    /// The id of these bits.
    public init(_ value: UInt128) { self.value = value }
}

/// Identifies one version of a node's content; each chunk of the content authenticates it.
public struct DataID: Identifier128 {
    /// The bits, the first byte the highest.
    public let value: UInt128
    /// The id of these bits.
    public init(_ value: UInt128) { self.value = value }
}

/// Identifies a stored blob. Copies of a node share the blob.
public struct BlobID: Identifier128 {
    /// The bits, the first byte the highest.
    public let value: UInt128
    /// The id of these bits.
    public init(_ value: UInt128) { self.value = value }
}

/// Identifies a batch of changes; made by the device that sends it. The same batch sent again has the same id.
public struct BatchID: Identifier128 {
    /// The bits, the first byte the highest.
    public let value: UInt128
    /// The id of these bits.
    public init(_ value: UInt128) { self.value = value }
}
