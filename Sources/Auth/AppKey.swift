import ThicketCrypto

/// The rights of an app key.
public enum AppKey: Sendable, Hashable {
    /// Part of the app, so it is not secret: makes accounts and logs users in.
    case api
    /// Kept by the operator: also sets passwords and deletes accounts.
    case admin

    /// Random bytes of a key; it is written as twice as many hex digits.
    public static let randomBytes = 16
    /// Longest key worth looking up, bytes.
    static let bytesMax = 256

    /// The stored form of a key: its SHA-256.
    public static func hash(of key: String) -> [UInt8] { Hash.sha256(Array(key.utf8)) }
}
