import ThicketProtocol

/// Checks the tokens that partners sign, in the order of `docs/AUTH.md`: the partner, the form, the signature, and only
/// then what the token says.
public struct TokenVerifier: Sendable {
    /// What a token is for.
    public enum Phase: Sendable, Hashable {
        case registration
        /// On this device, as the request names it beside the token.
        case login(device: String)
    }

    public var rules: TokenRules

    public init(_ rules: TokenRules = .init()) { self.rules = rules }

    /// All but what needs the user: signature, header, claims, lifetime.
    ///
    /// - Parameters:
    ///   - partner: nil when nobody has the API key; then a signature is computed all the same.
    ///   - now: seconds since 1970.
    public func read(
        _ token: ArraySlice<UInt8>, of partner: Partner?, phase: Phase, now: Double
    ) throws(TokenRefusal) -> TokenClaims {
        let signed = try SignedToken(token)
        let known = partner.flatMap { $0.authKeys.isEmpty ? nil : $0 } ?? .nobody
        let isSigned = signed.isSigned(by: known.signers)
        guard known.isEnabled else { throw .denied(.partner) }
        guard isSigned else { throw .denied(.signature) }
        let claims = try TokenClaims(signed, rules: rules, now: now)
        switch phase {
        case .registration:
            guard same(claims.entity, TokenClaims.noEntity) else { throw .denied(.owner) }
        case .login(let device):
            guard claims.isLogin else { throw .denied(.header) }
            guard let named = claims.device, same(named, device) else { throw .denied(.device) }
        }
        return claims
    }

    /// Whether the token is the user's own.
    /// - Parameter entity: whom the token names; nil when there is nobody of that id.
    public func expectOwner(
        _ claims: TokenClaims, _ entity: Entity?, partner: Partner
    ) throws(TokenRefusal) {
        guard let entity, same(entity.partner, partner.id), same(entity.partnerEntity, claims.partnerEntity)
        else { throw .denied(.owner) }
    }

    /// The last check of all.
    /// - Parameter now: seconds since 1970.
    public func expectLive(_ claims: TokenClaims, now: Double) throws(TokenRefusal) {
        guard now < claims.expiry + rules.expiryLeeway else { throw .expired }
    }
}

/// Whether both have the same bytes: Swift's `==` takes canonically equal texts for the same user.
func same(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
