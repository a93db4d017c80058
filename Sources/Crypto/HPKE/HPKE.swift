/// HPKE (RFC 9180) with DHKEM(X25519, HKDF-SHA256) and HKDF-SHA256: sealing for the owner of a key pair.
///
/// Base mode does not authenticate the sender; a sender that must be known signs inside the sealed content. Auth mode
/// is for two devices that know each other: it proves nothing to third parties, and the holder of the receiver's key
/// can impersonate any sender (9.1.1).
public enum HPKE {
    /// DHKEM(X25519, HKDF-SHA256) (7.1).
    static let kem: UInt16 = 0x0020
    /// HKDF-SHA256 (7.2).
    static let kdf: UInt16 = 0x0001
    /// Bytes of an encapsulated key (7.1).
    public static let encapsulatedBytes = 32

    /// The cipher, by its number in RFC 9180, 7.3.
    public enum Cipher: UInt16, Sendable, CaseIterable {
        /// Only for published vectors; Thicket does not seal with it.
        case aes128GCM = 0x0001
        /// AES-256-GCM.
        case aes256GCM = 0x0002
        /// ChaCha20-Poly1305.
        case chaCha20Poly1305 = 0x0003
        /// Does not seal; only exports secrets (5.3).
        case exportOnly = 0xFFFF

        /// The cipher of a suite.
        public init(_ suite: AEADSuite) {
            switch suite {
            case .aes256GCM: self = .aes256GCM
            case .chaCha20Poly1305: self = .chaCha20Poly1305
            }
        }

        var algorithm: AEADAlgorithm? {
            switch self {
            case .aes128GCM: .aes128GCM
            case .aes256GCM: .aes256GCM
            case .chaCha20Poly1305: .chaCha20Poly1305
            case .exportOnly: nil
            }
        }

        /// Identifies the whole suite in every derivation (5.1).
        var suiteID: [UInt8] { Array("HPKE".utf8) + HPKE.kem.octets + HPKE.kdf.octets + rawValue.octets }
    }

    /// How the parties are authenticated (5, table 1).
    package enum Mode: UInt8, Sendable {
        case base = 0
        case preshared = 1
        case auth = 2
        case authPreshared = 3

        init(isAuthenticated: Bool, hasSecret: Bool) {
            self =
                switch (isAuthenticated, hasSecret) {
                case (false, false): .base
                case (false, true): .preshared
                case (true, false): .auth
                case (true, true): .authPreshared
                }
        }
    }

    /// A secret that both parties have beforehand (5.1.2). Used by published vectors only.
    package struct PresharedSecret: Sendable {
        package let secret: SecureBytes
        package let id: [UInt8]

        /// - Throws: `outOfBounds(.key)` for fewer than 32 bytes (9.5) or an empty id (5.1).
        package init(_ secret: SecureBytes, id: [UInt8]) throws(CryptoError) {
            guard secret.count >= 32, !id.isEmpty else { throw .outOfBounds(.key) }
            (self.secret, self.id) = (secret, id)
        }
    }

    /// Seals one message for one receiver, in base mode (6.1).
    ///
    /// - Parameters:
    ///   - clear: the secret to seal.
    ///   - suite: the algorithm.
    ///   - receiver: the receiver's public key.
    ///   - info: the purpose of the exchange, the same on both sides.
    ///   - data: authenticated, and not contained in the result.
    /// - Returns: the encapsulated key, 32 bytes, ‖ ciphertext ‖ tag.
    /// - Throws: `unusablePublicKey` for a receiver's key of small order.
    public static func seal(
        _ clear: SecureBytes, _ suite: AEADSuite, to receiver: X25519.PublicKey, info: [UInt8], data: [UInt8] = []
    ) throws(CryptoError) -> [UInt8] {
        var sender = try Sender(Cipher(suite), to: receiver, info: info)
        return try sender.encapsulated + sender.seal(clear, data: data)
    }

    /// Opens a message that `seal` has made.
    ///
    /// - Throws: `openingFailed` for any deviation.
    public static func open(
        _ sealed: [UInt8], _ suite: AEADSuite, with receiver: X25519.PrivateKey, info: [UInt8], data: [UInt8] = []
    ) throws(CryptoError) -> SecureBytes {
        guard sealed.count >= encapsulatedBytes + AEADSuite.tagBytes else { throw .openingFailed }
        var context = try Receiver(
            Cipher(suite), encapsulated: Array(sealed.prefix(encapsulatedBytes)), with: receiver, info: info)
        return try context.openSecret(Array(sealed.dropFirst(encapsulatedBytes)), data: data)
    }
}
