/// The numbers by which the server refuses a change or an `init` (streaming API, "Error Responses").
public enum ErrorCode: Int, Sendable, CaseIterable, Hashable {
    /// The key, the shape of the change or its operation is not valid.
    case invalidRequest = 400
    /// The token is not (or no longer) good, or does not permit this.
    case unauthorized = 401
    /// No such object or version.
    case notFound = 404
    /// The source version is unknown, too old or wrong.
    case badVersion = 405
    /// The server has this ccid already.
    case duplicateChange = 409
    /// The change changes nothing.
    case emptyChange = 412
    /// The object would be larger than the server keeps.
    case tooLarge = 413
    /// The diff does not fit the object.
    case invalidDiff = 440
    /// The server failed, or refuses the bucket.
    case serverError = 500
    /// The server cannot take changes now; the same change may be sent again.
    case unavailable = 503

    /// What the author of a refused change should do.
    public enum Advice: Sendable, Hashable {
        /// Forget the change: it is in already, or says nothing.
        case discard
        /// Send the whole object in `d`.
        case resendWhole
        /// Fetch the object, rebase the edit on it and send that.
        case reload
        /// Get a new token.
        case renewToken
        /// Keep the change and send the same again later.
        case retryLater
        /// Nothing sent again will be taken; keep the edit and tell the user.
        case giveUp
    }

    public var advice: Advice {
        switch self {
        case .duplicateChange, .emptyChange: .discard
        case .invalidDiff: .resendWhole
        case .badVersion, .notFound: .reload
        case .unauthorized: .renewToken
        case .serverError, .unavailable: .retryLater
        case .invalidRequest, .tooLarge: .giveUp
        }
    }
}
