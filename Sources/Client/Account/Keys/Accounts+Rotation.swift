public import ThicketCrypto

// Replacing the keys under which an account is in the key log (decision 0066).
extension Accounts {
    /// Replaces the account's signing key and the key to which others seal. The bundle is written first: it keeps the
    /// replaced keys, so that every device opens what was sealed to them, and is what the key log is completed from.
    /// The entries in the log follow with `KeyBook.checkOwn`, on this device or another one; until then the server
    /// refuses messages signed with the new key, and others seal to the old one.
    ///
    /// Content is not sealed again, and the access key, the password and the recovery words stay. A party that has the
    /// old keys still opens what was sealed to them.
    ///
    /// ```swift
    /// let next = try await accounts.replaceKeys(of: account, accessToken: token)
    /// keep(try DeviceKeys(next))
    /// try await session.useKeys(of: next)
    /// try await session.people().checkOwn()
    /// ```
    ///
    /// - Parameters:
    ///   - account: the opened account.
    ///   - accessToken: the token of the user's login.
    ///   - next: the new keys.
    /// - Throws: as `update`; `unusable` when the account has had `AccountKeyPair.earlierMax` keys. After `unknown` the
    ///   keys may have been replaced: `refresh` shows it.
    public func replaceKeys(
        of account: OpenAccount, with next: AccountKeyPair = .make(), accessToken: String
    ) async throws(AccountError) -> OpenAccount {
        let changed = try await update(account, accessToken: accessToken) { _ = $0.replaceKeys(with: next) }
        guard changed.bundle.keyPair == next else { throw Self.hasTooManyKeys }
        return changed
    }

    /// Replaces only the key to which others seal, as `replaceKeys` does: the signing key, and with it the number that
    /// contacts have compared, stays.
    ///
    /// - Parameter next: the new key.
    public func replaceExchangeKey(
        of account: OpenAccount, with next: X25519.PrivateKey = .random(), accessToken: String
    ) async throws(AccountError) -> OpenAccount {
        // Another device may have replaced both keys meanwhile: the signing key is that of the bundle as it is written.
        let changed = try await update(account, accessToken: accessToken) {
            _ = $0.replaceKeys(with: AccountKeyPair($0.signingKey, next))
        }
        guard changed.bundle.exchangeKey.secret == next.secret else { throw Self.hasTooManyKeys }
        return changed
    }

    private static let hasTooManyKeys = AccountError.unusable(
        "the account has had \(AccountKeyPair.earlierMax) keys, and cannot have more: its bundle keeps all of them")
}
