import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol

/// The answers to partner requests in the form that integrators expect: `type`, `code` and `message`, all of them
/// text.
public enum PartnerAnswer {
    /// The same bytes for every cause, so that the cause stays hidden.
    public static let denied: HTTPResponse = failure(403, "Authentication", "1", "Access is denied.")
    /// Only for a token that is good except for its time.
    public static let expired: HTTPResponse = failure(
        401, "Expired Token", "8", "Your token has expired, refresh your token and try again.")
    /// The path has nothing to return.
    public static let notFound: HTTPResponse = failure(404, "Not Found", "3", "There is nothing here.")
    /// The directory could not be read, or the queue is full.
    public static let unavailable: HTTPResponse = failure(
        503, "Server", "5", "The server cannot answer at the moment; send the same request again later.")

    /// The user has other public keys already.
    public static let keysTaken: HTTPResponse = failure(
        409, "Conflict", "7", "The user has other keys already; they stay.")

    /// Another client has written a newer version.
    static func outdated(current: Int64) -> HTTPResponse {
        json(
            409,
            [
                "type": .string("Conflict"), "code": .string("7"),
                "message": .string("Another version was written meanwhile."), "version": .number(JSONNumber(current)),
            ])
    }

    /// Success without a body.
    public static let done = HTTPResponse(status: 204)

    /// The body of the request cannot be used. Only returned to requests with a good token.
    public static func invalid(_ what: String) -> HTTPResponse { failure(400, "Validation", "2", what) }

    /// Too many attempts.
    /// - Parameter seconds: whole seconds after which the next one is checked.
    public static func tooMany(retryAfter seconds: Int) -> HTTPResponse {
        var response = failure(429, "Rate Limit", "4", "Too many requests, try again later.")
        response.fields.append("retry-after", String(max(1, seconds)))
        return response
    }

    /// The answer to a refused token.
    public static func of(_ refusal: TokenRefusal) -> HTTPResponse {
        switch refusal {
        case .denied: denied
        case .expired: expired
        }
    }

    /// The answer to a body that cannot be used, of the kind that accounts have.
    static func of(_ refusal: AccountRefusal) -> HTTPResponse {
        switch refusal {
        case .tooLarge(let what): failure(413, "Validation", "2", what)
        case .badRequest(let what): invalid(what)
        case .badEntry(let error, let newest): badEntry(error, newest)
        default: unavailable
        }
    }

    private static func badEntry(_ error: KeyLogError, _ newest: KeyLogEntry?) -> HTTPResponse {
        var body: JSONObject = [
            "type": .string("Validation"), "code": .string("bad_entry"), "message": .string(error.description),
            "reason": .string(error.kind.rawValue),
        ]
        if let newest { body["newest"] = .string(Base64.encodeURL(newest.bytes)) }
        return json(400, body)
    }

    static func success(_ body: JSONObject) -> HTTPResponse { json(200, body) }

    private static func failure(_ status: Int, _ type: String, _ code: String, _ message: String) -> HTTPResponse {
        json(status, ["type": .string(type), "code": .string(code), "message": .string(message)])
    }

    private static func json(_ status: Int, _ body: JSONObject) -> HTTPResponse {
        var writer = JSONWriter()
        writer.write(body)
        return .json(status, writer.bytes)
    }
}
