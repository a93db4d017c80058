import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// Bounds that account requests can reach. Each has a name in the metrics.
public enum AccountLimit: Sendable, Hashable, CaseIterable {
    /// Unknown API keys from one address.
    case keys
    /// Tokens that are not good, from one address.
    case tokens
    /// Failed logins, and registrations of taken names, from one address.
    case address
    /// Failures in a row for one name.
    case account
    /// Requests from one address for the parameters of a password's key derivation.
    case prelogins
    /// New accounts of one app.
    case registrations
    /// Requests about pairings from one address, or open pairings in all.
    case pairings
    /// Tokens of one user: the oldest one ended.
    case userTokens
    /// Guests of one account.
    case guests
}

/// Why an account request is refused.
enum AccountRefusal: Error {
    /// The request cannot be used, for any sender.
    case badRequest(String)
    /// An entry of the key log is not one that the account may add.
    /// - newest: the user's newest entry, if the log has one.
    case badEntry(KeyLogError, newest: KeyLogEntry? = nil)
    /// The API key is not one of the app's.
    case badKey
    /// The API key is the app's, but does not permit this.
    case needsAdminKey
    /// The user does not exist, the proof is wrong, or the user has another kind of proof: the answer does not say
    /// which.
    case wrongLogin
    case badToken
    case nameTaken
    /// Another request changed or ended the account between the proof and the change.
    case overtaken
    /// Not available in this app, for any sender.
    case notHere(String)
    /// The account's password was reset by a mailed code, and its data is still sealed under the earlier one.
    case locked
    /// Only returned to requests with an admin key.
    case unknownUser
    /// The access key shown is not the account's current one, or a current one exists and none was shown.
    case otherKey
    /// Another client has written a newer version.
    case outdated(current: Int64)
    /// The pairing is unknown, expired, or used.
    case noPairing
    /// The pairing exists already, or has been answered.
    case pairingTaken
    case tooLarge(String)
    /// The user is a guest, and guests may not do this.
    case notForGuests
    /// The user is a guest that has ended.
    case linkEnded
    /// The account has as many guests as it may have.
    case tooManyGuests(Int)
    case limited(AccountLimit, seconds: Int)
    /// The directory cannot be read, or memory for the key derivation is lacking.
    case unavailable(DirectoryError)
}

/// The answers to account requests.
public enum AccountAnswer {
    /// Form of refusals: the short texts that Simperium's clients show, or, for Thicket's own requests, JSON with a
    /// `code` for programs, a `message`, and a `hint` on what to do.
    enum Style { case text, json }

    /// The answer when the queue of requests is full.
    public static func unavailable(_ route: AccountRoute) -> HTTPResponse {
        refusal(.unavailable(DirectoryError("too many requests wait")), route.call.style)
    }

    /// The answer to a guest that requests what guests may not do.
    public static let notForGuests = refusal(.notForGuests, .json)

    static let done: HTTPResponse = success(["status": "success"])
    /// An account has ended. Its data is erased; backups made before by the operator remain.
    static let ended: HTTPResponse = success(["status": "success", "kept": .array(["backups"])])

    static func success(_ body: JSONObject) -> HTTPResponse { json(200, body) }

    static var noContent: HTTPResponse { HTTPResponse(status: 204, fields: [.init("cache-control", "no-store")]) }

    /// In style `text` the text is short, because Simperium's clients show it to their users.
    static func refusal(_ refusal: AccountRefusal, _ style: Style) -> HTTPResponse {
        let (status, code, text, hint) = refusal.words
        var response: HTTPResponse
        switch style {
        case .text:
            response = .text(status, text)
            response.fields.append("cache-control", "no-store")
        case .json:
            var body: JSONObject = ["code": .string(code), "message": .string(text), "hint": .string(hint)]
            if case .outdated(let current) = refusal { body["version"] = .number(JSONNumber(current)) }
            if case .badEntry(let error, let newest) = refusal {
                body["reason"] = .string(error.kind.rawValue)
                if let newest { body["newest"] = .string(Base64.encodeURL(newest.bytes)) }
            }
            response = json(status, body)
        }
        if case .limited(_, let seconds) = refusal { response.fields.append("retry-after", String(max(1, seconds))) }
        return response
    }

    private static func json(_ status: Int, _ body: JSONObject) -> HTTPResponse {
        var writer = JSONWriter()
        writer.write(body)
        var response = HTTPResponse.json(status, writer.bytes)
        // Most answers contain a token.
        response.fields.append("cache-control", "no-store")
        return response
    }
}

extension AccountRefusal {
    fileprivate var words: (status: Int, code: String, text: String, hint: String) {
        switch self {
        case .badRequest(let what): (400, "invalid_request", what, "Change the request as the message says.")
        case .badEntry(let error, _):
            (
                400, "bad_entry", error.description,
                "Make the entry from the account's keys and the newest entry that the log has of it."
            )
        case .badKey:
            (401, "invalid_key", "invalid API key", "Send a key of this app in X-Simperium-API-Key, or as client_id.")
        case .needsAdminKey:
            (401, "admin_only", "an admin key is needed", "Send an admin key of the app; an API key is not enough.")
        case .wrongLogin:
            (401, "invalid_login", "invalid login", "Name, password or code is wrong; the answer does not say which.")
        case .badToken:
            (401, "unauthorized", "invalid token", "Log in, and send the token in the header X-Simperium-Token.")
        case .notHere(let what): (403, "not_here", what, "The app's operator chooses how users log in.")
        case .locked:
            (
                403, "locked", "the account is locked until its words, or a device that has its keys, set a password",
                "Set a password with the recovery words, or on a device that still has the keys."
            )
        case .nameTaken: (409, "name_taken", "the user exists already", "Log in, or choose another name.")
        case .overtaken:
            (
                409, "changed_meanwhile", "the account was changed meanwhile",
                "Log in with the current credentials and send the request again."
            )
        case .noPairing:
            (404, "no_pairing", "there is no such pairing", "A pairing works once, for two minutes: begin another.")
        case .pairingTaken:
            (
                409, "pairing_taken", "the pairing has been used",
                "Begin another; its code may have been seen."
            )
        case .unknownUser: (404, "no_such_user", "no such user", "Check the name; the account may have ended.")
        case .outdated:
            (
                409, "version_mismatch", "another version was written meanwhile",
                "Read the current version, and write again in place of it."
            )
        case .otherKey:
            (
                409, "access_key_changed", "this is not the account's access key any more",
                "Log in to get the current one; a request that seals an access key sends its proof as r."
            )
        case .notForGuests:
            (
                403, "guest", "a guest may not do this",
                "A guest of a link logs in, looks up keys, and uses the one branch of the link."
            )
        case .linkEnded: (403, "link_ended", "the link has ended", "The owner of the branch can make another link.")
        case .tooManyGuests(let max):
            (
                409, "too_many_guests", "the account has \(max) guests, which is the maximum",
                "Remove guests whose links are not needed any more."
            )
        case .tooLarge(let what): (413, "too_large", what, "Send less data.")
        case .limited:
            (
                429, "too_many_attempts", "too many attempts, try again later",
                "Wait for the seconds in retry-after; earlier attempts are refused without a check."
            )
        case .unavailable: (503, "unavailable", "try again later", "Send the same request again in a moment.")
        }
    }
}
