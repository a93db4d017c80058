/// The key from which an account's secrets open (spec 3.2): 32 random bytes, made on the device. The 24 recovery words are
/// exactly these bytes.
public struct AccessKey: Sendable, Equatable {
    /// Bytes of it.
    public static let bytesCount: Int = 32

    /// 32 bytes.
    public let secret: SecureBytes

    /// - Throws: `outOfBounds(.key)` for another length.
    public init(_ secret: SecureBytes) throws(CryptoError) {
        guard secret.count == Self.bytesCount else { throw .outOfBounds(.key) }
        self.secret = secret
    }

    /// A new one.
    public static func random() -> AccessKey {
        guard let key: AccessKey = try? AccessKey(.random(bytesCount)) else {
            preconditionFailure("32 random bytes are an access key")
        }
        return key
    }

    /// What shows the server that somebody has the words, and permits a new password. The server keeps a keyed hash of it.
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

    /// Seals the access key under what is made of a password or a passphrase.
    /// - Parameter vaultKey: `PasswordKeys.vaultKey`.
    /// - Returns: a `SealedMessage`.
    /// - Throws: `outOfBounds`.
    public func seal(_ key: AccessKey, under vaultKey: SecureBytes) throws(CryptoError) -> [UInt8] {
        try SealedMessage.seal(key.secret, key: vaultKey, data: bound(to: "thicket/access/1"))
    }

    /// - Throws: `openingFailed`, whatever is wrong: a wrong password too.
    public func openAccessKey(_ sealed: [UInt8], under vaultKey: SecureBytes) throws(CryptoError) -> AccessKey {
        let secret: SecureBytes = try SealedMessage.openSecret(
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
        var bytes: LabelledBytes = .init(label)
        try bytes.add(app.utf8)
        try bytes.add(user.utf8)
        bytes.add(bare: version)
        return bytes.octets
    }
}
