public import ThicketCrypto
import ThicketPlatform

/// The public keys of an account: the key that verifies its signatures, and the key to which others seal. Both secret
/// halves are in the account's bundle (decision 0043).
public struct PublicKeys: Sendable, Hashable {
    /// Bytes of an id, which has two digits per byte.
    private static let idBytes = 16

    /// The account's id at the server, by which a record names its author and a list its readers.
    public let user: String
    /// Verifies what the account signs.
    public let identity: Ed25519.VerifyingKey
    /// Others seal to this key; the account's secret half opens it.
    public let encryption: X25519.PublicKey
    /// Identifies these keys of this account: the first 16 bytes of SHA-256 over `thicket/key-id/1` and the three
    /// values, in hex.
    public let id: String

    /// - Throws: `CryptoError.outOfBounds(.info)` for a user name of more than 65,535 bytes.
    public init(
        user: String, identity: Ed25519.VerifyingKey, encryption: X25519.PublicKey
    ) throws(CryptoError) {
        var bytes = LabelledBytes("thicket/key-id/1")
        try bytes.add(user.utf8)
        try bytes.add(identity.octets)
        try bytes.add(encryption.octets)
        (self.user, self.identity, self.encryption) = (user, identity, encryption)
        id = Hex.encode(Array(Digest256.of(bytes.octets).bytes.prefix(Self.idBytes)))
    }

    /// Whether account and keys are the same; texts are compared byte by byte, as signatures and seals do.
    public static func == (left: PublicKeys, right: PublicKeys) -> Bool { left.id.utf8.elementsEqual(right.id.utf8) }

    /// Uses the id.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
