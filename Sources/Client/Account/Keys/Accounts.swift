public import ThicketCrypto
import ThicketProtocol

/// Accounts whose password and keys stay on the device (docs/AUTH.md, "Where the password stays with the client").
///
/// ```swift
/// let accounts = try app.accounts()
/// let ann = try await accounts.signUp(name: "ann@example.com", password: password)
/// let secret = ann.account.bundle.vaultSecret         // what sealed buckets and notes are sealed with
/// let session = try await app.resume(ann)
/// let diary = try await session.bucket("diary", sealed: true)
/// ```
/// Passwords come in memory that wipes itself; they are not kept. What a device keeps for later is `DeviceKeys`.
public struct Accounts: Sendable {
    let app: String
    let device: String
    let door: AccountDoor
    let random: AccountRandom
    let rules: PasswordRules

    package init(
        app: String, device: String, door: AccountDoor, random: AccountRandom = .system, rules: PasswordRules = .product
    ) {
        (self.app, self.device, self.door) = (app, device, door)
        (self.random, self.rules) = (random, rules)
    }

    /// Makes an account with new keys, and logs in.
    ///
    /// - Parameter password: UTF-8; it goes nowhere.
    /// - Throws: `nameTaken`; `unknown` when it is not known whether the account was made: a sign-in with the same
    ///   password tells, and nothing is lost but an account without data.
    public func signUp(name: String, password: SecureBytes) async throws(AccountError) -> SignedIn {
        try await door.run(
            try SignUpFlow(app: app, name: name, password: password, device: device, random: random))
    }

    /// Logs in and opens the account's keys.
    ///
    /// - Parameter known: what this device has of the account; nil on a new one.
    /// - Throws: `wrongPassword`, `downgrade`, `otherAccount`, `doesNotOpen`, `rolledBack`, `bundleMissing`,
    ///   `newerFormat`.
    public func signIn(
        name: String, password: SecureBytes, known: DeviceKeys? = nil
    ) async throws(AccountError) -> SignInResult {
        try await door.run(
            try SignInFlow(
                app: app, name: name, password: password, device: device, known: known?.known, rules: rules))
    }

    /// Opens a locked account with its access key; nil: with the one that this device has.
    /// - Throws: `wrongWords`, `locked`, `unknown`.
    public func unlock(_ locked: LockedAccount, accessKey: AccessKey?) async throws(AccountError) -> SignedIn {
        try await door.run(UnlockFlow(locked, .accessKey(accessKey), rules: rules))
    }

    /// Opens a locked account with the password from before the reset.
    /// - Throws: `wrongPassword`, `locked`, `unknown`.
    public func unlock(_ locked: LockedAccount, oldPassword: SecureBytes) async throws(AccountError) -> SignedIn {
        try await door.run(UnlockFlow(locked, .oldPassword(oldPassword), rules: rules))
    }

    /// Sets another password. All other logins end; the keys stay as they are.
    /// - Throws: `wrongPassword`, `downgrade`; `unknown` when one of the two passwords is good and nobody knows which.
    public func changePassword(
        of account: OpenAccount, accessToken: String, from old: SecureBytes, to new: SecureBytes
    ) async throws(AccountError) -> SignedIn {
        try await door.run(
            try PasswordFlow(
                account, token: accessToken, from: old, to: new, device: device, rules: rules, random: random))
    }

    /// Sets another password by the access key: from the words, a code, pieces, or a device that has it.
    /// - Throws: `wrongWords`, `unknown`; `rolledBack`, `doesNotOpen` and other errors about what the server shows: the
    ///   password is set all the same, and all logins have ended.
    public func recover(
        name: String, accessKey: AccessKey, newPassword: SecureBytes, known: DeviceKeys? = nil
    ) async throws(AccountError) -> SignedIn {
        try await door.run(
            try RecoverFlow(
                app: app, name: name, accessKey: accessKey, newPassword: newPassword, device: device,
                known: known?.known, random: random))
    }

    /// Reads what the bundle holds by now.
    /// - Throws: `rolledBack`, `doesNotOpen`, `bundleMissing`.
    public func refresh(_ account: OpenAccount, accessToken: String) async throws(AccountError) -> OpenAccount {
        try await update(account, accessToken: accessToken) { _ in }
    }

