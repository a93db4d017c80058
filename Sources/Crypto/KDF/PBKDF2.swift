// Linux only: OpenSSL; on Apple platforms: CommonCrypto's CCKeyDerivationPBKDF.
internal import COpenSSL

/// PBKDF2 (RFC 8018, 5.2) with HMAC: what old notes are under. New passwords go through `Scrypt`.
public enum PBKDF2 {
    /// - Parameters:
    ///   - function: of the HMAC: `.sha1`, `.sha256`, `.sha512` in what there is.
    ///   - password: any bytes, none too.
    ///   - rounds: 1 to 2^31 − 1. Time grows with it: what a stranger may ask for is bounded where it comes in.
    ///   - count: bytes wanted, 1 to 65,536.
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
