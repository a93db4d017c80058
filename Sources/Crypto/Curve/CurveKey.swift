// Linux only: OpenSSL; on Apple platforms: CryptoKit's Curve25519.
internal import COpenSSL

/// A key of Curve25519 as an OpenSSL object. OpenSSL overwrites a secret key when it frees it.
final class CurveKey: @unchecked Sendable {
    // OpenSSL changes only the atomic reference count of an existing key.
    let pointer: OpaquePointer

    enum Kind {
        case x25519, ed25519

        var number: Int32 {
            switch self {
            case .x25519: EVP_PKEY_X25519
            case .ed25519: EVP_PKEY_ED25519
            }
        }
    }

    /// Bytes of a secret and of a public key of this curve (RFC 7748, 5; RFC 8032, 5.1.5).
    static let octetsCount = 32

    init(_ kind: Kind, secret: SecureBytes) throws(CryptoError) {
        guard secret.count == Self.octetsCount else { throw .outOfBounds(.key) }
        let made = secret.withUnsafeBytes {
            EVP_PKEY_new_raw_private_key(kind.number, nil, $0.octets, $0.count)
        }
        guard let made else { preconditionFailure("OpenSSL refused a key of 32 bytes") }
        pointer = made
    }

    /// - Throws: `unusablePublicKey` for another length.
    init(_ kind: Kind, publicKey: [UInt8]) throws(CryptoError) {
        guard publicKey.count == Self.octetsCount,
            let made = EVP_PKEY_new_raw_public_key(kind.number, nil, publicKey, publicKey.count)
        else {
            ERR_clear_error()
            throw .unusablePublicKey
        }
        pointer = made
    }

    deinit { EVP_PKEY_free(pointer) }

    var publicOctets: [UInt8] {
        [UInt8].made(Self.octetsCount) { room in
            var count = room.count
            let isDone = EVP_PKEY_get_raw_public_key(pointer, room.octets, &count) == 1 && count == room.count
            precondition(isDone, "a key of this curve has a public half of 32 bytes")
        }
    }
}
