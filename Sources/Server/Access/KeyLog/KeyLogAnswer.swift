import ThicketKeyLog
import ThicketProtocol

/// The answers to requests about keys: JSON, and refusals with `code`, `message` and `hint` as those of accounts.
enum KeyLogAnswer {
    /// The queue of requests is full, or the store cannot be read.
    static let unavailable = refusal(
        503, "unavailable", "try again later", "Send the same request again in a moment.")
    static let badToken = refusal(
        401, "unauthorized", "invalid token", "Log in, and send the token in the header X-Simperium-Token.")
    static let empty = refusal(
        404, "empty_log", "the key log of this app has no entry yet",
        "There are no keys to look up before the first one.")
    static let noSuchApp = refusal(404, "no_such_app", "no such app", "Check the app's id.")

    static func invalid(_ what: String) -> HTTPResponse {
        refusal(400, "invalid_request", what, "Change the request as the message says.")
    }

    static func tooMany(seconds: Int) -> HTTPResponse {
        var response = refusal(
            429, "too_many_attempts", "too many requests, try again later", "Wait for the seconds in retry-after.")
        response.fields.append("retry-after", String(max(1, seconds)))
        return response
    }

    /// The answer to a question that the log refuses; its code is that of the error.
    static func of(_ error: KeyLogError) -> HTTPResponse {
        error.kind == .empty
            ? empty
            : refusal(400, error.kind.rawValue, error.description, "Ask for what the newest head states.")
    }

    static func success(_ body: JSONObject) -> HTTPResponse { json(200, body) }

    private static func refusal(_ status: Int, _ code: String, _ message: String, _ hint: String) -> HTTPResponse {
        json(status, ["code": .string(code), "message": .string(message), "hint": .string(hint)])
    }

    private static func json(_ status: Int, _ body: JSONObject) -> HTTPResponse {
        var writer = JSONWriter()
        writer.write(body)
        var response = HTTPResponse.json(status, writer.bytes)
        response.fields.append("cache-control", "no-store")
        return response
    }
}
