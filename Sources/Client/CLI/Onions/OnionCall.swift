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

/// A call of one of the `thicket onions` commands: where the notes are, and who opens them.
///
/// Of notes nothing is kept on this machine. Where the profile is that of an account with keys, its login and its keys
/// are used. `--old-account` says that an account of the old notes app is meant: each call logs in to it and out again,
/// and of a profile the server, the app and its API key are taken where the call does not say them. Without either
/// nothing is sent: what the old login sends is made of the password without a salt, so an account with keys must never
/// come to it by a guess, and no server may say of which kind an account is.
struct OnionCall: Sendable {
    /// Which accounts a command is for.
    enum Kind {
        /// That of the profile, which has keys; with `--old-account` one of the old notes app.
        case asSaid
        /// Accounts of the old notes app alone.
        case old
    }

    let call: Call
    let server: String
    let account: OnionAccount
    /// The profile's account has keys of its own, and those open the notes.
    let isKeyed: Bool
    /// The same, and the account is a partner's: a content passphrase opens it where others have a password.
    let isPartners: Bool

    /// The name of the profile's account where that has keys and an old one is meant: this name is none of an old one.
    private let keyedName: String?
    private let kind: Kind

    /// - Throws: `usage` where nobody has said of which kind the account is.
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
        let takesKey = isSame && (isKeyed || kept?.kind != .partner)
        let apiKey = call.setting("api-key") ?? (takesKey ? kept?.login?.apiKey : nil)
        guard let server, let app, let apiKey else {
            throw LoginPlace.missing([
                server == nil ? "--server URL, such as https://sync.example.com" : nil,
                app == nil ? "--app APP, as it was named with 'thicketd app create'" : nil,
                apiKey == nil ? "--api-key KEY, as printed by 'thicketd app create'; it is no secret" : nil,
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

    /// Nobody has said of which kind the account is, and the server is not asked: it could get the old login of an
    /// account with keys by saying that it has none.
    private static func unsaid(_ profile: String) -> Failure {
        Failure(
            "nothing was sent: the profile '\(profile)' has no keys of this account. An account with keys: 'thicket login' first. "
                + "An account of the old notes app: add --old-account.", .usage)
    }

    /// The profile of the call; nil where there is none, or no place for one.
    private static func profile(_ call: Call) throws(Failure) -> Profile? {
        let name = try Account.profileName(call)
        let home: ProfileHome
        // Settings that say everything need no home folder.
        do throws(Failure) { home = try ProfileHome(call.environment) } catch { return nil }
        return try home.read(name)
    }

    /// User name and password of an account of the old notes app.
    struct Login: Sendable {
        let username: SecureBytes
        let password: SecureBytes
    }

    /// What opens the notes.
    enum Opener: Sendable {
        case stretched(Login)
        /// The keys of the profile's account.
        /// - Parameter password: under which sealed copies are read and written; nil: none are.
        case keys(password: SecureBytes?)
    }

    /// - Parameter copies: sealed copies are read or written, which takes a password.
    func opener(copies: Bool = false) async throws(Failure) -> Opener {
        guard isKeyed else { return .stretched(try await login()) }
        guard copies else { return .keys(password: nil) }
        return .keys(password: try await Secrets.secret(call, label: "Password of the sealed copies: ", isNew: false))
    }

    /// User name and password, asked for where nothing else gives them.
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

    /// Whoever names the profile's own user means that account: its password is never to be stretched the old way and
    /// sent.
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

    /// Whether the server takes two names for one: however they are composed, in large letters or in small ones.
    private static func isOneName(_ one: String, _ other: String) -> Bool {
        guard let one = try? UnicodeText.composed(Array(one.utf8)),
            let other = try? UnicodeText.composed(Array(other.utf8))
        else { return false }
        let (left, right) = (
            String(decoding: one, as: UTF8.self), String(decoding: other, as: UTF8.self)
        )
        return same(left.lowercased(), right.lowercased())
    }

    /// Logs in and brings old notes up to date.
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

    /// Runs `body` on the notes and logs out again, whatever came of it.
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
            Terminal.writeError("warning: the server did not hear of the logout; the token stays good there\n")
        }
    }

    /// Tells a person that another version is there.
    func tellNewerVersion() async {
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

    /// - Parameter lost: what to do when nobody knows whether it was done.
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

/// Counted things as a person says them.
enum Words {
    static func notes(_ count: Int) -> String { count == 1 ? "1 note" : "\(count) notes" }
}
