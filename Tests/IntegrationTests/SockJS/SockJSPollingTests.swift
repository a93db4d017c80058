import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Sessions and polling of sockjs-protocol 0.3.3, over real sockets. The protocol's echo is our heartbeat: `h:1` is
/// answered `h:2`.
@Suite("SockJS polling", .serialized)
struct SockJSPollingTests {
    @Test("any two path parts without dots name a session, and the first part is ignored")
    func sessionPaths() throws {
        try withSockJS { (server: TestServer) throws in
            for parts in ["/a/a", "/_/_", "/1/1", "/abcdefgh_i-j%20/abcdefg_i-j%20"] {
                let answer = try HTTPPeer.ask(server.port, "POST", "/sock/1/app\(parts)/xhr")
                #expect(answer.status == 200 && answer.body == "o\n", "\(parts)")
            }
            for parts in ["//", "/a./a", "/a/a.", "/./.", "/", "///"] {
                for method in ["GET", "POST"] {
                    #expect(try HTTPPeer.ask(server.port, method, "/sock/1/app\(parts)/xhr").status == 404, "\(parts)")
                }
            }
            let client = SockJSClient(server, "parts")
            #expect(try client.poll().body == "o\n")
            #expect(try client.send("[\"h:1\"]").status == 204)
            let other = try HTTPPeer.ask(server.port, "POST", "/sock/1/app/999/parts/xhr")
            #expect(other.body == "a[\"h:2\"]\n")
        }
    }

    @Test("a session opens, accepts messages and answers them; a second poll gets 2010")
    func simpleSession() throws {
        try withSockJS { (server: TestServer) throws in
            let client = SockJSClient(server, "simple")
            let opened = try client.poll()
            #expect(opened.status == 200 && opened.body == "o\n")
            let taken = try client.send("[\"h:1\"]")
            #expect(taken.status == 204 && taken.body.isEmpty)
            #expect(try client.poll().body == "a[\"h:2\"]\n")
            #expect(try SockJSClient(server, "nobody").send("[\"h:1\"]").status == 404)
            let first = try HTTPPeer(port: server.port)
            try first.send("POST", client.path + "/xhr")
            var second = try client.poll()
            // The two may arrive in either order; then the first poll was the second to arrive.
            while second.body.hasPrefix("a") || second.body == "h\n" { second = try client.poll() }
            #expect(second.status == 200)
            #expect(second.body == "c[2010,\"Another connection still open\"]\n")
            #expect(try client.send("[\"h:2\"]").status == 204)
            #expect(try first.answer().body == "a[\"h:3\"]\n")
        }
    }

    @Test("answers to polling have the types, cache headers and origins of the protocol")
    func transport() throws {
        try withSockJS { (server: TestServer) throws in
            for last in ["/xhr", "/xhr_send"] {
                try SockJSStaticTests.expectOptions(
                    server.port, "/sock/1/app/abc/abc" + last, methods: "OPTIONS, POST")
            }
            let client = SockJSClient(server, "transport")
            let opened = try client.poll(["Origin": "https://example.com"])
            #expect(opened.fields["content-type"] == "application/javascript; charset=UTF-8")
            SockJSStaticTests.expectCORS(opened, "https://example.com")
            SockJSStaticTests.expectNotCached(opened)
            #expect(opened.fields["access-control-allow-headers"] == nil)
            let taken = try client.send("[\"h:1\"]")
            #expect(taken.fields["content-type"] == "text/plain; charset=UTF-8")
            SockJSStaticTests.expectCORS(taken)
            SockJSStaticTests.expectNotCached(taken)
            let answer = try client.poll(["Access-Control-Request-Headers": "a, b, c"])
            #expect(answer.body == "a[\"h:2\"]\n")
            #expect(answer.fields["access-control-allow-headers"] == "a, b, c")
            let bare = try SockJSClient(server, "bare").poll(["Access-Control-Request-Headers": ""])
            #expect(bare.fields["access-control-allow-headers"] == nil)
            let get = try HTTPPeer.ask(server.port, "GET", client.path + "/xhr")
            #expect(get.status == 405 && get.body.isEmpty && get.fields["content-type"] == nil)
            #expect(get.fields["allow"] == "OPTIONS, POST")
        }
    }

    @Test("bad bodies get the protocol's error texts and end nothing; every content type is accepted")
    func bodies() throws {
        try withSockJS { (server: TestServer) throws in
            let client = SockJSClient(server, "bodies")
            #expect(try client.poll().body == "o\n")
            let broken = try client.send("[\"x")
            #expect(broken.status == 500 && broken.body == "Broken JSON encoding.")
            let missing = try client.send("")
            #expect(missing.status == 500 && missing.body == "Payload expected.")
            #expect(try client.send("[\"h:1\"]").status == 204)
            #expect(try client.poll().body == "a[\"h:2\"]\n")
            let types = [
                "text/plain", "T", "application/json", "application/xml", "", "application/json; charset=utf-8",
                "text/xml; charset=utf-8", "text/xml",
            ]
            for type in types {
                let taken = try client.send("[\"h:7\"]", ["Content-Type": type])
                #expect(taken.status == 204 && taken.body.isEmpty)
            }
            let all = repeatElement("\"h:8\"", count: types.count).joined(separator: ",")
            #expect(try client.poll().body == "a[\(all)]\n")
            let long = "[" + repeatElement("\"h:1\"", count: 10_001).joined(separator: ",") + "]"
            #expect(try client.send(long).status == 413)
        }
    }

