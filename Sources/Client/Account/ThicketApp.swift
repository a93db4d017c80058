import ThicketProtocol

/// An app on a server; makes the sessions of its users.
///
/// ```swift
/// let app = try ThicketApp(server: "https://sync.example.com", app: "shop", apiKey: apiKey, store: .file("shop.db"))
/// // The users are ours: our auth server signs their tokens.
/// let session = try await app.createSession(
///     accessToken: token, entityId: entity, partnerId: "1000", tokens: ourServer)
/// // Or the Thicket server keeps their accounts.
/// let session = try await app.signIn(username: "ann@example.com", password: password)
/// ```
public struct ThicketApp: Sendable {
    /// The id of this installation, as the auth server writes it into login tokens.
    public let deviceId: String
    package let calls: ServerCalls
    let scheme: any AccountScheme
    private let server: String
    private let app: String
    private let store: StoreLocation
    private let options: SessionOptions
    private let clock: any SessionClock

    /// Has no effect besides writing the device id's file when it is missing (`DeviceID.kept`).
    ///
    /// - Parameters:
    ///   - server: `https://host[:port][/path]`, or `http://` in a trusted network.
    ///   - app: the app id (1–64 characters of `[A-Za-z0-9._-]`).
    ///   - apiKey: the key of the partner, or of the app with built-in accounts. It identifies the app and is not a
    ///     secret.
    ///   - store: the place of the local copy. A store belongs to one user for good.
    ///   - deviceId: nil uses the id kept beside the store.
    ///   - options: settings of the session.
    /// - Throws: `invalidName`, `invalidOptions`, `store`, `limit`.
    public init(
        server: String, app: String, apiKey: String, store: StoreLocation = .memory, deviceId: String? = nil,
        options: SessionOptions = SessionOptions()
    ) throws(ClientError) {
        try self.init(
            server: server, app: app, apiKey: apiKey, store: store, deviceId: deviceId, options: options,
            clock: SystemSessionClock())
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

    /// Opens the local store for a user that the partner authenticates, and starts to sync with the token.
    ///
    /// Returns as soon as the store is open; `ClientSession.events` and the status report whether the token is valid.
    ///
    /// - Parameters:
    ///   - accessToken: the login token that the partner's auth server signed for this user and `deviceId`.
    ///   - entityId: the user's id from registration.
    ///   - tokens: the source of new tokens; nil: the user is signed out when this token expires.
    ///   - partnerId: the partner's id.
    /// - Throws: `invalidOptions`, `storeInUse`, `storeMismatch`, `store`, `limit`.
    public func createSession(
        accessToken: String, entityId: String, partnerId: String, tokens: (any TokenSource)? = nil
    ) async throws(ClientError) -> ClientSession {
        try await open(accessToken, .partner(entityId: entityId, partnerId: partnerId), tokens)
    }

    /// Registers a user whose password the Thicket server keeps for the partner, and logs in.
    ///
    /// - Throws: `refused` when the name is taken or the name or password is not acceptable, `unavailable`, `network`.
    public func signUpAtPartner(username: String, password: String) async throws(ClientError) -> ClientSession {
        let login = AccountLogin(name: username, password: password)
        try await PartnerPasswords.signUp(login, calls)
        return try await signInAtPartner(username: username, password: password)
    }

    /// Logs in a user whose password the Thicket server keeps for the partner. The session can renew its tokens for 30
    /// days.
    ///
    /// - Throws: `unauthorized` (401 or 403) for a wrong name or password, `unavailable` (429: too many attempts).
    public func signInAtPartner(username: String, password: String) async throws(ClientError) -> ClientSession {
        let grant = try await PartnerPasswords.signIn(
            AccountLogin(name: username, password: password), calls)
        return try await open(
            grant.accessToken, .partner(entityId: grant.entityId, partnerId: grant.partnerId), PingSource(calls: calls))
    }

    /// The token source of `signInAtPartner`, for `createSession` with a stored token.
    public var passwordTokens: any TokenSource { PingSource(calls: calls) }

    // MARK: - Built-in accounts

    /// Makes an account at the server and logs in.
    ///
    /// - Throws: `refused` (409: the name is taken; 400: the name or password is not acceptable), `unauthorized` (wrong
    ///   API key), `unavailable` (429: too many attempts; 503), `network`, and what opening the store throws.
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

    /// Continues an earlier login with the stored token from `ClientSession.accessToken`.
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
            throw ClientError(.invalidOptions, "the token is empty, too long, or contains invalid characters")
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
            onToken: { [weak keeper] notice in keeper?.assumeIsolated { $0.handle(notice) } })
        await keeper.start()
        return ClientSession(
            user: user, sync: Session(engine: engine), keeper: keeper, calls: calls, scheme: scheme,
            place: SessionPlace(endpoint: endpoint, store: store, options: options))
    }
}

/// The user of a session.
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
