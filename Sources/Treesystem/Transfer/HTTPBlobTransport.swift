public import ThicketClient
import ThicketPlatform
public import ThicketProtocol
public import ThicketTreeShape

/// Requests about blobs over HTTP (docs/PROTOCOL.md), with connections that are kept.
public struct HTTPBlobTransport: BlobTransport {
    /// A request with the user's token: method (nil: POST with a body, otherwise GET), path after `/1/APP/`, header
    /// lines, body.
    package typealias Call =
        @Sendable (String?, String, [String], [UInt8]?) async throws(ClientError) -> HTTPAnswer

    /// Seconds for a request, which may send or receive a part over a slow line.
    static let timeoutSeconds = 300
    /// The number of the first part on the wire; parts count from 0 here.
    private static let firstPart = 1

    private let call: Call
    /// The name of the branch of another account whose nodes are read, as in requests; nil: the own tree. A
    /// `BranchName` in its place made each call resume freed memory in debug builds. Probably a fault of the compiler
    /// with values aligned to 16 bytes beside async closures, as in swiftlang/swift#91204 and #90813; it was not
    /// isolated.
    private let branch: String?

    /// Requests of a signed-in user.
    ///
    /// - Parameter branch: the branch of another account whose nodes are read; nil: the own tree.
    public init(_ session: ClientSession, _ branch: BranchName? = nil) {
        let pool = HTTPPool(options: session.transportOptions)
        self.init(branch?.text) { method, path, fields, body throws(ClientError) in
            try await session.transfer(
                pool, method: method, path: path, fields: fields, body: body, timeoutSeconds: Self.timeoutSeconds)
        }
    }

    package init(_ call: @escaping Call) { (branch, self.call) = (nil, call) }
    private init(_ branch: String?, _ call: @escaping Call) { (self.branch, self.call) = (branch, call) }

    // MARK: - Uploads

    /// `POST blob`.
    public func begin(length: UInt64, partBytes: Int) async throws(BlobFailure) -> BlobUpload {
        let body: JSONObject = ["length": Self.number(Int64(clamping: length)), "part": Self.number(Int64(partBytes))]
        let object = try await json(nil, "blob", Self.jsonType, body.serialized())
        guard let id = object["upload"]?.stringValue, Self.isID(id), let part = object["part"]?.intValue,
            part > 0, part <= Int64(TransferLimits.partBytesMax)
        else { throw .badAnswer }
        return BlobUpload(id: id, partBytes: Int(part))
    }

    /// `PUT blob/UPLOAD/N`.
    public func send(
        _ bytes: [UInt8], part: Int, of upload: String, sha256: [UInt8]
    ) async throws(BlobFailure) {
        _ = try await ask("PUT", "blob/\(upload)/\(part + Self.firstPart)", Self.hashed(sha256), bytes)
    }

    /// `GET blob/UPLOAD`.
    public func status(of upload: String) async throws(BlobFailure) -> BlobUploadStatus {
        let object = try await json(nil, "blob/\(upload)", [], nil)
        guard case .array(let list)? = object["received"], list.count <= TransferLimits.partsMax else {
            throw .badAnswer
        }
        var parts = [Int: [UInt8]]()
        for element in list {
            guard let part = element.objectValue, let number = part["n"]?.intValue,
                let hash = part["sha256"]?.stringValue.flatMap({ Hex.decode($0) }), hash.count == 32,
                number >= Int64(Self.firstPart), number <= Int64(TransferLimits.partsMax)
            else { throw .badAnswer }
            parts[Int(number) - Self.firstPart] = hash
        }
        return BlobUploadStatus(parts: parts, blob: object["blob"]?.stringValue.flatMap(BlobID.init(text:)))
    }

    /// `POST blob/UPLOAD/complete`.
    public func complete(_ upload: String, sha256: [UInt8]) async throws(BlobFailure) -> BlobID {
        let body: JSONObject = ["sha256": .string(Hex.encode(sha256))]
        return try Self.blob(try await json(nil, "blob/\(upload)/complete", Self.jsonType, body.serialized()))
    }

    /// `DELETE blob/UPLOAD`.
    public func abort(_ upload: String) async throws(BlobFailure) {
        _ = try await ask("DELETE", "blob/\(upload)", [], nil)
    }

    /// `POST blob` with the bytes as the body.
    public func send(whole bytes: [UInt8], sha256: [UInt8]) async throws(BlobFailure) -> BlobID {
        let fields = Self.hashed(sha256) + ["Content-Type: application/octet-stream"]
        return try Self.blob(try await json(nil, "blob", fields, bytes))
    }

