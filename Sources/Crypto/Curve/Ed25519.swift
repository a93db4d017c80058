// Linux only: OpenSSL; on Apple platforms: CryptoKit's Curve25519.Signing.
internal import COpenSSL

/// Ed25519 (RFC 8032, 5.1): signatures.
public enum Ed25519 {
    /// Bytes of a seed and of a public key.
    public static let octetsCount = 32
    /// Bytes of a signature.
    public static let signatureBytes = 64

    /// What signs.
    public final class SigningKey: Sendable {
        /// The 32 bytes that it was made of.
        public let seed: SecureBytes
        /// The other half.
        public let verifyingKey: VerifyingKey
        private let key: CurveKey

        /// - Parameter seed: 32 random bytes.
        /// - Throws: `outOfBounds(.key)` for another length.
        public init(seed: SecureBytes) throws(CryptoError) {
            key = try CurveKey(.ed25519, secret: seed)
            verifyingKey = try VerifyingKey(key.publicOctets)
            self.seed = seed
        }

        /// A new one.
        public static func random() -> SigningKey {
            guard let key = try? SigningKey(seed: .random(Ed25519.octetsCount)) else {
                preconditionFailure("32 random bytes are a seed")
            }
            return key
        }

        /// The signature of a message, 64 bytes; the same each time.
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

        /// The signature of a message, 64 bytes; the same each time.
        public func signature(of message: [UInt8]) -> [UInt8] { message.withUnsafeBytes { signature(of: $0) } }
    }

    /// What everybody may know, and verifies.
    public final class VerifyingKey: Sendable, Hashable {
        /// 32 bytes.
        public let octets: [UInt8]
        private let key: CurveKey

        /// - Throws: `unusablePublicKey` for other than 32 bytes. Bytes that are no point of the curve verify nothing.
        public init(_ octets: [UInt8]) throws(CryptoError) {
            key = try CurveKey(.ed25519, publicKey: octets)
            self.octets = octets
        }

        /// Whether it is the message's signature. The second half has to be below the group's order (RFC 8032, 5.1.7),
        /// so that nobody can make another signature of a good one.
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

        /// Whether it is the message's signature.
        public func isSignature(_ signature: [UInt8], of message: [UInt8]) -> Bool {
            message.withUnsafeBytes { isSignature(signature, of: $0) }
        }

        /// Public keys are no secret.
        public static func == (left: VerifyingKey, right: VerifyingKey) -> Bool { left.octets == right.octets }

        public func hash(into hasher: inout Hasher) { hasher.combine(octets) }
    }
}
