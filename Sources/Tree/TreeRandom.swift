public import ThicketCrypto

/// The randomness of sealing, passed in so that tests can repeat a run from its seed.
public struct TreeRandom: Sendable {
    /// Returns the requested number of secret bytes, for keys and salts.
    public let secret: @Sendable (Int) -> SecureBytes
    /// Returns the requested number of public bytes, for ids and nonces.
    public let bytes: @Sendable (Int) -> [UInt8]

    /// - Parameters:
    ///   - secret: makes keys and salts.
    ///   - bytes: makes ids and nonces. Two calls must never return the same nonce for one key.
    public init(
        secret: @escaping @Sendable (Int) -> SecureBytes, bytes: @escaping @Sendable (Int) -> [UInt8]
    ) {
        (self.secret, self.bytes) = (secret, bytes)
    }

    /// OpenSSL's generator.
    public static let system = TreeRandom(secret: SecureBytes.random, bytes: RandomBytes.make)

    var nonce: AEADNonce {
        guard let nonce = try? AEADNonce(bytes(AEADSuite.nonceBytes)) else {
            preconditionFailure("a nonce has \(AEADSuite.nonceBytes) bytes")
        }
        return nonce
    }
}
