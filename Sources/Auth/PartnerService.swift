import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The requests of partners' apps: authentication, permission, and the answer.
///
/// Works on the one thread of its directory. Time and randomness are passed in.
public struct PartnerService {
    /// The request that a path names, whatever its method.
    public enum Route: Sendable, Hashable {
        /// Registers a user of a partner.
        case register
        /// Reads or uploads a user's public keys.
        case publicKey(partner: String, entity: String)
        /// Lists a user's devices.
        case devices(partner: String, entity: String)
        /// Ends the use of a token on a device.
        case logout
        /// Registers a guest, or logs one in.
        case registerGuest, loginGuest
        /// A request about passwords.
        case credentials(Credentials)
        /// Under an app's path, with a login token (`AccountRoute.ofPartner`).
        case bundle(AppID)
    }

    /// A request about passwords.
    public enum Credentials: String, Sendable, Hashable, CaseIterable {
        /// Each is the last part of its path.
        case register, login, ping, change, forgot, verify
    }

    /// A user that forgot its password, and the address for the code.
    public struct Forgetful: Sendable, Hashable {
        /// The user; for an unknown name a made-up id.
        let entity: String
        /// nil: nothing is sent, but everything else is done.
        let address: MailAddress?
    }

    /// The result of a request, for the counters and the log.
    public struct Outcome: Sendable {
        /// The answer to send.
        public let response: HTTPResponse
        /// Why the request was refused; nil when it was not.
        public let refusal: TokenRefusal?
        /// Why the directory could not be read; nil when it could.
        public let failure: DirectoryError?
        /// The open connections that end with the answer.
        public internal(set) var revocation: Revocation?
        /// The user that is sent a code after the answer (`sendCode`).
        public internal(set) var forgetful: Forgetful?

        init(_ response: HTTPResponse, refusal: TokenRefusal? = nil, failure: DirectoryError? = nil) {
            (self.response, self.refusal, self.failure) = (response, refusal, failure)
        }
    }

    /// Failed tokens a minute of one API key from one address; beyond that requests are answered 429 without a check.
    public static let failuresPerMinute = 120
    /// Registrations a minute of one partner.
    public static let registrationsPerMinute = 60
    /// Longest e-mail address, bytes (RFC 5321, 4.5.3.1.3).
    static let emailBytesMax = 254

    /// Checks the tokens that partners sign; carries the rules in force.
    public var verifier: TokenVerifier
    /// Registrations a minute of one partner.
    public var registrationsPerMinute: Int {
        get { attempts.registrations.perMinute }
        set { attempts.registrations.perMinute = newValue }
    }
    /// The store of partners and users; belongs to the same thread.
    public var directory: any PartnerDirectory
    /// Failed logins a minute from one address.
    public var failedLoginsPerMinute: Int {
        get { attempts.addresses.perMinute }
        set { attempts.addresses.perMinute = newValue }
    }
    let random: (Int) -> [UInt8]
    /// Hashes a password under a salt; nil when memory is lacking.
    var derive: (_ password: [UInt8], _ salt: [UInt8]) -> [UInt8]? = { password, salt in
        Scrypt.derive(password, salt: salt, cost: .login, count: PasswordVerifier.hashBytes)
    }
    /// The counts of attempts, shared with the services on other threads.
    let attempts: PartnerAttempts

    /// - Parameter attempts: counts of attempts; services with the same instance count together.
    public init(
        directory: any PartnerDirectory, rules: TokenRules = .init(), attempts: PartnerAttempts = .init(),
        random: @escaping (Int) -> [UInt8]
    ) {
        self.directory = directory
        self.random = random
        self.attempts = attempts
        verifier = TokenVerifier(rules)
    }

