/// The state of both sides of an exchange (RFC 9180, 5.1 and 5.2): the key, the nonces and the secret for exports. It
/// is part of a `Sender` or `Receiver`, which cannot be copied.
struct KeySchedule {
    /// The values by which tests compare a context with published vectors.
    struct Intermediate {
        let context: [UInt8]
        let secret: SecureBytes
        let key: SecureBytes?
        let baseNonce: [UInt8]
        let exporterSecret: SecureBytes
    }

    let intermediate: Intermediate
    private let hkdf: LabeledHKDF
    private let aead: AEAD?
    private let baseNonce: AEADNonce?
    /// Number of the next message.
    private(set) var sequence: UInt64 = 0

    init(
        _ cipher: HPKE.Cipher, shared: SecureBytes, info: [UInt8], isAuthenticated: Bool, psk: HPKE.PresharedSecret?
    ) throws(CryptoError) {
        hkdf = LabeledHKDF(suiteID: cipher.suiteID)
        let nothing = SecureBytes(copying: [])
        let mode = HPKE.Mode(isAuthenticated: isAuthenticated, hasSecret: psk != nil)
        let pskID = try hkdf.extract(salt: nothing, "psk_id_hash", psk?.id ?? [])
        let infoHash = try hkdf.extract(salt: nothing, "info_hash", info)
        // These hashes are of public values.
        let context: [UInt8] =
            [mode.rawValue] + pskID.withUnsafeBytes { Array($0) } + infoHash.withUnsafeBytes { Array($0) }
        let secret = try hkdf.extract(salt: shared, "secret", psk?.secret ?? nothing)
        let exporterSecret = try hkdf.expand(secret, "exp", context, count: 32)
        guard let algorithm = cipher.algorithm else {
            (aead, baseNonce) = (nil, nil)
            intermediate = Intermediate(
                context: context, secret: secret, key: nil, baseNonce: [], exporterSecret: exporterSecret)
            return
        }
        let key = try hkdf.expand(secret, "key", context, count: algorithm.keyBytes)
        let nonce = try hkdf.expand(secret, "base_nonce", context, count: AEADSuite.nonceBytes)
        let nonceBytes: [UInt8] = nonce.withUnsafeBytes { Array($0) }
        aead = try AEAD(algorithm: algorithm, key: key)
        baseNonce = try AEADNonce(nonceBytes)
        intermediate = Intermediate(
            context: context, secret: secret, key: key, baseNonce: nonceBytes, exporterSecret: exporterSecret)
    }

    /// The key and the nonce of the next message; advances the number.
    ///
    /// - Throws: `messageLimitReached` before a number would repeat (5.2); `outOfBounds(.suite)` for a cipher that only
    ///   exports.
    mutating func next() throws(CryptoError) -> (AEAD, AEADNonce) {
        let (aead, nonce) = try current()
        sequence += 1
        return (aead, nonce)
    }

    /// The key and the nonce of the next message without advancing: a message that does not open leaves its number to
    /// the next one (5.2).
    func current() throws(CryptoError) -> (AEAD, AEADNonce) {
        guard let aead, let baseNonce else { throw .outOfBounds(.suite) }
        // The standard's bound is 2^96 − 1; this bound is what a 64-bit number can count, and cannot be reached in
        // practice.
        guard sequence < .max else { throw .messageLimitReached }
        return (aead, baseNonce.combined(with: sequence))
    }

    mutating func advance() { sequence += 1 }

    /// Skips numbers, only forwards.
    mutating func skip(to number: UInt64) {
        precondition(number >= sequence, "a message number must not be used again")
        sequence = number
    }

    /// Context.Export (5.3).
    func export(_ context: [UInt8], count: Int) throws(CryptoError) -> SecureBytes {
        try hkdf.expand(intermediate.exporterSecret, "sec", context, count: count)
    }
}