    // MARK: - Downloads

    /// `GET blob/ID` with a range. The name of a branch stands where that of the owner does.
    public func read(
        _ blob: BlobID, owner: UserID, node: NodeID, range: Range<UInt64>
    ) async throws(BlobFailure) -> BlobPiece {
        let fields = ["Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)"]
        let query = "node=\(Self.percentEncoded(branch ?? owner.text))/\(node.text)"
        let answer = try await ask(nil, "blob/\(blob.text)?\(query)", fields, nil)
        guard answer.status == 206, answer.body.count <= range.count,
            let (first, total) = Self.contentRange(answer.fields["content-range"]), first == range.lowerBound
        else { throw .badAnswer }
        return BlobPiece(bytes: answer.body, total: total)
    }

    /// `bytes FIRST-LAST/TOTAL` (RFC 9110, 14.4).
    package static func contentRange(_ text: String?) -> (first: UInt64, total: UInt64)? {
        guard let text, text.hasPrefix("bytes ") else { return nil }
        let numbers = text.dropFirst(6).split(omittingEmptySubsequences: false) { $0 == "-" || $0 == "/" }
        guard numbers.count == 3, let first = UInt64(numbers[0]), let last = UInt64(numbers[1]),
            let total = UInt64(numbers[2]), first <= last, last < total
        else { return nil }
        return (first, total)
    }

    // MARK: - Requests

    private static let jsonType = ["Content-Type: application/json"]

    private static func hashed(_ sha256: [UInt8]) -> [String] { ["X-Part-SHA256: \(Hex.encode(sha256))"] }

    private static func number(_ value: Int64) -> JSONValue { .number(JSONNumber(value)) }

    /// Whether the server's id can be part of a path.
    private static func isID(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= UploadMachine.uploadIDBytesMax
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) || $0 == 0x2D }
    }

    static func percentEncoded(_ text: String) -> String {
        text.utf8.reduce(into: "") { encoded, byte in
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
            if isPlain {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                encoded += "%" + Hex.encode([byte])
            }
        }
    }

    private static func blob(_ object: JSONObject) throws(BlobFailure) -> BlobID {
        guard let blob = object["blob"]?.stringValue.flatMap(BlobID.init(text:)) else { throw .badAnswer }
        return blob
    }

    private func json(
        _ method: String?, _ path: String, _ fields: [String], _ body: [UInt8]?
    ) async throws(BlobFailure) -> JSONObject {
        let answer = try await ask(method, path, fields, body)
        guard let object = (try? JSONValue(parsing: answer.body))?.objectValue else { throw .badAnswer }
        return object
    }

    private func ask(
        _ method: String?, _ path: String, _ fields: [String], _ body: [UInt8]?
    ) async throws(BlobFailure) -> HTTPAnswer {
        let answer: HTTPAnswer
        do throws(ClientError) { answer = try await call(method, path, fields, body) } catch {
            switch error.code {
            case .unauthorized: throw .refused(error.number ?? 401)
            case .untrusted, .invalidName: throw .refused(0)
            default: throw .lost
            }
        }
        if let failure = Self.failure(answer) { throw failure }
        return answer
    }

    /// nil for a success.
    package static func failure(_ answer: HTTPAnswer) -> BlobFailure? {
        switch answer.status {
        case 200..<300: return nil
        case 404: return .gone
        case 409: return conflict(answer.body)
        case 410 where code(answer.body) == "blob_lost": return .bytesLost
        case 507: return .full(after: askedPause(answer))
        case 429, 500...: return .busy(after: askedPause(answer))
        // The bytes were changed on the way: they are sent again.
        case 400 where code(answer.body) == "hash_mismatch": return .lost
        default: return .refused(answer.status)
        }
    }

    /// The pause that an answer asks for, in milliseconds, within bounds.
    private static func askedPause(_ answer: HTTPAnswer) -> Int64? {
        guard let seconds = answer.fields["retry-after"].flatMap({ Int64($0) }) else { return nil }
        return min(max(0, seconds), TransferLimits.askedPauseMax / 1_000) * 1_000
    }

    private static func conflict(_ body: [UInt8]) -> BlobFailure {
        switch code(body) {
        case "part_exists": .otherPart
        case "parts_missing": .partsMissing
        // A part is being received by another request, or the upload was completed by one.
        default: .busy(after: nil)
        }
    }

    private static func code(_ body: [UInt8]) -> String? {
        (try? JSONValue(parsing: body))?.objectValue?["code"]?.stringValue
    }
}
