internal import CThicketScreen
import ThicketClient
import ThicketCommandLine
import ThicketCrypto
import ThicketOnions

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A call of one of the `thicket onions` commands: where the notes are, and what opens them.
///
/// No notes are stored on this machine. If the profile's account has keys, its login and keys are used. `--old-account`
/// selects an account of the old notes app: each call logs in to it and out again, and takes server, app and API key
/// from the profile unless the call gives them. Without either nothing is sent: the old login sends a value that is
/// derived from the password without a salt, so it must never be tried for an account with keys by a guess, and the
/// server must not decide the kind of an account.
struct OnionCall: Sendable {
    /// The accounts that a command works for.
    enum Kind {
        /// The profile's account, which has keys; with `--old-account` one of the old notes app.
        case asSaid
        /// Accounts of the old notes app only.
        case old
    }

    let call: Call
    let server: String
    let account: OnionAccount
    /// The profile's account has keys, and those open the notes.
    let isKeyed: Bool
    /// The same, and the account is a partner's: a content passphrase takes the place of the password.
    let isPartners: Bool

    /// The name of the profile's account if that has keys and an old account is meant: the old account must not have
    /// this name.
    private let keyedName: String?
    private let kind: Kind

    /// - Throws: `usage` where the kind of the account is not given.
    init(_ call: Call, _ kind: Kind = .asSaid) throws(Failure) {
        self.call = call
        let kept = try Self.profile(call)
        let hasKeys = kept?.kind == .keys || kept?.kind == .partner
        let (server, app) = (
            ServerSpelling.of(call.setting("server"), like: kept?.server), call.setting("app") ?? kept?.app
        )
        let isSame =
            kept.map { same($0.server, server ?? "") && same($0.app, app ?? "") } ?? false
        let user = call.setting("user")
        let isOwn = user.map { Self.isOneName($0, kept?.user ?? "") } ?? true
        let isOld = kind == .old || call.flag("old-account")
        isKeyed = isSame && isOwn && hasKeys && !isOld
        isPartners = isKeyed && kept?.kind == .partner
        keyedName = isSame && hasKeys && !isKeyed ? kept?.user : nil
        self.kind = kind
        guard isKeyed || isOld else { throw Self.unsaid(try Account.profileName(call)) }
        let keepsKey = isSame && (isKeyed || kept?.kind != .partner)
        let apiKey = call.setting("api-key") ?? (keepsKey ? kept?.login?.apiKey : nil)
        guard let server, let app, let apiKey else {
            throw LoginPlace.missing([
                server == nil ? "--server URL, such as https://sync.example.com" : nil,
                app == nil ? "--app APP, as it was named with 'thicketd app create'" : nil,
                apiKey == nil ? "--api-key KEY, as printed by 'thicketd app create'; it is not a secret" : nil,
            ])
        }
        self.server = server
        var options = SessionOptions()
        options.certificateFile = call.setting("ca") ?? (isSame ? kept?.certificates : nil)
        options.pinnedKeys = call.setting("pin") ?? (isSame ? kept?.pins : nil)
        options.proxy = call.setting("proxy") ?? (isSame ? kept?.proxy : nil)
        options.userAgent = "thicket-cli/" + Thicket.version
        let patience = try call.timeout()
        options.answerTimeoutSeconds = Account.wholeSeconds(patience)
        account = try onions("cannot use the server '\(server)'") { () throws(OnionError) in
            try OnionAccount(server: server, app: app, apiKey: apiKey, options: options, patience: patience)
        }
    }

    /// The kind of the account is not given, and the server is not asked: by saying that an account has no keys it
    /// could obtain the old login of an account with keys.
    private static func unsaid(_ profile: String) -> Failure {
        Failure(
            "nothing was sent: the profile '\(profile)' has no keys of this account. An account with keys: 'thicket login' first. "
                + "An account of the old notes app: add --old-account.", .usage)
    }

    /// The profile of the call; nil where it has none, or the machine has no home folder.
    private static func profile(_ call: Call) throws(Failure) -> Profile? {
        let name = try Account.profileName(call)
        let home: ProfileHome
        // A call that gives all settings itself needs no home folder.
        do throws(Failure) { home = try ProfileHome(call.environment) } catch { return nil }
        return try home.read(name)
    }

    /// The user name and password of an account of the old notes app.
    struct Login: Sendable {
        let username: SecureBytes
        let password: SecureBytes
    }

    /// What opens the notes.
    enum Opener: Sendable {
        case stretched(Login)
        /// The keys of the profile's account.
        /// - Parameter password: seals and opens copies; nil: no copies are read or written.
        case keys(password: SecureBytes?)
    }

    /// - Parameter copies: sealed copies are read or written, which needs a password.
    func opener(copies: Bool = false) async throws(Failure) -> Opener {
        guard isKeyed else { return .stretched(try await login()) }
        guard copies else { return .keys(password: nil) }
        return .keys(password: try await Secrets.secret(call, label: "Password of the sealed copies: ", isNew: false))
    }

