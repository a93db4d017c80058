import ThicketProtocol
import ThicketTreeShape

/// Reads requests of the data API (wire contract, 8.2): from an HTTP request to a checked call, or to an answer that
/// needs no access to the store. Pure, except for the ccids that it makes for clients that send none.
struct RESTHandler: Sendable {
    /// The result of reading a request.
    enum Reading: Sendable {
        case answer(HTTPResponse)
        case call(RESTCall)
    }

    let cors: CORSPolicy
    /// Bytes of an object as compact JSON.
    let documentBytesMax: Int
    /// Makes an unused ccid.
    let makeChangeID: @Sendable () -> String

    /// Whether the path belongs to the data API. Other paths that begin with `/1/` do not.
    static func owns(_ path: Substring) -> Bool {
        guard path.utf8.starts(with: "/1/".utf8) else { return false }
        let parts = parts(of: path)
        if parts.count == 2 { return named(parts[1], "buckets") || named(parts[1], "user") || named(parts[1], "blob") }
        return parts.count > 2
    }

    /// - Parameter request: a request whose path `owns` accepts.
    func read(_ request: HTTPRequest) -> Reading {
        let place: Place
        switch Self.place(Self.parts(of: request.path)) {
        case .failure(let refusal): return .answer(cors.marking(refusal.response, to: request))
        case .success(let found): place = found
        }
        if request.method == "OPTIONS" { return .answer(cors.preflight(request, allowed: place.allowed)) }
        do {
            var call = try self.call(request, at: place)
            call.answerFields = cors.fields(for: request)
            call.owner = try owner(in: place)
            call.branch = place.branch
            return .call(call)
        } catch {
            return .answer(cors.marking(error.response, to: request))
        }
    }

    // MARK: Paths

    /// The response to a request that is rejected.
    struct Refusal: Error {
        let response: HTTPResponse
        init(_ response: HTTPResponse) { self.response = response }
    }

    private enum Resource {
        case object(String, version: String?)
        case index, changes, all, buckets, user
        case batch(owner: String)
        case children(owner: String)
        case usage(owner: String)
        case inbox(owner: String)

        /// The owner in the path of a tree's call.
        var owner: String? {
            switch self {
            case .batch(let owner), .children(let owner), .usage(let owner), .inbox(let owner): owner
            case .object, .index, .changes, .all, .buckets, .user: nil
            }
        }
    }

    private struct Place {
        let app: String
        let bucket: String?
        let resource: Resource
        /// The shared branch that stands in the place of the bucket.
        var branch: BranchName?

        /// The methods that the resource supports.
        var allowed: String {
            switch resource {
            case .object: "GET, HEAD, POST, DELETE, OPTIONS"
            case .changes, .children: "GET, HEAD, POST, OPTIONS"
            case .batch: RESTAnswer.batchMethods
            case .inbox: "GET, HEAD, PUT, OPTIONS"
            case .index, .all, .buckets, .user, .usage: "GET, HEAD, OPTIONS"
            }
        }
    }

    /// The parts after `/1/`; a trailing slash is ignored.
    static func parts(of path: Substring) -> [Substring] {
        var parts: [Substring] = path.dropFirst(3).split(separator: "/", omittingEmptySubsequences: false)
        if parts.last?.isEmpty == true { parts.removeLast() }
        return parts
    }

    static func named(_ part: Substring, _ word: StaticString) -> Bool {
        word.withUTF8Buffer { part.utf8.elementsEqual($0) }
    }

