import ThicketProtocol

/// An edit the server does not take.
public struct RefusedEdit: Sendable, Equatable {
    public let key: String
    /// `refused` with the server's number (400 not valid, 413 too large ...), or `unauthorized` with 401: the token of
    /// this connection permits no changes, and with another token the edit goes out.
    public let error: ClientError

    /// Why, in words for a person, with the server's number in brackets.
    public var reason: String { Self.reason(of: error.number ?? 0) }

    init(key: String, error: ClientError) { (self.key, self.error) = (key, error) }

    /// Refused for good.
    init(key: String, code: Int) {
        self.init(
            key: key,
            error: ClientError(.refused, "the server does not take the edit; it is kept here", number: code))
    }

    /// Not permitted to the token.
    init(unauthorized key: String) {
        self.init(
            key: key,
            error: ClientError(
                .unauthorized, "the token does not permit changes; they are kept here",
                number: ErrorCode.unauthorized.rawValue))
    }

    /// What a number that the server refuses changes with means.
    package static func reason(of number: Int) -> String {
        switch ErrorCode(rawValue: number) {
        case .invalidRequest: "it holds the key or the change for not valid (400)"
        case .unauthorized: "the token permits reading only (401)"
        case .notFound: "it no longer has the object (404)"
        case .badVersion: "it no longer has the version that was changed (405)"
        case .tooLarge: "it is too large, or more than the account may have (413)"
        case .invalidDiff: "the change does not fit the object (440)"
        default: "its code is \(number)"
        }
    }
}
