import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

// Users whose passwords the server keeps, for partners without an authentication server. Known and unknown users
// get the same answers, for the same work.
extension PartnerService {
    /// Lifetime of a token made here, seconds.
    static let tokenSeconds: Double = 1_800
    /// Seconds after its end for which a token can still be renewed.
    static let renewalSeconds: Double = 86_400
    /// Failed logins a minute from one address.
    public static let failedLoginsPerMinute = 30
    /// Bytes of a password.
    static let passwordBytes = 8...1_024
    static let usernameBytesMax = 254
    static let phoneBytesMax = 64

    /// One request about passwords while it is answered.
    struct Asked {
        let request: HTTPRequest
        let apiKey: String
        /// The client's address, as text.
        let address: String
        /// Seconds since 1970.
        let now: Double
        private let object: Result<JSONNode, BadBody>

        init(_ request: HTTPRequest, _ apiKey: String, _ address: String, _ now: Double) {
            (self.request, self.apiKey, self.address, self.now) = (request, apiKey, address, now)
            object = Result { () throws(BadBody) in try PartnerService.object(request) }
        }

        func member(_ name: String) throws(BadBody) -> JSONNode? { try object.get()[name] }

        /// A member that is a text of so many bytes, without control characters.
        func text(_ name: String, _ bytes: ClosedRange<Int>) throws(BadBody) -> String {
            guard let text = try member(name)?.string, bytes.contains(text.utf8.count),
                text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { throw BadBody(name) }
            return text
        }

        func password(_ name: String) throws(BadBody) -> String {
            guard let text = try member(name)?.string, passwordBytes.contains(text.utf8.count) else {
                throw BadBody(name)
            }
            return text
        }
    }

    /// The body, or a member of it, is missing or cannot be used.
    struct BadBody: Error {
        private let what: String
        init(_ member: String) { what = "\(member) is missing or cannot be used." }
        init(_ problem: JSONBodyProblem) { what = "The body is \(problem.text)." }
        /// - Parameter problem: a text of `UserID.problem`.
        init(name problem: String) { what = "username \(problem)." }
        var answer: HTTPResponse { PartnerAnswer.invalid(what) }
    }

    /// The JSON object in a request's body.
    static func object(_ request: HTTPRequest) throws(BadBody) -> JSONNode {
        do throws(JSONBodyProblem) {
            return try JSONDocument.object(in: request.body, depthMax: TokenRules.jsonDepthMax)
        } catch {
            throw BadBody(error)
        }
    }

    /// Too many attempts of late.
    struct Limited: Error { let seconds: Int }

    // MARK: The requests

    /// `POST /v2/credentials/register`
    mutating func registerUser(_ asked: Asked) throws -> Outcome {
        try admitAddress(asked)
        let partner = try keeper(asked)
        let username = try Self.name(asked, isNew: true)
        let password = try asked.password("password")
        let phone = try asked.member("phone") == nil ? "" : try asked.text("phone", 0...Self.phoneBytesMax)
        let made = try stretch(password, salt: random(PasswordVerifier.saltBytes))
        // Counted for every name, good or not, so that invented names are tried slowly.
        attempts.addresses.add(asked.address, now: asked.now)
        try admitRegistration(of: partner, now: asked.now)
        let id = Partner.newID(random: random)
        let user = NewUser(
            partner: partner.id, entity: id, partnerEntity: "password:" + id, username: username, phone: phone,
            verifier: made)
        guard let profile = try directory.add(user, now: asked.now) else { throw BadBody("username") }
        return Outcome(PartnerAnswer.user(profile))
    }

    /// - Parameter isNew: the name of a new user.
    private static func name(_ asked: Asked, isNew: Bool = false) throws(BadBody) -> String {
        guard let name = try asked.member("username")?.string else { throw BadBody("username") }
        let problem =
            isNew
            ? UserID.problem(asNew: name, bytesMax: usernameBytesMax)
            : UserID.problem(of: name, bytesMax: usernameBytesMax)
        if let problem { throw BadBody(name: problem) }
        return name
    }

