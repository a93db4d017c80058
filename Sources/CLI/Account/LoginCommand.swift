import ThicketClient
import ThicketCommandLine
import ThicketProtocol

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// `thicket login`: tries a login and stores it.
enum LoginCommand {
    /// A bucket to open in order to check a token. Nothing is ever stored in it.
    static let bucket = "login"

    static func run(_ call: Call) async throws(Failure) {
        let place = try LoginPlace(call)
        // The profile of a partner's user determines the kind of the next token.
        let isPartners = call.flag("partner") || (place.old?.kind == .partner && call.value("user") == nil)
        if isPartners, call.value("token-file") != nil { return try await PartnerTokenLogin.run(call, place) }
        let namesAccount = call.value("user") != nil || call.value("api-key") != nil || call.flag("partner")
        if namesAccount, call.value("token-file") != nil {
            throw Failure("a token is a login already: leave out either --token-file or the account", .usage)
        }
        // An account named by flags takes precedence over a token that happens to be in the environment.
        let token = namesAccount ? nil : try Secrets.token(call)
        let isAccount =
            namesAccount || call.setting("user") != nil || call.setting("api-key") != nil
            || (place.old?.kind ?? .token) != .token
        if token == nil, isAccount {
            guard PasswordLogin.sendsPassword(call, place) else { return try await KeyLogin.signIn(call, place) }
            return try await PasswordLogin.run(call, place, isNew: false)
        }
        let shown: String
        if let token { shown = token } else { shown = try await Secrets.askToken() }
        var profile = try place.profile(token: shown)
        profile.user = try await check(profile, call)
        try await place.keep(profile)
    }

    /// Opens a bucket, because the server checks the token at that time. Nothing is stored in it.
    static func check(_ profile: Profile, _ call: Call) async throws(Failure) -> String? {
        let account = try Account(call, trying: profile)
        let open = try await OpenBucket.open(account, bucket: LoginCommand.bucket, store: .memory)
        do throws(Failure) { try await open.ready("nothing was kept") } catch {
            await open.close()
            guard error.code == .unauthorized else { throw error }
            throw Failure(
                "\(profile.server) does not accept this token for the app '\(profile.app)'; nothing was kept. "
                    + "Is the app's name right? 'thicketd token create --app \(profile.app) --user USER' makes a token.",
                .unauthorized)
        }
        let user = try? await open.session.user
        await open.close()
        return user
    }
}

/// `thicket signup`: creates an account and stores its login.
enum SignupCommand {
    static func run(_ call: Call) async throws(Failure) {
        let place = try LoginPlace(call, isOfAccount: true)
        guard call.flag("sent-password") || call.flag("partner") else { return try await KeyLogin.signUp(call, place) }
        try await PasswordLogin.run(call, place, isNew: true)
    }
}

/// The profile in which a login is stored, and its present content.
struct LoginPlace: Sendable {
    let call: Call
    let name: String
    let home: ProfileHome
    let old: Profile?
    let server: String
    let app: String

    /// - Parameter isOfAccount: the user's name and the app's key are needed, too; everything that is missing is
    ///   reported at once.
    init(_ call: Call, isOfAccount: Bool = false) throws(Failure) {
        self.call = call
        name = try Account.profileName(call)
        home = try ProfileHome(call.environment)
        do throws(Failure) { old = try home.read(name) } catch {
            // Login repairs a damaged profile; a locked one stays.
            guard error.code != .locked else { throw error }
            old = nil
        }
        let (server, app) = (
            ServerSpelling.of(call.setting("server"), like: old?.server), call.setting("app") ?? old?.app
        )
        guard let server, let app else {
            throw LoginPlace.missing([
                server == nil ? "--server URL, such as https://sync.example.com" : nil,
                app == nil ? "--app APP, as it was named with 'thicketd app create'" : nil,
                isOfAccount && call.setting("user") == nil ? PasswordLogin.userHelp : nil,
                isOfAccount && call.setting("api-key") == nil ? PasswordLogin.apiKeyHelp : nil,
            ])
        }
        (self.server, self.app) = (server, app)
    }

    /// Refuses a name that no new user may have, before a password is asked for.
    static func expectNew(_ user: String) throws(Failure) {
        guard let problem = UserID.problem(asNew: user) else { return }
        throw Failure("no account was made: the user name \(problem)", .usage)
    }

