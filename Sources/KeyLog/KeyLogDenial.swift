public import ThicketCrypto

/// The statement of an account that it has not made an entry which the log has under its name, signed by the key of the
/// entry before. Against a reset it is evidence: the log committed to "the old key is lost", and the holder of the old
/// key denies it.
///
/// Signed under `thicket/key-denial/1`: app, user, hash of the entry.
public enum KeyLogDenial {
    /// Signs a denial.
    ///
    /// - Parameter key: the identity key of the entry before the denied one.
    /// - Throws: `malformed` when the statement cannot be signed.
    public static func sign(_ entry: KeyLogEntry, key: Ed25519.SigningKey) throws(KeyLogError) -> [UInt8] {
        do throws(CryptoError) { return try key.signature(for: .keyDenial, fields(entry)) } catch {
            throw .malformed("a denial cannot be signed: \(error)")
        }
    }

    /// Whether the holder of this key has signed that it has not made the entry.
    public static func isSigned(_ denial: [UInt8], of entry: KeyLogEntry, key: Ed25519.VerifyingKey) -> Bool {
        key.isSignature(denial, for: .keyDenial, fields(entry))
    }

    private static func fields(_ entry: KeyLogEntry) -> [[UInt8]] {
        [Array(entry.app.utf8), Array(entry.user.utf8), entry.hash.bytes]
    }
}
