import ThicketProtocol

/// What a signed token says, after every check that needs the token alone.
public struct TokenClaims: Sendable, Hashable {
    /// What stands in for the entity id in a registration token.
    public static let noEntity: String = ":NONE:"

    /// `rezolve_entity_id`: our id of the user, or `noEntity`.
    public let entity: String
    /// `partner_entity_id`: the partner's own id of the user; an integer as its decimal text.
    public let partnerEntity: String
    /// `device_id`, where the token names one.
    public let device: String?
    /// `exp`, seconds since 1970.
    public let expiry: Double
    /// Member that names the session of a token that was made here.
    static let sessionMember: String = "thicket_session"
    /// Its value: what the token's renewal hangs on.
    public let session: String?
    /// Whether the header says `auth: v2`, as login tokens do.
    public let isLogin: Bool

    /// Header members that change how a token is to be read; none of them is supported, so none is ignored.
    private static let refusedMembers: [String] = ["crit", "b64", "zip", "enc", "jku", "jwk", "x5u", "x5c"]

    /// Reads a token whose signature is known to be good.
    ///
    /// - Parameter now: seconds since 1970.
    /// - Throws: `denied` for whatever is wrong. Whether the time is over is not looked at here: that is the last check
    ///   of all.
    init(_ token: SignedToken, rules: TokenRules, now: Double) throws(TokenRefusal) {
        let header: JSONNode = try Self.object(token.header, .header)
        let payload: JSONNode = try Self.object(token.payload, .claims)
        guard Self.text(header["alg"]) == Array("HS512".utf8) else { throw .denied(.header) }
        guard let type: [UInt8] = Self.text(header["typ"]), type.map(Self.upperCased) == Array("JWT".utf8),
            !Self.refusedMembers.contains(where: { header[$0] != nil })
        else { throw .denied(.header) }
        isLogin = Self.text(header["auth"]) == Array("v2".utf8)
        guard let entity: String = Self.identity(payload["rezolve_entity_id"], takesInteger: false),
            let partnerEntity: String = Self.identity(payload["partner_entity_id"], takesInteger: true)
        else { throw .denied(.claims) }
        (self.entity, self.partnerEntity) = (entity, partnerEntity)
        if let node: JSONNode = payload["device_id"] {
            guard let device: String = Self.identity(node, takesInteger: false) else { throw .denied(.claims) }
            self.device = device
        } else {
            device = nil
        }
        if let node: JSONNode = payload[Self.sessionMember] {
            guard let session: String = Self.identity(node, takesInteger: false) else { throw .denied(.claims) }
            self.session = session
        } else {
            session = nil
        }
        expiry = try Self.time(payload["exp"])
        for name: String in ["nbf", "iat"] {
            guard let node: JSONNode = payload[name] else { continue }
            guard try Self.time(node) <= now + rules.notBeforeSkew else { throw .denied(.lifetime) }
        }
        guard expiry <= now + rules.lifetimeMax + rules.lifetimeTolerance else { throw .denied(.lifetime) }
    }

    private static func object(
        _ bytes: [UInt8], _ reason: TokenRefusal.Reason
    ) throws(TokenRefusal) -> JSONNode {
        guard
            let document: JSONDocument = try? JSONDocument(parsing: bytes[...], maxDepth: TokenRules.jsonDepthMax),
            document.root.kind == .object
        else { throw .denied(reason) }
        return document.root
    }

    private static func text(_ node: JSONNode?) -> [UInt8]? { node?.string.map { Array($0.utf8) } }

    private static func upperCased(_ byte: UInt8) -> UInt8 { (0x61...0x7A).contains(byte) ? byte & 0xDF : byte }

    /// A name of 1 to 256 bytes without control characters.
    private static func identity(_ node: JSONNode?, takesInteger: Bool) -> String? {
        guard let node: JSONNode else { return nil }
        if takesInteger, node.kind == .number { return node.int64.map(String.init) }
        guard let text: String = node.string, (1...Limits.userIDBytesMax).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { return nil }
        return text
    }

    /// A NumericDate (RFC 7519, 2): seconds, with a fraction if need be. Huge numbers stay doubles, so that none of them
    /// traps a conversion.
    private static func time(_ node: JSONNode?) throws(TokenRefusal) -> Double {
        guard let value: Double = node?.number?.double, value.isFinite else { throw .denied(.claims) }
        return value
    }
}