    /// Reports all missing settings at once; a nil element was given.
    static func missing(_ words: [String?]) -> Failure {
        let rows = words.compactMap { $0.map { "  " + $0 } }
        return Failure("this is missing, and no profile has it:\n" + rows.joined(separator: "\n"), .usage)
    }

    func profile(token: String) throws(Failure) -> Profile {
        Profile(
            server: server, app: app, token: token,
            certificates: try call.setting("ca").map { (path) throws(Failure) in try absolute(path) }
                ?? old?.certificates,
            proxy: call.setting("proxy") ?? old?.proxy, pins: call.setting("pin") ?? old?.pins)
    }

    private func absolute(_ path: String) throws(Failure) -> String {
        guard let resolved = realpath(path, nil) else {
            throw Failure("the certificate file \(path) cannot be read: \(Files.reason())", .usage)
        }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    func keep(_ profile: Profile) async throws(Failure) {
        if let old, !old.isSameAccount(as: profile) { try await replace(old, by: profile) }
        try home.write(profile, name)
        let who = profile.user.map { " as \(Screen.safe($0))" } ?? ""
        let which = same(name, "default") ? "" : " (profile \(name))"
        Terminal.write("logged in to \(server), app \(app)\(who)\(which)\n")
    }

    /// Another account takes over the profile: the old copies are removed, unless they hold edits that were never sent.
    /// If the account was created again under its name, they may be all that is left of the earlier one, so they are
    /// set aside.
    private func replace(_ old: Profile, by new: Profile) async throws(Failure) {
        try await expectNothingUnsent()
        guard let before = old.user, let user = new.user, same(before.lowercased(), user.lowercased()),
            same(old.server, server), same(old.app, app), !home.buckets(name).isEmpty, !call.flag("discard")
        else { return try home.remove(name) }
        let aside = try home.setAside(name)
        Terminal.writeError(
            "\(server) has another account of the name \(Screen.safe(user)) now. What this machine had of the earlier one is "
                + "kept as the profile '\(aside)': 'thicket export BUCKET DIR --offline --profile \(aside)' brings it out, "
                + "'thicket logout --profile \(aside)' removes it\n")
    }

    /// - Throws: the same, unless the profile belongs to this user.
    func expectNothingUnsent(unlessFor user: String) async throws(Failure) {
        if let old, let name = old.user, same(old.server, server), same(old.app, app),
            same(name.lowercased(), user.lowercased())
        {
            return
        }
        try await expectNothingUnsent()
    }

    /// - Throws: when edits would be lost with the present profile.
    func expectNothingUnsent() async throws(Failure) {
        if let old, !call.flag("discard") {
            let unsent = try await LogoutCommand.unsent(old, name, home, call)
            guard unsent.isEmpty else {
                throw Failure(
                    "the profile '\(name)' belongs to \(old.server), app \(old.app), and holds edits that were never "
                        + "sent (in \(unsent.joined(separator: ", "))). --profile OTHER keeps both; --discard gives the "
                        + "edits up.")
            }
        }
    }

    /// What an unencrypted connection would disclose of a login.
    enum Readable {
        case password
        /// The value derived from the password for the server, and the token; neither the password nor sealed content.
        case proof
        /// A token that is a complete login.
        case token
    }

    /// Warns when the connection is not encrypted, so that every machine on the way can read what is sent.
    func warnIfReadable(_ what: Readable) {
        let address = server.lowercased()
        guard address.hasPrefix("http://") || address.hasPrefix("ws://") else { return }
        let host: Substring = address.drop { $0 != "/" }.dropFirst(2)
        guard !["127.", "localhost", "[::1]"].contains(where: { host.hasPrefix($0) }) else { return }
        let words =
            switch what {
            case .password: "can read the password, and everything else"
            case .proof:
                "can read what proves the password to the server, and the login's token, and so log in as you and read what is not "
                    + "sealed. The password and the account's keys are not sent."
            case .token: "can read the login's token, and so all that is not sealed"
            }
        Terminal.writeError("warning: \(server) is not https: every machine on the way \(words)\n")
    }
}

extension Account {
    /// An account that no profile stores yet.
    init(_ call: Call, trying profile: Profile, copiesOf kept: ProfileHome? = nil) throws(Failure) {
        self.profile = profile
        profileName = try Account.profileName(call)
        folder = kept?.folder(profileName)
        keyFile = kept?.keyFile(profileName)
        home = nil
        timeout = try call.timeout()
        wait = try call.wait()
        isSealed = false
        opened = call.opened
        alarms = call.alarms
        stretch = CheapPasswords.stretch(call)
        strays = []
    }
}