    @Test("jsonp calls the named function and accepts forms and plain bodies")
    func jsonp() throws {
        try withSockJS { (server: TestServer) throws in
            let client = SockJSClient(server, "jsonp")
            let form = ["Content-Type": "application/x-www-form-urlencoded"]
            let opened = try HTTPPeer.ask(server.port, "GET", client.path + "/jsonp?c=%63allback")
            #expect(opened.status == 200 && opened.body == "callback(\"o\");\r\n")
            #expect(opened.fields["content-type"] == "application/javascript; charset=UTF-8")
            SockJSStaticTests.expectNotCached(opened)
            let post: (String, [String: String]) throws -> HTTPPeer.Answer = { (body, fields) in
                try HTTPPeer.ask(server.port, "POST", client.path + "/jsonp_send", fields, body: body)
            }
            let taken = try post("d=%5B%22h:1%22%5D", form)
            #expect(taken.status == 200 && taken.body == "ok")
            #expect(taken.fields["content-type"] == "text/plain; charset=UTF-8")
            SockJSStaticTests.expectNotCached(taken)
            #expect(try post("[\"h:%31\"]", ["Content-Type": "text/plain"]).body == "ok")
            let messages = try HTTPPeer.ask(server.port, "GET", client.path + "/jsonp?c=x")
            #expect(messages.body == "x(\"a[\\\"h:2\\\",\\\"h:1\\\"]\");\r\n")
            #expect(try post("d=%5B%22x", form).body == "Broken JSON encoding.")
            for body in ["", "d=", "p=p"] {
                let answer = try post(body, form)
                #expect(answer.status == 500 && answer.body == "Payload expected.")
            }
            for query in [
                "", "?c=", "?c=%00", "?c=a%28b", "?c=alert(1)//", "?c=\(String(repeating: "x", count: 129))",
            ] {
                let answer = try HTTPPeer.ask(server.port, "GET", "/sock/1/app/a/a/jsonp" + query)
                #expect(answer.status == 500 && answer.body.contains("\"callback\" parameter"), "\(query)")
            }
        }
    }

    /// Characters that browsers alter on their way from a server.
    private static let fragile = [
        UInt32(0x200C)...0x200F, 0x2028...0x202F, 0x2060...0x206F, 0xFFF0...0xFFFF,
    ].joined().compactMap { (value: UInt32) in Unicode.Scalar(value) }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        let digits = String(0x1_0000 + scalar.value, radix: 16)
        return "\\u" + String(digits.dropFirst())
    }

    @Test("characters that browsers alter are escaped, and characters that clients escape are decoded")
    func encoding() throws {
        let plain = String(String.UnicodeScalarView(Self.fragile))
        let escaped = Self.fragile.map(Self.escape).joined()
        let server = try TestServer(store: try MemoryStore.forTests())
        defer { server.stop() }
        let client = SockJSClient(server, "encoding")
        #expect(try client.poll().body == "o\n")
        let open =
            #"{\"clientid\":\"x\",\"api\":\"1.1\",\"token\":\"ann-token\",\"app_id\":\"app\",\"name\":\"notes\"}"#
        #expect(try client.send("[\"0:init:\(open)\"]").status == 204)
        #expect(try client.poll().body == "a[\"0:auth:ann@example.com\"]\n")
        // An `e` that names no version is answered with its argument.
        for text in [plain, escaped] {
            #expect(try client.send("[\"0:e:\(text)\"]").status == 204)
            #expect(try client.poll().body == "a[\"0:e:\(escaped)\\n?\"]\n")
        }
    }
}

/// Ends, as sockjs-protocol 0.3.3 describes them under "Handling close".
@Suite("SockJS ends", .serialized)
struct SockJSEndTests {
    /// A server that closes a session as soon as more than a few messages wait for it.
    private static let narrow: @Sendable (inout ServerConfig) -> Void = { config in
        config.limits.pendingBytesPerConnectionMax = 20
    }

