/// Changes of the user's access, as `ClientSession.events` reports them.
public enum SessionEvent: Sendable, Equatable {
    /// A new token replaced the last one. The app has nothing to do.
    case renewed
    /// The server reported the token as expired; a new one is requested if the session has a token source.
    case expired
    /// The user has lost access. Edits are kept; they are sent after the next sign-in.
    case signedOut(SignOutReason)
}

/// Why a user is signed out.
public enum SignOutReason: Sendable, Equatable {
    /// The app called `signOut`.
    case requested
    /// The token source refused the user another token (`TokenDenied`).
    case denied
    /// The server refused the new token as well.
    case refused
    /// The token expired, and the session has no token source.
    case expired
    /// The account was deleted.
    case deleted

    /// The error that calls throw after the sign-out.
    var error: ClientError { ClientError(.unauthorized, text, number: 401) }

    /// A text to show to the user.
    public var text: String {
        switch self {
        case .requested: "signed out"
        case .denied: "signed out: this user may not get a new token"
        case .refused: "signed out: the server refused the new token as well"
        case .expired: "signed out: the token is no longer valid"
        case .deleted: "signed out: the account was deleted"
        }
    }
}
