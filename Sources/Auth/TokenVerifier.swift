import ThicketProtocol

/// Checks the tokens that partners sign, in the order of `docs/AUTH.md`: the partner, the form, the signature, and
/// only then the claims.
public struct TokenVerifier: Sendable {
    /// The purpose of a token.
    public enum Phase: Sendable, Hashable {
        /// Registering a new user.
        case registration
        /// Login on this device, as named by the request beside the token.
        case login(device: String)
    }

    /// The bounds in force.
    public var rules: TokenRules

    /// A verifier with these rules.
    public init(_ rules: TokenRules = .init()) { self.rules = rules }

    /// Every check that does not need the user: signature, header, claims, lifetime.
    ///
    /// - Parameters:
    ///   - partner: nil for an unknown API key; a signature is computed all the same.
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

    /// Checks that the token belongs to the user.
    /// - Parameter entity: the user that the token names; nil when it does not exist.
    public func expectOwner(
        _ claims: TokenClaims, _ entity: Entity?, partner: Partner
    ) throws(TokenRefusal) {
        guard let entity, same(entity.partner, partner.id), same(entity.partnerEntity, claims.partnerEntity)
        else { throw .denied(.owner) }
    }

    /// Checks the token's end; the last check of all.
    /// - Parameter now: seconds since 1970.
    public func expectLive(_ claims: TokenClaims, now: Double) throws(TokenRefusal) {
        guard now < claims.expiry + rules.expiryLeeway else { throw .expired }
    }
}

/// Whether both have the same bytes: Swift's `==` would take canonically equal texts for the same user.
func same(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }
