package import ThicketCrypto
package import ThicketKeyLog

/// The public and secret keys under which an account is in the key log, with all keys from before.
package struct OwnEntries: Sendable {
    /// Keys of one time.
    package struct Pair: Sendable {
        package let signing: Ed25519.SigningKey
        package let encryption: X25519.PublicKey

        package init(signing: Ed25519.SigningKey, encryption: X25519.PublicKey) {
            (self.signing, self.encryption) = (signing, encryption)
        }

        init(_ pair: AccountKeyPair) { self.init(signing: pair.signing, encryption: pair.exchange.publicKey) }
    }

    package let app: String
    /// The account's id.
    package let user: String
    /// The login name; empty for a partner's user.
    package let name: String
    /// The keys in use.
    package let current: Pair
    /// The keys from before, the oldest first.
    package let earlier: [Pair]

    package init(app: String, user: String, name: String, current: Pair, earlier: [Pair] = []) {
        (self.app, self.user, self.name, self.current, self.earlier) = (app, user, name, current, earlier)
    }

    package init(_ account: OpenAccount) {
        let bundle = account.bundle
        self.init(
            app: account.app, user: account.user, name: account.name,
            current: Pair(bundle.keyPair), earlier: bundle.earlierKeys.map { Pair($0) })
    }

    /// The users of the log that are this account: its id and, for an account with a login name, the name's handle.
    package func users() throws(KeyLogError) -> [String] {
        name.isEmpty ? [user] : [user, try KeyLogHandle.name(KeyLogHandle.folded(name), app: app)]
    }

    /// The account's public keys, under one of its users of the log.
    package func keys(as user: String) throws(KeyLogError) -> KeyLogOwnKeys {
        var before = [PublicKeys]()
        for pair in earlier { before.append(try Self.publicKeys(pair, user)) }
        return KeyLogOwnKeys(current: try Self.publicKeys(current, user), earlier: before)
    }

    /// The first entries of a new account.
    ///
    /// - Parameters:
    ///   - earlier: the newest entry of an ended account with the same name or id, if the server has shown one.
    ///   - now: milliseconds since 1970.
    package func first(after earlier: KeyLogEntry? = nil, now: UInt64) throws(KeyLogError) -> [KeyLogEntry] {
        var entries = [KeyLogEntry]()
        for user in try users() {
            if let earlier, earlier.user.utf8.elementsEqual(user.utf8) {
                entries.append(try reset(earlier, now: now))
            } else {
                entries.append(try first(user, now))
            }
        }
        return entries
    }

    /// The entry with which the account's keys follow those of an earlier holder of the name or id.
    package func reset(_ earlier: KeyLogEntry, now: UInt64) throws(KeyLogError) -> KeyLogEntry {
        try earlier.reset(to: current.signing, encryption: current.encryption, validFrom: now)
    }

    /// The entry that is missing behind the newest one in the log.
    ///
    /// - Parameters:
    ///   - user: one of `users`.
    ///   - last: the newest entry of that user in the log, which has keys of this account; nil: none.
    ///   - now: milliseconds since 1970.
    package func next(_ user: String, after last: KeyLogEntry?, now: UInt64) throws(KeyLogError) -> KeyLogEntry {
        guard let last else { return try first(user, now) }
        guard let old = ([current] + earlier).first(where: { $0.signing.verifyingKey == last.keys.identity }) else {
            throw KeyLogError(.previous, "this device does not have the key of the newest entry")
        }
        return try last.rotated(
            to: current.signing, encryption: current.encryption, signedBy: old.signing, validFrom: now)
    }

    /// The key of this account with which an entry's denial is signed; nil for a key that is not the account's.
    package func signingKey(_ identity: Ed25519.VerifyingKey) -> Ed25519.SigningKey? {
        ([current] + earlier).first { $0.signing.verifyingKey == identity }?.signing
    }

    private func first(_ user: String, _ now: UInt64) throws(KeyLogError) -> KeyLogEntry {
        try .first(
            app: app, user: user, identity: current.signing, encryption: current.encryption, validFrom: now)
    }

    private static func publicKeys(_ pair: Pair, _ user: String) throws(KeyLogError) -> PublicKeys {
        do throws(CryptoError) {
            return try PublicKeys(user: user, identity: pair.signing.verifyingKey, encryption: pair.encryption)
        } catch { throw KeyLogError(.malformed, "the user's name is too long") }
    }
}
