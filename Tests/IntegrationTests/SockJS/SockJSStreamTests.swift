import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Streaming and WebSockets of sockjs-protocol 0.3.3, over real sockets.
@Suite("SockJS streaming", .serialized)
struct SockJSStreamTests {
    @Test("xhr-streaming sends its prelude, then frame after frame")
    func xhrStreaming() throws {
        try withSockJS { (server: TestServer) throws in
            try SockJSStaticTests.expectOptions(
                server.port, "/sock/1/app/abc/abc/xhr_streaming", methods: "OPTIONS, POST")
            let client = SockJSClient(server, "stream")
            let stream = try client.stream("POST", "xhr_streaming")
            #expect(stream.head.status == 200)
            #expect(stream.head.fields["content-type"] == "application/javascript; charset=UTF-8")
            #expect(stream.head.fields["transfer-encoding"] == "chunked")
            #expect(stream.head.fields["content-length"] == nil)
            SockJSStaticTests.expectCORS(stream.head)
            SockJSStaticTests.expectNotCached(stream.head)
            #expect(stream.prelude == String(repeating: "h", count: 2_048) + "\n")
            #expect(try stream.peer.chunk() == "o\n")
            #expect(try client.send("[\"h:1\"]").status == 204)
            #expect(try stream.peer.chunk() == "a[\"h:2\"]\n")
        }
    }

    @Test("eventsource writes events")
    func eventSource() throws {
        try withSockJS { (server: TestServer) throws in
            let client = SockJSClient(server, "events")
            let stream = try client.stream("GET", "eventsource")
            #expect(stream.head.status == 200)
            #expect(stream.head.fields["content-type"] == "text/event-stream; charset=UTF-8")
            SockJSStaticTests.expectNotCached(stream.head)
            #expect(stream.prelude == "\r\n")
            #expect(try stream.peer.chunk() == "data: o\r\n\r\n")
            #expect(try client.send("[\"h:1\"]").status == 204)
            #expect(try stream.peer.chunk() == "data: a[\"h:2\"]\r\n\r\n")
        }
    }

    @Test("htmlfile writes a page that calls its parent, and a missing callback is refused")
    func htmlFile() throws {
        let head = """
            <!doctype html>
            <html><head>
              <meta http-equiv="X-UA-Compatible" content="IE=edge" />
              <meta http-equiv="Content-Type" content="text/html; charset=UTF-8" />
            </head><body><h2>Don't panic!</h2>
              <script>
                document.domain = document.domain;
                var c = parent.callback;
                c.start();
                function p(d) {c.message(d);};
                window.onload = function() {c.stop();};
              </script>
            """
        try withSockJS { (server: TestServer) throws in
            let client = SockJSClient(server, "html")
            let stream = try client.stream("GET", "htmlfile?c=%63allback")
            #expect(stream.head.fields["content-type"] == "text/html; charset=UTF-8")
            SockJSStaticTests.expectNotCached(stream.head)
            #expect(stream.prelude.hasPrefix(head) && stream.prelude.utf8.count > 1_024)
            #expect(stream.prelude.dropFirst(head.count).allSatisfy { $0 == " " || $0 == "\r\n" })
            #expect(try stream.peer.chunk() == "<script>\np(\"o\");\n</script>\r\n")
            #expect(try client.send("[\"h:1\"]").status == 204)
            #expect(try stream.peer.chunk() == "<script>\np(\"a[\\\"h:2\\\"]\");\n</script>\r\n")
            let refused = try HTTPPeer.ask(server.port, "GET", "/sock/1/app/a/a/htmlfile")
            #expect(refused.status == 500 && refused.body == "\"callback\" parameter required")
        }
    }

    @Test(
        "a response ends at its bound of bytes, and its connection and session continue",
        arguments: [("POST", "xhr_streaming"), ("GET", "eventsource"), ("GET", "htmlfile?c=callback")])
    func responseLimit(method: String, last: String) throws {
        try withSockJS {
            $0.limits.sockJSResponseBytes = 4_096
        } _: { (server: TestServer) throws in
            let client = SockJSClient(server, "limit")
            let stream = try client.stream(method, last)
            #expect(try stream.peer.chunk()?.contains("o") == true)
            var bytes = 0
            var number = 0
            while bytes < 4_096 - 32 {
                number += 1
                #expect(try client.send("[\"h:\(number)\"]").status == 204)
                guard let chunk = try stream.peer.chunk() else { break }
                #expect(chunk.contains("h:\(number + 1)"))
                bytes += chunk.utf8.count
            }
            // One or two more messages end the response.
            var isOver = false
            while !isOver, number < 1_000 {
                number += 1
                #expect(try client.send("[\"h:\(number)\"]").status == 204)
                let chunk = try stream.peer.chunk()
                bytes += chunk?.utf8.count ?? 0
                isOver = chunk == nil
            }
            #expect(isOver && bytes >= 4_090 && bytes < 4_200)
            // The last message came when no response was open: it waits for the next, on the same connection.
            #expect(try stream.peer.ask("POST", client.path + "/xhr").body.contains("h:\(number + 1)"))
        }
    }

