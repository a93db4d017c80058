/// The key of a node at one epoch, and the keys derived from it (spec 3.3; treesystem 4.4).
public struct NodeKey: Sendable {
    /// Bytes of a node key and of each derived value.
    public static let bytesCount = 32

    /// The purpose of a subkey.
    public enum Use: String, Sendable, CaseIterable {
        /// Seals the node's metadata.
        case meta
        /// Seals the keys of the nodes below.
        case children
        /// The commitment, which is not a key: it is public, as part of the record.
        case commit
    }

    /// The key, 32 bytes.
    public let secret: SecureBytes

    /// Makes a node key.
    ///
    /// - Throws: `outOfBounds(.key)` for another length.
    public init(_ secret: SecureBytes) throws(CryptoError) {
        guard secret.count == Self.bytesCount else { throw .outOfBounds(.key) }
        self.secret = secret
    }

    /// A new random key.
    public static func random() -> NodeKey {
        guard let key = try? NodeKey(.random(bytesCount)) else {
            preconditionFailure("32 random bytes are a node key")
        }
        return key
    }

    /// Derives a subkey: HKDF-SHA-256 with an empty salt and `thicket/node/1` ‖ 0x00 ‖ use.
    public func subkey(_ use: Use) throws(CryptoError) -> SecureBytes {
        try HKDF.derive(
            .sha256, secret: secret, info: LabelledBytes("thicket/node/1").octets + Array(use.rawValue.utf8))
    }

    /// The commitment to this key in the record, all 32 bytes: finding another key with the same commitment is
    /// infeasible, so one record cannot show different content to different readers.
    public func commitment() throws(CryptoError) -> [UInt8] { try subkey(.commit).withUnsafeBytes { Array($0) } }

    /// Whether a record's commitment is to this key. A reader that has unwrapped a key must check it before it opens
    /// anything with the key: with AES-GCM and ChaCha20-Poly1305 an attacker can make a ciphertext that opens with two
    /// keys.
    public func isCommitted(by commitment: [UInt8]) throws(CryptoError) -> Bool {
        ConstantTime.equal(try self.commitment(), commitment)
    }
}
