import ThicketProtocol
import ThicketTreeShape

/// The answers of the data API. Errors are JSON: a `code` for programs, a `message`, and a `hint` on what to do.
/// Successes have the plain shapes that Simperium's clients read (wire contract, 8.2).
enum RESTAnswer {
    static let versionField = "x-simperium-version"

    // MARK: Successes

    static func object(_ body: [UInt8], version: Version) -> HTTPResponse {
        var response = HTTPResponse.json(200, body)
        response.fields.append(versionField, String(version))
        response.fields.append("etag", "\"\(version)\"")
        response.fields.append("cache-control", "private, no-cache")
        return response
    }

    /// The client already has this version.
    static func notModified(version: Version) -> HTTPResponse {
        HTTPResponse(
            status: 304,
            fields: [
                .init(versionField, String(version)), .init("etag", "\"\(version)\""),
                .init("cache-control", "private, no-cache"),
            ])
    }

    /// A change was made. The body is empty, because one client accepts only that as a success.
    static func written(version: Version) -> HTTPResponse {
        HTTPResponse(status: 200, fields: [.init(versionField, String(version)), .init("etag", "\"\(version)\"")])
    }

    static func json(_ body: [UInt8]) -> HTTPResponse {
        var response = HTTPResponse.json(200, body)
        response.fields.append("cache-control", "private, no-cache")
        return response
    }

    /// Changes and refusals that are already JSON.
    static func changes(_ elements: some Sequence<[UInt8]>) -> HTTPResponse {
        var body: [UInt8] = [0x5B]
        for element in elements {
            if body.count > 1 { body.append(0x2C) }
            body.append(contentsOf: element)
        }
        body.append(0x5D)
        return json(body)
    }

    static func emptyIndex(current: [UInt8]) -> HTTPResponse {
        json(Array("{\"current\":\"".utf8) + current + Array("\",\"index\":[]}".utf8))
    }

    static func buckets(_ buckets: [BucketRecord]) -> HTTPResponse {
        let list: [JSONValue] = buckets.map { bucket in
            var listed: JSONObject = ["name": .string(bucket.id.name.text)]
            if bucket.mode != .open { listed["mode"] = .string(bucket.mode.word) }
            return .object(listed)
        }
        return json(JSONValue.object(JSONObject([(key: "buckets", value: .array(list))])).serialized())
    }

    /// - Parameter name: the user's display name; the id where no other name is known.
    static func user(_ user: UserID, name: UserID) -> HTTPResponse {
        json(
            JSONValue.object(
                JSONObject([
                    (key: "userid", value: .string(user.text)), (key: "username", value: .string(name.text)),
                ])
            ).serialized())
    }

    // MARK: Errors

    static func failure(_ status: Int, _ code: String, _ message: String, _ hint: String) -> HTTPResponse {
        .json(
            status,
            JSONValue.object(
                JSONObject([
                    (key: "code", value: .string(code)), (key: "message", value: .string(message)),
                    (key: "hint", value: .string(hint)),
                ])
            ).serialized())
    }

    static let noSuchPath = failure(
        404, "no_such_path", "This path does not exist.",
        "Paths are /1/APP/BUCKET/index, i/KEY, i/KEY/v/N, changes and all, /1/APP/buckets and /1/APP/user.")
    static let sealedBucket = failure(
        400, "sealed_bucket", "The bucket is sealed: the server accepts only sealed changes.",
        "Write with a client that has the bucket's keys; POST changes accepts its sealed changes.")
    static let noTree = failure(
        404, "no_tree", "The user has no tree in this app, or it is another user's.",
        "Trees are at /1/APP/tree/USER of the user of the token; the first batch makes the tree.")
    static let objectNotFound = failure(
        404, "not_found", "The object does not exist, or not at this version.",
        "It was removed or never created, or the version is no longer kept. The index lists the existing objects.")
    static let unknownPosition = failure(
        404, "unknown_cv", "The position is not, or no longer, in this bucket's log.",
        "Read the index again and continue from its 'current'.")
    static let versionMismatch = failure(
        412, "version_mismatch", "The object is not at the version that the request names.",
        "Read the object and decide again.")
    static let unknownPositionOfAll = failure(
        404, "unknown_cv", "The position is not, or no longer, in the log of all users.",
        "Send the request without cv and continue from its changes; read the missed objects again.")
    static let noSuchUser = failure(
        404, "no_such_user", "The user does not exist any more.",
        "The account was deleted; its data is being erased and cannot be read.")
    static let adminOnly = failure(
        403, "admin_only", "Only an administrator of the app may do this.",
        "Send an admin key of the app in X-Simperium-Token; a user's token is not enough.")