    /// `POST /v2/credentials/login`
    mutating func loginUser(_ asked: Asked) throws -> Outcome {
        try admitAddress(asked)
        let partner = try keeper(asked)
        let username = try Self.name(asked)
        let device = try asked.text("deviceId", 1...Limits.userIDBytesMax)
        let password = try asked.password("password")
        if let named = Self.single("x-rezolve-device-id", in: asked.request.fields), !same(named, device) {
            throw BadBody("deviceId")
        }
        let entity = try prove(password, of: username, partner, asked)
        guard let profile = try directory.loggedIn(entity, now: asked.now) else {
            throw TokenRefusal.denied(.password)
        }
        let id = Hex.encode(random(16))
        let session = LoginSession(
            hash: Hash.sha256(Array(id.utf8)), entity: entity, device: device,
            ends: asked.now + LoginSession.secondsMax)
        try directory.begin(session, now: asked.now)
        try directory.saw(device: device, of: entity, now: asked.now)
        var response = PartnerAnswer.user(profile)
        response.fields.append(
            "authorization", "Bearer " + sign(session, id: id, profile.entity, partner, now: asked.now))
        return Outcome(response)
    }

    /// `GET /v2/credentials/ping`: a new token for one made here, until a day after its end.
    func ping(_ request: HTTPRequest, _ apiKey: String, _ now: Double) throws -> Outcome {
        let user = try login(request, apiKey, now, lateness: Self.renewalSeconds) { claims, _ in
            claims.session != nil
        }
        guard let id = user.sessionID, let session = user.session,
            let partner = try directory.partner(apiKey: apiKey)
        else { throw TokenRefusal.denied(.signedOut) }
        let token = sign(session, id: id, user.entity, partner, now: now)
        return Outcome(PartnerAnswer.success(["accessToken": .string("Bearer " + token)]))
    }

    /// `POST /v2/credentials/change`: a new password; the request needs a token and the old password.
    mutating func changePassword(_ asked: Asked) throws -> Outcome {
        let user = try login(asked.request, asked.apiKey, asked.now) { _, _ in true }
        try admitAddress(asked)
        let partner = try keeper(asked)
        let old = try asked.password("oldPassword")
        let new = try asked.password("newPassword")
        guard let username = try directory.username(of: user.entity.id) else {
            throw TokenRefusal.denied(.password)
        }
        guard same(try prove(old, of: username, partner, asked), user.entity.id) else {
            throw TokenRefusal.denied(.password)
        }
        try directory.setVerifier(
            try stretch(new, salt: random(PasswordVerifier.saltBytes)), of: user.entity.id,
            keeping: user.session?.hash, now: asked.now)
        var outcome = Outcome(PartnerAnswer.done)
        outcome.revocation = .user(user.entity.id, keeping: user.pass.device)
        return outcome
    }

    /// `POST /v2/credentials/forgot`: every request gets the same answer, whether the name exists or not. A code is
    /// made and sent after the answer (`sendCode`), so that the answer takes as long for an unknown name.
    mutating func forgotPassword(_ asked: Asked) throws -> Outcome {
        let partner = try keeper(asked)
        let username = try Self.name(asked)
        let known = try directory.verifier(of: username, partner: partner.id)
        var outcome = Outcome(PartnerAnswer.success([:]))
        guard attempts.addresses.wait(asked.address, now: asked.now) == nil else { return outcome }
        attempts.addresses.add(asked.address, now: asked.now)
        outcome.forgetful = Forgetful(
            entity: known?.entity ?? Self.nobody(username, partner), address: known == nil ? nil : MailAddress(username)
        )
        return outcome
    }

    /// `POST /v2/credentials/verify`: a new password with a code. Resets only the password's verifier.
    mutating func verifyCode(_ asked: Asked) throws -> Outcome {
        try admitAddress(asked)
        let partner = try keeper(asked)
        let username = try Self.name(asked)
        let code = try asked.text("code", 1...64)
        let password = try asked.password("password")
        let name = Self.guarded(username, partner)
        // Counted separately, so that an attacker that guesses the password does not keep its owner from setting
        // another.
        let place = "code \(name)"
        if let seconds = attempts.wait(name: place, now: asked.now) { throw Limited(seconds: seconds) }
        let made = try stretch(password, salt: random(PasswordVerifier.saltBytes))
        let known = try directory.verifier(of: username, partner: partner.id)
        // For an unknown name a code is checked too, and takes as long.
        let isRight = try directory.redeem(
            code: code, of: known?.entity ?? Self.nobody(username, partner), now: asked.now)
        guard let entity = known?.entity, isRight else {
            failed(place, asked)
            throw TokenRefusal.denied(.password)
        }
        try directory.setVerifier(made, of: entity, keeping: nil, now: asked.now)
        attempts.succeeded(name: place)
        attempts.succeeded(name: name)
        var outcome = Outcome(PartnerAnswer.done)
        outcome.revocation = .user(entity, keeping: nil)
        return outcome
    }