    private static func place(_ parts: [Substring]) -> Result<Place, Refusal> {
        let app = RESTQuery.decode(parts[0].utf8)
        if parts.count == 2 {
            return .success(Place(app: app, bucket: nil, resource: named(parts[1], "user") ? .user : .buckets))
        }
        let resource: Resource
        if let branch = BranchName(RESTQuery.decode(parts[1].utf8)) { return place(parts, of: branch, app) }
        switch parts.count {
        case 3 where named(parts[2], "index"): resource = .index
        case 3 where named(parts[2], "changes"): resource = .changes
        case 3 where named(parts[2], "all"): resource = .all
        case 4 where named(parts[1], "tree") && named(parts[3], "batch"):
            resource = .batch(owner: RESTQuery.decode(parts[2].utf8))
        case 4 where named(parts[1], "tree") && named(parts[3], "children"):
            resource = .children(owner: RESTQuery.decode(parts[2].utf8))
        case 4 where named(parts[1], "tree") && named(parts[3], "usage"):
            resource = .usage(owner: RESTQuery.decode(parts[2].utf8))
        case 4 where named(parts[1], "tree") && named(parts[3], "inbox"):
            resource = .inbox(owner: RESTQuery.decode(parts[2].utf8))
        // Behind the paths of trees: an owner may have the id `i`.
        case 4 where named(parts[2], "i"): resource = .object(RESTQuery.decode(parts[3].utf8), version: nil)
        case 6 where named(parts[2], "i") && named(parts[4], "v"):
            resource = .object(RESTQuery.decode(parts[3].utf8), version: String(parts[5]))
        default: return .failure(Refusal(RESTAnswer.noSuchPath))
        }
        return .success(Place(app: app, bucket: RESTQuery.decode(parts[1].utf8), resource: resource))
    }

    /// A branch has batches, children and usage. It has no other paths: a member reads through its channel.
    private static func place(_ parts: [Substring], of branch: BranchName, _ app: String) -> Result<Place, Refusal> {
        let owner = branch.owner.text
        let resource: Resource
        guard parts.count == 3 else { return .failure(Refusal(RESTAnswer.noSuchPath)) }
        if named(parts[2], "batch") {
            resource = .batch(owner: owner)
        } else if named(parts[2], "children") {
            resource = .children(owner: owner)
        } else if named(parts[2], "usage") {
            resource = .usage(owner: owner)
        } else {
            return .failure(Refusal(RESTAnswer.noSuchPath))
        }
        return .success(Place(app: app, bucket: BucketMode.treeName, resource: resource, branch: branch))
    }

    // MARK: Calls

    private func call(_ request: HTTPRequest, at place: Place) throws(Refusal) -> RESTCall {
        let method = request.method == "HEAD" ? "GET" : request.method
        guard place.allowed.split(separator: ", ").contains(where: { $0.utf8.elementsEqual(method.utf8) }) else {
            throw Refusal(RESTAnswer.methodNotAllowed(place.allowed))
        }
        let token = try Self.token(request.fields)
        guard let app = try? AppID(place.app) else { throw Refusal(RESTAnswer.unauthorized()) }
        let query = RESTQuery(request.query)
        let client: ClientID = try Self.name(
            query["clientid"] ?? Self.clientID, of: "clientid", "It is free text of 1 to 256 bytes.")
        let bucket = try place.bucket.map { (name: String) throws(Refusal) in
            do throws(IdentifierError) { return try BucketName(name) } catch {
                throw Refusal(
                    RESTAnswer.invalid(
                        "invalid_bucket", "The bucket's name \(error.problem).",
                        "It has 1 to 64 characters of A-Z, a-z, 0-9 and . _ - %"))
            }
        }
        let user: UserID? = try request.fields["x-simperium-user"].map { (name: String) throws(Refusal) in
            try Self.name(name, of: "X-Simperium-User", "It is a user's id of 1 to 256 bytes.")
        }
        return RESTCall(
            app: app, bucket: bucket, token: token, user: user,
            deviceID: request.fields["x-rezolve-device-id"],
            clientID: client,
            operation: try operation(place.resource, method, request, query), bytes: request.body.count)
    }

    private func owner(in place: Place) throws(Refusal) -> UserID? {
        guard let name = place.resource.owner else { return nil }
        guard let owner = try? UserID(name) else { throw Refusal(RESTAnswer.noTree) }
        return owner
    }

    /// `clientid` of changes whose author sent none. No client library uses this value.
    private static let clientID = "http"

    /// The only place that reads a request's credentials.
    static func token(_ fields: HTTPFields) throws(Refusal) -> String {
        guard fields.count(of: "x-simperium-token") == 1, let token = fields["x-simperium-token"],
            Hub.acceptable(token) != nil
        else { throw Refusal(RESTAnswer.unauthorized()) }
        return token
    }

