import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol

/// `thicket keys --restored`: writes this machine's newer keys to a server that was restored from a backup.
enum RestoredKeys {
    /// Options of `thicket keys` that contradict `--restored`.
    private static let others: (flags: [String], values: [String]) = (
        ["make", "no-passphrase"],
        ["words-file", "code-file", "pieces-file", "passcode-file", "content-passphrase-file"]
    )

    static func putBack(_ call: Call) async throws(Failure) {
        let stray: String? =
            others.flags.first { call.flag($0) } ?? others.values.first { call.value($0) != nil }
        if let stray {
            throw Failure("\(nothing): --restored puts back what this machine has; leave --\(stray) out", .usage)
        }
        let keys = try KeyCall(call, nothing)
        // A change that was begun on this machine and not finished is left out: the next command finishes it with the
        // server as it is then.
        let kept = try keys.open()
        Terminal.writeError(
            "This writes the account's keys, as this machine has seen them last (version \(kept.version)), to the server "
                + "again, together with what the server has, if that opens with them.\n")
        let result: KeysPutBack
        do throws(AccountError) {
            result = try await keys.accounts.putBack(kept, accessToken: keys.account.profile.token)
        } catch {
            // A 403 says nothing about the login.
            guard case .server(let reason) = error, reason.number == 401, keys.account.profile.kind == .keys
            else { throw failure(error) }
            result = try await withPassword(call, keys, kept)
        }
        try keys.keep(result.account)
        Terminal.write(
            result.versions == 0
                ? "the server has these keys, or newer ones; nothing was written\n"
                : "the keys are put back, as version \(result.account.version); other content of the server is kept\n")
        KeyCall.remind(result.account)
    }

    /// For logins that were made after the backup, which the restored server does not know.
    private static func withPassword(
        _ call: Call, _ keys: KeyCall, _ kept: OpenAccount
    ) async throws(Failure) -> KeysPutBack {
        Terminal.writeError(
            "the server does not know the login of this machine any more; the valid password is the one from the time "
                + "of the backup, or one that was set since the restore\n")
        let password = try await Secrets.secret(
            call, label: "Password of \(Screen.safe(kept.name)): ", isNew: false)
        let token: String
        do throws(AccountError) {
            token = try await keys.accounts.signInAfterRestore(password: password, known: keys.keys)
        } catch {
            throw loginFailure(error)
        }
        var profile = keys.account.profile
        profile.token = token
        try keys.home.write(profile, keys.account.profileName)
        do throws(AccountError) { return try await keys.accounts.putBack(kept, accessToken: token) } catch {
            throw failure(error)
        }
    }

    /// The failure of the login; nothing is written without one.
    static func loginFailure(_ error: AccountError) -> Failure {
        if case .wrongPassword = error {
            return Failure(
                "\(nothing): the password is wrong. The valid one is from the time of the backup, even if it was changed "
                    + "afterwards, unless it was set again since the restore; 'thicket recover' with the recovery words sets "
                    + "another one.", Failure.code(error))
        }
        if let advice = advice(error) { return Failure("\(nothing): \(error)\(advice)", Failure.code(error)) }
        return Failure(nothing, keys: error)
    }

    private static let nothing = "the keys were not put back"
    /// Other devices may write at the same time, so an error may come after a version was written.
    private static let perhaps = nothing + ", or not all the way"

    static func failure(_ error: AccountError) -> Failure {
        if let advice = advice(error) { return Failure("\(perhaps): \(error)\(advice)", Failure.code(error)) }
        return Failure("\(perhaps); do it again", keys: error)
    }

    /// What to do after an error that has a different meaning here.
    private static func advice(_ error: AccountError) -> String? {
        switch error {
        case .doesNotOpen:
            ". If the access key was changed after that backup ('thicket words --renew'), 'thicket recover' with the older words "
                + "takes what is there, in another profile; if it was changed since the restore, on another machine, the newer "
                + "words or 'thicket pair' do, in another profile, too. If it was not changed, this is not the account's."
        case .keyChanged:
            ". If you changed it after the restore, on another machine ('thicket words --renew'), 'thicket login' gets the new "
                + "one, or 'thicket keys' for a partner's user; 'thicket words' shows its words."
        case .rolledBack:
            ". It went back again while this ran, which no single restore explains: ask the server's operator before "
                + "you continue."
        default: nil
        }
    }
}
