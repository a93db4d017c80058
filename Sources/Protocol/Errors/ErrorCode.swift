/// The codes with which the server refuses a change or an `init` (streaming API, "Error Responses").
public enum ErrorCode: Int, Sendable, CaseIterable, Hashable {
    /// The key, the form of the change or its operation is not valid.
    case invalidRequest = 400
    /// The token is not valid, not valid any more, or does not permit the request.
    case unauthorized = 401
    /// The object or version does not exist.
    case notFound = 404
    /// The source version is unknown, too old or wrong.
    case badVersion = 405
    /// The server has a change with this ccid already.
    case duplicateChange = 409
    /// The change changes nothing.
    case emptyChange = 412
    /// The object would be larger than the server stores.
    case tooLarge = 413
    /// The diff does not fit the object.
    case invalidDiff = 440
    /// The server failed, or refuses the bucket.
    case serverError = 500
    /// The server cannot accept changes at the moment; the same change may be sent again.
    case unavailable = 503

    /// What the author of a refused change should do.
    public enum Advice: Sendable, Hashable {
        /// Forget the change: the server has it already, or it changes nothing.
        case discard
        /// Send the whole object in `d`.
        case resendWhole
        /// Fetch the object, rebase the edit on it and send the result.
        case reload
        /// Get a new token.
        case renewToken
        /// Keep the change and send it again later, unchanged.
        case retryLater
        /// Sending again cannot succeed; keep the edit and inform the user.
        case giveUp
    }

    /// The author's next step after this code.
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
