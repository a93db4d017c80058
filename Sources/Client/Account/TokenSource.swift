/// Where new tokens come from: the integrator's own auth server, which knows the user.
///
/// Asked whenever the token has ended or is about to; never twice at the same time for one session, and never after the
/// user was signed out. It should answer within `30` s: calls that wait for it fail then.
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
    /// A new login token for this user on this device.
    ///
    /// - Throws: `TokenDenied` when the user has no access any more: the session is signed out then. Everything else
    ///   counts as a failure that may pass, and is tried again after a pause (1 s, doubling up to a minute).
    func token(for request: TokenRequest) async throws -> String
}

/// For whom a new token is wanted.
public struct TokenRequest: Sendable, Equatable {
    /// The partner's user as the Thicket server knows it; empty for built-in accounts.
    public let entityId: String
    public let partnerId: String
    /// Goes into the token as `device_id`.
    public let deviceId: String
    /// The token that has ended or is about to.
    public let accessToken: String

    public init(entityId: String, partnerId: String, deviceId: String, accessToken: String) {
        (self.entityId, self.partnerId) = (entityId, partnerId)
        (self.deviceId, self.accessToken) = (deviceId, accessToken)
    }
}

extension TokenRequest: CustomStringConvertible, CustomReflectable {
    /// Says nothing of what it holds.
    public var description: String { "(a request for another token)" }
    /// Shows nothing of what it holds.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}

/// The user may not have another token: logged out at the auth server, or blocked there.
public struct TokenDenied: Error, Sendable {
    public init() {}
}
