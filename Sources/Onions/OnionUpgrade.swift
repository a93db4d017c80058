import ThicketClient
import ThicketCrypto
import ThicketProtocol

/// The outcome of sealing notes with the account's own keys.
public struct OnionResealing: Sendable, Equatable {
    /// Notes that have version 3 now.
    public var resealed = 0
    /// Ids of the notes that stay unchanged, and why.
    public var left: [String: OnionError] = [:]

    /// No notes yet.
    public init() {}

    /// Every remaining note is one that cannot be opened.
    public var isDoneExceptUnreadable: Bool { left.values.allSatisfy { $0 == .unreadable } }
}

/// The outcome of an upgrade.
public struct OnionUpgrade: Sendable {
    /// The account's present name: after an upgrade that was cut short and repeated, the name from the first attempt.
    public let name: String
    /// The account's id, which the upgrade does not change.
    public let user: String
    /// What happened to the notes.
    public let notes: OnionResealing
    /// The old login has been removed. If false, both logins are valid, and a repeated upgrade continues.
    public let isFinished: Bool

    /// Points at which an upgrade may stop; tests stop it at each.
    enum Step: Hashable {
        case loggedIn, begun
        /// A note is about to be sealed again.
        case note(Int)
        case resealed, finished, rest
    }
    typealias Stop = @Sendable (Step) throws(OnionError) -> Void
}

extension OnionAccount {
    /// How many passes are made over the notes before the old login ends: another device may write with it until then.
    private static let passesMax = 3

    /// Converts an account of the old notes app to one with keys: same user id, same notes, sealed as version 3; the
    /// old name and password are invalid afterwards.
    ///
    /// It may stop at any point and be repeated with the same words: each note can be opened by one of the two logins
    /// at all times. The old login ends only when every note has version 3, except notes that cannot be opened, if
    /// `leavesUnreadable` permits those.
    ///
    /// - Parameters:
    ///   - name: the new name, which the server sees.
    ///   - consents: notes that need a very large number of rounds are opened, too.
    ///   - leavesUnreadable: notes that do not open with the old password stay unchanged; that password is not stored
    ///     anywhere.
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
    /// - Parameter whenBegun: called when the account has keys, made by this run or an earlier one: from then on a
    ///   repeated call continues.
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
            // An earlier run may have ended the old login, so that only its answer, or a note, is missing.
            return try await resume(accounts, password, name, newPassword, allowed, stop)
        }
        try stop(.begun)
        return try await complete(accounts, upgraded.login, password, allowed, stop)
    }

    /// Seals the notes again, ends the old login, and makes one more pass.
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
        guard notes.left.isEmpty || (allowed.unreadable && notes.isDoneExceptUnreadable) else {
            await vault.end()
            return OnionUpgrade(name: account.name, user: account.user, notes: notes, isFinished: false)
        }
        let finished: SignedIn
        do throws(AccountError) { finished = try await accounts.finishUpgrade(account) } catch {
            await vault.end()
            throw .keys(error)
        }
        // The token was revoked with all others.
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
            // The login that asked the question ends: its token was never shared, and is not needed any more.
            await forget(token, user)
            throw .keys(error)
        }
    }

    private func forget(_ token: String, _ user: String) async {
        // Best effort: the upgrade revokes the token at the latest.
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

    /// After the end of the old login no device writes old notes any more: those written until then are sealed, too.
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

    /// Continues an upgrade that was cut short after the end of the old login. If instead the old password is wrong and
    /// the new login valid, the remaining notes do not open, and the old login stays.
    private func resume(
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
    /// The combined outcome of two passes over the same notes.
    init(_ last: OnionResealing, after first: OnionResealing) {
        (resealed, left) = (first.resealed + last.resealed, last.left)
    }
}

extension Vault {
    /// Seals every note that opens as version 3. Others stay unchanged.
    /// - Throws: `noKey`, `ended`, `client` when the server did not answer.
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
                // The note was removed meanwhile.
                case .notFound: break
                default: outcome.left[note.id] = error
                }
            }
        }
        return outcome
    }
}