    @Test("over HTTP/1.0 the end of the connection is the end of the response")
    func oldVersion() throws {
        try withSockJS {
            $0.limits.pendingBytesPerConnectionMax = 20
        } _: { (server: TestServer) throws in
            let client = SockJSClient(server, "old")
            #expect(try client.poll().body == "o\n")
            for _ in 0..<6 { _ = try client.send("[\"h:1\"]") }
            let peer = try HTTPPeer(port: server.port)
            try peer.send("POST", client.path + "/xhr_streaming", ["Connection": "Keep-Alive"], version: "1.0")
            let head = try peer.head()
            #expect(head.status == 200 && head.fields["connection"] == "close")
            #expect(head.fields["transfer-encoding"] == nil && head.fields["content-length"] == nil)
            #expect(try peer.rest() == String(repeating: "h", count: 2_048) + "\nc[1013,\"too slow\"]\n")
            let greeting = try HTTPPeer(port: server.port)
            for _ in 0..<2 {
                try greeting.send("GET", "/sock/1/app", ["Connection": "Keep-Alive"], version: "1.0")
                let answer = try greeting.answer()
                #expect(answer.body == "Welcome to SockJS!\n" && answer.fields["connection"] == "keep-alive")
            }
        }
    }

    @Test("a WebSocket session frames its messages; two sessions may share a name")
    func webSocket() throws {
        try withSockJS { (server: TestServer) throws in
            let path = "/sock/1/app/000/ws/websocket"
            let first = try TestClient(port: server.port, path: path)
            #expect(try first.receive() == "o")
            let second = try TestClient(port: server.port, path: path)
            #expect(try second.receive() == "o")
            try first.send("", "[\"h:1\"]")
            #expect(try first.receive() == "a[\"h:2\"]")
            #expect(try first.ask("\"h:5\"") == "a[\"h:6\"]")
            #expect(try second.ask("[\"h:7\"]") == "a[\"h:8\"]")
            first.vanish()
            #expect(waitUntil { server.metrics.sockJSSessions.value == 1 })
            #expect(try second.ask("[\"h:1\",\"h:2\"]") == "a[\"h:2\",\"h:3\"]")
            let third = try TestClient(port: server.port, path: path)
            #expect(try third.receive() == "o")
            #expect(try SockJSClient(server, "ws").send("[\"h:1\"]").status == 404)
        }
    }

    @Test("broken JSON ends its WebSocket session and no other")
    func brokenSocket() throws {
        try withSockJS { (server: TestServer) throws in
            let good = try TestClient(port: server.port, path: "/sock/1/app/000/good/websocket")
            #expect(try good.receive() == "o")
            for text in ["[\"a", "{}", "[1]"] {
                let bad = try TestClient(port: server.port, path: "/sock/1/app/000/bad/websocket")
                #expect(try bad.receive() == "o")
                try bad.send(text)
                #expect(throws: TestClient.Failure.self) { try bad.receive() }
                #expect(bad.closeCode == .invalidPayload)
            }
            #expect(try good.ask("[\"h:1\"]") == "a[\"h:2\"]")
            #expect(waitUntil { server.metrics.sockJSSessions.value == 1 })
        }
    }

    @Test("a session whose server stops gets a close frame, then its WebSocket is closed")
    func closedSocket() throws {
        let server = try TestServer(store: try MemoryStore.forTests())
        let client = try TestClient(port: server.port, path: "/sock/1/app/000/stop/websocket")
        #expect(try client.receive() == "o")
        server.handle.stop()
        #expect(try client.receive() == "c[1001,\"the server stops\"]")
        #expect(try client.end() == .goingAway)
        server.stop()
    }

    @Test("a request on a session's WebSocket path that is not a WebSocket is refused with the reason")
    func socketRefusals() throws {
        try withSockJS { (server: TestServer) throws in
            let path = "/sock/1/app/0/0/websocket"
            let plain = try HTTPPeer.ask(server.port, "GET", path)
            #expect(plain.status == 400 && plain.body == "Can \"Upgrade\" only to \"WebSocket\".")
            let closing = try HTTPPeer.ask(
                server.port, "GET", path, ["Upgrade": "WebSocket", "Connection": "close"])
            #expect(closing.status == 400 && closing.body == "\"Connection\" must be \"Upgrade\".")
            for fields in [["Upgrade": "WebSocket", "Connection": "Upgrade"], [:]] {
                let post = try HTTPPeer.ask(server.port, "POST", path, fields)
                #expect(post.status == 405 && post.body.isEmpty && post.fields["content-type"] == nil)
                #expect(post.fields["allow"] == "GET")
            }
            let upgrade = try HTTPPeer(port: server.port)
            try upgrade.send(
                "GET", path,
                [
                    "Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Version": "13",
                    "Sec-WebSocket-Origin": "http://asd", "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
                ])
            let head = try upgrade.head()
            #expect(head.status == 101 && head.fields["content-length"] == nil)
            #expect(head.fields["sec-websocket-accept"] == "HSmrc0sMlYUkAGmm5OPpG2HaGWk=")
        }
    }
}