    /// User name and password, asked for if no setting gives them.
    func login(isNew: Bool = false) async throws(Failure) -> Login {
        let username: SecureBytes
        if let name = call.setting("user") {
            username = SecureBytes(copying: Array(name.utf8))
        } else {
            username = try await Secrets.asked(
                "User name (not shown): ",
                "whose notes? There is no terminal to ask at: --user NAME, or the variable THICKET_USER, says it")
        }
        guard username.count > 0, username.isUTF8 else {
            throw Failure("the user name is empty or no text, nothing was done", .usage)
        }
        try expectOld(username)
        return Login(
            username: username, password: try await Secrets.secret(call, "password", label: "Password: ", isNew: isNew))
    }

    /// The name of the profile's own user means that account: its password must never be derived by the old function
    /// and sent.
    func expectOld(_ username: SecureBytes) throws(Failure) {
        guard let keyedName, Self.isOneName(username.shownText, keyedName) else { return }
        let next =
            switch kind {
            case .asSaid: "Leave out --old-account, or take another --profile for an old account of the same name."
            case .old: "'--profile OTHER' if there is an old account of the same name."
            }
        throw Failure(
            "nothing was sent: the account of that name has keys, says the profile '\(try Account.profileName(call))'. \(next)",
            .usage)
    }

    /// Whether the server treats two names as one: it ignores case and Unicode composition.
    private static func isOneName(_ one: String, _ other: String) -> Bool {
        guard let one = try? UnicodeText.composed(Array(one.utf8)),
            let other = try? UnicodeText.composed(Array(other.utf8))
        else { return false }
        let (left, right) = (
            String(decoding: one, as: UTF8.self), String(decoding: other, as: UTF8.self)
        )
        return same(left.lowercased(), right.lowercased())
    }

    /// Logs in and upgrades old notes.
    func open(_ opener: Opener? = nil) async throws(Failure) -> Vault {
        let given: Opener
        if let opener { given = opener } else { given = try await self.opener() }
        switch given {
        case .keys(let password): return try await KeyedNotes(call).vault(password: password)
        case .stretched(let login):
            let vault = try await OnionCall.trying("not logged in") { () throws(OnionError) in
                try await account.signIn(username: login.username, password: login.password)
            }
            await migrate(vault)
            return vault
        }
    }

    private func migrate(_ vault: Vault) async {
        do throws(OnionError) {
            let outcome = try await vault.migrate()
            if outcome.migrated > 0 {
                Terminal.writeError("\(Words.notes(outcome.migrated)) of the first format brought to the second\n")
            }
        } catch {
            Terminal.writeError("warning: old notes were not brought up to date: \(error)\n")
        }
    }

    /// Runs `body` on the notes and logs out again in any case.
    func with<Value: Sendable>(
        _ what: String, copies: Bool = false, _ body: (Vault) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let vault = try await open(try await opener(copies: copies))
        do throws(Failure) {
            let value = try await body(vault)
            await end(vault)
            return value
        } catch {
            await end(vault)
            throw error
        }
    }

    func end(_ vault: Vault) async {
        if await !vault.end() {
            Terminal.writeError("warning: the server did not confirm the logout; the token stays valid\n")
        }
    }

    /// Reports that a newer version exists.
    func reportNewerVersion() async {
        guard let newest = try? await account.newerVersion() else { return }
        Terminal.writeError(
            "note: the server says that version \(Screen.safe(newest)) of thicket is the newest; this is \(Thicket.version)\n"
        )
    }

    // MARK: - Errors

    static func trying<Value: Sendable>(
        _ what: String, _ body: () async throws(OnionError) -> Value
    ) async throws(Failure) -> Value {
        do throws(OnionError) { return try await body() } catch { throw failure(what, error) }
    }

    /// - Parameter lost: what to do when the outcome is not known.
    static func failure(_ what: String, _ error: OnionError, lost: String = "Try again.") -> Failure {
        switch error {
        case .wrongLogin: Failure("\(what): \(error)", .unauthorized)
        case .notFound: Failure("\(what): \(error)", .notFound)
        case .full(let most):
            Failure(
                "\(what): there are \(most) notes, the most without Pro, which the server's operator gives", .refused)
        case .refused, .tooLong, .changedMeanwhile, .unreadable: Failure("\(what): \(error)", .refused)
        case .needsConsent(let rounds):
            Failure(
                "\(what): the note asks for \(rounds) rounds of key stretching. --slow opens it all the same.", .refused
            )
        case .keys(let error): Failure(what, keys: error, lost: lost)
        case .client(let error): Failure(what, error)
        case .ended, .noKey: Failure("\(what): \(error)")
        }
    }
}

private func onions<Value>(_ what: String, _ body: () throws(OnionError) -> Value) throws(Failure) -> Value {
    do throws(OnionError) { return try body() } catch { throw OnionCall.failure(what, error) }
}

/// Counts as text for a person.
enum Words {
    static func notes(_ count: Int) -> String { count == 1 ? "1 note" : "\(count) notes" }
}
