import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Paths of sockjs-protocol 0.3.3 that need no session, over real sockets.
@Suite("SockJS without a session", .serialized)
struct SockJSStaticTests {
    /// What the protocol expects of OPTIONS, with and without an origin.
    static func expectOptions(_ port: Int, _ path: String, methods: String) throws {
        for origin in [nil, "test", "null"] {
            let answer = try HTTPPeer.ask(port, "OPTIONS", path, origin.map { ["Origin": $0] } ?? [:])
            #expect(answer.status == 204 && answer.body.isEmpty)
            #expect(answer.fields["cache-control"] == "public, max-age=31536000")
            #expect(answer.fields["expires"]?.hasSuffix(" GMT") == true)
            #expect(answer.fields["access-control-max-age"] == "31536000")
            #expect(answer.fields["access-control-allow-methods"] == methods)
            expectCORS(answer, origin)
        }
    }

    static func expectCORS(_ answer: HTTPPeer.Answer, _ origin: String? = nil) {
        let expected = origin == nil || origin == "null" ? "*" : origin ?? ""
        #expect(answer.fields["access-control-allow-origin"] == expected)
        #expect(answer.fields["access-control-allow-credentials"] == "true")
    }

    static func expectNotCached(_ answer: HTTPPeer.Answer) {
        #expect(answer.fields["cache-control"] == "no-store, no-cache, must-revalidate, max-age=0")
        #expect(answer.fields["expires"] == nil && answer.fields["last-modified"] == nil)
    }

    @Test("the base path greets, with and without a slash; unknown paths are 404")
    func greeting() throws {
        try withSockJS { (server: TestServer) throws in
            for path in ["/sock/1/app", "/sock/1/app/"] {
                let answer = try HTTPPeer.ask(server.port, "GET", path)
                #expect(answer.status == 200 && answer.body == "Welcome to SockJS!\n")
                #expect(answer.fields["content-type"] == "text/plain; charset=UTF-8")
                #expect(answer.fields["set-cookie"] == nil)
            }
            for rest in ["/a", "/a.html", "//", "///", "/a/a", "/a/a/", "/a", "/a/"] {
                #expect(try HTTPPeer.ask(server.port, "GET", "/sock/1/app" + rest).status == 404, "\(rest)")
            }
            #expect(try HTTPPeer.ask(server.port, "POST", "/sock/1/app").status == 405)
        }
    }

