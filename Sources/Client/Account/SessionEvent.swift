/// What happens to the user's access, as `ClientSession.events` tells it.
public enum SessionEvent: Sendable, Equatable {
    /// Another token took the place of the last one. Nothing has to be done.
    case renewed
    /// The server said that the token is over; another one is asked for, if there is somebody to ask.
    case expired
    /// The user has no access any more. Edits are kept; they go out after the next sign-in.
    case signedOut(SignOutReason)
}

/// Why a user is signed out.
public enum SignOutReason: Sendable, Equatable {
    /// The app asked for it.
    case requested
    /// The token source says that the user may not have another token.
    case denied
    /// The server refused the new token, too.
    case refused
    /// The token is over, and there is nobody to ask for another.
    case expired
    /// The account is no more.
    case deleted

    /// What a call gets that cannot be made any more.
    var error: ClientError { ClientError(.unauthorized, text, number: 401) }

    /// For a person.
    public var text: String {
        switch self {
        case .requested: "signed out"
        case .denied: "signed out: no new token is given to this user"
        case .refused: "signed out: the server refused the new token as well"
        case .expired: "signed out: the token is no longer good"
        case .deleted: "signed out: the account was deleted"
        }
    }
}
