public import ThicketCrypto

// Changing the access key (decision 0043).
extension Accounts {
    /// Changes the access key, and with it the recovery words: the bundle is sealed under `next`. The old key, its
    /// words, codes and pieces no longer open anything that the server returns, and cannot set a password. The secrets
    /// in the bundle, and so all content, stay, and so do logins. The bundle is then marked as having no backup.
    ///
    /// Other devices continue with their local data and get `keyChanged` when they need the bundle; `signIn`,
    /// `recover`, `openKeys` or a pairing gives them the new key.
    ///
    /// ```swift
    /// let next = AccessKey.random()
    /// keep(try DeviceKeys(account, next: next))           // before the server is asked
    /// let changed = try await accounts.changeAccessKey(of: account, to: next, accessToken: token, password: password)
    /// keep(try DeviceKeys(changed))
    /// ```
    /// After any error except a clear refusal, repeat the call with the same `next`, or call `finishKeyChange`: the
    /// change may have been made.
    ///
    /// - Parameters:
    ///   - password: the account's password; for a partner's user the content passphrase, nil when none is set.
    ///   - next: the access key that replaces the present one.
    ///   - accessToken: the token of the user's login.
    ///   - account: the opened account.
    /// - Throws: `wrongPassword` or `wrongPasscode`, `keyChanged` when another device changed the key first, `busy`,
    ///   `downgrade`, `rolledBack`, `doesNotOpen`, `bundleMissing`, `server`: nothing was changed; `unknown`: the
    ///   change may have been made.
    public func changeAccessKey(
        of account: OpenAccount, to next: AccessKey, accessToken: String, password: SecureBytes?
    ) async throws(AccountError) -> OpenAccount {
        try await api.run(
            AccessKeyFlow(account, to: next, asker(account, accessToken), password: password, rules: rules))
    }

    /// The result of an interrupted change of the access key: the account under the key that the server has now.
    ///
    /// - Throws: `keyChanged` when that is neither of the two keys; `server`; otherwise as `update`.
    public func finishKeyChange(_ keys: DeviceKeys, accessToken: String) async throws(AccountError) -> OpenAccount {
        let account = try keys.open()
        guard let next = keys.next else { return try await refresh(account, accessToken: accessToken) }
        return try await api.run(FinishKeyChangeFlow(account, next, asker(account, accessToken)))
    }
}
