import ThicketProtocol

/// Decides which web pages may use the data API, accounts and partners' requests from a browser (CORS of the Fetch
/// standard): none, unless the operator lists their origins. Tokens travel in a header that pages set themselves, so
/// credentials are never allowed.
struct CORSPolicy: Sendable, Equatable {
    /// How long a browser may cache a preflight, in seconds.
    static let preflightSeconds = 600

    private let origins: [String]
    private let admitsAll: Bool

    /// - Parameter list: `none`, `*`, or origins separated by commas.
    init(_ list: String) {
        origins = Self.parts(list)
        admitsAll = origins.contains { $0.utf8.elementsEqual("*".utf8) }
    }

    /// The fields that let a page read the answer; none when its origin is not listed.
    func fields(for request: HTTPRequest) -> [HTTPField] {
        guard !origins.isEmpty else { return [] }
        var fields: [HTTPField] = admitsAll ? [] : [.init("vary", "origin")]
        guard let origin: String = request.fields["origin"], request.fields.count(of: "origin") == 1,
            admitsAll || origins.contains(where: { $0.utf8.elementsEqual(origin.utf8) })
        else { return fields }
        fields.append(.init("access-control-allow-origin", admitsAll ? "*" : origin))
        fields.append(
            .init(
                "access-control-expose-headers", "X-Simperium-Version, ETag, Retry-After, Authorization, Content-Range")
        )
        return fields
    }

    /// The answer with those fields.
    func marking(_ response: HTTPResponse, to request: HTTPRequest) -> HTTPResponse {
        response.adding(fields(for: request))
    }

    /// The answer to `OPTIONS`: the path's methods, and for admitted pages the permission to use them.
    func preflight(_ request: HTTPRequest, allowed: String) -> HTTPResponse {
        var response = HTTPResponse(status: 204, fields: [.init("allow", allowed)])
        let own = fields(for: request)
        response = response.adding(own)
        guard own.contains(where: { $0.name == "access-control-allow-origin" }),
            request.fields["access-control-request-method"] != nil
        else { return response }
        response.fields.append("access-control-allow-methods", allowed)
        response.fields.append(
            "access-control-allow-headers",
            "X-Simperium-API-Key, X-Simperium-Token, X-Simperium-User, X-Rezolve-Partner-ApiKey, X-Rezolve-Device-Id, "
                + "Authorization, Content-Type, If-Match, If-None-Match, If-Range, Range, X-Part-SHA256"
        )
        response.fields.append("access-control-max-age", String(Self.preflightSeconds))
        return response
    }

    private static func parts(_ list: String) -> [String] {
        list.split(separator: ",").map { String($0.drop { $0 == " " }) }.filter {
            !$0.isEmpty && !$0.utf8.elementsEqual("none".utf8)
        }
    }

    /// Why the list cannot be used; nil when it can.
    static func problem(_ list: String) -> String? {
        let parts = parts(list)
        guard !parts.isEmpty || list.utf8.elementsEqual("none".utf8) else {
            return "names no origin; use 'none' for an empty list"
        }
        for part in parts where !part.utf8.elementsEqual("*".utf8) {
            guard let scheme = ["https://", "http://"].first(where: { part.hasPrefix($0) }),
                part.utf8.count > scheme.utf8.count,
                part.utf8.dropFirst(scheme.utf8.count).allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x2C }
                )
            else { return "'\(SettingValue.shown(part))' is not an origin, such as https://app.example.com" }
        }
        return nil
    }
}

extension HTTPResponse {
    /// The same response with more fields.
    func adding(_ more: [HTTPField]) -> HTTPResponse {
        var response = self
        for field in more { response.fields.append(field.name, field.value) }
        return response
    }
}

extension Setting {
    /// A list of web origins.
    static func origins(_ name: String, _ path: Path<String>, _ summary: String) -> Setting {
        Setting(name: name, kind: .origins, summary: summary, isSecret: false) {
            (config: ServerConfig) in
            config[keyPath: path]
        } write: { (text: String, config: inout ServerConfig) throws(ValueError) in
            if let problem = CORSPolicy.problem(text) { throw ValueError(problem) }
            config[keyPath: path] = text
        }
    }
}
