import ThicketClient
import ThicketCommandLine
import ThicketProtocol

/// Login and sign-up with a name and a password. The password is not stored.
enum PasswordLogin {
    static func run(_ call: Call, _ place: LoginPlace, isNew: Bool) async throws(Failure) {
        let old = place.old?.login
        // The profile's values are useful at the same server only.
        let isSame = place.old.map { same($0.server, place.server) && same($0.app, place.app) } ?? false
        let user = call.setting("user") ?? (isNew || !isSame ? nil : place.old?.user)
        let apiKey = call.setting("api-key") ?? (isSame ? old?.apiKey : nil)
        guard let user, let apiKey else {
            throw missing(user: user, apiKey: apiKey)
        }
        if isNew { try LoginPlace.expectNew(user) }
        let isPartner = call.flag("partner") || (isSame && place.old?.kind == .partner)
        var profile = try place.profile(token: "")
        profile.kind = isPartner ? .partner : .account
        let device = (isSame ? old?.device : nil) ?? DeviceID.make()
        profile.login = Profile.Login(apiKey: apiKey, userId: "", device: device)
        // Checked first, so that no account is made whose login could not be stored.
        if isNew { try await place.expectNothingUnsent() }
        place.warnIfReadable(.password)
        let password = try await Secrets.password(call, isNew: isNew)
        let account = try Account(call, trying: profile)
        let session = try await proved(profile, isNew) { () throws(ClientError) in
            let app = try account.app(store: .memory, isOnline: false)
            return switch (isPartner, isNew) {
            case (false, true): try await app.signUp(username: user, password: password)
            case (false, false): try await app.signIn(username: user, password: password)
            case (true, true): try await app.signUpAtPartner(username: user, password: password)
            case (true, false): try await app.signInAtPartner(username: user, password: password)
            }
        }
        profile.token = await session.accessToken
        switch session.user {
        case .account(let name, let userId):
            profile.user = name
            profile.login?.userId = userId
        case .partner(let entity, let partner):
            profile.user = user
            profile.login?.userId = entity
            profile.login?.partnerId = partner
        }
        await session.close()
        if isNew { Terminal.write("made the account \(Screen.safe(profile.user ?? user))\n") }
        try await place.keep(profile)
    }

    /// Whether the account of a login sends its password to the server. An account has one kind for good, and only its
    /// user may name it: a server could ask for a password that it must not see.
    static func sendsPassword(_ call: Call, _ place: LoginPlace) -> Bool {
        if call.flag("sent-password") || call.flag("partner") { return true }
        guard let old = place.old, same(old.server, place.server), same(old.app, place.app) else {
            return false
        }
        return old.kind == .account || old.kind == .partner
    }

    static let userHelp = "--user NAME, such as ada@example.com"
    static let apiKeyHelp =
        "--api-key KEY, as printed by 'thicketd app create' or 'thicketd app key add'; it names the app and is not a secret"

    /// The settings that are missing for an account.
    static func missing(user: String?, apiKey: String?) -> Failure {
        LoginPlace.missing([user == nil ? userHelp : nil, apiKey == nil ? apiKeyHelp : nil])
    }

    private static func proved(
        _ profile: Profile, _ isNew: Bool, _ body: () async throws(ClientError) -> ClientSession
    ) async throws(Failure) -> ClientSession {
        let what = isNew ? "no account was made" : "not logged in"
        do throws(ClientError) {
            return try await body()
        } catch {
            switch (error.code, error.number) {
            case (.unauthorized, _) where error.detail.contains("API key"):
                throw Failure(
                    "\(what): the API key is not one of the app '\(profile.app)' at \(profile.server)", .unauthorized)
            case (.unauthorized, _):
                let hint = profile.kind == .partner ? ", or the API key," : ""
                throw Failure("\(what): the user name or the password\(hint) is wrong", .unauthorized)
            case (.refused, 409):
                throw Failure(
                    "\(what): the name is already taken. If it is yours: 'thicket login' with the same words.",
                    .refused)
            case (.refused, _): throw Failure("\(what): \(error.detail)", .refused)
            case (.notFound, _):
                throw Failure(
                    "\(what): \(profile.server) keeps no accounts there. Is the address right, without a path?",
                    .notFound)
            case (.network, _):
                throw Failure(
                    "\(what): \(profile.server) cannot be reached (\(error.detail)). Is the server running, and the "
                        + "address right?", .offline)
            default: throw Failure(what, error)
            }
        }
    }
}

extension Account {
    /// The app object of the library. For accounts only.
    func app(
        store: StoreLocation, isOnline: Bool, durability: StoreDurability = .program
    ) throws(ClientError) -> ThicketApp {
        guard let login = profile.login else {
            throw ClientError(.invalidOptions, "the profile is that of a token, not of an account")
        }
        var options = sessionOptions(isOnline: isOnline)
        options.durability = durability
        if let folder, let keyFile {
            let people = StoreLocation.sealed("\(folder)/keys", try keyFile.key())
            options.people = people
            alarms.watch(people, evidence: "\(folder)/evidence")
        }
        return try ThicketApp(
            server: profile.server, app: profile.app, apiKey: login.apiKey, store: store, deviceId: login.device,
            options: options)
    }

    /// The account's session with the stored token; renewed tokens replace it. For accounts only.
    func session(store: StoreLocation, isOnline: Bool, durability: StoreDurability = .program) async throws(ClientError)
        -> ClientSession
    {
        let app = try app(store: store, isOnline: isOnline, durability: durability)
        guard let login = profile.login else {
            throw ClientError(.invalidOptions, "the profile is that of a token, not of an account")
        }
        guard profile.kind == .partner else {
            return try await app.resumeSession(
                accessToken: profile.token, username: profile.user ?? "", userId: login.userId)
        }
        return try await app.createSession(
            accessToken: profile.token, entityId: login.userId, partnerId: login.partnerId,
            tokens: KeptTokens(account: self, inner: app.passwordTokens))
    }
}

/// Stores renewed tokens in the profile for the next command.
private struct KeptTokens: TokenSource {
    let account: Account
    let inner: any TokenSource

    func token(for request: TokenRequest) async throws -> String {
        let token = try await inner.token(for: request)
        do throws(Failure) {
            try account.home?.renew(account.profileName, from: account.profile, to: token)
        } catch {
            // The next command renews the login again.
            Terminal.writeError("warning: a renewed login was not kept: \(error.text)\n")
        }
        return token
    }
}
