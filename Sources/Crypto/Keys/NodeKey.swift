/// The key of a node at one epoch, and what is made of it (spec 3.3; treesystem 4.4).
public struct NodeKey: Sendable {
    /// Bytes of a node key, and of what is made of it.
    public static let bytesCount = 32

    /// What a subkey is for.
    public enum Use: String, Sendable, CaseIterable {
        /// Seals the node's metadata.
        case meta
        /// Seals the keys of the nodes below.
        case children
        /// Not a key: the commitment, which stands in the record for everybody to see.
        case commit
    }

    /// 32 bytes.
    public let secret: SecureBytes

    /// - Throws: `outOfBounds(.key)` for another length.
    public init(_ secret: SecureBytes) throws(CryptoError) {
        guard secret.count == Self.bytesCount else { throw .outOfBounds(.key) }
        self.secret = secret
    }

    /// A new one.
    public static func random() -> NodeKey {
        guard let key = try? NodeKey(.random(bytesCount)) else {
            preconditionFailure("32 random bytes are a node key")
        }
        return key
    }

    /// HKDF-SHA-256 with an empty salt and `thicket/node/1` ‖ 0x00 ‖ use.
    public func subkey(_ use: Use) throws(CryptoError) -> SecureBytes {
        try HKDF.derive(
            .sha256, secret: secret, info: LabelledBytes("thicket/node/1").octets + Array(use.rawValue.utf8))
    }

    /// What the record shows of this key, all 32 bytes: nobody finds another key with the same, and one record cannot
    /// show different content to different readers.
    public func commitment() throws(CryptoError) -> [UInt8] { try subkey(.commit).withUnsafeBytes { Array($0) } }

    /// Whether a record's commitment is of this key. Whoever has unwrapped a key asks before anything is opened with
    /// it: AES-GCM and ChaCha20-Poly1305 let somebody make one ciphertext that opens under two keys.
    public func isCommitted(by commitment: [UInt8]) throws(CryptoError) -> Bool {
        ConstantTime.equal(try self.commitment(), commitment)
    }
}
