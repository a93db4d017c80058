import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The requests about built-in accounts: authentication, permission, and the answer.
///
/// Works on the one thread of its directory, because hashing a password takes tens of milliseconds. Time and
/// randomness are passed in.
public struct AccountService {
    /// The result of a request, for the loop, the counters and the log.
    public struct Outcome: Sendable {
        /// The answer to send.
        public let response: HTTPResponse
        /// The bound that the request reached; nil: none.
        public fileprivate(set) var limit: AccountLimit?
        /// Why the directory could not be read; nil when it could.
        public fileprivate(set) var failure: DirectoryError?
        /// Whether a proof was right; nil when none was checked.
        public fileprivate(set) var isProved: Bool?
        /// Tokens of this user have ended: connections that they opened must be closed.
        public fileprivate(set) var ended: UserID?
        /// After the answer a code must be made, and sent if the user exists (`sendCode`).
        public fileprivate(set) var forgetful: Forgetful?

        init(_ response: HTTPResponse) { self.response = response }
    }

    /// Bounds that an operator may choose.
    public struct Rules: Sendable, Hashable {
        /// Failed logins a minute from one address.
        public var failuresPerMinute: Int = 30
        /// New accounts a minute of one app.
        public var registrationsPerMinute: Int = 60
        /// Lifetime of a token, seconds; nil: until it is revoked.
        public var tokenLifetime: Double?
        /// Guests of one account.
        public var guestsPerAccountMax = GuestRequests.perAccountMax
        /// The default rules.
        public init() {}
    }

    /// Unknown API keys a minute from one address.
    public static let failedKeysPerMinute = 120
    /// Bad tokens a minute from one address.
    public static let failedTokensPerMinute = 120
    /// Requests a minute from one address for the parameters of a password's key derivation.
    public static let preloginsPerMinute = 30
    /// Tokens of one user; beyond that the oldest end.
    public static let tokensPerUserMax = 256

    /// The rules in force; a change applies to the next request.
    public var rules: Rules {
        didSet {
            addresses.perMinute = rules.failuresPerMinute
            registrations.perMinute = rules.registrationsPerMinute
        }
    }
    let directory: any AccountDirectory
    let secrets: AccountSecrets
    let random: (Int) -> [UInt8]
    /// The cost of checking a sent password. Tests use a lower one.
    var cost = Scrypt.Cost.login

    var names = LoginGuard()
    /// Failed logins by address, counted together with those of partners' users.
    let addresses: SharedMeter
    var registrations: AttemptMeter
    var prelogins = AttemptMeter(perMinute: Self.preloginsPerMinute)
    var pairings = AttemptMeter(perMinute: Self.pairingsPerMinute)
    var boxes = PairingBoxes()
    private var keys = AttemptMeter(perMinute: Self.failedKeysPerMinute)
    private var tokens = AttemptMeter(perMinute: Self.failedTokensPerMinute)
    /// Results of the current request besides its answer.
    var notes = Notes()

    struct Notes {
        var limit: AccountLimit?
        var isProved: Bool?
        var ended: UserID?
        var forgetful: Forgetful?
    }

    /// - Parameter addresses: failed logins by address, counted together with those of others; nil for a separate
    ///   count.
    public init(
        directory: any AccountDirectory, secrets: AccountSecrets, rules: Rules = .init(),
        addresses: SharedMeter? = nil, random: @escaping (Int) -> [UInt8]
    ) {
        (self.directory, self.secrets, self.rules, self.random) = (directory, secrets, rules, random)
        self.addresses = addresses ?? SharedMeter(perMinute: rules.failuresPerMinute)
        self.addresses.perMinute = rules.failuresPerMinute
        registrations = AttemptMeter(perMinute: rules.registrationsPerMinute)
    }

    /// One request while it is answered.
    struct Asked {
        let request: HTTPRequest
        let app: AppID
        /// The client's address, as text: failures are counted by it.
        let address: String
        /// Seconds since 1970.
        let now: Double

        var milliseconds: Int64 { Int64(max(-1e15, min(1e15, now * 1_000))) }
    }

