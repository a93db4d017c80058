import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape

/// Reads requests about blobs: from an HTTP request to a checked call, or to an answer that needs no user. Pure.
struct BlobHandler: Sendable {
    private typealias Refusal = RESTHandler.Refusal

    private enum Resource {
        case all
        case item(BlobID)
        case complete(BlobID)
        case part(BlobID, String)

        /// The methods that the resource supports.
        var allowed: String {
            switch self {
            case .all, .complete: "POST, OPTIONS"
            case .item: "GET, HEAD, DELETE, OPTIONS"
            case .part: "PUT, OPTIONS"
            }
        }
    }

    let cors: CORSPolicy
    /// Fewest bytes that a client may choose for a part.
    var partBytesMin = BlobCall.partBytesRange.lowerBound

    /// Bytes of a JSON body.
    private static let jsonBytesMax = 4_096

    /// Whether the path is one of blobs: `/1/APP/blob`, or below it with an id. A bucket may have that name, too.
    static func owns(_ path: Substring) -> Bool {
        path.utf8.starts(with: "/1/".utf8) && resource(RESTHandler.parts(of: path)) != nil
    }

    private static func resource(_ parts: [Substring]) -> Resource? {
        guard (2...4).contains(parts.count), RESTHandler.named(parts[1], "blob") else { return nil }
        if parts.count == 2 { return .all }
        guard let id = BlobID(text: String(parts[2])) else { return nil }
        if parts.count == 3 { return .item(id) }
        return RESTHandler.named(parts[3], "complete") ? .complete(id) : .part(id, String(parts[3]))
    }

    /// Whether the request's body is the bytes of a blob.
    static func hasBlobBody(_ head: HTTPRequest) -> Bool {
        guard head.method == "PUT" || head.method == "POST", head.path.utf8.starts(with: "/1/".utf8) else {
            return false
        }
        switch resource(RESTHandler.parts(of: head.path)) {
        case .part: return head.method == "PUT"
        case .all: return head.method == "POST" && head.fields[BlobCall.hashField] != nil
        default: return false
        }
    }

    /// - Parameters:
    ///   - request: a request whose path `owns` accepts.
    ///   - length: bytes of a body that comes in pieces; nil: the body is in the request.
    func read(_ request: HTTPRequest, length: Int? = nil) -> RESTHandler.Reading {
        guard let resource = Self.resource(RESTHandler.parts(of: request.path)) else {
            return .answer(cors.marking(RESTAnswer.noSuchPath, to: request))
        }
        if request.method == "OPTIONS" { return .answer(cors.preflight(request, allowed: resource.allowed)) }
        do {
            var call = try call(request, at: resource, length)
            call.answerFields = cors.fields(for: request)
            return .call(call)
        } catch {
            return .answer(cors.marking(error.response, to: request))
        }
    }

    private func call(_ request: HTTPRequest, at resource: Resource, _ length: Int?) throws(Refusal) -> RESTCall {
        let method = request.method == "HEAD" ? "GET" : request.method
        guard resource.allowed.split(separator: ", ").contains(where: { $0.utf8.elementsEqual(method.utf8) }) else {
            throw Refusal(RESTAnswer.methodNotAllowed(resource.allowed))
        }
        let token = try RESTHandler.token(request.fields)
        let app = RESTQuery.decode(RESTHandler.parts(of: request.path)[0].utf8)
        guard let app = try? AppID(app), let client = try? ClientID("http") else {
            throw Refusal(RESTAnswer.unauthorized())
        }
        let action = try action(request, at: resource, method, length)
        return RESTCall(
            app: app, bucket: nil, token: token, user: nil, deviceID: request.fields["x-rezolve-device-id"],
            clientID: client, operation: .blob(BlobCall(action: action)), bytes: request.body.count)
    }

    private func action(
        _ request: HTTPRequest, at resource: Resource, _ method: String, _ length: Int?
    ) throws(Refusal) -> BlobCall.Action {
        switch resource {
        case .all:
            guard request.fields[BlobCall.hashField] != nil else { return try begin(request.body) }
            return .small(length: try Self.bodyLength(length), sha256: try Self.hash(request.fields))
        case .part(let upload, let text):
            guard let number = Int(text), (1...BlobCall.partsMax).contains(number) else {
                throw Refusal(BlobAnswer.badPart)
            }
            let length = try Self.bodyLength(length)
            return .part(upload, number: number, length: length, sha256: try Self.hash(request.fields))
        case .complete(let upload):
            let body = try Self.object(request.body)
            guard let hash = body["sha256"]?.stringValue.flatMap(Self.hash) else { throw Refusal(BlobAnswer.badHash) }
            return .complete(upload, proof: hash)
        case .item(let id):
            if method == "DELETE" { return .abort(id) }
            guard let place = RESTQuery(request.query)["node"] else { return .parts(id) }
            return try Self.read(id, place, request)
        }
    }

    /// - Parameter place: `OWNER/NODE`; the owner's name may contain a slash.
    private static func read(
        _ id: BlobID, _ place: String, _ request: HTTPRequest
    ) throws(Refusal) -> BlobCall.Action {
        guard let slash = place.lastIndex(of: "/"), let node = NodeID(text: String(place[place.index(after: slash)...]))
        else { throw Refusal(BlobAnswer.badNode) }
        let conditions = BlobConditions(
            range: request.fields["range"], ifRange: request.fields["if-range"],
            ifNoneMatch: request.fields["if-none-match"], isHead: request.method == "HEAD")
        return .read(id, owner: String(place[..<slash]), node, conditions)
    }

    private func begin(_ body: [UInt8]) throws(Refusal) -> BlobCall.Action {
        let object = try Self.object(body)
        let partBytes = object["part"].map { $0.intValue ?? 0 } ?? Int64(BlobCall.partBytes)
        guard let length = object["length"]?.intValue, length > 0,
            let part = Int(exactly: partBytes), (partBytesMin...BlobCall.partBytesRange.upperBound).contains(part),
            (length - 1) / partBytes < Int64(BlobCall.partsMax)
        else { throw Refusal(BlobAnswer.badUpload) }
        return .begin(length: length, partBytes: part)
    }

    /// The length must be known before the body is read.
    private static func bodyLength(_ length: Int?) throws(Refusal) -> Int {
        guard let length, length > 0 else { throw Refusal(BlobAnswer.noLength) }
        return length
    }

    private static func hash(_ fields: HTTPFields) throws(Refusal) -> [UInt8] {
        guard fields.count(of: BlobCall.hashField) == 1, let hash = fields[BlobCall.hashField].flatMap(hash) else {
            throw Refusal(BlobAnswer.badHash)
        }
        return hash
    }

    private static func hash(_ text: String) -> [UInt8]? {
        Hex.decode(text).flatMap { $0.count == 32 ? $0 : nil }
    }

    private static func object(_ body: [UInt8]) throws(Refusal) -> JSONObject {
        guard body.count <= jsonBytesMax, let value = try? JSONValue(parsing: String(decoding: body, as: UTF8.self)),
            let object = value.objectValue
        else { throw Refusal(BlobAnswer.badBody) }
        return object
    }
}
