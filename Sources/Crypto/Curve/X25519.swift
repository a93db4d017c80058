// Linux only: OpenSSL; on Apple platforms: CryptoKit's Curve25519.KeyAgreement.
internal import COpenSSL

/// X25519 key agreement (RFC 7748, 5 and 6.1): two parties compute a shared secret from their own key and the other's
/// public key.
public enum X25519 {
    /// Bytes of a secret, a public key and a shared secret.
    public static let octetsCount = 32

    /// The public key.
    public struct PublicKey: Sendable, Hashable {
        /// The public key, 32 bytes.
        public let octets: [UInt8]

        /// Makes a key from its bytes.
        ///
        /// - Parameter octets: any 32 bytes (RFC 7748, 5 also accepts coordinates above the prime).
        /// - Throws: `unusablePublicKey` for another length.
        public init(_ octets: [UInt8]) throws(CryptoError) {
            guard octets.count == X25519.octetsCount else { throw .unusablePublicKey }
            self.octets = octets
        }
    }

    /// The secret key.
    public final class PrivateKey: Sendable {
        /// The 32 bytes of the secret key.
        public let secret: SecureBytes
        /// The public key.
        public let publicKey: PublicKey
        private let key: CurveKey
        /// Contexts (`EVP_PKEY_CTX`) in which an agreement has been initialised.
        private let agreements = ContextPool { EVP_PKEY_CTX_free($0) }

        /// Makes a key from its bytes.
        ///
        /// - Parameter secret: 32 random bytes.
        /// - Throws: `outOfBounds(.key)` for another length.
        public init(_ secret: SecureBytes) throws(CryptoError) {
            key = try CurveKey(.x25519, secret: secret)
            publicKey = try PublicKey(key.publicOctets)
            self.secret = secret
        }

        /// A new random key.
        public static func random() -> PrivateKey {
            guard let key = try? PrivateKey(.random(X25519.octetsCount)) else {
                preconditionFailure("32 random bytes are a key")
            }
            return key
        }

        /// The secret shared with the other party.
        ///
        /// - Returns: 32 bytes that are not uniform; derive keys from them.
        /// - Throws: `unusablePublicKey` when the secret would be zero, as it is with points of small order: anyone
        ///   could compute it (RFC 7748, 6.1; RFC 9180, 7.1.4).
        public func sharedSecret(with other: PublicKey) throws(CryptoError) -> SecureBytes {
            let peer = try CurveKey(.x25519, publicKey: other.octets)
            let agreement = agreements.take() ?? makeAgreement()
            defer { agreements.give(agreement) }
            return try SecureBytes(count: X25519.octetsCount) { room throws(CryptoError) in
                var count = room.count
                // Without OpenSSL's validation of the peer: any 32 bytes are a coordinate, and the result is checked
                // instead.
                let isDone =
                    EVP_PKEY_derive_set_peer_ex(agreement, peer.pointer, 0) == 1
                    && EVP_PKEY_derive(agreement, room.octets, &count) == 1 && count == room.count
                // OpenSSL also refuses a zero result; this check does not rely on it.
                let isZero = room.reduce(UInt8(0)) { $0 | $1 } == 0
                guard isDone, !isZero else {
                    ERR_clear_error()
                    throw .unusablePublicKey
                }
            }
        }

        private func makeAgreement() -> OpaquePointer {
            let context = EVP_PKEY_CTX_new(key.pointer, nil)
            guard let context, EVP_PKEY_derive_init(context) == 1 else {
                preconditionFailure("OpenSSL refused a key agreement with a valid key")
            }
            return context
        }
    }
}
