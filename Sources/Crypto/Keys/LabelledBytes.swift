/// A label, a zero byte, and fields with their lengths: bytes that can be read in one way only. They are signed, go
/// into derivations, and are authenticated beside what is sealed; the label keeps uses apart (spec of the house, 3).
public struct LabelledBytes: Sendable, Hashable {
    /// Longest field, since its length has 16 bits.
    public static let fieldBytesMax = 65_535

    /// label ‖ 0x00 ‖ what was added.
    public private(set) var octets: [UInt8]

    /// - Parameter label: ASCII without a zero byte, such as `thicket/wrap/1`.
    public init(_ label: StaticString) { octets = label.withUTF8Buffer { Array($0) } + [0] }

    /// Adds 16 bits of length, and the bytes.
    /// - Throws: `outOfBounds(.info)` for more than 65,535 bytes.
    public mutating func add(_ field: some Collection<UInt8>) throws(CryptoError) {
        guard field.count <= Self.fieldBytesMax else { throw .outOfBounds(.info) }
        octets += [UInt8(field.count >> 8), UInt8(field.count & 0xFF)]
        octets += field
    }

    /// The same with one field more.
    /// - Throws: `outOfBounds(.info)` for more than 65,535 bytes.
    public func adding(_ field: some Collection<UInt8>) throws(CryptoError) -> LabelledBytes {
        var bytes = self
        try bytes.add(field)
        return bytes
    }

    /// Adds a number of 64 bits, big-endian, as it is: without a length.
    public mutating func add(bare number: UInt64) { octets += number.octets }
}

extension FixedWidthInteger {
    /// Big-endian.
    package var octets: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

/// What a signature is for. One key signs several kinds of things, and none passes for another.
public enum SignatureLabel: Sendable, CaseIterable {
    /// A record of the tree.
    case record
    /// Who sent a sealed key.
    case origin
    /// A key of a user.
    case key
    /// A head of the key log.
    case head
    /// A head of the log of releases.
    case releaseHead
    /// Who reads and writes a bucket of several accounts.
    case readers
    /// Who wrote a sealed value.
    case author

    private var text: StaticString {
        switch self {
        case .record: "thicket/record/1"
        case .origin: "thicket/origin/1"
        case .key: "thicket/key/1"
        case .head: "thicket/head/1"
        case .releaseHead: "thicket/release-head/1"
        case .readers: "thicket/readers/1"
        case .author: "thicket/author/1"
        }
    }

    func message(_ fields: [[UInt8]]) throws(CryptoError) -> [UInt8] {
        var bytes = LabelledBytes(text)
        for field in fields { try bytes.add(field) }
        return bytes.octets
    }
}

extension Ed25519.SigningKey {
    /// Signs label ‖ 0x00 ‖ fields with lengths (spec 3.4).
    ///
    /// - Parameter fields: what is said, and for whom: author, recipients and their key ids are among them, so that it
    ///   cannot be sent on to somebody else as meant for them.
    /// - Throws: `outOfBounds(.info)` for a field of more than 65,535 bytes.
    public func signature(for label: SignatureLabel, _ fields: [[UInt8]]) throws(CryptoError) -> [UInt8] {
        signature(of: try label.message(fields))
    }
}

extension Ed25519.VerifyingKey {
    /// Whether it signs these fields under this label. Fields too long to be signed are not.
    public func isSignature(_ signature: [UInt8], for label: SignatureLabel, _ fields: [[UInt8]]) -> Bool {
        guard let message = try? label.message(fields) else { return false }
        return isSignature(signature, of: message)
    }
}
