import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

@Suite("The page at /", .serialized)
struct StartPageTests {
    @Test("it tells the version, and its parts come from here under a policy that lets in nothing else")
    func parts() throws {
        try withSockJS { (server: TestServer) throws in
            let types: [(String, String)] = [
                ("/", "text/html; charset=utf-8"), ("/page.css", "text/css; charset=utf-8"),
                ("/page.js", "text/javascript; charset=utf-8"), ("/page.svg", "image/svg+xml"),
            ]
            for (path, type): (String, String) in types {
                let answer: HTTPPeer.Answer = try HTTPPeer.ask(server.port, "GET", path)
                #expect(answer.status == 200 && answer.fields["content-type"] == type)
                #expect(answer.fields["x-content-type-options"] == "nosniff")
                let policy: String = answer.fields["content-security-policy"] ?? ""
                #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"))
                #expect(policy.contains("frame-ancestors 'none'") && policy.contains("base-uri 'none'"))
                #expect(try HTTPPeer.ask(server.port, "POST", path).status == 405)
            }
            let page: String = try HTTPPeer.ask(server.port, "GET", "/").body
            #expect(page.contains("<title>Thicket \(ThicketServer.version)</title>"))
            // What the policy would refuse is not there.
            for word: String in ["<script>", "style=", "<style", "onclick", "javascript:", "https://", "//cdn"] {
                #expect(!page.contains(word), "\(word)")
            }
        }
    }

    @Test("an operator may take it away")
    func off() throws {
        try withSockJS({ $0.page = false }) { (server: TestServer) throws in
            for path: String in ["/", "/page.js"] {
                #expect(try HTTPPeer.ask(server.port, "GET", path).status == 404)
            }
        }
    }
}
