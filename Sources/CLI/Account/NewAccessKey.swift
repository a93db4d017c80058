import ThicketClient
import ThicketCommandLine
import ThicketCrypto

/// `thicket words --renew`: makes another access key, for a user that cannot account for a paper with the words.
///
/// The new key is stored on this machine before the server is asked, and stays stored until the outcome is known: after
/// a program was killed in between, the next call goes on.
enum NewAccessKey {
    /// The text for when it is known that nothing was changed.
    private static let what = "the access key was not changed"

    static func make(_ call: Call, _ keys: KeyCall) async throws(Failure) -> AccessKey {
        // Two processes that make a key each could discard the one that the server accepted.
        let lock = try FolderLock(keys.home.folder(keys.account.profileName), "renew.lock", waits: false)
        defer { lock.end() }
        let account = try await keys.finishingKeyChange(what)
        guard account.accessKey == keys.keys.accessKey else {
            // An earlier call began the change and the server has made it: these are the new words.
            report(isPartner: isPartner(keys))
            return account.accessKey
        }
        let password = try await secret(call, keys, account)
        let next = keys.keys.next ?? .random()
        try keys.keep(account, next: .follows(next))
        let changed = try await change(keys, account, next, password)
        try keys.keep(changed)
        report(isPartner: isPartner(keys))
        return next
    }

    private static func isPartner(_ keys: KeyCall) -> Bool { keys.account.profile.kind == .partner }

    /// What seals the access key at the server: the password, or a partner's user's content passphrase, if one is set.
    private static func secret(
        _ call: Call, _ keys: KeyCall, _ account: OpenAccount
    ) async throws(Failure) -> SecureBytes? {
        guard isPartner(keys) else {
            return try await Secrets.secret(call, label: "Password: ", isNew: false)
        }
        let token = keys.account.profile.token
        let view = try await keyed(what) { () throws(AccountError) in
            try await keys.accounts.serverView(of: account, accessToken: token)
        }
        guard view.access != nil else { return nil }
        return try await Secrets.secret(call, "content-passphrase", label: "Content passphrase: ", isNew: false)
    }

    private static func change(
        _ keys: KeyCall, _ account: OpenAccount, _ next: AccessKey, _ password: SecureBytes?
    ) async throws(Failure) -> OpenAccount {
        let token = keys.account.profile.token
        do throws(AccountError) {
            return try await keys.accounts.changeAccessKey(
                of: account, to: next, accessToken: token, password: password)
        } catch {
            guard isDefinite(error) else {
                throw Failure(
                    "\(what), or the outcome is not known: \(error). The same command goes on where this one stopped, "
                        + "and shows the new words.", Failure.code(error))
            }
            try keys.keep(account, next: .dropped)
            throw Failure(what, keys: error)
        }
    }

    /// Whether it is known that the server changed nothing.
    private static func isDefinite(_ error: AccountError) -> Bool {
        switch error {
        case .unknown: false
        case .server(let reason): reason.code != .network && reason.code != .deadline && reason.code != .unavailable
        default: true
        }
    }

    private static func report(isPartner: Bool) {
        let paper =
            "the access key is changed, and with it the words. Old words, codes and pieces open nothing any more that the server "
            + "gives out"
        let others =
            isPartner
            ? "'thicket keys' gets them the new key"
            : "'thicket login' gets them the new key, 'thicket passwd' signs them out"
        Terminal.writeError(
            paper + (isPartner ? ". " : ", and set no password. ")
                + "But an attacker with them and an earlier copy of the sealed keys, as in the server's backups, still "
                + "opens everything: the keys to your content stay the same.\nOther machines go on; \(others).\n\n")
    }
}
