import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

@Suite("The page at /", .serialized)
struct StartPageTests {
    @Test("the page shows the version and loads only its own parts, under a policy that admits nothing else")
    func parts() throws {
        try withSockJS { (server: TestServer) throws in
            let types = [
                ("/", "text/html; charset=utf-8"), ("/page.css", "text/css; charset=utf-8"),
                ("/page.js", "text/javascript; charset=utf-8"), ("/page.svg", "image/svg+xml"),
            ]
            for (path, type) in types {
                let answer = try HTTPPeer.ask(server.port, "GET", path)
                #expect(answer.status == 200 && answer.fields["content-type"] == type)
                #expect(answer.fields["x-content-type-options"] == "nosniff")
                let policy = answer.fields["content-security-policy"] ?? ""
                #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"))
                #expect(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"))
                #expect(try HTTPPeer.ask(server.port, "POST", path).status == 405)
            }
            let page = try HTTPPeer.ask(server.port, "GET", "/").body
            #expect(page.contains("<title>Thicket \(ThicketServer.version)</title>"))
            // The page has nothing that the policy would refuse.
            for word in ["<script>", "style=", "<style", "onclick", "javascript:", "https://", "//cdn"] {
                #expect(!page.contains(word), "\(word)")
            }
        }
    }

    @Test("an operator may disable the page")
    func off() throws {
        try withSockJS({ $0.page = false }) { (server: TestServer) throws in
            for path in ["/", "/page.js"] {
                #expect(try HTTPPeer.ask(server.port, "GET", path).status == 404)
            }
        }
    }
}