    /// Answers a request.
    /// - Parameters:
    ///   - address: of the client, as text.
    ///   - now: seconds since 1970.
    public mutating func answer(
        _ request: HTTPRequest, to route: AccountRoute, from address: String, now: Double
    ) -> Outcome {
        notes = Notes()
        // Before every request, so that no expired pairing stays in memory because requests about pairings have
        // stopped.
        if !boxes.isEmpty { boxes.clear(now) }
        let asked = Asked(request: request, app: route.app, address: address, now: now)
        var failure: DirectoryError?
        let response: HTTPResponse
        do throws(AccountRefusal) {
            response = try answer(asked, route.call)
        } catch {
            if case .limited(let limit, _) = error { notes.limit = limit }
            if case .unavailable(let reason) = error { failure = reason }
            response = AccountAnswer.refusal(error, route.call.style)
        }
        var outcome = Outcome(response)
        (outcome.limit, outcome.failure) = (notes.limit, failure)
        (outcome.isProved, outcome.ended, outcome.forgetful) = (notes.isProved, notes.ended, notes.forgetful)
        return outcome
    }

    private mutating func answer(_ asked: Asked, _ call: AccountRoute.Call) throws(AccountRefusal) -> HTTPResponse {
        switch call {
        case .create: try create(asked)
        case .authorize: try authorize(asked)
        case .update: try update(asked)
        case .resetPassword: try resetPassword(asked)
        case .delete: try delete(asked)
        case .forgot: try forgot(asked, .password)
        case .verify: try verify(asked)
        case .prelogin: try prelogin(asked)
        case .signup: try signup(asked)
        case .login: try login(asked)
        case .password: try changePassword(asked)
        case .recover: try recover(asked)
        case .bundle: asked.request.method == "PUT" ? try putBundle(asked) : try readBundle(asked)
        case .remove: try remove(asked)
        case .forgotKey: try forgot(asked, .key)
        case .verifyKey: try verifyKey(asked)
        case .tokens: asked.request.method == "POST" ? try addToken(asked) : try listTokens(asked)
        case .openPairing: try openPairing(asked)
        case .pairing(let code): try pairing(code, asked)
        case .token(let id): try endToken(id, asked)
        case .logout: try logout(asked)
        case .notes: try NotesRequest.answer(asked, &self)
        case .upgrade: asked.request.method == "PUT" ? try finishUpgrade(asked) : try upgrade(asked)
        case .access: try renew(asked)
        case .guests: try GuestRequests.answer(asked, &self)
        case .guest(let name): try GuestRequests.remove(name, asked, &self)
        }
    }

    // MARK: Authentication

    /// The API key of the request, from the header or the body.
    mutating func key(_ asked: Asked, _ body: AccountBody) throws(AccountRefusal) -> AppKey {
        try admit(keys, asked.address, .keys, asked)
        let given = asked.field("x-simperium-api-key") ?? body.text("client_id") ?? ""
        let isShort = given.utf8.count <= AppKey.bytesMax
        let hash = AppKey.hash(of: isShort ? given : "")
        let app = asked.app.text
        guard let key = try directory({ (d) throws(DirectoryError) in try d.key(hash, of: app) }) else {
            keys.add(asked.address, now: asked.now)
            throw .badKey
        }
        return key
    }

    /// The user whose token is in the request.
    ///
    /// - Parameter admitsGuests: whether a guest may do what is requested.
    mutating func user(
        _ asked: Asked, admitsGuests: Bool = false
    ) throws(AccountRefusal) -> (account: Account, token: [UInt8]) {
        try admit(tokens, asked.address, .tokens, asked)
        let hash = Hash.sha256(Array((asked.field("x-simperium-token") ?? "").utf8))
        let (app, now) = (asked.app.text, asked.milliseconds)
        guard
            let account = try directory({ (d) throws(DirectoryError) in
                try d.owner(ofToken: hash, in: app, now: now)
            })
        else {
            tokens.add(asked.address, now: asked.now)
            throw .badToken
        }
        guard admitsGuests || !GuestName.isGuest(account.user) else { throw .notForGuests }
        return (account, hash)
    }

