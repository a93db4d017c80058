import ThicketProtocol

/// Bounds of partner tokens. Times are seconds; callers pass the time in.
public struct TokenRules: Sendable, Hashable {
    /// Longest token, bytes.
    public static let tokenBytesMax = 8_192
    /// Deepest nesting of a token's JSON.
    public static let jsonDepthMax = 64

    /// Largest leeway, seconds.
    public static let expiryLeewayMax: Double = 120

    /// How long after its `exp` a token is still good, for servers with a fast clock: 0...`expiryLeewayMax` seconds.
    public var expiryLeeway: Double = 0
    /// How far in the future `nbf` and `iat` may be, seconds.
    public var notBeforeSkew: Double = 60
    /// Longest remaining lifetime of a token, seconds.
    public var lifetimeMax: Double = 1_800
    /// How far the partner's clock may be ahead of the server's when it sets `exp`, seconds.
    public var lifetimeTolerance: Double = 60

    /// The default rules.
    public init() {}
}

/// Why a request is refused.
///
/// Clients get only two answers: the reason is for the log, so that an attacker cannot learn parts of a stolen
/// token by trying.
public enum TokenRefusal: Error, Hashable, Sendable {
    /// The token, or its use, is wrong; answered 403.
    case denied(Reason)
    /// Only the token's time is over; answered 401.
    case expired

    /// For counters and the log at debug level.
    public enum Reason: String, Sendable, Hashable, CaseIterable {
        /// The check that failed; `password` also covers wrong secrets and codes.
        case partner, authorization, structure, signature, header, claims, lifetime, owner, device, signedOut, password
    }
}
