/// The keys derived from a password on the device (spec 3.2). The password itself never leaves the device.
public struct PasswordKeys: Sendable {
    /// Bytes of a salt.
    public static let saltBytes = 16

    /// Sent to sign in; derived with `thicket/auth/1`. The server stores a keyed hash of it.
    public let authKey: SecureBytes
    /// Never sent; derived with `thicket/vault/1`. Seals the access key.
    public let vaultKey: SecureBytes

    /// Derives the keys. Takes about a second and 128 MiB, so it must not run on a thread that others wait for.
    ///
    /// - Parameters:
    ///   - password: UTF-8. It is converted to normalisation form C, so that both encodings of "é" are one password.
    ///   - salt: 16 bytes of this account.
    ///   - cost: the scrypt parameters of this account.
    /// - Throws: `outOfBounds` with `.password` for a password that is not UTF-8 or too long, with `.salt`, or with
    ///   `.memory` when there is not enough memory.
    public init(password: SecureBytes, salt: [UInt8], cost: PasswordCost) throws(CryptoError) {
        guard salt.count == Self.saltBytes else { throw .outOfBounds(.salt) }
        let master = try Self.composed(password) { password throws(CryptoError) in
            try Scrypt.derive(password, salt: salt, cost: cost.scrypt)
        }
        authKey = try HKDF.expand(.sha256, key: master, info: Array("thicket/auth/1".utf8))
        vaultKey = try HKDF.expand(.sha256, key: master, info: Array("thicket/vault/1".utf8))
    }

    private static func composed(
        _ password: SecureBytes, _ use: (UnsafeRawBufferPointer) throws(CryptoError) -> SecureBytes
    ) throws(CryptoError) -> SecureBytes {
        let outcome: Result<SecureBytes, CryptoError>
        do throws(UnicodeText.Failure) {
            outcome = try password.withUnsafeBytes { bytes throws(UnicodeText.Failure) in
                try UnicodeText.composed(bytes) { composed in
                    do throws(CryptoError) {
                        return .success(try use(composed))
                    } catch {
                        return .failure(error)
                    }
                }
            }
        } catch {
            throw .outOfBounds(.password)
        }
        return try outcome.get()
    }
}
