// Linux only: OpenSSL; on Apple platforms: CommonCrypto's CCKeyDerivationPBKDF.
internal import COpenSSL

/// PBKDF2 (RFC 8018, 5.2) with HMAC, for old notes. New passwords use `Scrypt`.
public enum PBKDF2 {
    /// Derives a key from a password.
    ///
    /// - Parameters:
    ///   - function: the hash of the HMAC: `.sha1`, `.sha256` or `.sha512` in existing notes.
    ///   - password: any bytes, may be empty.
    ///   - salt: any bytes.
    ///   - rounds: 1 to 2^31 − 1. The time is proportional to it, so the caller must bound a number from untrusted
    ///     input.
    ///   - count: number of bytes, 1 to 65,536.
    /// - Throws: `outOfBounds` with `.rounds` or `.count`.
    public static func derive(
        _ function: HashFunction, password: SecureBytes, salt: [UInt8], rounds: Int, count: Int = 32
    ) throws(CryptoError) -> SecureBytes {
        guard rounds >= 1, let rounds = Int32(exactly: rounds) else { throw .outOfBounds(.rounds) }
        guard count >= 1, count <= 65_536 else { throw .outOfBounds(.count) }
        return SecureBytes(count: count) { room in
            let isDone = password.withUnsafeBytes { password in
                let text = UnsafeRawPointer(password.octets)
                return PKCS5_PBKDF2_HMAC(
                    text.assumingMemoryBound(to: CChar.self), Int32(password.count), salt, Int32(salt.count), rounds,
                    function.implementation, Int32(room.count), room.octets) == 1
            }
            precondition(isDone, "OpenSSL refused PBKDF2 within its bounds")
        }
    }
}