    private func operation(
        _ resource: Resource, _ method: String, _ request: HTTPRequest, _ query: RESTQuery
    ) throws(Refusal) -> RESTCall.Operation {
        switch resource {
        case .buckets: return .buckets
        case .user: return .user
        case .all: return .all(try Self.all(query))
        case .index: return .index(try Self.index(query))
        case .changes:
            guard method == "POST" else { return .changes(since: query["cv"]) }
            return try Self.read(RESTBody(content: .changes, bytes: request.body))
        case .batch:
            // A body that is too long is not parsed, nor queued for a reader.
            guard request.body.count <= TreeLimits.batchBytesMax else {
                throw Refusal(RESTAnswer.of(BatchRefusal(.tooLarge, .batch)))
            }
            return try Self.read(RESTBody(content: .batch, bytes: request.body))
        case .children: return .children(try Self.children(method, request, query))
        case .usage: return .usage
        case .inbox:
            guard method == "PUT" else { return .inboxPolicy }
            guard request.body.count <= TreeLimits.policyBytesMax else {
                throw Refusal(RESTAnswer.of(.tooLarge, removes: false, isConditional: false))
            }
            return try Self.read(RESTBody(content: .policy, bytes: request.body))
        case .object(let name, let version):
            let key: EntityKey
            do throws(IdentifierError) { key = try EntityKey(name) } catch {
                throw Refusal(
                    RESTAnswer.invalid(
                        "invalid_key", "The object's key \(error.problem).",
                        "It has 1 to 256 characters of A-Z, a-z, 0-9 and . _ - % @"))
            }
            let version = try version.map { (text: String) throws(Refusal) in try Self.version(text) }
            guard method != "GET" else {
                return .object(key, version, Self.terms(request.fields))
            }
            return try write(key, version, removes: method == "DELETE", request, query)
        }
    }

    private static func index(_ query: RESTQuery) throws(Refusal) -> IndexRequest {
        var limit: Int?
        if let text = query["limit"] { limit = try count("limit", text) }
        return IndexRequest(wantsData: query["data"] != nil, mark: query["mark"], since: query["since"], limit: limit)
    }

    private static func children(
        _ method: String, _ request: HTTPRequest, _ query: RESTQuery
    ) throws(Refusal) -> ChildrenQuery {
        do throws(TreeCallFault) {
            guard method == "GET" else { return try ChildrenQuery(parsing: request.body) }
            return try ChildrenQuery { query[$0] }
        } catch {
            throw Refusal(
                RESTAnswer.invalid(
                    "invalid_parameter", "The query for children is not valid: \(error.description).",
                    "Its parameters, and the members of its body, are in PROTOCOL.md."))
        }
    }

    private static func all(_ query: RESTQuery) throws(Refusal) -> AllQuery {
        var all = AllQuery()
        all.since = query["cv"]
        (all.wantsData, all.wantsUser) = (query.isOn("data"), query.isOn("username"))
        all.isMostRecent = query.isOn("most_recent")
        all.skipped = Array(query.all("skip_clientid").prefix(AllQuery.skippedMax))
        if let text = query["batch"] { all.limit = try count("batch", text) }
        return all
    }

    /// Parses a small body at once; a large one is left for a reader's thread.
    private static func read(_ body: RESTBody) throws(Refusal) -> RESTCall.Operation {
        if body.isLarge { return .unread(body) }
        switch body.read() {
        case .operation(let operation): return operation
        case .refused(let response): throw Refusal(response)
        }
    }

