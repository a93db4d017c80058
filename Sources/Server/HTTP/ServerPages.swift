import ThicketProtocol

/// The answers of paths that need no user: health, metrics, versions, the description of the API, the start page.
struct ServerPages {
    let metrics: Metrics
    let health: Health
    /// Which web pages may use the data API.
    var cors: CORSPolicy
    /// What `/version` reports; nil reports nothing, like an empty list.
    var versions: AppVersions?

    /// - Parameter route: `data` and the routes of other parts are answered as unknown paths.
    func answer(_ route: HTTPRouter.Route, _ request: HTTPRequest) -> HTTPResponse {
        guard let label = Self.label(of: route) else {
            metrics.httpRequests.add(1, .other)
            return cors.marking(Self.notFound, to: request)
        }
        metrics.httpRequests.add(1, label)
        guard request.method == "GET" || request.method == "HEAD" else { return Self.methodNotAllowed }
        return switch route {
        case .start(let part): part.response
        case .live: .text(200, "live\n")
        case .ready: .text(health.isReady ? 200 : 503, health.statusLine)
        case .openAPI: OpenAPIDocument.response
        case .version: cors.marking(versions?.response ?? .json(200, Array("{}".utf8)), to: request)
        default:
            HTTPResponse(
                status: 200, fields: [.init("content-type", Metrics.contentType)], body: Array(metrics.render().utf8))
        }
    }

    private static func label(of route: HTTPRouter.Route) -> Metrics.Route? {
        switch route {
        case .start: .page
        case .live: .live
        case .ready: .ready
        case .metrics: .metrics
        case .openAPI: .openAPI
        case .version: .version
        case .sockJS, .webSocket, .partner, .account, .keyLog, .data, .unknown: nil
        }
    }

    static let methodNotAllowed = methodNotAllowed(but: "GET, HEAD")

    static let notFound = RESTAnswer.failure(
        404, "no_such_path", "This path does not exist.",
        "WebSockets are at /sock/1/APP/websocket, the data API under /1/APP; /openapi.yaml describes all paths.")

    static func methodNotAllowed(but allowed: String) -> HTTPResponse { RESTAnswer.methodNotAllowed(allowed) }
}
