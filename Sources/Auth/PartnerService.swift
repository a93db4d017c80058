import ThicketCrypto
import ThicketProtocol

/// The requests of partners' apps: who asks, whether they may, and the answer.
///
/// Works on one thread, that of its directory. Time and randomness are passed in.
public struct PartnerService {
    /// A request that is one of these, whatever its method.
    public enum Route: Sendable, Hashable {
        case register
        case publicKey(partner: String, entity: String)
        case devices(partner: String, entity: String)
        case logout
    }

    /// What came out, for the counters and the log.
    public struct Outcome: Sendable {
        public let response: HTTPResponse
        /// Why it was not let in; nil when it was.
        public let refusal: TokenRefusal?
        /// Why the directory could not be asked; nil when it could.
        public let failure: DirectoryError?
        /// Whose open connections end with the answer.
        public internal(set) var revocation: Revocation?

        init(_ response: HTTPResponse, refusal: TokenRefusal? = nil, failure: DirectoryError? = nil) {
            (self.response, self.refusal, self.failure) = (response, refusal, failure)
        }
    }

    /// Failed tokens a minute of one API key from one address; then requests are answered 429 unseen.
    public static let failuresPerMinute: Int = 120
    /// Registrations a minute of one partner.
    public static let registrationsPerMinute: Int = 60
    /// Bytes of an e-mail address (RFC 5321, 4.5.3.1.3).
    static let emailBytesMax: Int = 254

    public var verifier: TokenVerifier
    public var registrationsPerMinute: Int {
        get { registrations.perMinute }
        set { registrations.perMinute = newValue }
    }
    /// Where partners and users are kept; of the same thread.
    public let directory: any PartnerDirectory
    let random: (Int) -> [UInt8]
    var failures: AttemptMeter
    private var registrations: AttemptMeter

    public init(
        directory: any PartnerDirectory, rules: TokenRules = .init(),
        registrationsPerMinute: Int = PartnerService.registrationsPerMinute, random: @escaping (Int) -> [UInt8]
    ) {
        self.directory = directory
        self.random = random
        verifier = TokenVerifier(rules)
        failures = AttemptMeter(perMinute: Self.failuresPerMinute)
        registrations = AttemptMeter(perMinute: registrationsPerMinute)
    }

    /// - Parameters:
    ///   - address: of the client, as text: what failures are counted by.
    ///   - now: seconds since 1970.
    public mutating func answer(
        _ request: HTTPRequest, to route: Route, from address: String, now: Double
    ) -> Outcome {
        let apiKey: String = Self.single("x-rezolve-partner-apikey", in: request.fields) ?? ""
        let name: String = "\(apiKey.utf8.count > Self.apiKeyBytesMax ? "long" : apiKey) \(address)"
        if let seconds: Int = failures.wait(name, now: now) {
            return Outcome(PartnerAnswer.tooMany(retryAfter: seconds))
        }
        do {
            switch route {
            case .register: return Outcome(try register(request, apiKey, now))
            case .publicKey(let partner, let entity):
                return Outcome(try publicKey(request, apiKey, partner, entity, now))
            case .devices(let partner, let entity): return Outcome(try devices(request, apiKey, partner, entity, now))
            case .logout: return try logout(request, apiKey, now)
            }
        } catch let refusal as TokenRefusal {
            if refusal != .expired { failures.add(name, now: now) }
            return Outcome(PartnerAnswer.of(refusal), refusal: refusal)
        } catch {
            let failure: DirectoryError = error as? DirectoryError ?? DirectoryError("\(error)")
            return Outcome(PartnerAnswer.unavailable, failure: failure)
        }
    }

    /// Longer ones are counted together.
    private static let apiKeyBytesMax: Int = 64

    // MARK: The requests

    private mutating func register(_ request: HTTPRequest, _ apiKey: String, _ now: Double) throws -> HTTPResponse {
        let (claims, partner): (TokenClaims, Partner) = try read(request, apiKey, .registration, now)
        try verifier.expectLive(claims, now: now)
        guard let body: JSONDocument = try? JSONDocument(parsing: request.body[...], maxDepth: TokenRules.jsonDepthMax),
            body.root.kind == .object
        else { return PartnerAnswer.invalid("The body is not one JSON object.") }
        guard let email: String = body.root["email"]?.string, Self.isEmail(email) else {
            return PartnerAnswer.invalid("email is missing or no e-mail address.")
        }
        if let seconds: Int = registrations.wait(partner.id, now: now) {
            return PartnerAnswer.tooMany(retryAfter: seconds)
        }
        registrations.add(partner.id, now: now)
        let entity: Entity = try directory.register(
            partner: partner.id, partnerEntity: claims.partnerEntity, email: email,
            newID: Partner.newID(random: random),
            now: now)
        return PartnerAnswer.success(["entity_id": .string(entity.id), "partner_id": .string(partner.id)])
    }

