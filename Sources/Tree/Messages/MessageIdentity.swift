public import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol

/// The keys of this account for messages: with which it signs, and to which others seal.
public struct MessageIdentity: Sendable {
    /// The account.
    public let user: UserID
    /// The public halves, as they are in the key log.
    public let keys: PublicKeys
    let signing: Ed25519.SigningKey
    private let exchange: X25519.PrivateKey
    /// Those that were in use before, the oldest first.
    private let earlier: [(keys: PublicKeys, signing: Ed25519.SigningKey, exchange: X25519.PrivateKey)]

    /// - Parameters:
    ///   - user: the account's id.
    ///   - signing: `AccountBundle.signingKey`.
    ///   - exchange: `AccountBundle.exchangeKey`.
    ///   - earlier: `AccountBundle.earlierKeys`.
    public init(
        user: UserID, signing: Ed25519.SigningKey, exchange: X25519.PrivateKey,
        earlier: [(signing: Ed25519.SigningKey, exchange: X25519.PrivateKey)] = []
    ) {
        let keys = Self.publicKeys(user, signing, exchange)
        (self.user, self.keys, self.signing, self.exchange) = (user, keys, signing, exchange)
        self.earlier = earlier.map { (Self.publicKeys(user, $0.signing, $0.exchange), $0.signing, $0.exchange) }
    }

    private static func publicKeys(
        _ user: UserID, _ signing: Ed25519.SigningKey, _ exchange: X25519.PrivateKey
    ) -> PublicKeys {
        guard
            let keys = try? PublicKeys(
                user: user.text, identity: signing.verifyingKey, encryption: exchange.publicKey)
        else { preconditionFailure("an id is shorter than a field") }
        return keys
    }

    /// The public halves of the keys with an id: those in use, or earlier ones.
    ///
    /// - Returns: nil for keys that this identity does not have.
    public func keys(_ id: String) -> PublicKeys? {
        ([keys] + earlier.map(\.keys)).first { $0.id.utf8.elementsEqual(id.utf8) }
    }

    /// Signs with the keys that have an id: those in use, or earlier ones.
    ///
    /// - Returns: nil for keys that this identity does not have.
    func signing(_ id: String) -> Ed25519.SigningKey? {
        if keys.id.utf8.elementsEqual(id.utf8) { return signing }
        return earlier.first { $0.keys.id.utf8.elementsEqual(id.utf8) }?.signing
    }

    /// Opens what was sealed to the keys with an id.
    func exchange(_ id: String) -> X25519.PrivateKey? {
        if keys.id.utf8.elementsEqual(id.utf8) { return exchange }
        return earlier.first { $0.keys.id.utf8.elementsEqual(id.utf8) }?.exchange
    }
}

extension MessageIdentity: CustomStringConvertible, CustomReflectable {
    /// The id of the keys: secrets never reach a log.
    public var description: String { keys.id }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
