import ThicketProtocol

/// The claims of a signed token, after every check that needs only the token.
public struct TokenClaims: Sendable, Hashable {
    /// Replaces the entity id in a registration token.
    public static let noEntity = ":NONE:"

    /// `rezolve_entity_id`: the server's id of the user, or `noEntity`.
    public let entity: String
    /// `partner_entity_id`: the partner's own id of the user; an integer as its decimal text.
    public let partnerEntity: String
    /// `device_id`, if the token has one.
    public let device: String?
    /// `exp`, seconds since 1970.
    public let expiry: Double
    /// Member with the session of a token made here.
    static let sessionMember = "thicket_session"
    /// The value of that member: the session on which the token's renewal depends.
    public let session: String?
    /// Whether the header has `auth: v2`, as in login tokens.
    public let isLogin: Bool

    /// Header members that change the meaning of a token; none of them is supported, so a token with one is refused.
    private static let refusedMembers: [String] = ["crit", "b64", "zip", "enc", "jku", "jwk", "x5u", "x5c"]

    /// Reads a token with a checked signature.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Throws: `denied` for any fault. The end of its time is not checked here, because that is the last check.
    init(_ token: SignedToken, rules: TokenRules, now: Double) throws(TokenRefusal) {
        isLogin = try Self.isLogin(try Self.object(token.header, .header))
        var found = Members()
        for (key, value) in try Self.object(token.payload, .claims).members {
            try found.read(key, value, latest: now + rules.notBeforeSkew)
        }
        guard let entity = found.entity, let partnerEntity = found.partnerEntity,
            let expiry = found.expiry
        else { throw .denied(.claims) }
        (self.entity, self.partnerEntity, self.expiry) = (entity, partnerEntity, expiry)
        (device, session) = (found.device, found.session)
        guard !found.isEarly, expiry <= now + rules.lifetimeMax + rules.lifetimeTolerance else {
            throw .denied(.lifetime)
        }
    }

    /// The members of a payload, found in one pass.
    private struct Members {
        var entity: String?
        var partnerEntity: String?
        var device: String?
        var session: String?
        var expiry: Double?
        /// `nbf` or `iat` is too far ahead.
        var isEarly = false

        mutating func read(_ key: JSONNode, _ value: JSONNode, latest: Double) throws(TokenRefusal) {
            if key.isText("exp") {
                expiry = try TokenClaims.time(value)
            } else if key.isText("rezolve_entity_id") {
                entity = try TokenClaims.identity(value, allowsInteger: false)
            } else if key.isText("partner_entity_id") {
                partnerEntity = try TokenClaims.identity(value, allowsInteger: true)
            } else if key.isText("device_id") {
                device = try TokenClaims.identity(value, allowsInteger: false)
            } else if key.isText("nbf") || key.isText("iat") {
                if try TokenClaims.time(value) > latest { isEarly = true }
            } else if key.isText(TokenClaims.sessionMember) {
                session = try TokenClaims.identity(value, allowsInteger: false)
            }
        }
    }

    /// Whether the header is that of a login token.
    /// - Throws: `denied(.header)` for a header that is not accepted.
    private static func isLogin(_ header: JSONNode) throws(TokenRefusal) -> Bool {
        var (hasAlgorithm, hasType, isLogin) = (false, false, false)
        for (key, value) in header.members {
            if key.isText("alg") {
                guard value.isText("HS512") else { throw .denied(.header) }
                hasAlgorithm = true
            } else if key.isText("typ") {
                guard value.isText("JWT") || value.string.map({ $0.utf8.map(upperCased) == Array("JWT".utf8) }) == true
                else { throw .denied(.header) }
                hasType = true
            } else if key.isText("auth") {
                isLogin = value.isText("v2")
            } else if refusedMembers.contains(where: key.isText) {
                throw .denied(.header)
            }
        }
        guard hasAlgorithm, hasType else { throw .denied(.header) }
        return isLogin
    }

    private static func object(
        _ bytes: [UInt8], _ reason: TokenRefusal.Reason
    ) throws(TokenRefusal) -> JSONNode {
        guard
            let document = try? JSONDocument(parsing: bytes[...], maxDepth: TokenRules.jsonDepthMax),
            document.root.kind == .object
        else { throw .denied(reason) }
        return document.root
    }

    private static func upperCased(_ byte: UInt8) -> UInt8 { (0x61...0x7A).contains(byte) ? byte & 0xDF : byte }

    /// A name of 1 to 256 bytes without control characters.
    private static func identity(_ node: JSONNode, allowsInteger: Bool) throws(TokenRefusal) -> String {
        if allowsInteger, node.kind == .number, let number = node.int64 { return String(number) }
        guard let text = node.string, (1...Limits.userIDBytesMax).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { throw .denied(.claims) }
        return text
    }

    /// A NumericDate (RFC 7519, 2): seconds, possibly with a fraction. Huge numbers stay doubles, so that none
    /// traps in a conversion.
    private static func time(_ node: JSONNode) throws(TokenRefusal) -> Double {
        guard let value = node.number?.double, value.isFinite else { throw .denied(.claims) }
        return value
    }
}
