import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape

/// The answers to requests about blobs.
enum BlobAnswer {
    // MARK: Successes

    static func begun(_ upload: BlobUpload) -> HTTPResponse {
        json([
            "upload": .string(upload.id.text), "part": number(Int64(upload.partBytes)),
            "parts": number(Int64(upload.partCount)),
        ])
    }

    static func part(_ part: BlobPart) -> HTTPResponse { json(described(part)) }

    /// - Parameter parts: those that were received.
    static func parts(_ upload: BlobUpload, _ parts: [BlobPart]) -> HTTPResponse {
        var object: JSONObject = [
            "upload": .string(upload.id.text), "length": number(upload.length),
            "part": number(Int64(upload.partBytes)), "received": .array(parts.map { .object(described($0)) }),
        ]
        if upload.proof != nil { object["blob"] = .string(upload.id.text) }
        return json(object)
    }

    static func complete(_ upload: BlobUpload) -> HTTPResponse {
        json(["blob": .string(upload.id.text), "length": number(upload.length)])
    }

    static let aborted = HTTPResponse(status: 204)

    /// The head of a blob's bytes.
    static func content(_ blob: BlobID, _ bytes: Range<Int64>, of length: Int64, isPart: Bool) -> HTTPResponse {
        var response = HTTPResponse(status: isPart ? 206 : 200, fields: fields(of: blob))
        response.fields.append("content-type", "application/octet-stream")
        if isPart {
            response.fields.append("content-range", "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(length)")
        }
        response.bodyLength = bytes.count
        return response
    }

    static func notModified(_ blob: BlobID) -> HTTPResponse { HTTPResponse(status: 304, fields: fields(of: blob)) }

    /// Blobs never change: the id is the entity tag.
    static func tag(of blob: BlobID) -> String { "\"\(blob.text)\"" }

    private static func fields(of blob: BlobID) -> HTTPFields {
        [
            .init("etag", tag(of: blob)), .init("accept-ranges", "bytes"),
            .init("cache-control", "private, max-age=31536000, immutable"),
        ]
    }

    private static func described(_ part: BlobPart) -> JSONObject {
        ["n": number(Int64(part.number)), "sha256": .string(Hex.encode(part.sha256))]
    }

    // MARK: Errors

    /// One answer for all blobs that the user may not read: it must not reveal which of them exist.
    static let noBlob = RESTAnswer.failure(
        404, "no_such_blob", "The node does not refer to this blob, or neither exists.",
        "Read the node's record again: its content may have changed.")
    /// Only the owner of a node that refers to the blob gets this answer: it reveals nothing to others.
    static let lost = RESTAnswer.failure(
        410, "blob_lost", "The server has lost the bytes of this blob.",
        "Do not ask again soon. A device that has the content can store it again.")
    static let noUpload = RESTAnswer.failure(
        404, "no_such_upload", "The upload does not exist, or has expired.", "Begin a new upload.")
    static let badPart = RESTAnswer.invalid(
        "invalid_part", "The number or the length of the part does not fit its upload.",
        "Parts are numbered from 1, and all but the last have the length that the upload was begun with.")
    static let badHash = RESTAnswer.invalid(
        "invalid_hash", "The SHA-256 is missing or is not 64 hex digits.",
        "Parts have it in the header X-Part-SHA256, complete has it in the body as sha256.")
    static let otherHash = RESTAnswer.invalid(
        "hash_mismatch", "The bytes have another SHA-256 than the request states.", "Send the bytes again.")
    static let badNode = RESTAnswer.invalid(
        "invalid_parameter", "The parameter 'node' is not valid.", "It is OWNER/NODE, with the id of a node.")
    static let badBody = RESTAnswer.invalid(
        "invalid_json", "The body is not a JSON object of at most 4 KiB.", "Send an object as JSON in UTF-8.")
    static let badUpload = RESTAnswer.invalid(
        "invalid_upload", "The length of the blob or of its parts is not valid.",
        "A blob has at least 1 byte, a part 1 to 16 MiB, and an upload at most 10,000 parts.")
    static let noLength = RESTAnswer.failure(
        411, "length_required", "The body of a part needs a content-length above 0.", "Send the body with its length.")
    static let readOnly = RESTAnswer.failure(
        401, "read_only", "The token does not allow changes.", "Use a token with write access.")
    static let isComplete = RESTAnswer.failure(
        409, "upload_complete", "The upload is complete.", "Refer to the blob in a record, or begin a new upload.")
    static let otherPart = RESTAnswer.failure(
        409, "part_exists", "The part was received with another SHA-256.", "Delete the upload and begin a new one.")
    static let partInProgress = RESTAnswer.failure(
        409, "part_in_progress", "The same part is being received.", "Wait for the answer to that request.")
    static let full = RESTAnswer.failure(
        507, "storage_full", "The server's disk is full.", "Send the same request again later.")
    static let failed = RESTAnswer.busy("The blob store cannot be used now.")
    static let tooMany = RESTAnswer.busy("Too many requests about blobs are in progress.")

    static func quota(_ verdict: BlobQuota.Verdict) -> HTTPResponse {
        var response = HTTPResponse.json(
            413,
            JSONValue.object([
                "code": "quota",
                "message": .string(
                    verdict == .appFull
                        ? "The blobs of the app would have too many bytes."
                        : "The user's blobs would have too many bytes, or too many uploads are open."),
                "hint": "Remove nodes with content, or delete uploads.", "reason": "quota",
            ]).serialized())
        response.fields.append("cache-control", "no-store")
        return response
    }

    /// - Parameter missing: numbers of the parts that were not received; the first ones are listed.
    static func missing(_ missing: some Collection<Int>, received: [BlobPart]) -> HTTPResponse {
        let object: JSONObject = [
            "code": "parts_missing", "message": .string("\(missing.count) parts are missing."),
            "hint": "Send the missing parts, then complete the upload again.",
            "missing": .array(missing.prefix(missingMax).map { number(Int64($0)) }),
            "received": .array(received.prefix(missingMax).map { .object(described($0)) }),
        ]
        return .json(409, JSONValue.object(object).serialized())
    }

    /// Parts of each kind in an answer about missing ones.
    private static let missingMax = 1_000

    static func noRange(_ blob: BlobID, length: Int64) -> HTTPResponse {
        var response = RESTAnswer.failure(
            416, "range_not_satisfiable", "The blob has \(length) bytes, none of them in the range.",
            "Ask for bytes below the length.")
        response.fields.append("content-range", "bytes */\(length)")
        return response
    }

    static func of(_ error: StoreError) -> HTTPResponse { error.kind == .full ? full : failed }

    private static func number(_ value: Int64) -> JSONValue { .number(JSONNumber(value)) }

    private static func json(_ object: JSONObject) -> HTTPResponse {
        RESTAnswer.json(JSONValue.object(object).serialized())
    }
}
