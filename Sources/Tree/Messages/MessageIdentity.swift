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
    let exchange: X25519.PrivateKey

    /// - Parameters:
    ///   - user: the account's id.
    ///   - signing: `AccountBundle.signingKey`.
    ///   - exchange: `AccountBundle.exchangeKey`.
    public init(user: UserID, signing: Ed25519.SigningKey, exchange: X25519.PrivateKey) {
        guard
            let keys = try? PublicKeys(
                user: user.text, identity: signing.verifyingKey, encryption: exchange.publicKey)
        else { preconditionFailure("an id is shorter than a field") }
        (self.user, self.keys, self.signing, self.exchange) = (user, keys, signing, exchange)
    }
}

extension MessageIdentity: CustomStringConvertible, CustomReflectable {
    /// The id of the keys: secrets never reach a log.
    public var description: String { keys.id }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
