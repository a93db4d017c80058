// Linux only: OpenSSL; on Apple platforms: CryptoKit's Curve25519.Signing.
internal import COpenSSL

/// Ed25519 signatures (RFC 8032, 5.1).
public enum Ed25519 {
    /// Bytes of a seed and of a public key.
    public static let octetsCount = 32
    /// Bytes of a signature.
    public static let signatureBytes = 64

    /// The secret key, which signs.
    public final class SigningKey: Sendable {
        /// The 32 bytes from which the key is derived.
        public let seed: SecureBytes
        /// The public key.
        public let verifyingKey: VerifyingKey
        private let key: CurveKey

        /// Makes a key from a seed.
        ///
        /// - Parameter seed: 32 random bytes.
        /// - Throws: `outOfBounds(.key)` for another length.
        public init(seed: SecureBytes) throws(CryptoError) {
            key = try CurveKey(.ed25519, secret: seed)
            verifyingKey = try VerifyingKey(key.publicOctets)
            self.seed = seed
        }

        /// A new random key.
        public static func random() -> SigningKey {
            guard let key = try? SigningKey(seed: .random(Ed25519.octetsCount)) else {
                preconditionFailure("32 random bytes are a seed")
            }
            return key
        }

        /// The signature of a message, 64 bytes; deterministic.
        public func signature(of message: UnsafeRawBufferPointer) -> [UInt8] {
            let context = EVP_MD_CTX_new()
            defer { EVP_MD_CTX_free(context) }
            return [UInt8].made(Ed25519.signatureBytes) { room in
                var count = room.count
                let isDone =
                    EVP_DigestSignInit(context, nil, nil, nil, key.pointer) == 1
                    && EVP_DigestSign(context, room.octets, &count, message.octets, message.count) == 1
                precondition(isDone && count == room.count, "OpenSSL refused to sign, which has no failing input")
            }
        }

        /// The signature of a message, 64 bytes; deterministic.
        public func signature(of message: [UInt8]) -> [UInt8] { message.withUnsafeBytes { signature(of: $0) } }
    }

    /// The public key, which verifies.
    public final class VerifyingKey: Sendable, Hashable {
        /// The public key, 32 bytes.
        public let octets: [UInt8]
        private let key: CurveKey

        /// Makes a key from its bytes.
        ///
        /// - Throws: `unusablePublicKey` for another length than 32 bytes. Bytes that are not a point of the curve are
        ///   accepted, but verify no signature.
        public init(_ octets: [UInt8]) throws(CryptoError) {
            key = try CurveKey(.ed25519, publicKey: octets)
            self.octets = octets
        }

        /// Whether it is the signature of the message. The second half must be below the group's order (RFC 8032,
        /// 5.1.7), so that an attacker cannot derive another valid signature from a valid one.
        public func isSignature(_ signature: [UInt8], of message: UnsafeRawBufferPointer) -> Bool {
            guard signature.count == Ed25519.signatureBytes else { return false }
            let context = EVP_MD_CTX_new()
            defer { EVP_MD_CTX_free(context) }
            let isGood =
                EVP_DigestVerifyInit(context, nil, nil, nil, key.pointer) == 1
                && EVP_DigestVerify(context, signature, signature.count, message.octets, message.count) == 1
            if !isGood { ERR_clear_error() }
            return isGood
        }

        /// Whether it is the signature of the message.
        public func isSignature(_ signature: [UInt8], of message: [UInt8]) -> Bool {
            message.withUnsafeBytes { isSignature(signature, of: $0) }
        }

        /// Compares the bytes; not in constant time, because public keys are not secret.
        public static func == (left: VerifyingKey, right: VerifyingKey) -> Bool { left.octets == right.octets }

        /// Hashes the bytes.
        public func hash(into hasher: inout Hasher) { hasher.combine(octets) }
    }
}
