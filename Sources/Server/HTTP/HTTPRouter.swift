import ThicketAuth
import ThicketProtocol

/// The one place that decides from its path which part of the server answers a request (wire contract, section 2).
/// Pure: it checks neither methods nor tokens, except for the bundle of a partner's user, which has the path of an
/// account's and is known by its token.
struct HTTPRouter: Sendable {
    /// The part of the server that answers.
    enum Route: Equatable {
        /// `/sock/1/APP/…`, without raw WebSockets.
        case sockJS(SockJSPath)
        /// `/sock/1/APP/websocket`.
        case webSocket(AppID)
        case partner(PartnerService.Route)
        case account(AccountRoute)
        /// Keys of users and the key log.
        case keyLog(KeyLogRoute)
        /// The data API, `/1/APP/…`.
        case data
        /// The start page or one of its parts.
        case start(StartPage.Part)
        case live, ready, metrics, openAPI, version
        case unknown
    }

    /// Whether partners' users are served.
    let hasPartners: Bool
    /// Whether built-in accounts are served.
    let hasAccounts: Bool
    /// Whether key logs are kept.
    var hasKeyLogs = false
    /// Whether `/metrics` is served.
    var showsMetrics: Bool
    /// Whether `/` is served with a page for people.
    var showsPage: Bool

    /// - Parameter request: its path decides.
    func route(_ request: HTTPRequest) -> Route {
        let path = request.path
        if path.utf8.starts(with: Self.sockets.utf8) {
            if let place = SockJSPath(path) { return .sockJS(place) }
            return Self.app(ofSocket: path).map(Route.webSocket) ?? .unknown
        }
        if path.utf8.starts(with: "/1/".utf8) { return below(request) }
        if hasPartners, path.utf8.starts(with: "/api/".utf8) || path.utf8.starts(with: "/v".utf8),
            let partner = PartnerService.route(of: path)
        {
            return .partner(partner)
        }
        return fixed(path)
    }

    /// Paths below `/1/`: accounts have names there that the data API does not use.
    private func below(_ request: HTTPRequest) -> Route {
        if let account = AccountRoute(request.path) {
            if hasPartners, let partner = account.ofPartner(request) { return .partner(partner) }
            if hasAccounts { return .account(account) }
        }
        if hasKeyLogs, let keys = KeyLogRoute(request.path) { return .keyLog(keys) }
        return RESTHandler.owns(request.path) ? .data : .unknown
    }

    private func fixed(_ path: Substring) -> Route {
        if showsPage, let part = StartPage.Part(rawValue: String(path)) { return .start(part) }
        return switch path {
        case "/health/live": .live
        case "/health/ready": .ready
        case "/metrics": showsMetrics ? .metrics : .unknown
        case "/openapi.yaml": .openAPI
        case "/version": .version
        default: .unknown
        }
    }

    private static let sockets = "/sock/1/"
    private static let suffix = "/websocket"

    /// The app named in the path of a raw WebSocket, which may end with a slash; nil for other paths.
    static func app(ofSocket path: Substring) -> AppID? {
        guard path.utf8.starts(with: sockets.utf8) else { return nil }
        var rest = path.dropFirst(sockets.count)
        if rest.utf8.last == 0x2F { rest = rest.dropLast() }
        guard rest.utf8.count > suffix.utf8.count, rest.hasSuffix(suffix) else { return nil }
        return try? AppID(String(rest.dropLast(suffix.count)))
    }
}
