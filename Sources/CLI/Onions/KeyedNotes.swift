import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketOnions

/// Notes of an account with keys, built-in or a partner's.
///
/// Commands open them with the keys that this machine stores. The view asks for the password each time, so that its
/// lock is effective: the vault holds the keys, and they are wiped with it.
struct KeyedNotes: Sendable {
    private let call: Call

    init(_ call: Call) { self.call = call }

    // MARK: - Commands

    /// The notes, opened with the profile's login, which stays valid.
    /// - Parameter password: for sealed copies.
    func vault(password: SecureBytes?) async throws(Failure) -> Vault {
        let what = "the notes were not opened"
        let keys = try KeyCall(call, what)
        let open = try keys.open()
        let session: ClientSession
        do throws(ClientError) {
            session = try await keys.account.session(store: .memory, isOnline: true)
        } catch {
            throw Failure(what, error)
        }
        let timeout = keys.account.timeout
        return try await OnionCall.trying(what) { () throws(OnionError) in
            try await Vault(
                session, keys: NoteKeys(user: open.user, password: password, vaultSecret: open.bundle.vaultSecret),
                endsLogin: false, patience: timeout)
        }
    }

    // MARK: - The view

    /// The notes, opened with the password, or a partner's user's content passphrase; the vault has a separate login
    /// where the account allows one.
    func unlock(_ password: SecureBytes) async throws(OnionError) -> Vault {
        let keys: KeyCall
        do throws(Failure) { keys = try KeyCall(call, "not logged in") } catch { throw .refused(error.text) }
        let account: OpenAccount
        let session: ClientSession
        do throws(AccountError) {
            (account, session) =
                keys.account.profile.kind == .partner
                ? try await partner(keys, password) : try await builtIn(keys, password)
        } catch {
            switch error {
            case .wrongPassword(isChanged: false), .wrongPasscode: throw .wrongLogin
            default: throw .keys(error)
            }
        }
        return try await Vault(
            session, keys: NoteKeys(user: account.user, password: nil, vaultSecret: account.bundle.vaultSecret),
            endsLogin: keys.account.profile.kind == .keys, patience: keys.account.timeout)
    }

    private func builtIn(
        _ keys: KeyCall, _ password: SecureBytes
    ) async throws(AccountError) -> (OpenAccount, ClientSession) {
        let result = try await keys.accounts.signIn(
            name: keys.keys.name, password: password, known: keys.keys)
        guard case .open(let login) = result else { throw .locked }
        do throws(ClientError) {
            return (login.account, try await keys.account.app(store: .memory, isOnline: true).resume(login))
        } catch {
            throw .server(error)
        }
    }

    private func partner(
        _ keys: KeyCall, _ passphrase: SecureBytes
    ) async throws(AccountError) -> (OpenAccount, ClientSession) {
        let session: ClientSession
        do throws(ClientError) {
            session = try await keys.account.session(store: .memory, isOnline: true)
        } catch {
            throw .server(error)
        }
        do throws(AccountError) {
            let result = try await keys.accounts.openKeys(
                ofPartnerUser: keys.keys.user, accessToken: await session.accessToken, .passphrase(passphrase),
                known: keys.keys, makes: false)
            guard case .open(let account, _) = result else {
                throw AccountError.unusable("there is no content passphrase; 'thicket passwd' sets one")
            }
            return (account, session)
        } catch {
            await session.close()
            throw error
        }
    }

    // MARK: - The end of the account

    /// Deletes all notes, then the account.
    func delete() async throws(Failure) {
        let keys = try KeyCall(call, "nothing was deleted")
        guard keys.account.profile.kind == .keys else {
            throw Failure(
                "nothing was deleted: the account is the partner's. 'thicket onions rm' removes notes.", .usage)
        }
        let known = try keys.open()
        let password = try await Secrets.secret(
            call, label: "Password, to delete all notes and then \(Screen.safe(known.name)): ", isNew: false)
        let (account, session) = try await keyed("nothing was deleted") {
            () throws(AccountError) in
            // The password is verified before anything is deleted.
            try await builtIn(keys, password)
        }
        let token = await session.accessToken
        let vault = try await OnionCall.trying("nothing was deleted") { () throws(OnionError) in
            try await Vault(
                session, keys: NoteKeys(user: account.user, password: nil, vaultSecret: account.bundle.vaultSecret),
                patience: keys.account.timeout)
        }
        do throws(OnionError) { try await vault.removeAll() } catch {
            await vault.end()
            throw OnionCall.failure("the account was not deleted; notes may have been", error)
        }
        let result = await end(account, token, password, keys.accounts)
        await vault.end()
        try await keyed(
            "the notes are deleted, the account is not",
            lost: "The notes are deleted; 'thicket login' shows whether the account is."
        ) { () throws(AccountError) in try result.get() }
        Terminal.write(
            "the notes and the account are deleted. 'thicket logout' removes what this machine keeps of it.\n")
    }

    private func end(
        _ account: OpenAccount, _ token: String, _ password: SecureBytes, _ accounts: Accounts
    ) async -> Result<Void, AccountError> {
        do throws(AccountError) {
            return .success(try await accounts.delete(account, accessToken: token, password: password))
        } catch {
            return .failure(error)
        }
    }
}
