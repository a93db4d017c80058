// Linux only: OpenSSL; on Apple platforms: CryptoKit's Curve25519.KeyAgreement.
internal import COpenSSL

/// X25519 (RFC 7748, 5 and 6.1): two who know each other's public keys have a secret.
public enum X25519 {
    /// Bytes of a secret, a public key and a shared secret.
    public static let octetsCount = 32

    /// What everybody may know.
    public struct PublicKey: Sendable, Hashable {
        /// 32 bytes.
        public let octets: [UInt8]

        /// - Parameter octets: 32 bytes, whichever (RFC 7748, 5 takes coordinates above the prime too).
        /// - Throws: `unusablePublicKey` for another length.
        public init(_ octets: [UInt8]) throws(CryptoError) {
            guard octets.count == X25519.octetsCount else { throw .unusablePublicKey }
            self.octets = octets
        }
    }

    /// What one device knows.
    public final class PrivateKey: Sendable {
        /// The 32 bytes that it was made of.
        public let secret: SecureBytes
        /// The other half.
        public let publicKey: PublicKey
        private let key: CurveKey
        /// `EVP_PKEY_CTX` that have begun an agreement.
        private let agreements = ContextPool { EVP_PKEY_CTX_free($0) }

        /// - Parameter secret: 32 random bytes.
        /// - Throws: `outOfBounds(.key)` for another length.
        public init(_ secret: SecureBytes) throws(CryptoError) {
            key = try CurveKey(.x25519, secret: secret)
            publicKey = try PublicKey(key.publicOctets)
            self.secret = secret
        }

        /// A new one.
        public static func random() -> PrivateKey {
            guard let key = try? PrivateKey(.random(X25519.octetsCount)) else {
                preconditionFailure("32 random bytes are a key")
            }
            return key
        }

        /// The secret that both have.
        ///
        /// - Returns: 32 bytes that are not uniform: a key derivation comes next.
        /// - Throws: `unusablePublicKey` when the secret would be zero, as it is with points of small order: then
        ///   everybody knew it (RFC 7748, 6.1; RFC 9180, 7.1.4).
        public func sharedSecret(with other: PublicKey) throws(CryptoError) -> SecureBytes {
            let peer = try CurveKey(.x25519, publicKey: other.octets)
            let agreement = agreements.take() ?? makeAgreement()
            defer { agreements.give(agreement) }
            return try SecureBytes(count: X25519.octetsCount) { room throws(CryptoError) in
                var count = room.count
                // Without OpenSSL's check of the peer: any 32 bytes are a coordinate, and the result is looked at.
                let isDone =
                    EVP_PKEY_derive_set_peer_ex(agreement, peer.pointer, 0) == 1
                    && EVP_PKEY_derive(agreement, room.octets, &count) == 1 && count == room.count
                // OpenSSL refuses zero itself; that it still does is not taken for granted.
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
                preconditionFailure("OpenSSL refused to agree with a key that is there")
            }
            return context
        }
    }
}
