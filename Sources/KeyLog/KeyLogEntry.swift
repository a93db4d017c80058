public import ThicketCrypto

/// Declares a user's keys from now on: one entry of the key log (spec 4.12).
///
/// The entries of a user form a chain: each contains the hash of the previous one and is signed with the new identity
/// key and, unless the old one is lost, with the old one too. Both signatures cover the same fields under
/// `thicket/key/1`.
///
/// Bytes: `thicket/key-entry/1` ‖ 0x00 ‖ fields, each with 16 bits of length: app, user, number (8), identity key (32),
/// encryption key (32), valid from (8), hash of the previous entry (32, or none), kind (1) — these eight are signed —
/// signature with the new identity key (64), signature with the previous identity key (64, or none). The encoding of an
/// entry is unique.
public struct KeyLogEntry: Sendable, Hashable {
    /// The relation of an entry to the previous one.
    public enum Kind: UInt8, Sendable {
        /// The user has no previous entry.
        case first = 0
        /// The previous identity key has signed this entry.
        case rotation = 1
        /// The previous key is lost: contacts that relied on it must ask its owner.
        case reset = 2
    }

    static let label: StaticString = "thicket/key-entry/1"

    /// The app of the log.
    public let app: String
    /// The user and its keys.
    public let keys: PublicKeys
    /// Index among the user's entries, from 0.
    public let sequence: UInt64
    /// Milliseconds since 1970, clock of the device that created the keys.
    public let validFrom: UInt64
    /// The relation to the previous entry.
    public let kind: Kind
    /// Hash of the user's previous entry; nil in a first entry.
    public let previous: Digest256?
    /// Signature with the identity key of this entry.
    public let signature: [UInt8]
    /// Signature with the previous identity key; set only in a rotation.
    public let previousSignature: [UInt8]?
    /// The encoding that is stored, sent and hashed.
    public let bytes: [UInt8]
    /// SHA-256(0x00 ‖ bytes): its leaf in the log (RFC 6962, 2.1), its value in the map, and the reference in the next
    /// entry.
    public let hash: Digest256

    /// The user of the keys.
    public var user: String { keys.user }

    /// The signed fields, not validated.
    struct Fields {
        var app: String
        var keys: PublicKeys
        var sequence: UInt64
        var validFrom: UInt64
        var kind: Kind
        var previous: Digest256?

        var octets: [[UInt8]] {
            [
                Array(app.utf8), Array(keys.user.utf8), sequence.octets, keys.identity.octets, keys.encryption.octets,
                validFrom.octets, previous?.bytes ?? [], [kind.rawValue],
            ]
        }
    }

    /// Assembles an entry; validates only its names.
    /// - Throws: `malformed`.
    init(_ fields: Fields, signature: [UInt8], previousSignature: [UInt8]?) throws(KeyLogError) {
        var bytes = LabelledBytes(Self.label)
        for field in fields.octets + [signature, previousSignature ?? []] { bytes.put(field) }
        try self.init(bytes.octets)
    }

    /// Parses an entry. Its signatures and its place in the chain are verified by `check`.
    /// - Throws: `malformed`, `tooMany`.
    public init(_ bytes: [UInt8]) throws(KeyLogError) {
        var fields = try KeyLogFields(
            bytes, label: Self.label, max: KeyLogLimits.entryBytesMax, what: "an entry")
        app = try fields.app()
        let user = try fields.user()
        sequence = try fields.numberField()
        keys = try fields.keys(of: user)
        validFrom = try fields.numberField()
        let previous = try fields.field(Digest256.byteCount, orNone: true)
        guard let number = try fields.field(1).first, let kind = Kind(rawValue: number) else {
            throw .malformed("an entry is of a kind that this version does not know")
        }
        signature = try fields.field(Ed25519.signatureBytes)
        let signed = try fields.field(Ed25519.signatureBytes, orNone: true)
        try fields.end()
        // Required parts are enforced per kind, so that an attacker cannot remove a signature and present the entry as
        // a reset.
        guard (kind == .first) == previous.isEmpty, (kind == .first) == (sequence == 0),
            (kind == .rotation) == !signed.isEmpty
        else { throw .malformed("an entry has parts that its kind does not have, or lacks some") }
        (self.kind, self.previous) = (kind, Digest256(previous))
        previousSignature = signed.isEmpty ? nil : signed
        (self.bytes, hash) = (bytes, MerkleTree.leafHash(bytes))
    }

    var fields: Fields {
        Fields(
            app: app, keys: keys, sequence: sequence, validFrom: validFrom, kind: kind, previous: previous)
    }

    /// Entries are equal if their hashes are.
    public static func == (left: KeyLogEntry, right: KeyLogEntry) -> Bool { left.hash == right.hash }

    /// Uses the entry's hash.
    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// The key of a user in the map: SHA-256 of the bytes of its name.
    public static func mapKey(of user: String) -> Digest256 { .of(Array(user.utf8)) }
}
