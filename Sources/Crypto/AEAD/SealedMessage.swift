/// suite ‖ nonce ‖ ciphertext ‖ tag (spec 3.3): something short that is sealed under a key of its own, with a random
/// nonce.
///
/// One key seals at most 2^32 messages (SP 800-38D, 8.3).
public enum SealedMessage {
    /// How much longer it is than what is in it.
    public static let extraBytes: Int = 1 + AEADSuite.nonceBytes + AEADSuite.tagBytes

    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - data: authenticated, and not contained in the result.
    ///   - nonce: one that this key has never seen.
    /// - Throws: `outOfBounds(.key)`.
    public static func seal(
        _ clear: [UInt8], _ suite: AEADSuite = .aes256GCM, key: SecureBytes, data: [UInt8],
        nonce: AEADNonce = .random()
    ) throws(CryptoError) -> [UInt8] {
        let sealed = try AEAD(suite, key: key).seal(clear, nonce: nonce, data: data)
        return [suite.rawValue] + nonce.octets + sealed
    }

    /// Seals a secret.
    /// - Throws: `outOfBounds(.key)`.
    public static func seal(
        _ clear: SecureBytes, _ suite: AEADSuite = .aes256GCM, key: SecureBytes, data: [UInt8],
        nonce: AEADNonce = .random()
    ) throws(CryptoError) -> [UInt8] {
        let sealed = try AEAD(suite, key: key).seal(clear, nonce: nonce, data: data)
        return [suite.rawValue] + nonce.octets + sealed
    }

    /// - Throws: `openingFailed`, whatever is wrong with it; `outOfBounds(.key)` for a key of another length.
    public static func open(_ message: [UInt8], key: SecureBytes, data: [UInt8]) throws(CryptoError) -> [UInt8] {
        let parts = try Parts(message)
        return try AEAD(parts.suite, key: key).open(parts.sealed, nonce: parts.nonce, data: data)
    }

    /// Opens a sealed secret.
    /// - Throws: as the other.
    public static func openSecret(
        _ message: [UInt8], key: SecureBytes, data: [UInt8]
    ) throws(CryptoError) -> SecureBytes {
        let parts = try Parts(message)
        return try AEAD(parts.suite, key: key).openSecret(parts.sealed, nonce: parts.nonce, data: data)
    }

    private struct Parts {
        let suite: AEADSuite
        let nonce: AEADNonce
        let sealed: [UInt8]

        init(_ message: [UInt8]) throws(CryptoError) {
            guard message.count >= SealedMessage.extraBytes, let suite = AEADSuite(rawValue: message[0])
            else { throw .openingFailed }
            self.suite = suite
            nonce = try AEADNonce(message[1...AEADSuite.nonceBytes])
            sealed = Array(message[(1 + AEADSuite.nonceBytes)...])
        }
    }
}
