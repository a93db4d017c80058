import ThicketAuth
import ThicketNet
import ThicketProtocol

/// The paths of the server (wire contract, section 2).
struct ServerRoutes {
    let metrics: Metrics
    let health: Health
    /// Whether `/metrics` is served on this listener.
    var showsMetrics: Bool
    /// Whether `/` is served with a page for people.
    var showsPage: Bool
    /// Which web pages may use the data API.
    var cors: CORSPolicy
    /// What `/version` reports; nil reports nothing, like an empty list.
    var versions: AppVersions?

    /// The route of a request from a partner's app, without authentication; nil for other paths.
    static func partnerRoute(of request: HTTPRequest) -> PartnerService.Route? {
        let path = request.path.utf8
        if path.starts(with: "/1/".utf8) { return AccountService.route(of: request.path)?.ofPartner(request) }
        guard path.starts(with: "/api/".utf8) || path.starts(with: "/v".utf8) else { return nil }
        return PartnerService.route(of: request.path)
    }

    func answer(_ request: HTTPRequest) -> HTTPDisposition {
        if Self.app(of: request) != nil {
            metrics.httpRequests.add(1, .websocket)
            return request.method == "GET" ? .upgrade : .respond(Self.methodNotAllowed)
        }
        let page = showsPage ? StartPage.answer(request.path) : nil
        let route = page == nil ? route(request.path) : .page
        metrics.httpRequests.add(1, route)
        guard route != .other else { return .respond(cors.marking(Self.notFound, to: request)) }
        guard request.method == "GET" || request.method == "HEAD" else { return .respond(Self.methodNotAllowed) }
        let answer = page ?? self.page(route)
        return .respond(route == .version ? cors.marking(answer, to: request) : answer)
    }

    /// The app named in a WebSocket path; nil for other paths.
    static func app(of request: HTTPRequest) -> String? {
        var path = request.path
        guard path.utf8.starts(with: prefix.utf8) else { return nil }
        path = path.dropFirst(prefix.count)
        if path.utf8.last == 0x2F { path = path.dropLast() }
        guard path.utf8.count > suffix.utf8.count, path.hasSuffix(suffix) else { return nil }
        let app = String(path.dropLast(suffix.count))
        return (try? AppID(app)) == nil ? nil : app
    }

    private static let prefix = "/sock/1/"
    private static let suffix = "/websocket"

    private func route(_ path: Substring) -> Metrics.Route {
        switch path {
        case "/health/live": .live
        case "/health/ready": .ready
        case "/metrics": showsMetrics ? .metrics : .other
        case "/openapi.yaml": .openAPI
        case "/version": .version
        default: .other
        }
    }

    private func page(_ route: Metrics.Route) -> HTTPResponse {
        switch route {
        case .live: .text(200, "live\n")
        case .ready: .text(health.isReady ? 200 : 503, health.statusLine)
        case .openAPI: OpenAPIDocument.response
        case .version: versions?.response ?? .json(200, Array("{}".utf8))
        default:
            HTTPResponse(
                status: 200, fields: [.init("content-type", Metrics.contentType)], body: Array(metrics.render().utf8))
        }
    }

    private static let methodNotAllowed = methodNotAllowed(but: "GET, HEAD")

    static let notFound = RESTAnswer.failure(
        404, "no_such_path", "This path does not exist.",
        "WebSockets are at /sock/1/APP/websocket, the data API under /1/APP; /openapi.yaml describes all paths.")

    static func methodNotAllowed(but allowed: String) -> HTTPResponse { RESTAnswer.methodNotAllowed(allowed) }
}