    private func publicKey(
        _ request: HTTPRequest, _ apiKey: String, _ pathPartner: String, _ pathEntity: String, _ now: Double
    ) throws -> HTTPResponse {
        let entity: Entity = try login(request, apiKey, now) { claims, partner in
            same(pathPartner, partner.id) && same(pathEntity, claims.entity)
        }.entity
        return PartnerAnswer.success([
            "public_key": Self.base64(entity.publicKey), "sign_key": Self.base64(entity.signKey),
        ])
    }

    /// The devices on which the user was let in, the one seen last first.
    private func devices(
        _ request: HTTPRequest, _ apiKey: String, _ pathPartner: String, _ pathEntity: String, _ now: Double
    ) throws -> HTTPResponse {
        let entity: Entity = try login(request, apiKey, now) { claims, partner in
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

    /// Ends what the user has on this device: the token that is shown lets nobody in any more, and open connections go.
    private func logout(_ request: HTTPRequest, _ apiKey: String, _ now: Double) throws -> Outcome {
        let user: LoggedIn = try login(request, apiKey, now) { _, _ in true }
        try directory.deny([user.pass.denied], now: now)
        var outcome: Outcome = .init(PartnerAnswer.done)
        outcome.revocation = .device(user.pass.device, of: user.entity.id)
        return outcome
    }

    /// A user that a login token has let in.
    struct LoggedIn {
        let entity: Entity
        let pass: PartnerPass
    }

    /// Lets a user in by a login token.
    /// - Parameter fits: whether the path is the user's own.
    func login(
        _ request: HTTPRequest, _ apiKey: String, _ now: Double, fits: (TokenClaims, Partner) -> Bool
    ) throws -> LoggedIn {
        let device: String = Self.single("x-rezolve-device-id", in: request.fields) ?? ""
        let partner: Partner? = try directory.partner(apiKey: apiKey)
        guard let token: ArraySlice<UInt8> = Self.bearer(request.fields) else {
            throw TokenRefusal.denied(.authorization)
        }
        return try login(token, of: partner, device: device, now, fits: fits)
    }

    /// The same for a token that came some other way.
    func login(
        _ token: ArraySlice<UInt8>, of partner: Partner?, device: String, _ now: Double,
        fits: (TokenClaims, Partner) -> Bool
    ) throws -> LoggedIn {
        let claims: TokenClaims = try verifier.read(token, of: partner, phase: .login(device: device), now: now)
        guard let partner: Partner else { throw TokenRefusal.denied(.partner) }
        let entity: Entity? = try directory.entity(claims.entity)
        try verifier.expectOwner(claims, entity, partner: partner)
        guard let entity: Entity, fits(claims, partner) else { throw TokenRefusal.denied(.owner) }
        let hash: [UInt8] = Hash.sha256(Array(token))
        guard try !directory.isDenied(hash) else { throw TokenRefusal.denied(.signedOut) }
        try verifier.expectLive(claims, now: now)
        try directory.saw(device: device, of: entity.id, now: now)
        return LoggedIn(
            entity: entity,
            pass: PartnerPass(
                partner: partner.id, entity: entity.id, device: device, token: hash,
                ends: claims.expiry + verifier.rules.expiryLeeway))
    }

    private func read(
        _ request: HTTPRequest, _ apiKey: String, _ phase: TokenVerifier.Phase, _ now: Double
    ) throws -> (TokenClaims, Partner) {
        let partner: Partner? = try directory.partner(apiKey: apiKey)
        guard let token: ArraySlice<UInt8> = Self.bearer(request.fields) else {
            throw TokenRefusal.denied(.authorization)
        }
        let claims: TokenClaims = try verifier.read(token, of: partner, phase: phase, now: now)
        guard let partner: Partner else { throw TokenRefusal.denied(.partner) }
        return (claims, partner)
    }

    private static func base64(_ bytes: [UInt8]?) -> JSONValue { bytes.map { .string(Base64.encode($0)) } ?? .null }
}
