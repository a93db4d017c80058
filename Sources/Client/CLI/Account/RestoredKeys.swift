import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol

/// `thicket keys --restored`: puts the newer keys of this machine back at a server that was restored from a backup.
enum RestoredKeys {
    /// Options of `thicket keys` that say something else.
    private static let others: (flags: [String], values: [String]) = (
        ["make", "no-passphrase"],
        ["words-file", "code-file", "pieces-file", "passcode-file", "content-passphrase-file"]
    )

    static func putBack(_ call: Call) async throws(Failure) {
        let what: String = "the keys were not put back"
        let stray: String? =
            others.flags.first { call.flag($0) } ?? others.values.first { call.value($0) != nil }
        if let stray {
            throw Failure("\(what): --restored puts back what this machine has; leave --\(stray) out", .usage)
        }
        let keys: KeyCall = try .init(call, what)
        // Not what was begun and not ended here: that is settled by the next command, at the server as it is then.
        let kept: OpenAccount = try keys.open()
        Terminal.writeError(
            "This writes the account's keys, as this machine has seen them last (version \(kept.version)), to the server "
                + "again, together with what the server has, if that opens with them.\n")
        let result: KeysPutBack
        do throws(AccountError) {
            result = try await keys.accounts.putBack(kept, accessToken: keys.account.profile.token)
        } catch {
            guard case .server(let reason) = error, reason.code == .unauthorized,
                keys.account.profile.kind == .keys
            else { throw failure(what, error) }
            result = try await withPassword(call, keys, kept, what)
        }
        try keys.keep(result.account)
        Terminal.write(
            result.versions == 0
                ? "the server has these keys, or newer ones; nothing was written\n"
                : "the keys are put back, as version \(result.account.version); what the server had besides is kept\n")
        KeyCall.remind(result.account)
    }

    /// Logins from after the backup are gone with it.
    private static func withPassword(
        _ call: Call, _ keys: KeyCall, _ kept: OpenAccount, _ what: String
    ) async throws(Failure) -> KeysPutBack {
        Terminal.writeError(
            "the server does not know the login of this machine any more; the password that counts is that of the backup\n"
        )
        let password: SecureBytes = try await Secrets.secret(
            call, label: "Password of \(Screen.safe(kept.name)): ", isNew: false)
        do throws(AccountError) {
            let token: String = try await keys.accounts.signInAfterRestore(password: password, known: keys.keys)
            var profile: Profile = keys.account.profile
            profile.token = token
            try keep(profile, keys)
            return try await keys.accounts.putBack(kept, accessToken: token)
        } catch {
            throw failure(what, error)
        }
    }

    private static func keep(_ profile: Profile, _ keys: KeyCall) throws(AccountError) {
        do throws(Failure) { try keys.home.write(profile, keys.account.profileName) } catch {
            throw .unusable(error.text)
        }
    }

    private static func failure(_ what: String, _ error: AccountError) -> Failure {
        let text: String
        switch error {
        case .doesNotOpen:
            text =
                "\(error). If the access key was changed after that backup ('thicket words --renew'), 'thicket recover' with the "
                + "older words takes what is there, in another profile; if it was not, this is not the account's."
        case .keyChanged:
            text =
                "\(error). If you changed it after the restore, on another machine ('thicket words --renew'), 'thicket login' "
                + "gets the new one, or 'thicket keys' for a partner's user; 'thicket words' shows its words."
        case .unknown: return Failure(what, keys: error)
        case .server(let reason) where reason.code == .network:
            return Failure("\(what), or not all the way; do it again", keys: error)
        default: return Failure(what, keys: error)
        }
        return Failure("\(what): \(text)", Failure.code(error))
    }
}
