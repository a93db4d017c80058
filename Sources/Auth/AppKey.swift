import ThicketCrypto

/// What a key of an app lets its holder do.
public enum AppKey: Sendable, Hashable {
    /// Stands in the app, so it is no secret: makes accounts, logs users in.
    case api
    /// The operator's own: sets passwords and deletes accounts, too.
    case admin

    /// Bytes of randomness in a key; it is written as twice as many hex digits.
    public static let randomBytes = 16
    /// Longer ones are nobody's.
    static let bytesMax = 256

    /// What is stored of a key.
    public static func hash(of key: String) -> [UInt8] { Hash.sha256(Array(key.utf8)) }
}
