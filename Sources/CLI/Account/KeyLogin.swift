import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol

/// Sign-up, login and recovery for accounts whose password and keys stay on this machine.
struct KeyLogin {
    let call: Call
    let place: LoginPlace
    let user: String
    var profile: Profile
    let accounts: Accounts
    /// What this machine stores of the same account.
    let known: DeviceKeys?

    init(_ call: Call, _ place: LoginPlace, isNew: Bool) throws(Failure) {
        (self.call, self.place) = (call, place)
        let old = place.old?.login
        let isSame = place.old.map { same($0.server, place.server) && same($0.app, place.app) } ?? false
        let user = call.setting("user") ?? (isNew || !isSame ? nil : place.old?.user)
        let apiKey = call.setting("api-key") ?? (isSame ? old?.apiKey : nil)
        guard let user, let apiKey else { throw PasswordLogin.missing(user: user, apiKey: apiKey) }
        if isNew { try LoginPlace.expectNew(user) }
        self.user = user
        var profile = try place.profile(token: "")
        profile.kind = .keys
        profile.login = Profile.Login(
            apiKey: apiKey, userId: "", device: (isSame ? old?.device : nil) ?? DeviceID.make())
        self.profile = profile
        accounts = try KeyCall.accounts(try Account(call, trying: profile))
        // Keys of another user say nothing about this account.
        let kept = isSame && !isNew ? try place.home.readKeys(place.name) : nil
        known = kept.flatMap { same($0.name.lowercased(), user.lowercased()) ? $0 : nil }
    }

    static func signUp(_ call: Call, _ place: LoginPlace) async throws(Failure) {
        let login = try KeyLogin(call, place, isNew: true)
        // Checked first, so that no account is made whose login could not be stored.
        try await place.expectNothingUnsent()
        place.warnIfReadable(.proof)
        let password = try await Secrets.secret(call, isNew: true)
        let made = try await keyed("no account was made", lost: Failure.lostAccount) {
            () throws(AccountError) in
            try await login.accounts.signUp(name: login.user, password: password)
        }
        Terminal.write("made the account \(Screen.safe(made.account.name))\n")
        try await login.keep(made)
    }

    static func signIn(_ call: Call, _ place: LoginPlace) async throws(Failure) {
        let login = try KeyLogin(call, place, isNew: false)
        place.warnIfReadable(.proof)
        let password = try await Secrets.secret(call, isNew: false)
        let result = try await proved { () throws(AccountError) in
            try await login.accounts.signIn(name: login.user, password: password, known: login.known)
        }
        switch result {
        case .open(let signedIn): try await login.keep(signedIn)
        case .locked(let locked): try await login.keep(try await login.unlock(locked))
        }
    }

    private static func proved(
        _ body: () async throws(AccountError) -> SignInResult
    ) async throws(Failure) -> SignInResult {
        do throws(AccountError) { return try await body() } catch {
            guard error == .wrongPassword(isChanged: false) else { throw Failure("not logged in", keys: error) }
            throw Failure(
                "not logged in: the user name or the password is wrong. An account whose password is sent to the server "
                    + "needs --sent-password; 'thicket recover' sets another password with the recovery words.",
                .unauthorized)
        }
    }

    /// A mailed code has reset the password: only an earlier secret opens the keys.
    private func unlock(_ locked: LockedAccount) async throws(Failure) -> SignedIn {
        if locked.opensHere {
            Terminal.writeError(
                "the password was reset by mail; this machine has the keys and opens the account again\n")
            return try await keyed("not logged in") { () throws(AccountError) in
                try await accounts.unlock(locked, accessKey: nil)
            }
        }
        guard locked.acceptsOldPassword, call.value("password-file") == nil else {
            throw Failure("not logged in", keys: AccountError.locked)
        }
        Terminal.writeError(
            "the password was reset by mail, so the account is locked: its keys are still sealed under the password from "
                + "before.\nType that one, or end this with Ctrl-C and use 'thicket recover' with the recovery words.\n"
        )
        let old = try await Secrets.secret(
            call, "old-password", label: "Password before the reset: ", isNew: false)
        return try await keyed("not logged in") { () throws(AccountError) in
            try await accounts.unlock(locked, oldPassword: old)
        }
    }

    /// Stores the login and the keys. If only the login is stored, commands say that 'thicket login' fetches the keys.
    func keep(_ signedIn: SignedIn) async throws(Failure) {
        var profile = profile
        profile.token = signedIn.accessToken
        profile.user = signedIn.account.name
        profile.login?.userId = signedIn.account.user
        try KeyCall.expectPlace(for: signedIn.account, place.home, place.name, known: known)
        try await place.keep(profile)
        try KeyCall.keep(signedIn.account, place.home, place.name, known: known)
        KeyCall.remind(signedIn.account)
    }
}

/// `thicket recover`: sets another password for a user that has the recovery words, a code or pieces.
enum RecoverCommand {
    static func run(_ call: Call) async throws(Failure) {
        let place = try LoginPlace(call, isOfAccount: true)
        let login = try KeyLogin(call, place, isNew: false)
        try await place.expectNothingUnsent(unlessFor: login.user)
        place.warnIfReadable(.proof)
        let key = try await BackupInput.read(call)
        let password = try await Secrets.secret(
            call, "new-password", label: "New password: ", isNew: true)
        let back: SignedIn
        do throws(AccountError) {
            back = try await login.accounts.recover(
                name: login.user, accessKey: key, newPassword: password, known: login.known)
        } catch {
            let what =
                isSet(error)
                ? "the new password is set, and nothing else: the keys here stay as they are, and all logins have ended"
                : "nothing was recovered"
            throw Failure(what, keys: error, lost: Failure.lostPassword)
        }
        Terminal.write("the new password is set; other machines have to log in with it\n")
        try await login.keep(back)
    }

    /// Whether the server has accepted the words and set the password: the state of the keys arrives with the same
    /// answer.
    private static func isSet(_ error: AccountError) -> Bool {
        switch error {
        case .rolledBack, .doesNotOpen, .bundleMissing, .otherAccount, .newerFormat, .damaged: true
        default: false
        }
    }
}

/// A backup of the access key that the user keeps outside of machines, read in the form in which it is given.
enum BackupInput {
    static func read(_ call: Call) async throws(Failure) -> AccessKey {
        let files = ["words-file", "code-file", "pieces-file"].filter { call.value($0) != nil }
        guard files.count <= 1 else { throw Failure("one of --\(files.joined(separator: ", --")) is enough", .usage) }
        if files.first == "code-file" { return try await code(call) }
        if files.first == "pieces-file" { return try await pieces(call) }
        let words = try await Secrets.lines(
            call, file: "words-file", label: "Recovery words, all 24 in one line (not shown): ")
        return try await keyed("nothing was done") { () throws(AccountError) in try AccessKey(words: words) }
    }

    private static func code(_ call: Call) async throws(Failure) -> AccessKey {
        let code = try await Secrets.lines(call, file: "code-file", label: "Code: ")
        let passcode = try await Secrets.secret(call, "passcode", label: "Passcode: ", isNew: false)
        return try await keyed("nothing was done") { () throws(AccountError) in
            try RecoveryCode.open(code, passcode: passcode)
        }
    }

    private static func pieces(_ call: Call) async throws(Failure) -> AccessKey {
        let text = try await Secrets.lines(call, file: "pieces-file", label: "Pieces: ")
        return try await keyed("nothing was done") { () throws(AccountError) in try KeyPieces.join(text) }
    }
}