    @Test("a session that the server closed reports its close to every later receiver")
    func closed() throws {
        try withSockJS(Self.narrow) { (server: TestServer) throws in
            let client = SockJSClient(server, "closed")
            #expect(try client.poll().body == "o\n")
            for _ in 0..<6 { _ = try client.send("[\"h:1\"]") }
            let frame = "c[1013,\"too slow\"]"
            for _ in 0..<2 { #expect(try client.poll().body == frame + "\n") }
            #expect(try client.send("[\"h:1\"]").status == 404)
            let stream = try client.stream("POST", "xhr_streaming")
            #expect(try stream.peer.chunk() == frame + "\n")
            #expect(try stream.peer.chunk() == nil)
            let jsonp = try HTTPPeer.ask(server.port, "GET", client.path + "/jsonp?c=x")
            #expect(jsonp.body == "x(\"c[1013,\\\"too slow\\\"]\");\r\n")
            #expect(server.metrics.net.outboxOverflows.value == 1)
        }
    }

    @Test("a second stream gets 2010 and ends, the first continues")
    func secondStream() throws {
        try withSockJS { (server: TestServer) throws in
            let client = SockJSClient(server, "second")
            let first = try client.stream("POST", "xhr_streaming")
            #expect(try first.peer.chunk() == "o\n")
            let second = try client.stream("POST", "xhr_streaming")
            #expect(second.prelude.utf8.count == 2_049)
            #expect(try second.peer.chunk() == "c[2010,\"Another connection still open\"]\n")
            #expect(try second.peer.chunk() == nil)
            #expect(try client.send("[\"h:1\"]").status == 204)
            #expect(try first.peer.chunk() == "a[\"h:2\"]\n")
        }
    }

    @Test("a stream or poll that breaks off ends its session: later receivers get 1002", arguments: [true, false])
    func aborted(isReset: Bool) throws {
        try withSockJS { (server: TestServer) throws in
            for last in ["xhr_streaming", "xhr"] {
                let client = SockJSClient(server, "aborted-\(last)")
                #expect(try client.poll().body == "o\n")
                let first = try HTTPPeer(port: server.port)
                try first.send("POST", "\(client.path)/\(last)")
                // The session has its receiver when another one is refused.
                #expect(waitUntil { (try? client.poll().body) == "c[2010,\"Another connection still open\"]\n" })
                first.close(isReset: isReset)
                #expect(waitUntil { (try? client.poll().body) == "c[1002,\"Connection interrupted\"]\n" })
                #expect(try client.send("[\"h:1\"]").status == 404)
            }
        }
    }

    @Test("a session without receivers ends, and its name may be used again")
    func forgotten() throws {
        try withSockJS {
            $0.sockJSPatience = .milliseconds(20)
        } _: { (server: TestServer) throws in
            let client = SockJSClient(server, "forgotten")
            #expect(try client.poll().body == "o\n")
            #expect(waitUntil { server.metrics.sockJSSessions.value == 0 })
            #expect(try client.send("[\"h:1\"]").status == 404)
            #expect(try client.poll().body == "o\n")
        }
    }

    @Test("heartbeats keep receivers alive: a poll is answered, a stream continues")
    func heartbeats() throws {
        try withSockJS {
            $0.sockJSHeartbeat = .milliseconds(20)
        } _: { (server: TestServer) throws in
            let client = SockJSClient(server, "beats")
            #expect(try client.poll().body == "o\n")
            #expect(try client.poll().body == "h\n")
            let stream = try client.stream("POST", "xhr_streaming")
            for _ in 0..<3 { #expect(try stream.peer.chunk() == "h\n") }
        }
    }

    @Test("a stopping server closes every session with 1001 and ends every receiver")
    func stopping() throws {
        let server = try TestServer(store: try MemoryStore.forTests())
        let client = SockJSClient(server, "stopping")
        let stream = try client.stream("POST", "xhr_streaming")
        #expect(try stream.peer.chunk() == "o\n")
        let other = SockJSClient(server, "stopping-poll")
        #expect(try other.poll().body == "o\n")
        let poll = try HTTPPeer(port: server.port)
        try poll.send("POST", other.path + "/xhr")
        #expect(waitUntil { (try? other.poll().body.hasPrefix("c[2010")) == true })
        server.stop()
        #expect(try stream.peer.chunk() == "c[1001,\"the server stops\"]\n")
        #expect(try stream.peer.chunk() == nil)
        #expect(try poll.answer().body == "c[1001,\"the server stops\"]\n")
    }

    @Test("above the bound of sessions a new one is answered 503, until another session ends")
    func sessionsMax() throws {
        try withSockJS { (config: inout ServerConfig) in
            config.limits.sockJSSessionsMax = 2
            config.sockJSPatience = .milliseconds(100)
        } _: { (server: TestServer) throws in
            for name in ["one", "two"] { #expect(try SockJSClient(server, name).poll().body == "o\n") }
            #expect(try SockJSClient(server, "three").poll().status == 503)
            #expect(server.metrics.limitHits.value(.sockJSSessions) == 1)
            #expect(waitUntil { (try? SockJSClient(server, "three").poll().body) == "o\n" })
        }
    }
}
