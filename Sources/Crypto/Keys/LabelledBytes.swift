/// A label, a zero byte, and fields with their lengths: bytes that can be parsed in one way only. They are signed, used
/// in derivations, and authenticated beside sealed bytes; the label separates the uses (spec 3).
public struct LabelledBytes: Sendable, Hashable {
    /// Bytes of the longest field, because its length is encoded in 16 bits.
    public static let fieldBytesMax = 65_535

    /// label ‖ 0x00 ‖ the added fields.
    public private(set) var octets: [UInt8]

    /// Starts with a label and no fields.
    ///
    /// - Parameter label: ASCII without a zero byte, such as `thicket/wrap/1`.
    public init(_ label: StaticString) { octets = label.withUTF8Buffer { Array($0) } + [0] }

    /// Adds a field: its length in 16 bits, and its bytes.
    ///
    /// - Throws: `outOfBounds(.info)` for more than 65,535 bytes.
    public mutating func add(_ field: some Collection<UInt8>) throws(CryptoError) {
        guard field.count <= Self.fieldBytesMax else { throw .outOfBounds(.info) }
        octets += [UInt8(field.count >> 8), UInt8(field.count & 0xFF)]
        octets += field
    }

    /// The same bytes with one more field.
    ///
    /// - Throws: `outOfBounds(.info)` for more than 65,535 bytes.
    public func adding(_ field: some Collection<UInt8>) throws(CryptoError) -> LabelledBytes {
        var bytes = self
        try bytes.add(field)
        return bytes
    }

    /// Adds a 64-bit number, big-endian, without a length.
    public mutating func add(bare number: UInt64) { octets += number.octets }
}

extension FixedWidthInteger {
    /// The bytes of the number, big-endian.
    package var octets: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }
}

/// The purpose of a signature. One key signs several kinds of messages, and the label keeps a signature of one kind
/// from being accepted as another.
public enum SignatureLabel: Sendable, CaseIterable {
    /// A record of the tree.
    case record
    /// The origin of a message.
    case origin
    /// A user's key.
    case key
    /// A head of the key log.
    case head
    /// The change of a key log's own key.
    case logKeyRotation
    /// A witness's confirmation of a head of the key log.
    case witness
    /// The denial of an entry by the holder of the key before it.
    case keyDenial
    /// A head of the log of releases.
    case releaseHead
    /// The users that may read and write a bucket of several accounts.
    case readers
    /// The author of a sealed value.
    case author

    private var text: StaticString {
        switch self {
        case .record: "thicket/record/1"
        case .origin: "thicket/origin/1"
        case .key: "thicket/key/1"
        case .head: "thicket/head/1"
        case .logKeyRotation: "thicket/log-key-rotation/1"
        case .witness: "thicket/witness/1"
        case .keyDenial: "thicket/key-denial/1"
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
    /// - Parameters:
    ///   - label: the purpose of the signature.
    ///   - fields: the statement and its audience: author, recipients and their key ids, so that it cannot be forwarded
    ///     to another recipient as if it were meant for that one.
    /// - Throws: `outOfBounds(.info)` for a field of more than 65,535 bytes.
    public func signature(for label: SignatureLabel, _ fields: [[UInt8]]) throws(CryptoError) -> [UInt8] {
        signature(of: try label.message(fields))
    }
}

extension Ed25519.VerifyingKey {
    /// Whether it is the signature of these fields under this label. False for fields that are too long to be signed.
    public func isSignature(_ signature: [UInt8], for label: SignatureLabel, _ fields: [[UInt8]]) -> Bool {
        guard let message = try? label.message(fields) else { return false }
        return isSignature(signature, of: message)
    }
}