    /// Changes what the bundle holds. The change is made once for each version that is found at the server: whoever
    /// else wrote meanwhile loses nothing.
    ///
    /// - Throws: `busy` when others were faster five times, `doesNotOpen`, `rolledBack`, `bundleMissing`; then nothing
    ///   was written.
    public func update(
        _ account: OpenAccount, accessToken: String, _ change: @escaping @Sendable (inout AccountBundle) -> Void
    ) async throws(AccountError) -> OpenAccount {
        try await door.run(BundleFlow(account, asker(account, accessToken), random: random, change: change))
    }

    /// Writes into the bundle that a bucket is sealed: every device of the account then knows it from the bundle, and
    /// no server can make one open it in clear. Nothing is written when the bundle has it already.
    ///
    /// - Throws: `unusable` when the bundle has the bucket as an open one, or holds `AccountBundle.bucketsMax` modes;
    ///   else as `update`.
    public func keepSealed(
        _ bucket: String, of account: OpenAccount, accessToken: String
    ) async throws(AccountError) -> OpenAccount {
        guard (try? BucketName(bucket)) != nil else { throw .unusable("'\(bucket)' is no name of a bucket") }
        let kept = try await update(account, accessToken: accessToken) { bundle in
            guard bundle.buckets[bucket] == nil, bundle.buckets.count < AccountBundle.bucketsMax else { return }
            bundle.buckets[bucket] = AccountBundle.BucketMode(mode: AccountBundle.BucketMode.sealedName, epoch: 0)
        }
        guard kept.bundle.buckets[bucket]?.isSealed == true else {
            throw .unusable("the account has \(bucket) as an open bucket, or too many buckets")
        }
        return kept
    }

    /// Ends the account: its keys, its proof and its logins are gone when this returns, its data soon.
    /// - Throws: `wrongPassword`, `downgrade`, `unknown`.
    public func delete(
        _ account: OpenAccount, accessToken: String, password: SecureBytes
    ) async throws(AccountError) {
        try await door.run(try DeleteFlow(account, token: accessToken, password: password, rules: rules))
    }

    func asker(_ account: OpenAccount, _ token: String) -> AccountRequest.Asker {
        // Tokens of ours have no dots (docs/AUTH.md, "A bundle for a partner's user").
        token.utf8.contains(UInt8(ascii: ".")) ? .partner(token: token) : .user(token: token)
    }

    // MARK: - Partners' users

    /// Opens the keys of a user for whom a partner vouches, or makes them on the first device.
    ///
    /// - Parameters:
    ///   - opener: what the user has; where keys are made, a passphrase seals them for other devices.
    ///   - makes: whether keys are made where there are none.
    /// - Throws: `wrongPasscode`, `downgrade`, `doesNotOpen` (also when somebody else was the first writer),
    ///   `rolledBack`.
    public func openKeys(
        ofPartnerUser entity: String, accessToken: String, _ opener: KeyOpener = .none, known: DeviceKeys? = nil,
        makes: Bool
    ) async throws(AccountError) -> PartnerKeys {
        try await door.run(
            try PartnerKeysFlow(
                app: app, entity: entity, token: accessToken, opener: opener, known: known?.known, makes: makes,
                rules: rules, random: random))
    }

    /// Seals the access key of a partner's user under another content passphrase; nil takes it away, and leaves the key
    /// to devices and words.
    public func setPassphrase(
        _ passphrase: SecureBytes?, of account: OpenAccount, accessToken: String
    ) async throws(AccountError) -> OpenAccount {
        try await door.run(
            BundleFlow(
                account, .partner(token: accessToken), passphrase: passphrase.map(BundleFlow.Passphrase.set) ?? .goes,
                random: random
            ) { _ in })
    }
}

extension ThicketApp {
    /// Accounts of this app whose keys stay on the device.
    /// - Throws: `limit` when the system gives no thread.
    public func accounts() throws(ClientError) -> Accounts {
        Accounts(app: calls.app, device: calls.deviceId, door: try AccountDoor(calls))
    }

    package func accounts(stretch: @escaping AccountDoor.Stretch) throws(ClientError) -> Accounts {
        Accounts(app: calls.app, device: calls.deviceId, door: try AccountDoor(calls, stretch: stretch))
    }

    /// The session of who signed in, with the account's keys: sealed buckets open by name.
    public func resume(_ login: SignedIn) async throws(ClientError) -> ClientSession {
        try await resume(login.account, accessToken: login.accessToken)
    }

    /// The session of an account whose keys are open on this device, with a token of earlier
    /// (`ClientSession.accessToken`): what a program does that starts again with the `DeviceKeys` it has kept.
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
