import ThicketProtocol

/// An edit that the server refuses.
public struct RefusedEdit: Sendable, Equatable {
    /// The object's key.
    public let key: String
    /// `refused` with the server's number (400 invalid, 413 too large, …), or `unauthorized` with 401: this
    /// connection's token does not permit changes; the edit is sent when another token does.
    public let error: ClientError

    /// The reason as a text for the user, with the server's number in brackets.
    public var reason: String { Self.reason(of: error.number ?? 0) }

    init(key: String, error: ClientError) { (self.key, self.error) = (key, error) }

    /// An edit that the server refused.
    init(key: String, code: Int) {
        self.init(
            key: key,
            error: ClientError(.refused, "the server refuses the edit; it is kept on this device", number: code))
    }

    /// An edit that the token does not permit.
    init(unauthorized key: String) {
        self.init(
            key: key,
            error: ClientError(
                .unauthorized, "the token does not permit changes; they are kept on this device",
                number: ErrorCode.unauthorized.rawValue))
    }

    /// The reason for a number with which the server refuses changes.
    package static func reason(of number: Int) -> String {
        switch ErrorCode(rawValue: number) {
        case .invalidRequest: "it considers the key or the change invalid (400)"
        case .unauthorized: "the token permits reading only (401)"
        case .notFound: "it no longer has the object (404)"
        case .badVersion: "it no longer has the version that was changed (405)"
        case .tooLarge: "it is too large, or more than the account may have (413)"
        case .invalidDiff: "the change does not fit the object (440)"
        default: "its code is \(number)"
        }
    }
}
