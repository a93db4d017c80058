import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketProtocol

/// One call of a command that works with an account's keys: the profile, the keys stored on this machine, and the calls
/// to the server.
struct KeyCall {
    let account: Account
    let home: ProfileHome
    let keys: DeviceKeys
    let accounts: Accounts

    /// - Parameter what: what is not done when something is missing, as the beginning of a sentence.
    init(_ call: Call, _ what: String) throws(Failure) {
        account = try Account(call)
        try account.expectProfile(what)
        guard account.profile.kind == .keys || account.profile.kind == .partner else {
            throw Failure(
                "\(what): this login has no keys. 'thicket signup' makes an account whose password and keys stay "
                    + "with you.", .usage)
        }
        guard let home = account.home else {
            throw Failure("\(what): there is no profile with keys", .usage)
        }
        self.home = home
        guard let keys = try home.readKeys(account.profileName) else {
            let next =
                account.profile.kind == .partner
                ? "'thicket keys' gets them, or makes them on the first machine"
                : "'thicket login', 'thicket recover' or 'thicket pair' gets them"
            throw Failure("\(what): this machine does not have the account's keys. \(next).", .notFound)
        }
        self.keys = keys
        accounts = try KeyCall.accounts(account)
    }

    static func accounts(_ account: Account) throws(Failure) -> Accounts {
        do throws(ClientError) {
            let app = try account.app(store: .memory, isOnline: false)
            guard let stretch = account.stretch else { return try app.accounts() }
            return try app.accounts(stretch: stretch)
        } catch {
            throw Failure("cannot start", error)
        }
    }

    /// The account as this machine stores it.
    func open() throws(Failure) -> OpenAccount {
        do throws(AccountError) { return try keys.open() } catch {
            throw Failure("the keys kept here cannot be used", keys: error)
        }
    }

    /// The account, after finishing a change of the access key that was begun on this machine and cut short.
    func finishingKeyChange(_ what: String) async throws(Failure) -> OpenAccount {
        guard keys.next != nil else { return try open() }
        let token = account.profile.token
        let finished: OpenAccount
        do throws(AccountError) { finished = try await accounts.finishKeyChange(keys, accessToken: token) } catch {
            // Another device's key won; the next key of this machine will never become the access key.
            if error == .keyChanged { try keep(try open(), next: .dropped) }
            throw Failure(
                "\(what), since a change of the access key was begun here and its end is not known", keys: error)
        }
        try keep(finished)
        if finished.accessKey != keys.accessKey {
            Terminal.writeError(
                "the access key was changed, as was begun here; the words from before open nothing new\n")
        }
        return finished
    }

    func keep(_ account: OpenAccount, next: NextKey = .stays) throws(Failure) {
        try KeptKeys(home: home, profile: self.account.profileName).keep(account, next: next)
    }

    /// Stores the keys that a session has read meanwhile, if another machine has changed them. A machine without them
    /// reads them again.
    func keepNewer(_ account: OpenAccount?) {
        guard let account, account.version > keys.version else { return }
        do throws(Failure) { try keep(account) } catch {
            Terminal.writeError("warning: the account has newer keys, which could not be kept: \(error.text)\n")
        }
    }

    /// Stores keys that a command has received for a profile.
    ///
    /// - Parameter known: the keys against which the server's answer was checked. Newer keys under the same access key
    ///   then come from a command that ran at the same time.
    /// - Throws: `refused` when the profile has other keys that are newer; they stay unchanged.
    static func keep(
        _ account: OpenAccount, _ home: ProfileHome, _ name: String, known: DeviceKeys?
    ) throws(Failure) {
        guard try KeptKeys(home: home, profile: name).keep(account) || known?.accessKey == account.accessKey else {
            throw newer(name)
        }
    }

    /// Must be called before a login is written beside the keys.
    /// - Throws: as `keep`.
    static func expectPlace(
        for account: OpenAccount, _ home: ProfileHome, _ name: String, known: DeviceKeys?
    ) throws(Failure) {
        guard known?.accessKey != account.accessKey else { return }
        if try KeptKeys(home: home, profile: name).isNewer(than: account) { throw newer(name) }
    }

