import ThicketProtocol

/// The answers of the partner requests, as integrators know them: `type`, `code` and `message`, all of them text.
public enum PartnerAnswer {
    /// Masks every cause: these bytes and no others.
    public static let denied: HTTPResponse = failure(403, "Authentication", "1", "Access is denied.")
    /// Only for a token with which nothing is wrong but its time.
    public static let expired: HTTPResponse = failure(
        401, "Expired Token", "8", "Your token has expired, refresh your token and try again.")
    public static let notFound: HTTPResponse = failure(404, "Not Found", "3", "There is nothing here.")
    public static let unavailable: HTTPResponse = failure(
        503, "Server", "5", "The server cannot look it up now; send the same again later.")

    /// The user has other public keys already.
    public static let keysTaken: HTTPResponse = failure(
        409, "Conflict", "7", "The user has other keys already; they stay.")

    /// Somebody else has written a newer version.
    static func outdated(current: Int64) -> HTTPResponse {
        json(
            409,
            [
                "type": .string("Conflict"), "code": .string("7"),
                "message": .string("Another version was written meanwhile."), "version": .number(JSONNumber(current)),
            ])
    }

    /// It was done, and there is nothing to say about it.
    public static let done = HTTPResponse(status: 204)

    /// The body of the request cannot be used. Only told to who has shown a good token.
    public static func invalid(_ what: String) -> HTTPResponse { failure(400, "Validation", "2", what) }

    /// Too many tries.
    /// - Parameter seconds: whole seconds after which the next one is looked at.
    public static func tooMany(retryAfter seconds: Int) -> HTTPResponse {
        var response = failure(429, "Rate Limit", "4", "Too many requests, try again later.")
        response.fields.append("retry-after", String(max(1, seconds)))
        return response
    }

    public static func of(_ refusal: TokenRefusal) -> HTTPResponse {
        switch refusal {
        case .denied: denied
        case .expired: expired
        }
    }

    /// What is wrong with a body of the kind that accounts have.
    static func of(_ refusal: AccountRefusal) -> HTTPResponse {
        switch refusal {
        case .tooLarge(let what): failure(413, "Validation", "2", what)
        case .badRequest(let what): invalid(what)
        default: unavailable
        }
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
