import ThicketProtocol

/// An app on a server, as its developers know it: the way to users' sessions.
///
/// ```swift
/// let app = try ThicketApp(server: "https://sync.example.com", app: "shop", apiKey: apiKey, store: .file("shop.db"))
/// // The users are ours: our auth server signs their tokens.
/// let session = try await app.createSession(accessToken: token, entityId: entity, partnerId: "1000", tokens: ourServer)
/// // Or the Thicket server has their accounts.
/// let session = try await app.signIn(username: "ann@example.com", password: password)
/// ```
public struct ThicketApp: Sendable {
    /// This installation, as the auth server writes it into login tokens.
    public let deviceId: String
    package let calls: ServerCalls
    let scheme: any AccountScheme
    private let server: String
    private let app: String
    private let store: StoreLocation
    private let options: SessionOptions
    private let clock: any SessionClock

    /// Makes nothing but the file with the device id, when there is none (`DeviceID.kept`).
    ///
    /// - Parameters:
    ///   - server: `https://host[:port][/path]`, or `http://` where the network is trusted.
    ///   - app: the app id (1–64 of `[A-Za-z0-9._-]`).
    ///   - apiKey: of the partner, or of the app with built-in accounts. It names the app and is no secret.
    ///   - store: where the local copy is kept. It belongs to one user for good.
    ///   - deviceId: nil: kept beside the store.
    /// - Throws: `invalidName`, `invalidOptions`, `store`, `limit`.
    public init(
        server: String, app: String, apiKey: String, store: StoreLocation = .memory, deviceId: String? = nil,
        options: SessionOptions = SessionOptions()
    ) throws(ClientError) {
        try self.init(
            server: server, app: app, apiKey: apiKey, store: store, deviceId: deviceId, options: options,
            clock: SystemClock())
    }

    package init(
        server: String, app: String, apiKey: String, store: StoreLocation, deviceId: String?, options: SessionOptions,
        clock: any SessionClock, scheme: any AccountScheme = PasswordScheme()
    ) throws(ClientError) {
        let endpoint = try Endpoint(server)
        do { _ = try AppID(app) } catch { throw ClientError(.invalidName, error.description) }
        let device: String
        if let deviceId { device = deviceId } else { device = try DeviceID.kept(by: store) }
        calls = try ServerCalls(
            address: endpoint.httpAddress, app: app, apiKey: apiKey, deviceId: device,
            options: options.transportOptions, timeoutSeconds: options.answerTimeoutSeconds)
        self.deviceId = device
        (self.server, self.app, self.store, self.options) = (server, app, store, options)
        (self.clock, self.scheme) = (clock, scheme)
    }

    // MARK: - Partners

    /// Opens the local store for a user of the partner's own, and begins to sync with the token.
    ///
    /// Returns as soon as the store is open; whether the token is good shows in `ClientSession.events` and `status`.
    ///
    /// - Parameters:
    ///   - accessToken: the login token that the partner's auth server signed for this user and `deviceId`.
    ///   - entityId: of the user, as registration gave it.
    ///   - tokens: where the next token comes from; nil: when this one ends, the user is signed out.
    /// - Throws: `invalidOptions`, `storeInUse`, `storeMismatch`, `store`, `limit`.
    public func createSession(
        accessToken: String, entityId: String, partnerId: String, tokens: (any TokenSource)? = nil
    ) async throws(ClientError) -> ClientSession {
        try await open(accessToken, .partner(entityId: entityId, partnerId: partnerId), tokens)
    }

    /// Makes a user whose password the Thicket server keeps for the partner, and logs in.
    ///
    /// - Throws: `refused` when the name is taken or name or password cannot be used, `unavailable`, `network`.
    public func signUpAtPartner(username: String, password: String) async throws(ClientError) -> ClientSession {
        let login = AccountLogin(name: username, password: password)
        try await PartnerPasswords.signUp(login, calls)
        return try await signInAtPartner(username: username, password: password)
    }

    /// Logs a user in whose password the Thicket server keeps for the partner. Tokens renew themselves for 30 days.
    ///
    /// - Throws: `unauthorized` (401 or 403) for a wrong name or password, `unavailable` (429: too many attempts).
    public func signInAtPartner(username: String, password: String) async throws(ClientError) -> ClientSession {
        let grant = try await PartnerPasswords.signIn(
            AccountLogin(name: username, password: password), calls)
        return try await open(
            grant.accessToken, .partner(entityId: grant.entityId, partnerId: grant.partnerId), PingSource(calls: calls))
    }

    /// Where tokens of `signInAtPartner` are renewed, for `createSession` with a token that was kept.
    public var passwordTokens: any TokenSource { PingSource(calls: calls) }

    // MARK: - Built-in accounts

    /// Makes an account at the server and logs in.
    ///
    /// - Throws: `refused` (409: the name is taken; 400: name or password cannot be used), `unauthorized` (the API
    ///   key), `unavailable` (429: too many attempts; 503), `network`, and what opening the store throws.
    public func signUp(username: String, password: String) async throws(ClientError) -> ClientSession {
        try await open(try await scheme.signUp(AccountLogin(name: username, password: password), calls))
    }

    /// Logs in to an account at the server.
    ///
    /// - Throws: `unauthorized` (401: the login or the API key is wrong), `unavailable` (429: too many attempts),
    ///   `network`, and what opening the store throws.
    public func signIn(username: String, password: String) async throws(ClientError) -> ClientSession {
        try await open(try await scheme.signIn(AccountLogin(name: username, password: password), calls))
    }

    /// Goes on with a login of earlier: the token that `ClientSession.accessToken` gave.
    public func resumeSession(
        accessToken: String, username: String, userId: String
    ) async throws(ClientError) -> ClientSession {
        try await open(accessToken, .account(name: username, userId: userId), nil)
    }

    private func open(_ grant: AccountGrant) async throws(ClientError) -> ClientSession {
        try await open(grant.accessToken, .account(name: grant.name, userId: grant.userId), nil)
    }

    private func open(
        _ token: String, _ user: SessionUser, _ source: (any TokenSource)?
    ) async throws(ClientError) -> ClientSession {
        guard LoginToken.isAcceptable(token) else {
            throw ClientError(.invalidOptions, "the token is empty, too long or holds characters that may not be there")
        }
        let endpoint = try Endpoint(server)
        var sync = try options.syncOptions(app: app, token: token)
        (sync.tokenNumber, sync.renewsToken) = (1, true)
        if case .partner = user { sync.deviceID = deviceId }
        let engine = SyncEngine(loop: try EngineLoop())
        let device = deviceId
        let keeper = TokenKeeper(
            engine: engine, token: token, source: source,
            makeRequest: { user.request(token: $0, device: device) }, clock: clock,
            random: SystemRandomNumberGenerator())
        try await Thicket.start(
            engine, endpoint, sync, store: store, options: options,
            onToken: { [weak keeper] notice in keeper?.assumeIsolated { $0.heard(notice) } })
        await keeper.start()
        return ClientSession(
            user: user, sync: Session(engine: engine), keeper: keeper, calls: calls, scheme: scheme)
    }
}

/// Whose session it is.
public enum SessionUser: Sendable, Equatable {
    /// A user of a partner.
    case partner(entityId: String, partnerId: String)
    /// A built-in account.
    case account(name: String, userId: String)

    func request(token: String, device: String) -> TokenRequest {
        switch self {
        case .partner(let entity, let partner):
            TokenRequest(entityId: entity, partnerId: partner, deviceId: device, accessToken: token)
        case .account: TokenRequest(entityId: "", partnerId: "", deviceId: device, accessToken: token)
        }
    }
}
