import ThicketPlatform
/// The key that opens an account's secrets (spec 3.2): 32 random bytes, made on the device. The 24 recovery words
/// encode exactly these bytes.
public struct AccessKey: Sendable, Equatable {
    /// Bytes of an access key.
    public static let bytesCount = 32

    /// The key, 32 bytes.
    public let secret: SecureBytes

    /// Makes a key from its bytes.
    ///
    /// - Throws: `outOfBounds(.key)` for another length.
    public init(_ secret: SecureBytes) throws(CryptoError) {
        guard secret.count == Self.bytesCount else { throw .outOfBounds(.key) }
        self.secret = secret
    }

    /// A new random key.
    public static func random() -> AccessKey {
        guard let key = try? AccessKey(.random(bytesCount)) else {
            preconditionFailure("32 random bytes are an access key")
        }
        return key
    }

    /// The value that proves to the server that the sender has the recovery words, and permits a new password. The
    /// server stores a keyed hash of it.
    public func recoveryAuth() throws(CryptoError) -> SecureBytes {
        try HKDF.derive(.sha256, secret: secret, info: Array("thicket/recover/1".utf8))
    }

    /// The key that seals the bundle.
    func bundleKey() throws(CryptoError) -> SecureBytes {
        try HKDF.derive(.sha256, secret: secret, info: Array("thicket/bundle-key/1".utf8))
    }
}

/// The context of an account's sealed values: a value sealed for one app, user and version does not open for another.
public struct AccountPlace: Sendable, Hashable {
    /// The application.
    public let app: String
    /// The user's id, as stored by the server.
    public let user: String
    /// Version of the bundle; a write names the version that it replaces.
    public let version: UInt64

    /// Names the context of an account.
    public init(app: String, user: String, version: UInt64) {
        (self.app, self.user, self.version) = (app, user, version)
    }

    /// The context of an account's access key. Its version is that of the key itself, which never changes: the bundle
    /// is rewritten often without its wrap, so the bundle's version cannot be that of the wrap (decision 0043).
    public static func ofAccessKey(app: String, user: String) -> AccountPlace {
        AccountPlace(app: app, user: user, version: 1)
    }

    /// The id of an account whose keys were made on a device: 16 bytes of SHA-256 over `thicket/user/1`, the app and
    /// the digest of `AccessKey.recoveryAuth`, as 32 hex digits. So the device knows for which user it seals before the
    /// server has answered, and an attacker cannot get an account under the id of another user (decision 0043).
    ///
    /// - Parameters:
    ///   - app: the application.
    ///   - recoveryDigest: SHA-256 of `AccessKey.recoveryAuth`, 32 bytes.
    /// - Throws: `outOfBounds(.info)` for an app name of more than 65,535 bytes.
    public static func userID(app: String, recoveryDigest: [UInt8]) throws(CryptoError) -> String {
        var bytes = LabelledBytes("thicket/user/1")
        try bytes.add(app.utf8)
        try bytes.add(recoveryDigest)
        return Hex.encode(Array(Hash.sha256(bytes.octets).prefix(16)))
    }

    /// The id of an account with this access key.
    public static func userID(app: String, key: AccessKey) throws(CryptoError) -> String {
        let digest = Hash.digest(.sha256, try key.recoveryAuth())
        return try userID(app: app, recoveryDigest: digest.withUnsafeBytes { Array($0) })
    }

    /// Seals the access key with a key derived from a password or a passphrase.
    ///
    /// - Parameters:
    ///   - key: the access key to seal.
    ///   - vaultKey: `PasswordKeys.vaultKey`.
    /// - Returns: a `SealedMessage`.
    /// - Throws: `outOfBounds` for a vault key of another length or a too long name.
    public func seal(_ key: AccessKey, under vaultKey: SecureBytes) throws(CryptoError) -> [UInt8] {
        try SealedMessage.seal(key.secret, key: vaultKey, data: bound(to: "thicket/access/1"))
    }

    /// Opens a sealed access key.
    ///
    /// - Throws: `openingFailed` for any deviation, including a wrong password.
    public func openAccessKey(_ sealed: [UInt8], under vaultKey: SecureBytes) throws(CryptoError) -> AccessKey {
        let secret = try SealedMessage.openSecret(
            sealed, key: vaultKey, data: bound(to: "thicket/access/1"))
        guard secret.count == AccessKey.bytesCount else { throw .openingFailed }
        return try AccessKey(secret)
    }

    /// Seals the bundle of secrets.
    ///
    /// - Returns: a `SealedMessage`.
    /// - Throws: `outOfBounds(.info)` for a too long name.
    public func seal(bundle: SecureBytes, with key: AccessKey) throws(CryptoError) -> [UInt8] {
        try SealedMessage.seal(bundle, key: key.bundleKey(), data: bound(to: "thicket/bundle/1"))
    }

    /// Opens the bundle of secrets.
    ///
    /// - Throws: `openingFailed` for any deviation. The caller must not replace the bundle then.
    public func openBundle(_ sealed: [UInt8], with key: AccessKey) throws(CryptoError) -> SecureBytes {
        try SealedMessage.openSecret(sealed, key: key.bundleKey(), data: bound(to: "thicket/bundle/1"))
    }

    private func bound(to label: StaticString) throws(CryptoError) -> [UInt8] {
        var bytes = LabelledBytes(label)
        try bytes.add(app.utf8)
        try bytes.add(user.utf8)
        bytes.add(bare: version)
        return bytes.octets
    }
}
