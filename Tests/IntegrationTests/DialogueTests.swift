import Testing
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// The public description's dialogue and every error code, over a real socket, on both stores.
@Suite(.serialized)
struct DialogueTests {
    @Test("the whole dialogue of the public description", arguments: StoreKind.allCases)
    func dialogue(kind: StoreKind) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        let client = try server.client()
        #expect(try client.ask("h:0") == "h:1")
        #expect(
            try client.ask(#"0:init:{"api":1,"client_id":"android-1.0","token":"no","app_id":"app","name":"notes"}"#)
                == "0:auth:expired")
        #expect(try client.receive() == #"0:auth:{"msg":"Token invalid","code":401}"#)
        #expect(
            try client.ask(
                #"0:init:{"clientid":"c1","api":"1.1","token":"ann-token","app_id":"app","name":"notes","#
                    + #""library":"simperium-android","version":"1.0","cmd":"i::::500"}"#)
                == "0:auth:ann@example.com")
        let empty = try client.receive()
        #expect(empty.hasPrefix(#"0:i:{"current":""#) && empty.hasSuffix(#"","index":[]}"#))
        let start = try #require(empty.field("current"))
        #expect(try client.ask("0:cv:\(start)") == "0:c:[]")

        let other = try server.client("c2", command: "cv:\(start)")
        #expect(try other.receive() == "0:c:[]")
        try client.send(edit("one", "x1", to: "hello world"))
        let change = try client.receive()
        #expect(try other.receive() == change)
        let cv = try #require(change.field("cv"))
        #expect(
            change
                == #"0:c:[{"clientid":"c1","cv":"\#(cv)","id":"one","o":"M","v":{"t":{"o":"+","v":"hello world"}},"#
                + #""ev":1,"ccids":["x1"]}]"#)
        #expect(try other.ask("0:e:one.1") == "0:e:one.1\n{\"data\":{\"t\":\"hello world\"}}")
        #expect(try other.ask("0:e:one.2") == "0:e:one.2\n?")
        #expect(try other.ask("0:cv:nothing") == "0:cv:?")
        #expect(
            try other.ask("0:i:1:::100")
                == #"0:i:{"current":"\#(cv)","index":[{"id":"one","v":1,"d":{"t":"hello world"}}]}"#)
        #expect(try other.ask("0:what") == "0:?")
    }

    @Test("every error code is provoked over the wire, and the connection stays open", arguments: StoreKind.allCases)
    func codes(kind: StoreKind) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store) { config in
            config.limits.documentBytesMax = 2_000
            config.limits.bucketsPerUserMax = 1
        }
        defer { server.stop() }
        let client = try server.client("c")
        for change in [edit("k", "a1", to: "a"), edit("k", "a2", sv: 1, to: "b"), edit("gone", "a3", to: "x")] {
            #expect(try client.ask(change).contains("\"cv\""))
        }
        #expect(try client.ask(removal("gone", "a4")).contains("\"o\":\"-\""))
        let long = String(repeating: "x", count: 3_000)
        let table: [(change: String, ccid: String, code: Int)] = [
            (#"{"id":"bad key","o":"M","ccid":"e1","v":{}}"#, "e1", 400),
            (#"{"id":"new","o":"M","ccid":"e2","sv":1,"v":{"t":{"o":"r","v":1}}}"#, "e2", 404),
            (#"{"id":"k","o":"M","ccid":"e3","sv":7,"v":{"t":{"o":"r","v":1}}}"#, "e3", 405),
            (#"{"id":"k","o":"M","ccid":"a1","v":{"t":{"o":"+","v":"a"}}}"#, "a1", 409),
            (#"{"id":"gone","o":"-","ccid":"e4"}"#, "e4", 412),
            (#"{"id":"k","o":"M","ccid":"e5","sv":2,"v":{"u":{"o":"+","v":"\#(long)"}}}"#, "e5", 413),
            (#"{"id":"k","o":"M","ccid":"e6","sv":"2","v":{"t":{"o":"d","v":"-9"}}}"#, "e6", 440),
        ]
        for (change, ccid, code) in table {
            let answer = try client.ask("0:c:\(change)")
            #expect(answer.hasSuffix(#""error":\#(code),"ccids":["\#(ccid)"]}]"#), "\(answer)")
        }
        let second = try client.ask(
            #"1:init:{"api":"1.1","clientid":"c","token":"ann-token","app_id":"app","name":"second"}"#)
        #expect(second == #"1:auth:{"msg":"Bucket limit reached","code":500}"#)
        #expect(
            try client.ask(#"1:init:{"api":"1.1","clientid":"c","app_id":"app","name":"notes"}"#)
                == #"1:auth:{"msg":"Token malformed","code":400}"#)
        let reader = try server.client("r", token: "read-token")
        #expect(
            try reader.ask(edit("k", "e7", sv: 2, to: "z"))
                == #"0:c:[{"clientid":"r","id":"k","error":401,"ccids":["e7"]}]"#)
        #expect(try client.ask("h:1") == "h:2")
    }

    @Test("a store that cannot commit answers 503, is not ready, and recovers by itself")
    func unavailable() throws {
        let broken = Flag()
        let store: MemoryStore = try .forTests(faults: { _ in
            broken.isSet ? .fail(StoreError(.full, "a test")) : .none
        })
        let server = try TestServer(store: store)
        defer { server.stop() }
        let client = try server.client("c")
        #expect(try client.ask(edit("k", "x1", to: "a")).contains("\"ev\":1"))
        #expect(try TestClient.http(port: server.port, get("/health/ready")).hasPrefix("HTTP/1.1 200"))
        broken.set(true)
        #expect(
            try client.ask(edit("k", "x2", sv: 1, to: "b"))
                == #"0:c:[{"clientid":"c","id":"k","error":503,"ccids":["x2"]}]"#)
        #expect(try TestClient.http(port: server.port, get("/health/ready")).hasPrefix("HTTP/1.1 503"))
        #expect(try TestClient.http(port: server.port, get("/health/live")).hasPrefix("HTTP/1.1 200"))
        broken.set(false)
        #expect(try client.ask(edit("k", "x2", sv: 1, to: "b")).contains("\"ev\":2"))
        #expect(try TestClient.http(port: server.port, get("/health/ready")).hasPrefix("HTTP/1.1 200"))
    }

    @Test("readiness returns without a change from a client")
    func readyAgain() throws {
        let broken = Flag()
        let store: MemoryStore = try .forTests(faults: { _ in
            broken.isSet ? .fail(StoreError(.io, "a test")) : .none
        })
        let server = try TestServer(store: store)
        defer { server.stop() }
        let client = try server.client("c")
        broken.set(true)
        #expect(try client.ask(edit("k", "x1", to: "a")).contains("503"))
        broken.set(false)
        #expect(waitUntil { server.health.isReady })
    }

    @Test("a change that is sent again after a restart is 409", arguments: StoreKind.allCases)
    func restart(kind: StoreKind) throws {
        let store = try TestStore(kind)
        var server = try TestServer(store: store.store)
        let first = try server.client("c")
        let ack = try first.ask(edit("k", "x1", to: "a"))
        let cv = try #require(ack.field("cv"))
        server.abort()
        try store.reopen()
        server = try TestServer(store: store.store)
        defer { server.stop() }
        let again = try server.client("c")
        #expect(try again.ask("0:cv:\(cv)") == "0:c:[]")
        #expect(
            try again.ask(edit("k", "x1", to: "a")) == #"0:c:[{"clientid":"c","id":"k","error":409,"ccids":["x1"]}]"#)
        #expect(try again.ask("0:e:k.1") == "0:e:k.1\n{\"data\":{\"t\":\"a\"}}")
    }

    @Test("a stopping server acknowledges accepted changes, closes with 1001 and ends")
    func stop() throws {
        let store: MemoryStore = try .forTests()
        let server = try TestServer(store: store)
        let clients = try (0..<3).map { try server.client("c\($0)") }
        for client in clients { #expect(try client.ask(edit("k", "x", to: "a")).contains("\"ccids\"")) }
        server.handle.stop()
        for client in clients { #expect(try client.end() == .goingAway) }
        server.stop()
        #expect(throws: (any Error).self) { try server.client() }
    }

    @Test("paths: health, metrics, and a JSON 404 for the rest")
    func paths() throws {
        let server = try TestServer(store: MemoryStore.forTests())
        defer { server.stop() }
        #expect(waitUntil { server.health.isReady })
        let table: [(request: String, status: Int, contains: String)] = [
            (get("/health/live"), 200, "live"), (get("/health/ready"), 200, "ready"),
            (get("/metrics"), 200, "thicket_channels 0"), (get("/"), 200, "Thicket \(ThicketServer.version)"),
            (get("/page.html"), 404, #""code":"no_such_path""#),
            (get("/sock/1/app/other"), 404, #""code":"no_such_path""#),
            (get("/sock/1/bad%20app/websocket"), 404, #""code":"no_such_path""#),
            (get("/sock/1//websocket"), 404, #""code":"no_such_path""#),
            (get("/sock/1/app/websocket"), 400, #""code":"not_an_upgrade""#),
            ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 405, "allow"),
        ]
        for (request, status, contains) in table {
            let answer = try TestClient.http(port: server.port, request)
            #expect(answer.hasPrefix("HTTP/1.1 \(status) ") && answer.contains(contains), "\(request): \(answer)")
        }
    }

    @Test("the server's handle asks clients for their state")
    func ask() throws {
        let server = try TestServer(store: MemoryStore.forTests())
        defer { server.stop() }
        let client = try server.client("c")
        let replies = BlockingQueue<RemoteReply>(bound: 10)
        let question = RemoteQuestion(
            bucket: BucketID(
                app: try AppID("app"), user: try UserID("ann@example.com"), name: try BucketName("notes")),
            kind: .index, seconds: 10)
        let cancel = server.handle.ask(question) { replies.add($0) }
        #expect(try client.receive() == "0:index")
        try client.send(#"0:index:{"current":"x","index":[{"id":"k","v":3}],"pending":[]}"#)
        var reported = [RemoteReply]()
        let deadline = SystemClock.steadyTime() + .seconds(120)
        for _ in 0..<2 where reported.count < 2 { reported += replies.takeAll(until: deadline) }
        try #require(reported.count >= 2)
        #expect(reported.first == .asked(1))
        guard case .answer("c", let json) = reported[1] else {
            Issue.record("no answer: \(reported)")
            return
        }
        #expect(String(decoding: json, as: UTF8.self).contains(#""id":"k""#))
        cancel()
    }

    private func get(_ path: String) -> String { "GET \(path) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" }
}
