public import ThicketCrypto

/// Says which keys a user has from now on: one line of the key log (spec 4.12).
///
/// The entries of a user are a chain: each names the hash of the one before and is signed by the new identity key and,
/// unless the old one is lost, by the old one too. Both sign the same fields under `thicket/key/1`.
///
/// Bytes: `thicket/key-entry/1` ‖ 0x00 ‖ fields, each with 16 bits of length: app, user, number (8), identity key (32),
/// encryption key (32), valid from (8), hash of the entry before (32, or none), kind (1) — these eight are signed —
/// signature by the new identity key (64), signature by the one before (64, or none). One entry has one encoding.
public struct KeyLogEntry: Sendable, Hashable {
    /// What an entry is to the one before it.
    public enum Kind: UInt8, Sendable {
        /// There is none before it.
        case first = 0
        /// The key before it has signed this one.
        case rotation = 1
        /// The key before it is lost: whoever relied on that one has to ask its owner.
        case reset = 2
    }

    static let label: StaticString = "thicket/key-entry/1"

    /// The app whose log it is for.
    public let app: String
    /// Whose keys, and which.
    public let keys: PublicKeys
    /// Its place among the user's entries, from 0.
    public let sequence: UInt64
    /// Milliseconds since 1970, as the clock of the device had it that made the keys.
    public let validFrom: UInt64
    public let kind: Kind
    /// Hash of the user's entry before it; nil in a first one.
    public let previous: Digest256?
    /// By the identity key that it names.
    public let signature: [UInt8]
    /// By the identity key before that, in a rotation.
    public let previousSignature: [UInt8]?
    /// As it is stored, sent and hashed.
    public let bytes: [UInt8]
    /// SHA-256(0x00 ‖ bytes): its leaf in the log (RFC 6962, 2.1), its value in the map, what the next entry names.
    public let hash: Digest256

    /// Whose keys.
    public var user: String { keys.user }

    /// What is signed, as it is given.
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

    /// Puts an entry together; looks at nothing but its names.
    /// - Throws: `malformed`.
    init(_ fields: Fields, signature: [UInt8], previousSignature: [UInt8]?) throws(KeyLogError) {
        var bytes = LabelledBytes(Self.label)
        for field in fields.octets + [signature, previousSignature ?? []] { bytes.put(field) }
        try self.init(bytes.octets)
    }

    /// Reads one. Signatures and its place behind others are looked at by `check`.
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
        // What a kind has and has not is a matter of its form: nobody can cut a signature off and call the rest a
        // reset.
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

    public static func == (left: KeyLogEntry, right: KeyLogEntry) -> Bool { left.hash == right.hash }

    public func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// The key of a user in the map: SHA-256 of the name's bytes.
    public static func mapKey(of user: String) -> Digest256 { .of(Array(user.utf8)) }
}