    func admit(
        _ meter: AttemptMeter, _ name: String, _ limit: AccountLimit, _ asked: Asked
    ) throws(AccountRefusal) {
        var meter = meter
        if let seconds = meter.wait(name, now: asked.now) { throw .limited(limit, seconds: seconds) }
    }

    /// The same by the failed logins of the client's address.
    func admitAddress(_ asked: Asked) throws(AccountRefusal) {
        if let seconds = addresses.wait(asked.address, now: asked.now) {
            throw .limited(.address, seconds: seconds)
        }
    }

    /// Calls the directory; a failure becomes `unavailable`, so that the client may repeat the request.
    func directory<Result>(
        _ body: (any AccountDirectory) throws(DirectoryError) -> Result
    ) throws(AccountRefusal) -> Result {
        do throws(DirectoryError) {
            return try body(directory)
        } catch {
            if let refusal = error.refusedEntry { throw .badEntry(refusal, newest: error.newestEntry) }
            throw .unavailable(error)
        }
    }

    // MARK: Tokens

    /// A new token: 32 hex digits.
    ///
    /// - Parameter end: milliseconds since 1970 at which it ends at the latest; nil: no such time.
    func makeToken(_ asked: Asked, device: String = "", end: Int64? = nil) -> (text: String, kept: NewToken) {
        let text = Hex.encode(random(16))
        let lifetime = rules.tokenLifetime.map { Int64(min(1e15, $0 * 1_000)) }
        let token = NewToken(
            hash: Hash.sha256(Array(text.utf8)), created: asked.milliseconds,
            expires: [lifetime.map { asked.milliseconds + $0 }, end].compactMap(\.self).min(), device: device)
        return (text, token)
    }

    /// Adds a token of the user.
    mutating func admitToken(_ account: Account, _ asked: Asked, device: String = "") throws(AccountRefusal) -> String {
        let (text, token) = makeToken(asked, device: device, end: try GuestRequests.end(of: account, asked, self))
        let dropped = try directory { (d) throws(DirectoryError) in
            try d.add(token, of: account.user, in: account.app, keeping: Self.tokensPerUserMax)
        }
        if dropped > 0 { notes.limit = .userTokens }
        return text
    }

    private mutating func listTokens(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let (account, shown) = try user(asked)
        let tokens = try directory { (d) throws(DirectoryError) in
            try d.tokens(of: account.user, in: account.app)
        }
        let own = Hex.encode(shown)
        let list: [JSONValue] = tokens.map { token in
            .object([
                "id": .string(token.id), "created": .number(JSONNumber(token.created / 1_000)),
                "expires": token.expires.map { .number(JSONNumber($0 / 1_000)) } ?? .null,
                "device": .string(token.device), "current": .bool(own.utf8.starts(with: token.id.utf8)),
            ])
        }
        return AccountAnswer.success(["tokens": .array(list)])
    }

    private mutating func endToken(_ id: String, _ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let account = try user(asked).account
        let owner = try identity(of: account)
        let ended = try directory { (d) throws(DirectoryError) in
            try d.endTokens(id, of: account.user, in: account.app)
        }
        guard ended > 0 else { throw .badRequest("there is no such token") }
        notes.ended = owner
        return AccountAnswer.noContent
    }

    private mutating func logout(_ asked: Asked) throws(AccountRefusal) -> HTTPResponse {
        let (account, shown) = try user(asked, admitsGuests: true)
        let owner = try identity(of: account)
        _ = try directory { (d) throws(DirectoryError) in
            try d.endTokens(Hex.encode(shown), of: account.user, in: account.app)
        }
        // Several people may hold one link.
        if !owner.isGuest { notes.ended = owner }
        return AccountAnswer.noContent
    }
}

extension AccountService.Asked {
    /// The value of a field that occurs exactly once; a repeated one counts as missing.
    func field(_ name: String) -> String? { request.fields.count(of: name) == 1 ? request.fields[name] : nil }
}