    /// Answers a request.
    /// - Parameters:
    ///   - address: of the client, as text: failures are counted by it.
    ///   - now: seconds since 1970.
    public mutating func answer(
        _ request: HTTPRequest, to route: Route, from address: String, now: Double
    ) -> Outcome {
        let apiKey = Self.single("x-rezolve-partner-apikey", in: request.fields) ?? ""
        var name = "\(apiKey.utf8.count > Self.apiKeyBytesMax ? "long" : apiKey) \(address)"
        // The same name as for this token in an `init`.
        if case .bundle(let app) = route { name = "app \(app.text) \(address)" }
        if let seconds = attempts.failures.wait(name, now: now) {
            return Outcome(PartnerAnswer.tooMany(retryAfter: seconds))
        }
        do {
            switch route {
            case .register: return Outcome(try register(request, apiKey, now))
            case .publicKey(let partner, let entity):
                let isUpload = request.method.utf8.elementsEqual("PUT".utf8)
                return Outcome(
                    isUpload
                        ? try uploadKeys(request, apiKey, partner, entity, now)
                        : try publicKey(request, apiKey, partner, entity, now))
            case .devices(let partner, let entity): return Outcome(try devices(request, apiKey, partner, entity, now))
            case .logout: return try logout(request, apiKey, now)
            case .registerGuest: return try registerGuest(request, apiKey, now)
            case .loginGuest: return try loginGuest(request, apiKey, now)
            case .bundle(let app):
                let asked = BundleAsked(request: request, app: app, now: now)
                return Outcome(request.method == "PUT" ? try putBundle(asked) : try readBundle(asked))
            case .credentials(.ping): return try ping(request, apiKey, now)
            case .credentials(let call): return try answer(call, Asked(request, apiKey, address, now))
            }
        } catch let refusal as TokenRefusal {
            if refusal != .expired { attempts.failures.add(name, now: now) }
            return Outcome(PartnerAnswer.of(refusal), refusal: refusal)
        } catch let limited as Limited {
            return Outcome(PartnerAnswer.tooMany(retryAfter: limited.seconds))
        } catch let bad as BadBody {
            return Outcome(bad.answer)
        } catch {
            let failure = error as? DirectoryError ?? DirectoryError("\(error)")
            return Outcome(PartnerAnswer.unavailable, failure: failure)
        }
    }

    private mutating func answer(_ call: Credentials, _ asked: Asked) throws -> Outcome {
        switch call {
        case .register: try registerUser(asked)
        case .login: try loginUser(asked)
        case .ping: try ping(asked.request, asked.apiKey, asked.now)
        case .change: try changePassword(asked)
        case .forgot: try forgotPassword(asked)
        case .verify: try verifyCode(asked)
        }
    }

    /// Longer keys are counted together.
    private static let apiKeyBytesMax = 64

    // MARK: The requests

    private mutating func register(_ request: HTTPRequest, _ apiKey: String, _ now: Double) throws -> HTTPResponse {
        let (claims, partner) = try read(request, apiKey, .registration, now)
        try verifier.expectLive(claims, now: now)
        let body = try Self.object(request)
        guard let email = body["email"]?.string, Self.isEmail(email) else {
            return PartnerAnswer.invalid("email is missing or not an e-mail address.")
        }
        try admitRegistration(of: partner, now: now)
        let entity = try directory.register(
            partner: partner.id, partnerEntity: claims.partnerEntity, email: email,
            newID: Partner.newID(random: random),
            now: now)
        return PartnerAnswer.success(["entity_id": .string(entity.id), "partner_id": .string(partner.id)])
    }

    mutating func admitRegistration(of partner: Partner, now: Double) throws {
        if let seconds = attempts.registrations.admit(partner.id, now: now) { throw Limited(seconds: seconds) }
    }

    private func publicKey(
        _ request: HTTPRequest, _ apiKey: String, _ pathPartner: String, _ pathEntity: String, _ now: Double
    ) throws -> HTTPResponse {
        let entity = try login(request, apiKey, now) { claims, partner in
            same(pathPartner, partner.id) && same(pathEntity, claims.entity)
        }.entity
        return Self.keys(entity.publicKey, entity.signKey)
    }

    /// The devices on which the user has logged in, the one seen last first.
    private func devices(
        _ request: HTTPRequest, _ apiKey: String, _ pathPartner: String, _ pathEntity: String, _ now: Double
    ) throws -> HTTPResponse {
        let entity = try login(request, apiKey, now) { claims, partner in
            same(pathPartner, partner.id) && same(pathEntity, claims.entity)
        }.entity
        let devices: [JSONValue] = try directory.devices(of: entity.id).map { device in
            .object([
                "device_id": .string(device.id), "first_seen": .number(JSONNumber(device.first / 1_000)),
                "last_seen": .number(JSONNumber(device.last / 1_000)),
            ])
        }
        return PartnerAnswer.success(["devices": .array(devices)])
    }

