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
    }

    /// What came out, for the counters and the log.
    public struct Outcome: Sendable {
        public let response: HTTPResponse
        /// Why it was not let in; nil when it was.
        public let refusal: TokenRefusal?
        /// Why the directory could not be asked; nil when it could.
        public let failure: DirectoryError?

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
    private let directory: any PartnerDirectory
    private let random: (Int) -> [UInt8]
    private var failures: AttemptMeter
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
            let response: HTTPResponse =
                switch route {
                case .register: try register(request, apiKey, now)
                case .publicKey(let partner, let entity): try publicKey(request, apiKey, partner, entity, now)
                }
            return Outcome(response)
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
        let (partner, entity): (Partner, Entity) = try login(request, apiKey, now) { claims, partner in
            same(pathPartner, partner.id) && same(pathEntity, claims.entity)
        }
        guard same(entity.partner, partner.id) else { throw TokenRefusal.denied(.owner) }
        return PartnerAnswer.success([
            "public_key": Self.base64(entity.publicKey), "sign_key": Self.base64(entity.signKey),
        ])
    }

    /// Lets a user in by a login token.
    /// - Parameter fits: whether the path is the user's own.
    private func login(
        _ request: HTTPRequest, _ apiKey: String, _ now: Double, fits: (TokenClaims, Partner) -> Bool
    ) throws -> (Partner, Entity) {
        let device: String = Self.single("x-rezolve-device-id", in: request.fields) ?? ""
        let (claims, partner): (TokenClaims, Partner) = try read(request, apiKey, .login(device: device), now)
        let entity: Entity? = try directory.entity(claims.entity)
        try verifier.expectOwner(claims, entity, partner: partner)
        guard let entity: Entity, fits(claims, partner) else { throw TokenRefusal.denied(.owner) }
        try verifier.expectLive(claims, now: now)
        try directory.saw(device: device, of: entity.id, now: now)
        return (partner, entity)
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
}

// Reading requests.
extension PartnerService {
    /// The request that a path names; nil for other paths.
    public static func route(of path: Substring) -> Route? {
        let parts: [Substring] = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { $0 }
        if parts.count == 4, parts[0] == "api", parts[1] == "v1" || parts[1] == "v2", parts[2] == "authentication",
            parts[3] == "register"
        {
            return .register
        }
        guard parts.count == 7, parts[0] == "api", parts[1] == "v1", parts[2] == "partner", parts[4] == "customer",
            parts[6] == "publickey", let partner: String = PercentCoding.decode(parts[3]),
            let entity: String = PercentCoding.decode(parts[5])
        else { return nil }
        return .publicKey(partner: partner, entity: entity)
    }

    /// The only method that a route takes.
    public static func method(of route: Route) -> String {
        switch route {
        case .register: "POST"
        case .publicKey: "GET"
        }
    }

    /// The value of a field that is there once; two are as bad as none.
    private static func single(_ name: String, in fields: HTTPFields) -> String? {
        fields.count(of: name) == 1 ? fields[name] : nil
    }

    /// The token behind `Bearer` and one space (RFC 6750, 2.1; the scheme in any case).
    static func bearer(_ fields: HTTPFields) -> ArraySlice<UInt8>? {
        guard let value: String = single("authorization", in: fields) else { return nil }
        let bytes: [UInt8] = Array(value.utf8)
        let scheme: [UInt8] = Array("bearer ".utf8)
        guard bytes.count > scheme.count,
            zip(bytes, scheme).allSatisfy({ (0x41...0x5A).contains($0) ? $0 | 0x20 == $1 : $0 == $1 })
        else { return nil }
        return bytes[scheme.count...]
    }

    /// One `@` with something on both sides, no white space or control character; anything finer is the partner's.
    static func isEmail(_ text: String) -> Bool {
        let bytes: [UInt8] = Array(text.utf8)
        guard bytes.count <= emailBytesMax, bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return false }
        let parts: [ArraySlice<UInt8>] = bytes.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        return parts.count == 2 && parts.allSatisfy { !$0.isEmpty }
    }

    private static func base64(_ bytes: [UInt8]?) -> JSONValue { bytes.map { .string(Base64.encode($0)) } ?? .null }
}