    static func methodNotAllowed(_ allowed: String) -> HTTPResponse {
        var response = failure(
            405, "method_not_allowed", "This path does not support the method.", "It supports \(allowed).")
        response.fields.append("allow", allowed)
        return response
    }

    static func invalid(_ code: String, _ message: String, _ hint: String) -> HTTPResponse {
        failure(400, code, message, hint)
    }

    /// Describes why and where a body is not JSON; nesting that is too deep is reported as a size problem.
    /// - Parameter wanted: what the body should be.
    static func badJSON(_ problem: JSONBodyProblem, wanted: String) -> HTTPResponse {
        let message = "The body is \(problem.text)."
        if problem.isTooLarge { return failure(413, "too_large", message, "Send something smaller.") }
        return invalid("invalid_json", message, "Send \(wanted) as JSON in UTF-8.")
    }

    static func unauthorized(_ message: String = "The token is missing, unknown or expired.") -> HTTPResponse {
        failure(401, "unauthorized", message, "Send a valid token in the header X-Simperium-Token.")
    }

    static func busy(_ message: String) -> HTTPResponse {
        var response = failure(
            503, "unavailable", message, "Send the same request again in a moment, with the same ccid.")
        response.fields.append("retry-after", "1")
        return response
    }

    /// - Parameter seconds: whole seconds after which the next attempt is accepted.
    static func tooMany(_ message: String, retryAfter seconds: Int) -> HTTPResponse {
        var response = failure(
            429, "too_many_attempts", message, "Wait for the time in retry-after, then send a valid token.")
        response.fields.append("retry-after", String(max(1, seconds)))
        return response
    }

    /// A refused `init` as an HTTP response.
    static func of(_ refusal: InitRefusal) -> HTTPResponse {
        if case .attempts(let seconds) = refusal.limit { return tooMany("\(refusal.message).", retryAfter: seconds) }
        return switch refusal.code {
        case .unauthorized: unauthorized("\(refusal.message).")
        case .invalidRequest: invalid("invalid_request", "\(refusal.message).", "Change the request.")
        case _ where refusal.limit == .administrators: adminOnly
        case _ where refusal.limit == .ended: noSuchUser
        case _ where refusal.limit == .buckets:
            failure(403, "bucket_limit", "The user has reached the maximum number of buckets.", "Use one of them.")
        default: busy("\(refusal.message).")
        }
    }

    /// A refused change of a tree as an HTTP response; nil for a code whose ordinary response says enough.
    static func of(_ tree: TreeRejection, _ code: ErrorCode) -> HTTPResponse? {
        switch code {
        case .invalidRequest:
            failure(
                400, "tree_refused", "The bucket is a tree of encrypted nodes, and refuses the change: \(tree.word).",
                "Write with a client that has the tree's keys.")
        case .badVersion: versionMismatch
        default: nil
        }
    }

    /// The methods of a tree's `batch`.
    static let batchMethods = "POST, OPTIONS"

    /// A refused batch. The status is the code of the refusal.
    static func of(_ refusal: BatchRefusal) -> HTTPResponse {
        var response = HTTPResponse.json(
            refusal.code.rawValue,
            JSONValue.object(TreeBatchAnswer.refused(refusal).object).serialized())
        // RFC 9110: 10.2.1 wants one field with 405, 10.2.3 recommends the other with 503.
        if refusal.code == .badVersion { response.fields.append("allow", batchMethods) }
        if refusal.code == .unavailable { response.fields.append("retry-after", "1") }
        return response
    }

    /// A refused change as an HTTP response.
    static func of(_ code: ErrorCode, removes: Bool, isConditional: Bool) -> HTTPResponse {
        switch code {
        case .invalidRequest:
            invalid("invalid_change", "The change is not valid.", "Check the key, the ccid and the version.")
        case .unauthorized:
            failure(401, "read_only", "The token does not allow changes.", "Use a token with write access.")
        case .notFound: objectNotFound
        case .badVersion where removes || isConditional: versionMismatch
        case .badVersion: objectNotFound
        case .duplicateChange:
            failure(
                409, "duplicate_ccid", "A change with this ccid was made before.",
                "It is stored. Use a new ccid for another change.")
        case .emptyChange where removes: objectNotFound
        case .emptyChange:
            failure(412, "nothing_changed", "The object already has this value.", "There is nothing to do.")
        case .tooLarge: failure(413, "too_large", "The object would be too large.", "Make it smaller.")
        case .invalidDiff:
            invalid("invalid_diff", "The difference does not fit the object.", "Send the whole object instead.")
        case .serverError:
            failure(500, "server_error", "The change could not be stored.", "Send the same request again later.")
        case .unavailable: busy("The server cannot accept changes now.")
        }
    }
}