    /// Logs the user out on this device: the token is denied from now on, and open connections end.
    ///
    /// An expired token is refused as in every other request. But if nothing else is wrong with it, its session
    /// ends too, because `ping` could otherwise renew tokens of it until its end.
    private func logout(_ request: HTTPRequest, _ apiKey: String, _ now: Double) throws -> Outcome {
        do {
            return try end(login(request, apiKey, now) { _, _ in true }, Outcome(PartnerAnswer.done), now)
        } catch TokenRefusal.expired {
            let refused = Outcome(PartnerAnswer.expired, refusal: .expired)
            do {
                let late = try login(request, apiKey, now, lateness: .infinity) { claims, _ in
                    claims.session != nil
                }
                return try end(late, refused, now)
            } catch is TokenRefusal {
                // The token has no session, or its session has ended.
                return refused
            }
        }
    }

    private func end(_ user: LoggedIn, _ answer: Outcome, _ now: Double) throws -> Outcome {
        try directory.deny([user.pass.denied], now: now)
        if let session = user.session { try directory.endSession(session.hash) }
        var outcome = answer
        outcome.revocation = .device(user.pass.device, of: user.entity.id)
        return outcome
    }

    /// A user admitted by a login token.
    struct LoggedIn {
        let entity: Entity
        let pass: PartnerPass
        let token: String
        /// Only for tokens made here.
        var session: LoginSession?
        var sessionID: String?
    }

    /// Admits a user by a login token.
    /// - Parameters:
    ///   - lateness: seconds after its end for which the token is still accepted.
    ///   - fits: whether the path belongs to the user.
    func login(
        _ request: HTTPRequest, _ apiKey: String, _ now: Double, lateness: Double = 0,
        fits: (TokenClaims, Partner) -> Bool
    ) throws -> LoggedIn {
        let device = Self.single("x-rezolve-device-id", in: request.fields) ?? ""
        let partner = try directory.partner(apiKey: apiKey)
        guard let token = Self.bearer(request.fields) else {
            throw TokenRefusal.denied(.authorization)
        }
        return try login(token, of: partner, device: device, now, lateness: lateness, fits: fits)
    }

    /// The same for a token from elsewhere than the `authorization` field.
    func login(
        _ token: ArraySlice<UInt8>, of partner: Partner?, device: String, _ now: Double, lateness: Double = 0,
        fits: (TokenClaims, Partner) -> Bool
    ) throws -> LoggedIn {
        let claims = try verifier.read(token, of: partner, phase: .login(device: device), now: now)
        guard let partner else { throw TokenRefusal.denied(.partner) }
        let entity = try directory.entity(claims.entity)
        try verifier.expectOwner(claims, entity, partner: partner)
        guard let entity, fits(claims, partner) else { throw TokenRefusal.denied(.owner) }
        let hash = Hash.sha256(Array(token))
        guard try !directory.isDenied(hash) else { throw TokenRefusal.denied(.signedOut) }
        let session = try session(of: claims, entity, device, now)
        try verifier.expectLive(claims, now: now - lateness)
        try directory.saw(device: device, of: entity.id, now: now)
        return LoggedIn(
            entity: entity,
            pass: PartnerPass(
                partner: partner.id, entity: entity.id, device: device, token: hash,
                ends: claims.expiry + verifier.rules.expiryLeeway),
            token: String(decoding: token, as: UTF8.self), session: session, sessionID: claims.session)
    }

    /// The session of a token made here; throws when it has ended.
    private func session(
        of claims: TokenClaims, _ entity: Entity, _ device: String, _ now: Double
    ) throws -> LoginSession? {
        guard let id = claims.session else { return nil }
        guard let session = try directory.session(Hash.sha256(Array(id.utf8))),
            same(session.entity, entity.id), same(session.device, device), now < session.ends
        else { throw TokenRefusal.denied(.signedOut) }
        return session
    }

    func read(
        _ request: HTTPRequest, _ apiKey: String, _ phase: TokenVerifier.Phase, _ now: Double
    ) throws -> (TokenClaims, Partner) {
        let partner = try directory.partner(apiKey: apiKey)
        guard let token = Self.bearer(request.fields) else {
            throw TokenRefusal.denied(.authorization)
        }
        let claims = try verifier.read(token, of: partner, phase: phase, now: now)
        guard let partner else { throw TokenRefusal.denied(.partner) }
        return (claims, partner)
    }

    static func keys(_ publicKey: [UInt8]?, _ signKey: [UInt8]?) -> HTTPResponse {
        let text: ([UInt8]?) -> JSONValue = { bytes in bytes.map { .string(Base64.encode($0)) } ?? .null }
        return PartnerAnswer.success(["public_key": text(publicKey), "sign_key": text(signKey)])
    }
}
