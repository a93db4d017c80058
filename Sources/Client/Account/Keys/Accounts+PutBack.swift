public import ThicketCrypto

// After a restore of the server from a backup (decision 0043).
extension Accounts {
    /// Restores this device's bundle on a server that shows an older one. Call it only when the user knows from the
    /// server's operator that a backup was restored; never because of what the server shows.
    ///
    /// The server's bundle must open with this device's access key and hold the same secrets. Its additional entries
    /// are kept: the result has the buckets and members of both. It is written until its version exceeds the one that
    /// this device has seen, so that this device, and others that have seen no newer version, can continue. The call
    /// may be repeated after any error.
    ///
    /// - Parameters:
    ///   - account: as stored on this device, not as read from that server.
    ///   - accessToken: the token of a login to that server.
    /// - Throws: `doesNotOpen`, `otherAccount`, `keyChanged`, `bundleMissing`, `newerFormat`, `damaged` for the
    ///   server's bundle; `unusable` when it is `PutBackFlow.versionsMax` (1,000) or more versions behind, or both
    ///   together exceed a bundle's limits; `busy` when other devices wrote each time; `rolledBack` when the server
    ///   went back meanwhile; `server`, `unknown`. An error found at the first read means that nothing was overwritten.
    ///   Other devices may write during the call, so after any of these errors some versions may have been written:
    ///   each holds all that the server showed and all that this device has.
    public func putBack(_ account: OpenAccount, accessToken: String) async throws(AccountError) -> KeysPutBack {
        try await api.run(PutBackFlow(account, asker(account, accessToken)))
    }

    /// A login for `putBack` when the restored server does not know the device's token: as `signIn` with the device's
    /// stored keys, but an older bundle is accepted. Call `putBack` before storing the result: keep the device's
    /// `DeviceKeys` until then.
    ///
    /// An account that is locked because its password was reset, before or after the backup, is opened with the
    /// device's access key, as by `unlock`: its bundle cannot be written before.
    ///
    /// - Parameters:
    ///   - password: the password at the time of the backup, or one that was set since the restore.
    ///   - known: the keys of the account as this device has stored them.
    /// - Returns: the token of the login.
    /// - Throws: as `signIn` and `unlock`, without `rolledBack`; `locked` only when `known` holds no access key.
    public func signInAfterRestore(password: SecureBytes, known: DeviceKeys) async throws(AccountError) -> String {
        let kept = known.known
        let older = KnownAccount(
            user: kept.user, accessKey: kept.accessKey, version: 0, pin: kept.pin, bundle: kept.bundle)
        let result: SignInResult = try await api.run(
            try SignInFlow(app: app, name: known.name, password: password, device: device, known: older, rules: rules))
        switch result {
        case .open(let login): return login.accessToken
        case .locked(let locked):
            guard locked.opensHere else { throw .locked }
            do throws(AccountError) { return try await unlock(locked, accessKey: nil).accessToken } catch {
                // The key of a bundle that is not newer than the device's cannot have been changed since.
                throw error == .keyChanged && locked.version <= kept.version ? .doesNotOpen : error
            }
        }
    }
}
