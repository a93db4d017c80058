public import ThicketCrypto

// After a restore of the server from a backup (decision 0062).
extension Accounts {
    /// Puts the bundle that this device has back at a server that shows an older one: for the user who has heard from
    /// whoever runs the server that a backup was restored there. Never to be done because a server looks like it.
    ///
    /// What the server shows must open with this device's access key and hold the same secrets. What it has besides is
    /// kept: buckets and members of both are there afterwards. It is written until the version is greater than the one
    /// that this device has seen, so that this device and those that have seen no more go on. May be done again after
    /// any error.
    ///
    /// - Parameter account: as this device has kept it, not as it was read from that server.
    /// - Throws: `doesNotOpen`, `otherAccount`, `keyChanged`, `bundleMissing`, `newerFormat`, `damaged` for what the
    ///   server shows; `unusable` when it is `PutBackFlow.versionsMax` (1,000) versions behind or more, or both
    ///   together are more than a bundle holds; `busy` when others wrote each time; `rolledBack` when it went back
    ///   meanwhile; `server`, `unknown`. What is found wrong at the first look was not written over. But others may
    ///   write while this runs, so after any of these some of the versions may be written: each of them holds all that
    ///   was shown and all that this device has.
    public func putBack(_ account: OpenAccount, accessToken: String) async throws(AccountError) -> KeysPutBack {
        try await door.run(PutBackFlow(account, asker(account, accessToken)))
    }

    /// A login for `putBack`, where the restored server does not know the device's token: as `signIn` with what the
    /// device has kept, but an older bundle is no reason to refuse. What it gives has to be put back before it is kept:
    /// the device's own `DeviceKeys` stay until then.
    ///
    /// An account that is locked, since its password was reset after the backup or before it, is opened with the
    /// device's access key, as `unlock` does: until then its bundle is not to be written.
    ///
    /// - Parameter password: that of the backup, or one that was set since the restore.
    /// - Returns: the token of the login.
    /// - Throws: as `signIn` and `unlock`, without `rolledBack`; `locked` only where `known` holds no access key.
    public func signInAfterRestore(password: SecureBytes, known: DeviceKeys) async throws(AccountError) -> String {
        let kept = known.known
        let older = KnownAccount(
            user: kept.user, accessKey: kept.accessKey, version: 0, pin: kept.pin, bundle: kept.bundle)
        let result: SignInResult = try await door.run(
            try SignInFlow(app: app, name: known.name, password: password, device: device, known: older, rules: rules))
        switch result {
        case .open(let login): return login.accessToken
        case .locked(let locked):
            guard locked.opensHere else { throw .locked }
            do throws(AccountError) { return try await unlock(locked, accessKey: nil).accessToken } catch {
                // Of a bundle that is not newer than the device's own, nobody has changed the key since.
                throw error == .keyChanged && locked.version <= kept.version ? .doesNotOpen : error
            }
        }
    }
}
