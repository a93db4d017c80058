public import ThicketCrypto
import ThicketProtocol

/// Accounts whose password and keys stay on the device (docs/AUTH.md, "Where the password stays with the client").
///
/// ```swift
/// let accounts = try app.accounts()
/// let ann = try await accounts.signUp(name: "ann@example.com", password: password)
/// let secret = ann.account.bundle.vaultSecret         // the root of the keys of sealed buckets and notes
/// let session = try await app.resume(ann)
/// let diary = try await session.bucket("diary", sealed: true)
/// ```
/// Passwords are passed in memory that wipes itself, and are not stored. A device stores `DeviceKeys`.
public struct Accounts: Sendable {
    let app: String
    let device: String
    let api: AccountAPIClient
    let random: AccountRandom
    let rules: PasswordRules
    /// Milliseconds since 1970.
    let now: @Sendable () -> UInt64

    package init(
        app: String, device: String, api: AccountAPIClient, random: AccountRandom = .system,
        rules: PasswordRules = .product, clock: any SessionClock = SystemSessionClock()
    ) {
        (self.app, self.device, self.api) = (app, device, api)
        (self.random, self.rules) = (random, rules)
        now = { UInt64(max(0, clock.unixSeconds() * 1_000)) }
    }

    /// Makes an account with new keys, and logs in.
    ///
    /// - Parameters:
    ///   - password: UTF-8; it never leaves the device.
    ///   - name: the account's name.
    /// - Throws: `nameTaken`; `unknown` when the account may have been made: a sign-in with the same password shows
    ///   whether it was, and at worst an account without data is left.
    public func signUp(name: String, password: SecureBytes) async throws(AccountError) -> SignedIn {
        try await api.run(
            try SignUpFlow(app: app, name: name, password: password, device: device, random: random, now: now()))
    }

    /// Logs in and opens the account's keys.
    ///
    /// - Parameters:
    ///   - known: the keys of the account on this device; nil on a new device.
    ///   - password: UTF-8; it never leaves the device.
    ///   - name: the account's name.
    /// - Throws: `wrongPassword`, `downgrade`, `otherAccount`, `doesNotOpen`, `rolledBack`, `bundleMissing`,
    ///   `newerFormat`.
    public func signIn(
        name: String, password: SecureBytes, known: DeviceKeys? = nil
    ) async throws(AccountError) -> SignInResult {
        try await api.run(
            try SignInFlow(
                app: app, name: name, password: password, device: device, known: known?.known, rules: rules))
    }

    /// Opens a locked account with its access key; nil uses the key on this device.
    ///
    /// - Throws: `wrongWords`, `locked`, `unknown`.
    public func unlock(_ locked: LockedAccount, accessKey: AccessKey?) async throws(AccountError) -> SignedIn {
        try await api.run(UnlockFlow(locked, .accessKey(accessKey), rules: rules))
    }

    /// Opens a locked account with the password from before the reset.
    ///
    /// - Throws: `wrongPassword`, `locked`, `unknown`.
    public func unlock(_ locked: LockedAccount, oldPassword: SecureBytes) async throws(AccountError) -> SignedIn {
        try await api.run(UnlockFlow(locked, .oldPassword(oldPassword), rules: rules))
    }

    /// Sets another password. All other logins end; the keys do not change.
    ///
    /// - Throws: `wrongPassword`, `downgrade`; `unknown` when it is unknown which of the two passwords is valid.
    public func changePassword(
        of account: OpenAccount, accessToken: String, from old: SecureBytes, to new: SecureBytes
    ) async throws(AccountError) -> SignedIn {
        try await api.run(
            try PasswordFlow(
                account, token: accessToken, from: old, to: new, device: device, rules: rules, random: random))
    }

    /// Sets another password by the access key: from the words, a code, pieces, or a device that has it.
    ///
    /// - Throws: `wrongWords`, `unknown`. With `rolledBack`, `doesNotOpen` and other errors about the server's data,
    ///   the password has been set all the same, and all logins have ended.
    public func recover(
        name: String, accessKey: AccessKey, newPassword: SecureBytes, known: DeviceKeys? = nil
    ) async throws(AccountError) -> SignedIn {
        try await api.run(
            try RecoverFlow(
                app: app, name: name, accessKey: accessKey, newPassword: newPassword, device: device,
                known: known?.known, random: random))
    }

    /// Reads the current bundle from the server.
    ///
    /// - Throws: `rolledBack`, `doesNotOpen`, `bundleMissing`.
    public func refresh(_ account: OpenAccount, accessToken: String) async throws(AccountError) -> OpenAccount {
        try await update(account, accessToken: accessToken) { _ in }
    }

    /// Changes the bundle. The change is applied once to each version found at the server, so that writes of other
    /// devices are not lost.
    ///
    /// - Throws: `busy` when other devices wrote first five times, `doesNotOpen`, `rolledBack`, `bundleMissing`;
    ///   nothing was written then.
    public func update(
        _ account: OpenAccount, accessToken: String, _ change: @escaping @Sendable (inout AccountBundle) -> Void
    ) async throws(AccountError) -> OpenAccount {
        try await api.run(BundleFlow(account, asker(account, accessToken), random: random, change: change))
    }

