/// A short message sealed with a separate key and a random nonce: suite ‖ nonce ‖ ciphertext ‖ tag (spec 3.3).
///
/// One key seals at most 2^32 messages (SP 800-38D, 8.3).
public enum SealedMessage {
    /// Bytes that sealing adds.
    public static let extraBytes: Int = 1 + AEADSuite.nonceBytes + AEADSuite.tagBytes

    /// Seals bytes.
    ///
    /// - Parameters:
    ///   - clear: the bytes to seal.
    ///   - suite: the algorithm.
    ///   - key: 32 bytes.
    ///   - data: authenticated, and not contained in the result.
    ///   - nonce: one that this key has never used.
    /// - Throws: `outOfBounds(.key)` for a key of another length.
    public static func seal(
        _ clear: [UInt8], _ suite: AEADSuite = .aes256GCM, key: SecureBytes, data: [UInt8],
        nonce: AEADNonce = .random()
    ) throws(CryptoError) -> [UInt8] {
        let sealed = try AEAD(suite, key: key).seal(clear, nonce: nonce, data: data)
        return [suite.rawValue] + nonce.octets + sealed
    }

    /// Seals a secret; the parameters are those of bytes.
    ///
    /// - Throws: `outOfBounds(.key)` for a key of another length.
    public static func seal(
        _ clear: SecureBytes, _ suite: AEADSuite = .aes256GCM, key: SecureBytes, data: [UInt8],
        nonce: AEADNonce = .random()
    ) throws(CryptoError) -> [UInt8] {
        let sealed = try AEAD(suite, key: key).seal(clear, nonce: nonce, data: data)
        return [suite.rawValue] + nonce.octets + sealed
    }

    /// Opens a message.
    ///
    /// - Throws: `openingFailed` for any deviation; `outOfBounds(.key)` for a key of another length.
    public static func open(_ message: [UInt8], key: SecureBytes, data: [UInt8]) throws(CryptoError) -> [UInt8] {
        let parts = try Parts(message)
        return try AEAD(parts.suite, key: key).open(parts.sealed, nonce: parts.nonce, data: data)
    }

    /// Opens a sealed secret.
    ///
    /// - Throws: `openingFailed` for any deviation; `outOfBounds(.key)` for a key of another length.
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
