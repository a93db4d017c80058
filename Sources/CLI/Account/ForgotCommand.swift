import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol

/// `thicket forgot`: sets another password by a mailed code. Sealed content then opens with it on a machine that has
/// the keys, or with the recovery words.
enum ForgotCommand {
    static func run(_ call: Call) async throws(Failure) {
        let place = try LoginPlace(call)
        let login = try KeyLogin(call, place, isNew: false)
        place.warnIfReadable(.proof)
        let code: SecureBytes
        if call.value("mail-code-file") != nil {
            code = try await Secrets.lines(call, file: "mail-code-file", label: "")
        } else {
            try await keyed("no code was asked for") { () throws(AccountError) in
                try await login.accounts.sendResetCode(name: login.user)
            }
            Terminal.writeError(
                "If \(Screen.safe(login.user)) has an account there and is a mail address, a code is on its way; it is good "
                    + "for 15 minutes.\n")
            code = try await Secrets.asked(
                "Code from the message (not shown): ",
                "the code was asked for. 'thicket forgot --mail-code-file FILE' goes on with it ('-' for standard input)."
            )
        }
        let password = try await Secrets.secret(
            call, "new-password", label: "New password: ", isNew: true)
        try await keyed("the password was not reset", lost: Failure.lostPassword) { () throws(AccountError) in
            try await login.accounts.reset(name: login.user, code: code, newPassword: password)
        }
        try await open(login, password)
    }

    /// A machine that has the keys seals them with the new password at once.
    private static func open(_ login: KeyLogin, _ password: SecureBytes) async throws(Failure) {
        let what = "the password is reset, and the account is not open here"
        let result = try await keyed(what) { () throws(AccountError) in
            try await login.accounts.signIn(name: login.user, password: password, known: login.known)
        }
        switch result {
        case .open(let signedIn): try await login.keep(signedIn)
        case .locked(let locked) where locked.opensHere:
            try await login.keep(
                try await keyed(what) { () throws(AccountError) in
                    try await login.accounts.unlock(locked, accessKey: nil)
                })
            Terminal.write("the new password is set, and this machine has opened the account with it\n")
        case .locked:
            throw Failure(
                "the new password is set, and the account is locked: the server cannot open its keys, and this machine does not have "
                    + "them. 'thicket recover' with the recovery words opens it, or 'thicket login' with the new password on a "
                    + "machine that has been logged in before; there also the password from before does.", .unauthorized
            )
        }
    }
}
