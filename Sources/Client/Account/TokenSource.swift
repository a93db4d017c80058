/// The source of new tokens: the integrator's own auth server, which knows the user.
///
/// The session calls it when the token has expired or is about to; never twice at the same time for one session, and
/// never after the user was signed out. It should answer within `30` s; after that, waiting calls fail.
///
/// ```swift
/// struct OurServer: TokenSource {
///     func token(for request: TokenRequest) async throws -> String {
///         let (status, token) = try await post("/token", ["device": request.deviceId])   // with our own login
///         if status == 401 { throw TokenDenied() }
///         return token
///     }
/// }
/// ```
public protocol TokenSource: Sendable {
    /// Returns a new login token for this user on this device.
    ///
    /// - Throws: `TokenDenied` when the user has lost access: the session then signs out. Every other error counts as
    ///   temporary, and the session tries again after a pause (1 s, doubling up to a minute).
    func token(for request: TokenRequest) async throws -> String
}

/// A request for a new token.
public struct TokenRequest: Sendable, Equatable {
    /// The partner's user as the Thicket server knows it; empty for built-in accounts.
    public let entityId: String
    /// The partner's id; empty for built-in accounts.
    public let partnerId: String
    /// The id that the token must carry as `device_id`.
    public let deviceId: String
    /// The token that has expired or is about to.
    public let accessToken: String

    /// Makes a request; the session does this, and tests of a token source may.
    public init(entityId: String, partnerId: String, deviceId: String, accessToken: String) {
        (self.entityId, self.partnerId) = (entityId, partnerId)
        (self.deviceId, self.accessToken) = (deviceId, accessToken)
    }
}

extension TokenRequest: CustomStringConvertible, CustomReflectable {
    /// A fixed text: the request's contents never reach a log.
    public var description: String { "(a request for another token)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// Thrown by a token source when the user may not have another token: logged out or blocked at the auth server.
public struct TokenDenied: Error, Sendable {
    /// Makes the error.
    public init() {}
}
