import Testing
import ThicketProtocol

@testable import ThicketAuth
@testable import ThicketServer

@Suite("HTTP router")
struct HTTPRouterTests {
    /// The name of the route's case.
    private static func part(_ route: HTTPRouter.Route) -> String {
        String("\(route)".prefix { $0 != "(" })
    }

    private static func request(_ path: String, token: String? = nil) throws -> HTTPRequest {
        let field = token.map { "X-Simperium-Token: \($0)\r\n" } ?? ""
        let bytes = Array("GET \(path) HTTP/1.1\r\nHost: a\r\n\(field)\r\n".utf8)
        var reader = HTTPRequestReader()
        let request = try bytes.withUnsafeBytes { bytes in
            var input = bytes
            return try reader.next(&input)
        }
        return try #require(request)
    }

    private static func router(
        partners: Bool = true, accounts: Bool = true, metrics: Bool = true, page: Bool = true
    ) -> HTTPRouter {
        HTTPRouter(hasPartners: partners, hasAccounts: accounts, showsMetrics: metrics, showsPage: page)
    }

    @Test(
        "a path belongs to one part of the server",
        arguments: [
            ("/", "start"), ("/page.js", "start"), ("/page", "unknown"), ("/health/live", "live"),
            ("/health/ready", "ready"), ("/health", "unknown"), ("/metrics", "metrics"), ("/metrics/", "unknown"),
            ("/openapi.yaml", "openAPI"), ("/version", "version"), ("/versions", "unknown"),
            ("/sock/1/notes/websocket", "webSocket"), ("/sock/1/notes/websocket/", "webSocket"),
            ("/sock/1/notes/info", "sockJS"), ("/sock/1/notes/000/abc/xhr", "sockJS"), ("/sock/1/notes", "sockJS"),
            ("/sock/1/", "unknown"), ("/sock/2/notes/websocket", "unknown"), ("/sock", "unknown"),
            ("/1/notes/create", "account"), ("/1/notes/auth/login", "account"), ("/1/notes/auth/bundle", "account"),
            ("/1/notes/note/index", "data"), ("/1/notes/note/i/a", "data"), ("/1/notes/buckets", "data"),
            ("/1/notes/note/unknown", "data"), ("/1/notes", "unknown"), ("/1/", "unknown"), ("/1", "unknown"),
            ("/api/v1/authentication/register", "partner"), ("/v2/credentials/login", "partner"),
            ("/api/v1/partner/p/customer/e/publickey", "partner"), ("/api/v3/nothing", "unknown"), ("/v2", "unknown"),
        ])
    func parts(path: String, part: String) throws {
        #expect(Self.part(Self.router().route(try Self.request(path))) == part)
    }

    @Test(
        "paths about keys belong to the key log where there is one, and to buckets named keys and keylog otherwise",
        arguments: [
            ("/1/notes/keys", "keyLog", "unknown"), ("/1/notes/keys?name=ann", "keyLog", "unknown"),
            ("/1/notes/keys/ann", "keyLog", "data"), ("/1/notes/keys/a%2Fb", "keyLog", "data"),
            ("/1/notes/keylog/head", "keyLog", "data"),
            ("/1/notes/keylog/consistency?older=2&newer=4", "keyLog", "data"),
            ("/1/notes/keylog/entries", "keyLog", "data"), ("/1/notes/keylog/witness", "keyLog", "data"),
            ("/1/notes/keylog/other", "data", "data"), ("/1/notes/keylog", "unknown", "unknown"),
            ("/1/notes/keys/index", "data", "data"), ("/1/notes/keys/changes", "data", "data"),
            ("/1/notes/keys/i/a", "data", "data"), ("/2/notes/keys/ann", "unknown", "unknown"),
        ])
    func keys(path: String, with: String, without: String) throws {
        let request = try Self.request(path)
        let router = HTTPRouter(
            hasPartners: true, hasAccounts: true, hasKeyLogs: true, showsMetrics: true, showsPage: true)
        #expect(Self.part(router.route(request)) == with)
        #expect(Self.part(Self.router().route(request)) == without)
    }

    @Test("the paths of parts that are switched off are unknown")
    func off() throws {
        let router = Self.router(partners: false, accounts: false, metrics: false, page: false)
        for path in ["/", "/page.css", "/metrics", "/api/v1/authentication/register", "/v2/credentials/login"] {
            #expect(router.route(try Self.request(path)) == .unknown, "\(path)")
        }
        // Without accounts these paths have the form of the data API's, which answers that it does not know them.
        #expect(router.route(try Self.request("/1/notes/auth/login")) == .data)
        #expect(router.route(try Self.request("/1/notes/create")) == .unknown)
    }

    @Test("the bundle of a partner's user is recognised by its token, and only where partners are configured")
    func bundle() throws {
        let path = "/1/notes/auth/bundle"
        #expect(Self.part(Self.router().route(try Self.request(path, token: "a.b.c"))) == "partner")
        #expect(Self.part(Self.router(accounts: false).route(try Self.request(path, token: "a.b.c"))) == "partner")
        #expect(Self.part(Self.router(partners: false).route(try Self.request(path, token: "a.b.c"))) == "account")
        #expect(Self.part(Self.router().route(try Self.request(path, token: "abc"))) == "account")
        #expect(Self.part(Self.router().route(try Self.request("/1/notes/auth/login", token: "a.b.c"))) == "account")
    }
}