    @Test("the iframe page names the configured script, whatever its version, and may be cached")
    func iframe() throws {
        try withSockJS {
            $0.sockJSScript = "https://example.com/sockjs.js"
        } _: { (server: TestServer) throws in
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
                  <script src="https://example.com/sockjs.js"></script>
                </head>
                <body>
                  <h2>Don't panic!</h2>
                  <p>This is a SockJS hidden iframe. It's used for cross domain magic.</p>
                </body>
                </html>
                """
            var tags = Set<String>()
            for rest in [
                "/iframe.html", "/iframe-a.html", "/iframe-.html", "/iframe-0.1.2.html",
                "/iframe-0.1.2abc-dirty.2144.html", "/iframe-a.html?t=1234", "/iframe-0.1.2.html?t=123414",
                "/iframe-0.1.2abc-dirty.2144.html?t=qweqweq123",
            ] {
                let answer = try HTTPPeer.ask(server.port, "GET", "/sock/1/app" + rest)
                #expect(answer.status == 200 && answer.body == page)
                #expect(answer.fields["content-type"] == "text/html; charset=UTF-8")
                #expect(answer.fields["cache-control"] == "public, max-age=31536000")
                #expect(answer.fields["expires"] != nil && answer.fields["last-modified"] == nil)
                #expect(answer.fields["set-cookie"] == nil)
                tags.insert(answer.fields["etag"] ?? "")
            }
            #expect(tags.count == 1 && !tags.contains(""))
            let again = try HTTPPeer.ask(
                server.port, "GET", "/sock/1/app/iframe.html", ["If-None-Match": tags.first ?? ""])
            #expect(again.status == 304 && again.body.isEmpty && again.fields["content-type"] == nil)
            for rest in [
                "/iframe.htm", "/iframe", "/IFRAME.HTML", "/IFRAME", "/iframe.HTML", "/iframe.xml", "/iframe-/.html",
            ] {
                #expect(try HTTPPeer.ask(server.port, "GET", "/sock/1/app" + rest).status == 404, "\(rest)")
            }
        }
    }

    @Test("a script address that could end its attribute gives 404 instead of a page")
    func hostileScript() throws {
        for script in ["none", "javascript:x", "https://a/\"><script>", "/a b"] {
            try withSockJS {
                $0.sockJSScript = script
            } _: { (server: TestServer) throws in
                for rest in ["iframe.html", "sockjs.min.js"] {
                    let answer = try HTTPPeer.ask(server.port, "GET", "/sock/1/app/" + rest)
                    #expect(answer.status == 404)
                    #expect(answer.body.contains("sockjs-script") && answer.body.contains("node-sockjs-client"))
                }
            }
        }
    }

    @Test("info reports what the server can do, with a random number")
    func info() throws {
        try withSockJS { (server: TestServer) throws in
            var numbers = Set<Int64>()
            for _ in 0..<3 {
                let answer = try HTTPPeer.ask(server.port, "GET", "/sock/1/app/info?t=1")
                #expect(answer.status == 200)
                #expect(answer.fields["content-type"] == "application/json; charset=UTF-8")
                #expect(answer.fields["set-cookie"] == nil)
                Self.expectNotCached(answer)
                Self.expectCORS(answer)
                let root = try JSONDocument(parsing: Array(answer.body.utf8)).root
                #expect(root["websocket"]?.bool == true && root["cookie_needed"]?.bool == false)
                #expect(root["origins"]?.elements.compactMap(\.string) == ["*:*"])
                let entropy = try #require(root["entropy"]?.int64)
                #expect((0...Int64(UInt32.max)).contains(entropy))
                numbers.insert(entropy)
            }
            #expect(numbers.count == 3)
            try Self.expectOptions(server.port, "/sock/1/app/info", methods: "OPTIONS, GET")
            #expect(try HTTPPeer.ask(server.port, "POST", "/sock/1/app/info").status == 405)
        }
    }

    @Test("an operator may disable WebSocket sessions; raw WebSockets stay")
    func withoutWebSockets() throws {
        try withSockJS {
            $0.sockJSWebSocket = false
        } _: { (server: TestServer) throws in
            let info = try HTTPPeer.ask(server.port, "GET", "/sock/1/app/info")
            #expect(info.body.contains("\"websocket\":false"))
            #expect(try HTTPPeer.ask(server.port, "GET", "/sock/1/app/0/0/websocket").status == 404)
            #expect(try server.client().ask("h:1") == "h:2")
        }
    }

    @Test("the load balancers' cookie is set on sessions where it is configured, and echoed if it is sent")
    func cookies() throws {
        try withSockJS {
            $0.sockJSCookie = true
        } _: { (server: TestServer) throws in
            let info = try HTTPPeer.ask(server.port, "GET", "/sock/1/app/info")
            #expect(info.body.contains("\"cookie_needed\":true") && info.fields["set-cookie"] == nil)
            let client = SockJSClient(server, "cookies")
            #expect(try client.poll().fields["set-cookie"] == "JSESSIONID=dummy; path=/")
            let taken = try client.send("[\"h:1\"]", ["Cookie": "a=b; JSESSIONID=abcdef; c=d"])
            #expect(taken.fields["set-cookie"] == "JSESSIONID=abcdef; path=/")
            #expect(
                try client.poll(["Cookie": "JSESSIONID=abcdef"]).fields["set-cookie"] == "JSESSIONID=abcdef; path=/")
            for (number, (method, last)) in [
                ("POST", "xhr_streaming"), ("GET", "eventsource"), ("GET", "htmlfile?c=%63allback"),
            ].enumerated() {
                let stream = try SockJSClient(server, "cookies\(number)").stream(method, last)
                #expect(stream.head.fields["set-cookie"] == "JSESSIONID=dummy; path=/")
            }
        }
    }
}
