import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The answers that need no session, and the heads of those that do (sockjs-protocol 0.3.3, "Static URLs").
struct SockJSReplies {
    let settings: SockJSSettings
    /// Milliseconds since 1970; for the `expires` field of cacheable answers.
    let unixTime: Int64

    /// Seconds for which browsers may cache what does not change.
    private static let year: Int64 = 31_536_000

    // MARK: Without a session

    static let greeting = HTTPResponse(
        status: 200, fields: [.init("content-type", "text/plain; charset=UTF-8")],
        body: Array("Welcome to SockJS!\n".utf8))

    static func notFound(_ request: HTTPRequest) -> HTTPResponse {
        var response = ServerPages.notFound
        for field in cors(request) { response.fields.append(field.name, field.value) }
        return response
    }

    /// Without a body, as the protocol requires.
    static func methodNotAllowed(but allowed: String) -> HTTPResponse {
        HTTPResponse(status: 405, fields: [.init("allow", allowed)])
    }

    /// A plain-text refusal with status 400 or 500.
    static func refusal(_ status: Int, _ text: String, _ request: HTTPRequest) -> HTTPResponse {
        HTTPResponse(
            status: status,
            fields: HTTPFields([.init("content-type", "text/plain; charset=UTF-8")] + noCache + cors(request)),
            body: Array(text.utf8))
    }

    /// - Parameter entropy: an unpredictable number, for browsers without a random source.
    func info(_ request: HTTPRequest, entropy: UInt32) -> HTTPResponse {
        let body =
            "{\"websocket\":\(settings.acceptsWebSockets),\"origins\":[\"*:*\"],"
            + "\"cookie_needed\":\(settings.setsCookie),\"entropy\":\(entropy)}"
        return HTTPResponse(
            status: 200,
            fields: HTTPFields(
                [.init("content-type", "application/json; charset=UTF-8")] + Self.noCache + Self.cors(request)),
            body: Array(body.utf8))
    }

    /// The answer to OPTIONS.
    func options(_ request: HTTPRequest, methods: String) -> HTTPResponse {
        let allowed: [HTTPField] = [
            .init("access-control-allow-methods", methods), .init("access-control-max-age", "\(Self.year)"),
        ]
        return HTTPResponse(status: 204, fields: HTTPFields(allowed + cacheable + Self.cors(request)))
    }

    /// The page through which old browsers connect from other origins, if a library is available.
    func iframe(_ request: HTTPRequest) -> HTTPResponse {
        guard let script = settings.library.address else { return missing(request) }
        let page = """
            <!DOCTYPE html>
            <html>
            <head>
              <meta http-equiv="X-UA-Compatible" content="IE=edge" />
              <meta http-equiv="Content-Type" content="text/html; charset=UTF-8" />
              <script>
                document.domain = document.domain;
                _sockjs_onload = function(){SockJS.bootstrap_iframe();};
              </script>
              <script src="\(script)"></script>
            </head>
            <body>
              <h2>Don't panic!</h2>
              <p>This is a SockJS hidden iframe. It's used for cross domain magic.</p>
            </body>
            </html>
            """
        let body = [UInt8](page.utf8)
        let tag = "\"\(Hex.encode(Array(Hash.sha256(body)[..<16])))\""
        let fields: [HTTPField] = cacheable + [.init("etag", tag)]
        if let known = request.fields["if-none-match"], known.utf8.elementsEqual(tag.utf8) {
            return HTTPResponse(status: 304, fields: HTTPFields(fields))
        }
        return HTTPResponse(
            status: 200, fields: HTTPFields([.init("content-type", "text/html; charset=UTF-8")] + fields), body: body)
    }

    /// The library that the page loads, where this server serves it.
    func library(_ request: HTTPRequest) -> HTTPResponse { settings.library.response(request) ?? missing(request) }

    private func missing(_ request: HTTPRequest) -> HTTPResponse {
        var response = SockJSLibrary.missing
        for field in Self.cors(request) { response.fields.append(field.name, field.value) }
        return response
    }

    private var cacheable: [HTTPField] {
        [
            .init("cache-control", "public, max-age=\(Self.year)"),
            .init("expires", HTTPTime.text(unixSeconds: unixTime / 1_000 + Self.year)),
        ]
    }

    // MARK: With a session

    /// The head of an answer on a session's path.
    func head(_ transport: SockJSTransport, _ request: HTTPRequest, status: Int = 200) -> HTTPResponse {
        var fields: [HTTPField] = [.init("content-type", transport.contentType)] + Self.noCache + Self.cors(request)
        if settings.setsCookie { fields.append(.init("set-cookie", "JSESSIONID=\(Self.cookie(request)); path=/")) }
        if transport.role == .stream { fields.append(.init("x-accel-buffering", "no")) }
        return HTTPResponse(status: status, fields: HTTPFields(fields))
    }

    /// The answer to accepted messages.
    func accepted(_ transport: SockJSTransport, _ request: HTTPRequest) -> HTTPResponse {
        // Some browsers mishandle status 204 for a form.
        guard transport == .jsonpSend else { return head(transport, request, status: 204) }
        var response = head(transport, request)
        response.body = Array("ok".utf8)
        return response
    }

    private static let noCache: [HTTPField] = [
        .init("cache-control", "no-store, no-cache, must-revalidate, max-age=0")
    ]

    /// Admits every origin: a bucket is opened with a token that the page must know, never with a cookie.
    static func cors(_ request: HTTPRequest) -> [HTTPField] {
        var origin = request.fields["origin"] ?? ""
        if origin.isEmpty || origin.utf8.elementsEqual("null".utf8) { origin = "*" }
        var fields: [HTTPField] = [
            .init("access-control-allow-origin", origin), .init("access-control-allow-credentials", "true"),
            .init("vary", "origin"), .init("x-content-type-options", "nosniff"),
        ]
        if let wanted = request.fields["access-control-request-headers"], !wanted.isEmpty {
            fields.append(.init("access-control-allow-headers", wanted))
        }
        return fields
    }

    /// The client's own cookie if it sent one: load balancers distinguish sessions by it.
    private static func cookie(_ request: HTTPRequest) -> String {
        for pair in (request.fields["cookie"] ?? "").split(separator: ";") {
            let text: Substring = pair.drop { $0 == " " }
            guard text.hasPrefix("JSESSIONID=") else { continue }
            let value: Substring = text.dropFirst("JSESSIONID=".count)
            let isClean = value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !",\"\\".utf8.contains($0) }
            if !value.isEmpty && isClean { return String(value) }
        }
        return "dummy"
    }
}
