public import ThicketCrypto

/// What everybody may know of an account: the key that its signatures verify with, and the key that one seals to. Both
/// halves that are secret stand in the account's bundle (decision 0043).
public struct PublicKeys: Sendable, Hashable {
    /// Bytes of an id in text, two digits each.
    private static let idBytes = 16

    /// The account's id at the server: what a record names as its author, a list as its reader.
    public let user: String
    /// Verifies what the account signs.
    public let identity: Ed25519.VerifyingKey
    /// Opens what is sealed to the account, with its other half.
    public let encryption: X25519.PublicKey
    /// Names these keys, of this account: the first 16 bytes of SHA-256 over `thicket/key-id/1` and the three, in hex.
    public let id: String

    /// - Throws: `CryptoError.outOfBounds(.info)` for a user of more than 65,535 bytes.
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

    /// The same account's the same keys; texts are compared byte by byte, as signatures and seals do.
    public static func == (left: PublicKeys, right: PublicKeys) -> Bool { left.id.utf8.elementsEqual(right.id.utf8) }

    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
