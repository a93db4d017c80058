public import ThicketCrypto

/// The two keys under which an account is in the key log, with their secret halves (treesystem 4.12).
public struct AccountKeyPair: Sendable {
    /// Most replaced pairs that a bundle keeps. With more, the keys cannot be replaced any more: what was sealed to a
    /// pair that is dropped would not open, and the own entries in the log would look like foreign ones.
    public static let earlierMax = 64

    /// Signs what the account writes for others.
    public let signing: Ed25519.SigningKey
    /// Opens what others have sealed for the account.
    public let exchange: X25519.PrivateKey

    /// Generates keys.
    ///
    /// - Parameter random: returns the requested number of secret random bytes.
    public static func make(random: (Int) -> SecureBytes = SecureBytes.random) -> AccountKeyPair {
        guard let pair = AccountKeyPair(random(half), random(half)) else {
            preconditionFailure("32 bytes are a key of either kind")
        }
        return pair
    }

    init(_ signing: Ed25519.SigningKey, _ exchange: X25519.PrivateKey) {
        (self.signing, self.exchange) = (signing, exchange)
    }

    private init?(_ seed: SecureBytes, _ secret: SecureBytes) {
        guard let signing: Ed25519.SigningKey = try? .init(seed: seed),
            let exchange: X25519.PrivateKey = try? .init(secret)
        else { return nil }
        self.init(signing, exchange)
    }

    private static let half = AccountBundle.secretBytes

    /// Seed and secret of each pair, one after the other: the member `earlier` of a bundle.
    static func octets(of pairs: [AccountKeyPair]) -> SecureBytes {
        .joined(pairs.flatMap { [$0.signing.seed, $0.exchange.secret] })
    }

    /// - Returns: none when the member is missing; nil when it is not what `octets` writes.
    static func read(_ object: SecretObject) -> [AccountKeyPair]? {
        guard object["earlier"] != nil else { return [] }
        guard let octets = object.bytes("earlier"), octets.count > 0, octets.count.isMultiple(of: 2 * half),
            octets.count <= earlierMax * 2 * half
        else { return nil }
        var pairs = [AccountKeyPair]()
        for start in stride(from: 0, to: octets.count, by: 2 * half) {
            let (seed, secret) = (octets.part(start..<start + half), octets.part(start + half..<start + 2 * half))
            guard let pair = AccountKeyPair(seed, secret) else { return nil }
            pairs.append(pair)
        }
        return pairs
    }
}

extension AccountKeyPair: Equatable {
    /// Compares secrets in constant time.
    public static func == (left: AccountKeyPair, right: AccountKeyPair) -> Bool {
        let isSameSeed = left.signing.seed == right.signing.seed
        return left.exchange.secret == right.exchange.secret && isSameSeed
    }
}

extension AccountKeyPair: CustomStringConvertible, CustomReflectable {
    /// A fixed text: the secrets never reach a log.
    public var description: String { "(keys of an account)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

// Replacing the keys under which an account is in the key log (decision 0066).
extension AccountBundle {
    /// The keys in use.
    public var keyPair: AccountKeyPair { AccountKeyPair(signingKey, exchangeKey) }

    /// Puts other keys in place of those in use, which are kept as earlier ones. Nothing else changes: vault and tree
    /// have secrets of their own.
    ///
    /// - Returns: false, without a change, when the bundle keeps `AccountKeyPair.earlierMax` pairs, or has these keys.
    mutating func replaceKeys(with next: AccountKeyPair) -> Bool {
        guard earlierKeys.count < AccountKeyPair.earlierMax, next != keyPair, !earlierKeys.contains(next) else {
            return false
        }
        earlierKeys.append(keyPair)
        (signingKey, exchangeKey) = (next.signing, next.exchange)
        return true
    }

    /// All keys of both; those in use are the ones that have replaced the others. When both sides have replaced the
    /// same keys, those of the prevailing side are in use.
    ///
    /// - Throws: `unusable` for more pairs than a bundle keeps.
    mutating func join(keysOf other: AccountBundle, prevails: Bool) throws(AccountError) {
        guard other.keyPair != keyPair else {
            return earlierKeys = other.earlierKeys.count > earlierKeys.count ? other.earlierKeys : earlierKeys
        }
        let isOlder = other.earlierKeys.contains(keyPair)
        let isNewer = earlierKeys.contains(other.keyPair)
        let winner = isOlder || (prevails && !isNewer) ? other : self
        let loser = winner.keyPair == keyPair ? other : self
        var earlier = winner.earlierKeys
        for pair in loser.earlierKeys + [loser.keyPair] where pair != winner.keyPair && !earlier.contains(pair) {
            earlier.append(pair)
        }
        guard earlier.count <= AccountKeyPair.earlierMax else {
            throw .unusable("the account has had more than \(AccountKeyPair.earlierMax) keys")
        }
        (signingKey, exchangeKey, earlierKeys) = (winner.signingKey, winner.exchangeKey, earlier)
    }
}
