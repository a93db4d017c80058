import ThicketProtocol

/// The numbers of partner tokens. Times are seconds; the clock is passed in everywhere.
public struct TokenRules: Sendable, Hashable {
    /// Bytes of a token at most.
    public static let tokenBytesMax = 8_192
    /// Nesting of a token's JSON.
    public static let jsonDepthMax = 64

    /// Seconds of leeway at most.
    public static let expiryLeewayMax: Double = 120

    /// How long after its `exp` a token is still good, for servers whose clock runs ahead: 0...`expiryLeewayMax`.
    public var expiryLeeway: Double = 0
    /// How far in the future `nbf` and `iat` may lie.
    public var notBeforeSkew: Double = 60
    /// How long a token may live from now on.
    public var lifetimeMax: Double = 1_800
    /// How far the partner's clock may run ahead of ours when it sets `exp`.
    public var lifetimeTolerance: Double = 60

    public init() {}
}

/// Why a request is not let in.
///
/// There are two answers only: what is wrong is for the log, so that nobody learns parts of a stolen token by trying.
public enum TokenRefusal: Error, Hashable, Sendable {
    /// Something is wrong; answered 403.
    case denied(Reason)
    /// Nothing is wrong but that the token's time is over; answered 401.
    case expired

    /// For counters and the log at debug level.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        case partner, authorization, structure, signature, header, claims, lifetime, owner, device, signedOut, password
    }
}
