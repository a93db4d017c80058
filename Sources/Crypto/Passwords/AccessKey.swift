/// The key from which an account's secrets open (spec 3.2): 32 random bytes, made on the device. The 24 recovery words
/// are exactly these bytes.
public struct AccessKey: Sendable, Equatable {
    /// Bytes of it.
    public static let bytesCount = 32

    /// 32 bytes.
    public let secret: SecureBytes

    /// - Throws: `outOfBounds(.key)` for another length.
    public init(_ secret: SecureBytes) throws(CryptoError) {
        guard secret.count == Self.bytesCount else { throw .outOfBounds(.key) }
        self.secret = secret
    }

    /// A new one.
    public static func random() -> AccessKey {
        guard let key = try? AccessKey(.random(bytesCount)) else {
            preconditionFailure("32 random bytes are an access key")
        }
        return key
    }

    /// What shows the server that somebody has the words, and permits a new password. The server keeps a keyed hash of
    /// it.
    public func recoveryAuth() throws(CryptoError) -> SecureBytes {
        try HKDF.derive(.sha256, secret: secret, info: Array("thicket/recover/1".utf8))
    }

    /// Seals the bundle.
    func bundleKey() throws(CryptoError) -> SecureBytes {
        try HKDF.derive(.sha256, secret: secret, info: Array("thicket/bundle-key/1".utf8))
    }
}

/// The place of an account's sealed things: what is sealed for one app, user and version opens for no other.
public struct AccountPlace: Sendable, Hashable {
    /// The application.
    public let app: String
    /// The user's id, as the server has it.
    public let user: String
    /// Of the bundle; a write names the version that it replaces.
    public let version: UInt64

    public init(app: String, user: String, version: UInt64) {
        (self.app, self.user, self.version) = (app, user, version)
    }

    /// The place of an account's access key: the version that is bound is that of the key itself, which never changes.
    /// The bundle is written again and again without its wrap, so that its version cannot be the wrap's (decision
    /// 0043).
    public static func ofAccessKey(app: String, user: String) -> AccountPlace {
        AccountPlace(app: app, user: user, version: 1)
    }

    /// The id of an account whose keys were made on a device: 16 bytes of SHA-256 over `thicket/user/1`, the app and
    /// the digest of `AccessKey.recoveryAuth`, as 32 hex digits. So the device knows, before the server has answered,
    /// for whom it seals; and nobody gets an account under an id of somebody else's (decision 0043).
    /// - Parameter recoveryDigest: SHA-256 of it, 32 bytes.
    public static func userID(app: String, recoveryDigest: [UInt8]) throws(CryptoError) -> String {
        var bytes = LabelledBytes("thicket/user/1")
        try bytes.add(app.utf8)
        try bytes.add(recoveryDigest)
        return Hex.encode(Array(Hash.sha256(bytes.octets).prefix(16)))
    }

    /// The same of an access key.
    public static func userID(app: String, key: AccessKey) throws(CryptoError) -> String {
        let digest = Hash.digest(.sha256, try key.recoveryAuth())
        return try userID(app: app, recoveryDigest: digest.withUnsafeBytes { Array($0) })
    }

    /// Seals the access key under what is made of a password or a passphrase.
    /// - Parameter vaultKey: `PasswordKeys.vaultKey`.
    /// - Returns: a `SealedMessage`.
    /// - Throws: `outOfBounds`.
    public func seal(_ key: AccessKey, under vaultKey: SecureBytes) throws(CryptoError) -> [UInt8] {
        try SealedMessage.seal(key.secret, key: vaultKey, data: bound(to: "thicket/access/1"))
    }

    /// - Throws: `openingFailed`, whatever is wrong: a wrong password too.
    public func openAccessKey(_ sealed: [UInt8], under vaultKey: SecureBytes) throws(CryptoError) -> AccessKey {
        let secret = try SealedMessage.openSecret(
            sealed, key: vaultKey, data: bound(to: "thicket/access/1"))
        guard secret.count == AccessKey.bytesCount else { throw .openingFailed }
        return try AccessKey(secret)
    }

    /// Seals the bundle of secrets.
    /// - Returns: a `SealedMessage`.
    /// - Throws: `outOfBounds`.
    public func seal(bundle: SecureBytes, with key: AccessKey) throws(CryptoError) -> [UInt8] {
        try SealedMessage.seal(bundle, key: key.bundleKey(), data: bound(to: "thicket/bundle/1"))
    }

    /// - Throws: `openingFailed`. Whoever gets it never replaces the bundle.
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