    private static func newer(_ name: String) -> Failure {
        Failure(
            "the profile '\(name)' has newer keys of the account than the server, or others under the same number: they stay as "
                + "they are, and nothing was kept. --profile OTHER takes what the server has; 'thicket keys --restored' puts "
                + "those of this profile back, if a backup was restored there.", .refused)
    }

    /// Reminds the user of a backup while only machines and a password give access to the keys.
    static func remind(_ account: OpenAccount) {
        guard account.needsBackup else { return }
        Terminal.writeError(
            "reminder: the recovery words of this account were never confirmed. Without them a forgotten password or a "
                + "lost machine can cost everything. 'thicket words' shows them; 'thicket verify' confirms what you wrote "
                + "down.\n")
    }
}

extension Failure {
    /// - Parameters:
    ///   - what: that it was not done, as the beginning of a sentence.
    ///   - lost: what to do when the outcome is not known.
    init(_ what: String, keys error: AccountError, lost: String = "Try again.") {
        if case .unknown = error {
            // The text must not say whether the change was made.
            self.init("\(error). \(lost)", Failure.code(error))
        } else {
            self.init("\(what): \(error)\(Failure.next(error))", Failure.code(error))
        }
    }

    /// For a password that was to be set.
    static let lostPassword = "Try again: with the new password first, then with the old one."
    /// The same where the change may have ended this machine's login.
    static let lostLogin = "'thicket login' shows it: try the new password first, then the old one."
    /// For an account that was to be created.
    static let lostAccount = "'thicket login' with the same words shows whether it was made."
    /// For an account that was to be deleted. A login would not help: a deleted account and a wrong password get the
    /// same answer.
    static let lostDeletion =
        "'thicket status' shows it: when the server does not accept the token any more, the account is deleted; when "
        + "it is online, delete the account again."

    private static func next(_ error: AccountError) -> String {
        switch error {
        case .server(let error) where error.code == .network: ". Is the server running, and the address right?"
        case .nameTaken: ". If it is yours: 'thicket login' with the same words."
        case .wrongPassword(isChanged: true): ". Use the new one, or 'thicket recover' with the recovery words."
        case .downgrade:
            ". Ask the server's operator; do not type the password elsewhere to make it work."
        case .rolledBack:
            ". Ask the server's operator whether a backup was restored. If it was, 'thicket keys --restored' puts the "
                + "newer keys back from a machine that has them, and nothing is lost; else 'thicket login' or 'thicket recover' "
                + "('thicket keys' for a partner's user) takes what is there on a machine without the keys. If it was not, the "
                + "server hides something: do neither. A machine that has the keys still opens its content."
        case .doesNotOpen, .otherAccount, .bundleMissing:
            ". Ask the server's operator whether something was restored or changed; a machine that has the keys still "
                + "opens what is there."
        case .keyChanged:
            ". If you changed it ('thicket words --renew' on another machine), 'thicket login' gets the new one, or "
                + "'thicket keys' for a partner's user. If you did not, the server's operator or a person with your "
                + "access key did."
        case .newerFormat: ". Update thicket on this machine."
        case .busy, .pairingOver: ". Try again."
        case .loginLeft: ": 'thicket token list' shows it, and 'thicket token revoke' ends it."
        case .wrongWords: ". Is the name right, and are they the newest words?"
        default: ""
        }
    }

    static func code(_ error: AccountError) -> ExitCode {
        switch error {
        case .server(let error), .unknown(let error): code(error)
        case .loginLeft(let reason): code(reason)
        case .wrongPassword, .wrongWords, .wrongPasscode, .wrongCode, .locked: .unauthorized
        case .nameTaken, .busy, .keyChanged: .refused
        case .unreadableWords, .unreadableCode, .pieces, .unusable: .usage
        default: .failure
        }
    }
}

/// Runs account calls and reports their errors with the words for what was being done.
func keyed<Value: Sendable>(
    _ what: @autoclosure () -> String, lost: String = "Try again.", isolation: isolated (any Actor)? = #isolation,
    _ body: () async throws(AccountError) -> Value
) async throws(Failure) -> Value {
    do {
        return try await body()
    } catch {
        throw Failure(what(), keys: error, lost: lost)
    }
}
