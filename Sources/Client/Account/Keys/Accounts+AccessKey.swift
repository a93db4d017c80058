public import ThicketCrypto

// Another access key (decision 0055).
extension Accounts {
    /// Changes the access key, and with it the recovery words: the bundle is sealed under `next`, and the old key, its
    /// words, codes and pieces open nothing any more that the server gives out, nor set a password. The secrets in the
    /// bundle stay, and so does all content; logins stay, too. The bundle says afterwards that there is no backup.
    ///
    /// Other devices go on with what they have and are told `keyChanged` when they need the bundle; `signIn`,
    /// `recover`, `openKeys` or a pairing gives them the new key.
    ///
    /// ```swift
    /// let next = AccessKey.random()
    /// keep(try DeviceKeys(account, next: next))           // before the server is asked
    /// let changed = try await accounts.changeAccessKey(of: account, to: next, accessToken: token, password: password)
    /// keep(try DeviceKeys(changed))
    /// ```
    /// After any error but a clear refusal do it again with the same `next`, or ask `settle`: it may be done.
    /// - Parameter password: of the account; of a partner's user the content passphrase, nil where there is none.
    /// - Throws: `wrongPassword` or `wrongPasscode`, `keyChanged` when another device was faster, `busy`, `downgrade`,
    ///   `rolledBack`, `doesNotOpen`, `bundleMissing`, `server`: it is as before; `unknown`: nobody knows.
    public func changeAccessKey(
        of account: OpenAccount, to next: AccessKey, accessToken: String, password: SecureBytes?
    ) async throws(AccountError) -> OpenAccount {
        try await door.run(
            AccessKeyFlow(account, to: next, asker(account, accessToken), password: password, rules: rules))
    }

    /// What has become of a change of the access key that was cut short: the account under the key that the server has
    /// by now.
    /// - Throws: `keyChanged` when that is neither of the two; `server`; else as `update`.
    public func settle(_ keys: DeviceKeys, accessToken: String) async throws(AccountError) -> OpenAccount {
        let account = try keys.open()
        guard let next = keys.next else { return try await refresh(account, accessToken: accessToken) }
        return try await door.run(SettleFlow(account, next, asker(account, accessToken)))
    }
}
