import ThicketClient
import ThicketCrypto
import ThicketProtocol

/// What became of notes that were to be sealed under the account's own keys.
public struct OnionResealing: Sendable, Equatable {
    /// Now of version 3.
    public var resealed: Int = 0
    /// Ids of those that stay as they were, and why.
    public var left: [String: OnionError] = [:]

    public init() {}

    /// What is left only because nobody can open it.
    public var isAsFarAsItGoes: Bool { left.values.allSatisfy { $0 == .unreadable } }
}

/// What an upgrade has come to.
public struct OnionUpgrade: Sendable {
    /// The account's name by now: of an upgrade that was cut short and done again the first one's.
    public let name: String
    /// The account's id, as it always was.
    public let user: String
    public let notes: OnionResealing
    /// The old login is gone. If not, old and new are both good, and doing it again goes on.
    public let isFinished: Bool

    /// Where it may stop; tests stop it at each.
    enum Step: Hashable {
        case loggedIn, begun
        /// A note is about to be sealed anew.
        case note(Int)
        case resealed, finished, rest
    }
    typealias Stop = @Sendable (Step) throws(OnionError) -> Void
}

extension OnionAccount {
    /// How often notes are looked through before the old login ends: somebody may write with it until then.
    private static let passesMax = 3

    /// Makes an account of the old notes app one with keys of its own: same user id, same notes, sealed as version 3;
    /// name and password from before are good no more afterwards.
    ///
    /// It may stop anywhere and be done again with the same words: no note is ever without somebody who can open it.
    /// The old login ends only when every note is of version 3, those aside that nobody can open and `leavesUnreadable`
    /// lets stay.
    ///
    /// - Parameters:
    ///   - name: the new one, which the server sees.
    ///   - consents: notes that ask for very many rounds are opened, too.
    ///   - leavesUnreadable: notes that do not open with the old password stay as they are; it is not kept anywhere.
    /// - Throws: `wrongLogin`, `keys`, `refused`, `client`.
    public func upgrade(
        username: SecureBytes, password: SecureBytes, to name: String, newPassword: SecureBytes,
        consents: Bool = false, leavesUnreadable: Bool = false
    ) async throws(OnionError) -> OnionUpgrade {
        try await upgrade(
            username: username, password: password, to: name, newPassword: newPassword, consents: consents,
            leavesUnreadable: leavesUnreadable, whenBegun: {})
    }

    /// The same.
    /// - Parameter whenBegun: called when the account has keys, by this run or one before: from then on doing it again
    ///   goes on.
    package func upgrade(
        username: SecureBytes, password: SecureBytes, to name: String, newPassword: SecureBytes, consents: Bool,
        leavesUnreadable: Bool, whenBegun: @escaping @Sendable () -> Void
    ) async throws(OnionError) -> OnionUpgrade {
        try await upgrade(
            username, password, to: name, newPassword, Allowed(slow: consents, unreadable: leavesUnreadable),
            stop: { step in if step == .begun { whenBegun() } })
    }

    struct Allowed {
        let slow: Bool
        let unreadable: Bool
    }

    func upgrade(
        _ username: SecureBytes, _ password: SecureBytes, to name: String, _ newPassword: SecureBytes,
        _ allowed: Allowed, stop: @escaping OnionUpgrade.Stop
    ) async throws(OnionError) -> OnionUpgrade {
        let accounts = try accounts()
        let upgraded: Upgraded
        do throws(OnionError) {
            upgraded = try await begin(accounts, username, password, name, newPassword, stop)
        } catch {
            guard error == .wrongLogin else { throw error }
            // Perhaps the last run has ended it, and its answer, or a note, is what is missing.
            return try await rest(accounts, password, name, newPassword, allowed, stop)
        }
        try stop(.begun)
        return try await complete(accounts, upgraded.login, password, allowed, stop)
    }

    /// Seals the notes anew, ends the old login, and looks once more.
    private func complete(
        _ accounts: Accounts, _ login: SignedIn, _ password: SecureBytes, _ allowed: Allowed,
        _ stop: @escaping OnionUpgrade.Stop
    ) async throws(OnionError) -> OnionUpgrade {
        let account = login.account
        let vault = try await vault(of: login, password)
        var notes = OnionResealing()
        do throws(OnionError) {
            for _ in 0..<Self.passesMax {
                let pass = try await vault.reseal(consents: allowed.slow, stop: stop)
                notes = OnionResealing(pass, after: notes)
                if pass.resealed == 0 { break }
            }
            try stop(.resealed)
        } catch {
            await vault.end()
            throw error
        }
        guard notes.left.isEmpty || (allowed.unreadable && notes.isAsFarAsItGoes) else {
            await vault.end()
            return OnionUpgrade(name: account.name, user: account.user, notes: notes, isFinished: false)
        }
        let finished: SignedIn
        do throws(AccountError) { finished = try await accounts.finishUpgrade(account) } catch {
            await vault.end()
            throw .keys(error)
        }
        // The token has ended with all others.
        await vault.end()
        try stop(.finished)
        return try await finish(finished, password, notes, allowed, stop)
    }

