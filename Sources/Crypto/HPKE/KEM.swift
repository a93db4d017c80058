/// DHKEM(X25519, HKDF-SHA256) (RFC 9180, 4.1 and 7.1): a shared secret for one exchange.
enum KEM {
    private static let hkdf = LabeledHKDF(suiteID: Array("KEM".utf8) + HPKE.kem.octets)
    private static let secretBytes = 32

    /// Encap, or AuthEncap with a sender.
    ///
    /// - Throws: `unusablePublicKey` for a key of small order.
    static func encapsulate(
        to receiver: X25519.PublicKey, ephemeral: X25519.PrivateKey, sender: X25519.PrivateKey?
    ) throws(CryptoError) -> SecureBytes {
        let first = try ephemeral.sharedSecret(with: receiver)
        var context = ephemeral.publicKey.octets + receiver.octets
        guard let sender else { return try derive(first, context) }
        context += sender.publicKey.octets
        return try derive(.joined([first, try sender.sharedSecret(with: receiver)]), context)
    }

    /// Decap, or AuthDecap with a sender.
    ///
    /// - Throws: `unusablePublicKey` for a key of small order or another length.
    static func decapsulate(
        _ encapsulated: [UInt8], with receiver: X25519.PrivateKey, sender: X25519.PublicKey?
    ) throws(CryptoError) -> SecureBytes {
        let first = try receiver.sharedSecret(with: X25519.PublicKey(encapsulated))
        var context = encapsulated + receiver.publicKey.octets
        guard let sender else { return try derive(first, context) }
        context += sender.octets
        return try derive(.joined([first, try receiver.sharedSecret(with: sender)]), context)
    }

    /// ExtractAndExpand (4.1).
    private static func derive(_ agreed: SecureBytes, _ context: [UInt8]) throws(CryptoError) -> SecureBytes {
        let key = try hkdf.extract(salt: SecureBytes(copying: []), "eae_prk", agreed)
        return try hkdf.expand(key, "shared_secret", context, count: secretBytes)
    }

    /// DeriveKeyPair (7.1.3).
    static func privateKey(from material: SecureBytes) throws(CryptoError) -> X25519.PrivateKey {
        let key = try hkdf.extract(salt: SecureBytes(copying: []), "dkp_prk", material)
        return try X25519.PrivateKey(hkdf.expand(key, "sk", [], count: X25519.octetsCount))
    }
}

extension X25519.PrivateKey {
    /// The key pair derived from key material (RFC 9180, 7.1.3): at least 32 bytes that an attacker cannot guess.
    ///
    /// - Throws: `outOfBounds(.key)` for fewer.
    public static func derived(from material: SecureBytes) throws(CryptoError) -> X25519.PrivateKey {
        guard material.count >= X25519.octetsCount else { throw .outOfBounds(.key) }
        return try KEM.privateKey(from: material)
    }
}
