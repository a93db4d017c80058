/// A node key sealed for one recipient: suite ‖ encapsulated key ‖ ciphertext ‖ tag, 81 bytes (spec 3.4).
///
/// HPKE in base mode, one seal for each exchange, without additional data: the whole context of a wrap is in the
/// `info`, so that it does not open in another place, at another epoch or for another recipient.
public struct KeyWrap: Sendable, Hashable {
    /// Bytes of a wrap.
    public static let bytesCount: Int = 1 + HPKE.encapsulatedBytes + keyBytes + AEADSuite.tagBytes
    /// Bytes of the key inside.
    public static let keyBytes = 32

    /// The owner of the node.
    public let owner: String
    /// The application.
    public let app: String
    /// The node.
    public let node: String
    /// Increases with each change of the node's key.
    public let epoch: UInt32
    /// The user that may open it.
    public let recipient: String
    /// The recipient's key with which it opens.
    public let recipientKey: String

    /// Names the context of a wrap.
    public init(owner: String, app: String, node: String, epoch: UInt32, recipient: String, recipientKey: String) {
        (self.owner, self.app, self.node, self.epoch) = (owner, app, node, epoch)
        (self.recipient, self.recipientKey) = (recipient, recipientKey)
    }

    /// The context of a wrap as the `info` of HPKE.
    ///
    /// - Throws: `outOfBounds(.info)` for a name of more than 65,535 bytes.
    package var info: [UInt8] {
        get throws(CryptoError) {
            var bytes = LabelledBytes("thicket/wrap/1")
            for text in [owner, app, node] { try bytes.add(text.utf8) }
            try bytes.add(epoch.octets)
            for text in [recipient, recipientKey] { try bytes.add(text.utf8) }
            return bytes.octets
        }
    }

    /// Seals a key of 32 bytes.
    ///
    /// - Throws: `unusablePublicKey` for a receiver's key of small order; `outOfBounds` for a key of another length or
    ///   a too long name.
    public func seal(
        _ key: SecureBytes, _ suite: AEADSuite = .aes256GCM, to receiver: X25519.PublicKey
    ) throws(CryptoError) -> [UInt8] {
        try seal(key, suite, to: receiver, ephemeral: .random())
    }

    /// - Parameter ephemeral: a key for this wrap only; a parameter for tests with published keys.
    package func seal(
        _ key: SecureBytes, _ suite: AEADSuite, to receiver: X25519.PublicKey, ephemeral: X25519.PrivateKey
    ) throws(CryptoError) -> [UInt8] {
        guard key.count == Self.keyBytes else { throw .outOfBounds(.key) }
        var sender = try HPKE.Sender(
            HPKE.Cipher(suite), to: receiver, info: info, sender: nil, psk: nil, ephemeral: ephemeral)
        return [suite.rawValue] + sender.encapsulated + (try sender.seal(key, data: []))
    }

    /// Opens a wrap for this context.
    ///
    /// - Throws: `openingFailed` for any deviation: length, suite, key or context.
    public func open(_ wrap: [UInt8], with receiver: X25519.PrivateKey) throws(CryptoError) -> SecureBytes {
        guard wrap.count == Self.bytesCount, let suite = AEADSuite(rawValue: wrap[0]) else {
            throw .openingFailed
        }
        return try HPKE.open(Array(wrap.dropFirst()), suite, with: receiver, info: info)
    }
}