    /// Records in the bundle that a bucket is sealed: every device of the account then knows it from the bundle, so
    /// that a server cannot make one open it unsealed. Writes nothing when the bundle records it already.
    ///
    /// - Throws: `unusable` when the bundle lists the bucket as an open one, or holds `AccountBundle.bucketsMax` modes;
    ///   otherwise as `update`.
    public func keepSealed(
        _ bucket: String, of account: OpenAccount, accessToken: String
    ) async throws(AccountError) -> OpenAccount {
        guard (try? BucketName(bucket)) != nil else { throw .unusable("'\(bucket)' is not a valid bucket name") }
        let kept = try await update(account, accessToken: accessToken) { bundle in
            guard bundle.buckets[bucket] == nil, bundle.buckets.count < AccountBundle.bucketsMax else { return }
            bundle.buckets[bucket] = AccountBundle.BucketMode(mode: AccountBundle.BucketMode.sealedName, epoch: 0)
        }
        guard kept.bundle.buckets[bucket]?.isSealed == true else {
            throw .unusable("the account has \(bucket) as an open bucket, or too many buckets")
        }
        return kept
    }

    /// Deletes the account: its keys, its proof and its logins are gone when this returns, its data soon after.
    ///
    /// - Throws: `wrongPassword`, `downgrade`, `unknown`.
    public func delete(
        _ account: OpenAccount, accessToken: String, password: SecureBytes
    ) async throws(AccountError) {
        try await api.run(try DeleteFlow(account, token: accessToken, password: password, rules: rules))
    }

    func asker(_ account: OpenAccount, _ token: String) -> AccountRequest.Asker {
        // Thicket's own tokens have no dots (docs/AUTH.md, "A bundle for a partner's user").
        token.utf8.contains(UInt8(ascii: ".")) ? .partner(token: token) : .user(token: token)
    }

    // MARK: - Partners' users

    /// Opens the keys of a user whom a partner authenticates, or makes them on the first device.
    ///
    /// - Parameters:
    ///   - opener: the means to open the keys; when keys are made, a passphrase seals them for other devices.
    ///   - makes: whether to make keys when none exist.
    ///   - entity: the user's id.
    ///   - accessToken: the token of the user's login.
    ///   - known: the user's keys on this device; nil on a new device.
    /// - Throws: `wrongPasscode`, `downgrade`, `doesNotOpen` (also when another party wrote first), `rolledBack`.
    public func openKeys(
        ofPartnerUser entity: String, accessToken: String, _ opener: KeyOpener = .none, known: DeviceKeys? = nil,
        makes: Bool
    ) async throws(AccountError) -> PartnerKeys {
        try await api.run(
            try PartnerKeysFlow(
                app: app, entity: entity, token: accessToken, opener: opener, known: known?.known, makes: makes,
                rules: rules, random: random, now: now()))
    }

    /// Seals the access key of a partner's user under another content passphrase; nil removes the passphrase, so that
    /// only devices and words have the key.
    public func setPassphrase(
        _ passphrase: SecureBytes?, of account: OpenAccount, accessToken: String
    ) async throws(AccountError) -> OpenAccount {
        try await api.run(
            BundleFlow(
                account, .partner(token: accessToken),
                passphrase: passphrase.map(BundleFlow.Passphrase.set) ?? .removed, random: random
            ) { _ in })
    }
}

extension ThicketApp {
    /// The accounts of this app whose keys stay on the device.
    ///
    /// - Throws: `limit` when the system cannot make a thread.
    public func accounts() throws(ClientError) -> Accounts {
        Accounts(app: calls.app, device: calls.deviceId, api: try AccountAPIClient(calls))
    }

    /// As above, with another key derivation, for tests.
    package func accounts(stretch: @escaping AccountAPIClient.Stretch) throws(ClientError) -> Accounts {
        Accounts(app: calls.app, device: calls.deviceId, api: try AccountAPIClient(calls, stretch: stretch))
    }

    /// As above, with another key derivation and other rules, for tests.
    package func accounts(
        _ stretch: AccountAPIClient.Stretch?, _ rules: PasswordRules
    ) throws(ClientError) -> Accounts {
        Accounts(
            app: calls.app, device: calls.deviceId, api: try AccountAPIClient(calls, stretch: stretch), rules: rules)
    }

    /// The session of a login, with the account's keys: sealed buckets open by name.
    public func resume(_ login: SignedIn) async throws(ClientError) -> ClientSession {
        try await resume(login.account, accessToken: login.accessToken)
    }

    /// The session of an account whose keys are open on this device, with an earlier token
    /// (`ClientSession.accessToken`). Used after a restart with the stored `DeviceKeys`.
    ///
    /// - Throws: as `resumeSession`.
    public func resume(_ account: OpenAccount, accessToken: String) async throws(ClientError) -> ClientSession {
        let session = try await resumeSession(
            accessToken: accessToken, username: account.name, userId: account.user)
        do throws(ClientError) { try await session.useKeys(of: account) } catch {
            await session.close()
            throw error
        }
        return session
    }
}