    private func write(
        _ key: EntityKey, _ version: Version?, removes: Bool, _ request: HTTPRequest, _ query: RESTQuery
    ) throws(Refusal) -> RESTCall.Operation {
        let ccid = query["ccid"] ?? makeChangeID()
        let _: ChangeID = try Self.name(ccid, of: "ccid", "It is 1 to 256 printable characters without spaces.")
        var terms = ChangeTerms(condition: try Self.condition(request.fields))
        guard !removes else {
            return .write(
                ChangeRequest(key: key.text, ccid: ccid, operation: .remove, sv: version), terms, wantsObject: false)
        }
        terms.mergesObject = !query.isOn("replace")
        terms.needsSource = true
        guard request.body.count <= documentBytesMax * Limits.jsonEscapeBytesMax else {
            throw Refusal(RESTAnswer.of(.tooLarge, removes: false, isConditional: false))
        }
        let content = RESTBody.Content.object(
            key: key, ccid: ccid, version: version, terms, wantsObject: query.isOn("response"))
        return try Self.read(RESTBody(content: content, bytes: request.body))
    }

    // MARK: Parsing of parts

    /// A name from a parameter.
    private static func name<Name: Identifier>(
        _ text: String, of parameter: String, _ hint: String
    ) throws(Refusal) -> Name {
        do throws(IdentifierError) { return try Name(text) } catch {
            throw Refusal(
                RESTAnswer.invalid("invalid_parameter", "The parameter '\(parameter)' \(error.problem).", hint))
        }
    }

    private static func bad(_ parameter: String, _ hint: String) -> Refusal {
        Refusal(RESTAnswer.invalid("invalid_parameter", "The parameter '\(parameter)' is not valid.", hint))
    }

    private static func version(_ text: String) throws(Refusal) -> Version {
        guard let version = number(text), version > 0 else {
            throw Refusal(
                RESTAnswer.invalid("invalid_version", "The version is not valid.", "It is a whole number from 1."))
        }
        return version
    }

    /// The number of entries requested; a number above the maximum, however long, requests the maximum.
    private static func count(_ name: String, _ text: String) throws(Refusal) -> Int {
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        let number = isNumber ? Int64(text) ?? .max : 0
        guard number > 0 else {
            throw bad(name, "It is a whole number from 1; the maximum is \(Limits.indexPageMax).")
        }
        return Int(min(number, Int64(Limits.indexPageMax)))
    }

    private static func number(_ text: String) -> Int64? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }

    /// The condition of a change (RFC 9110, 13.1).
    private static func condition(_ fields: HTTPFields) throws(Refusal) -> ChangeTerms.Condition? {
        guard fields["if-match"] == nil || fields["if-none-match"] == nil else {
            throw Refusal(
                RESTAnswer.invalid(
                    "invalid_condition", "If-Match and If-None-Match contradict each other.", "Send one of them."))
        }
        if let text = fields["if-match"] {
            if text.utf8.elementsEqual("*".utf8) { return .exists }
            guard let version = tag(text) else {
                throw Refusal(
                    RESTAnswer.invalid(
                        "invalid_condition", "If-Match names no version.", "It is * or one version, such as \"7\"."))
            }
            return .version(version)
        }
        guard let text = fields["if-none-match"] else { return nil }
        guard text.utf8.elementsEqual("*".utf8) else {
            throw Refusal(
                RESTAnswer.invalid(
                    "invalid_condition", "If-None-Match of a change can only be *.",
                    "It means: only if the object does not exist."))
        }
        return .absent
    }

    /// The conditions of a read.
    private static func terms(_ fields: HTTPFields) -> ReadTerms {
        var terms = ReadTerms()
        terms.wanted = fields["if-match"].map(versions)
        if let text = fields["if-none-match"] { terms.known = versions(text) }
        return terms
    }

    /// A list of entity tags. Tags in another form than ours match nothing.
    private static func versions(_ text: String) -> VersionList {
        if text.utf8.elementsEqual("*".utf8) { return .any }
        return .these(
            text.split(separator: ",").compactMap { part in
                tag(String(part.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }))
            })
    }

    /// The version in an entity tag of our form; nil for any other.
    private static func tag(_ text: String?) -> Version? {
        guard var bytes: ArraySlice<UInt8> = text.map({ Array($0.utf8)[...] }) else { return nil }
        if bytes.starts(with: "W/".utf8) { bytes = bytes.dropFirst(2) }
        guard bytes.count > 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\"") else { return nil }
        return number(String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self))
    }
}