    /// Makes and sends the requested code. For an unknown name a code is kept and a message prepared too, so that
    /// the next request does not start earlier.
    /// - Returns: whether one was sent; false also when one was sent a short while ago.
    public mutating func sendCode(
        to forgetful: Forgetful, outbox: any MailOutbox, now: Double
    ) throws(DirectoryError) -> Bool {
        let code = ResetCode.make(random: random)
        guard try directory.keep(code: code, of: forgetful.entity, now: now) else { return false }
        guard let address = forgetful.address else {
            try outbox.rehearse(ResetCode.mail(code, to: .nobody), now: now)
            return false
        }
        try outbox.put(ResetCode.mail(code, to: address), now: now)
        return true
    }

    // MARK: Parts

    /// The partner of the API key, if the server keeps its users' passwords and it is enabled.
    private func keeper(_ asked: Asked) throws -> Partner {
        guard let partner = try directory.partner(apiKey: asked.apiKey), partner.isEnabled,
            partner.keepsPasswords, !partner.authKeys.isEmpty
        else {
            // Without hashing a password: it reveals no user that an API key has no passwords.
            throw TokenRefusal.denied(.partner)
        }
        return partner
    }

    private mutating func admitAddress(_ asked: Asked) throws {
        if let seconds = attempts.addresses.wait(asked.address, now: asked.now) { throw Limited(seconds: seconds) }
    }

    /// The made-up user id for codes of an unknown name: always the same for one name, and unlike any real id.
    private static func nobody(_ username: String, _ partner: Partner) -> String {
        "nobody " + Hex.encode(Hash.sha256(Array(guarded(username, partner).utf8)))
    }

    private static func guarded(_ username: String, _ partner: Partner) -> String {
        "\(partner.id) \(username)"
    }

    private mutating func failed(_ name: String, _ asked: Asked) {
        attempts.failed(name: name, now: asked.now)
        attempts.addresses.add(asked.address, now: asked.now)
    }

    /// The user that the password belongs to. For an unknown name a password is hashed too.
    private mutating func prove(
        _ password: String, of username: String, _ partner: Partner, _ asked: Asked
    ) throws -> String {
        let name = Self.guarded(username, partner)
        if let seconds = attempts.wait(name: name, now: asked.now) { throw Limited(seconds: seconds) }
        let known = try directory.verifier(of: username, partner: partner.id)
        let kept =
            known?.verifier
            ?? PasswordVerifier(
                salt: .init(repeating: 0, count: PasswordVerifier.saltBytes),
                hash: random(PasswordVerifier.hashBytes))
        let isSame = ConstantTime.equal(try stretch(password, salt: kept.salt).hash, kept.hash)
        guard isSame, let entity = known?.entity else {
            failed(name, asked)
            throw TokenRefusal.denied(.password)
        }
        attempts.succeeded(name: name)
        return entity
    }

    private func stretch(_ password: String, salt: [UInt8]) throws -> PasswordVerifier {
        guard let hash = derive(Array(password.utf8), salt) else {
            throw DirectoryError("memory is lacking to hash a password")
        }
        return PasswordVerifier(salt: salt, hash: hash)
    }

    /// A login token of a session, signed as the partner would sign it.
    private func sign(
        _ session: LoginSession, id: String, _ entity: Entity, _ partner: Partner, now: Double
    ) -> String {
        let expiry: Double = min(now + Self.tokenSeconds, session.ends)
        return SignedToken.sign(
            header: ["alg": "HS512", "auth": "v2", "typ": "JWT"],
            payload: [
                "rezolve_entity_id": .string(entity.id), "partner_entity_id": .string(entity.partnerEntity),
                "device_id": .string(session.device), "exp": .number(JSONNumber(Int64(expiry))),
                TokenClaims.sessionMember: .string(id),
            ], key: partner.authKeys.first ?? [])
    }
}