    private func accounts() throws(OnionError) -> Accounts {
        do throws(ClientError) {
            if let stretch { return try app.accounts(stretch: stretch) }
            return try app.accounts()
        } catch {
            throw .client(error)
        }
    }

    private func begin(
        _ accounts: Accounts, _ username: SecureBytes, _ password: SecureBytes, _ name: String,
        _ newPassword: SecureBytes, _ stop: OnionUpgrade.Stop
    ) async throws(OnionError) -> Upgraded {
        let answer = try await ask("authorize/", username, password)
        let (user, token): (String, String)
        do throws(ClientError) {
            user = try ServerCalls.text("userid", in: answer)
            token = try ServerCalls.text("access_token", in: answer)
        } catch {
            throw .client(error)
        }
        try stop(.loggedIn)
        let stretched = await NoteWorkers(count: 1).run {
            try? StretchedCredentials(username: username, password: password)
        }
        guard let stretched else { throw .wrongLogin }
        do throws(AccountError) {
            return try await accounts.upgrade(
                .init(
                    user: user, login: .init(username: stretched.username, password: stretched.password),
                    password: password), to: name, password: newPassword)
        } catch {
            // The login for the question ends: nobody else has its token, and nobody needs it.
            await forget(token, user)
            throw .keys(error)
        }
    }

    private func forget(_ token: String, _ user: String) async {
        // Best effort: the token goes with the upgrade at the latest.
        guard let session = try? await app.resumeSession(accessToken: token, username: "", userId: user)
        else { return }
        await session.signOut()
        await session.close()
    }

    private func vault(of login: SignedIn, _ password: SecureBytes) async throws(OnionError) -> Vault {
        let session: ClientSession
        do throws(ClientError) { session = try await app.resume(login) } catch { throw .client(error) }
        return try await Vault(
            session,
            keys: NoteKeys(
                user: login.account.user, password: password, vaultSecret: login.account.bundle.vaultSecret),
            patience: patience)
    }

    /// Behind the end of the old login nobody writes old notes any more: what came until then is taken along.
    private func finish(
        _ login: SignedIn, _ password: SecureBytes, _ notes: OnionResealing, _ allowed: Allowed,
        _ stop: @escaping OnionUpgrade.Stop
    ) async throws(OnionError) -> OnionUpgrade {
        let vault = try await vault(of: login, password)
        do throws(OnionError) {
            let rest = try await vault.reseal(consents: allowed.slow, stop: stop)
            try stop(.rest)
            await vault.end()
            return OnionUpgrade(
                name: login.account.name, user: login.account.user, notes: OnionResealing(rest, after: notes),
                isFinished: true)
        } catch {
            await vault.end()
            throw error
        }
    }

    /// An upgrade that was cut short behind its end; or the old password is wrong, and the new login good: then what is
    /// left does not open, and the old login stays.
    private func rest(
        _ accounts: Accounts, _ password: SecureBytes, _ name: String, _ newPassword: SecureBytes, _ allowed: Allowed,
        _ stop: @escaping OnionUpgrade.Stop
    ) async throws(OnionError) -> OnionUpgrade {
        let result: SignInResult
        do throws(AccountError) {
            result = try await accounts.signIn(name: name, password: newPassword)
        } catch {
            if case .wrongPassword = error { throw .wrongLogin }
            throw .keys(error)
        }
        guard case .open(let login) = result else { throw .keys(.locked) }
        try stop(.begun)
        return try await complete(accounts, login, password, allowed, stop)
    }
}

extension OnionResealing {
    /// What two looks at the same notes have come to.
    init(_ last: OnionResealing, after first: OnionResealing) {
        (resealed, left) = (first.resealed + last.resealed, last.left)
    }
}

extension Vault {
    /// Seals every note that opens as version 3. Others stay as they are.
    /// - Throws: `noKey`, `ended`, `client` when the server was not heard.
    func reseal(consents: Bool, stop: OnionUpgrade.Stop) async throws(OnionError) -> OnionResealing {
        guard try theKeys().format == .sealed else { throw .noKey }
        var outcome = OnionResealing()
        let old = try await stored().filter { $0.format == .first || $0.format == .second }
        for (number, note) in old.enumerated() {
            try stop(.note(number))
            do throws(OnionError) {
                try await save(try await read(note.id, consents: consents), in: note, as: .sealed)
                outcome.resealed += 1
            } catch {
                switch error {
                case .ended, .noKey, .client: throw error
                // Gone meanwhile.
                case .notFound: break
                default: outcome.left[note.id] = error
                }
            }
        }
        return outcome
    }
}
