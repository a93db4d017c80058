import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Whose a request of SockJS is: what it takes counts for the session's user, within the bounds that users have.
@Suite("Shares and bounds of SockJS sessions", .serialized)
struct SockJSShareTests {
    private static func initialize(_ token: String) -> String {
        #"["0:init:{\"clientid\":\"s\",\"api\":\"1.1\",\"token\":\"\#(token)\",\"app_id\":\"app\",\"name\":\"notes\"}"]"#
    }

    private static func open(_ server: TestServer, _ name: String, token: String = "ann-token") throws -> SockJSClient {
        let client: SockJSClient = .init(server, name)
        #expect(try client.poll().body == "o\n")
        #expect(try client.send(initialize(token)).status == 204)
        #expect(try client.poll().body.hasPrefix("a[\"0:auth:"))
        return client
    }

    /// Strangers hold all that strangers may: one more is refused.
    private static func fillStrangers(_ server: TestServer) throws -> [HTTPPeer] {
        var held: [HTTPPeer] = []
        while held.count < 20 {
            let peer: HTTPPeer = try .init(port: server.port)
            let head: String =
                "POST /sock/1/app/000/nobody/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n"
            try peer.send(raw: Array((head + String(repeating: " ", count: 30_000)).utf8))
            // Two answers of the loop later it has looked at what came before.
            for _ in 0..<2 { #expect(try HTTPPeer.ask(server.port, "GET", "/health/live").status == 200) }
            held.append(peer)
            if server.metrics.limitHits.value(.gatheredBytes) > 0 { return held }
        }
        return held
    }

    @Test(
        "the requests by which a session sends and polls are its user's: full strangers do not keep them out",
        arguments: ["xhr", "xhr_send", "jsonp_send"])
    func ofTheUser(last: String) throws {
        try withSockJS {
            $0.limits.gatheredBytesPerUserMax = 64 << 10
        } _: { (server: TestServer) throws in
            let client: SockJSClient = try Self.open(server, "user")
            // A connection that has served the session once, and stays.
            let peer: HTTPPeer = try .init(port: server.port)
            #expect(try client.send("[\"h:1\"]").status == 204)
            let path: String = "\(client.path)/\(last)"
            let first: HTTPPeer.Answer = try peer.ask("POST", path, body: last == "xhr" ? "" : "[\"h:1\"]")
            #expect(first.status < 300)
            let strangers: [HTTPPeer] = try Self.fillStrangers(server)
            defer { withExtendedLifetime(strangers) {} }
            #expect(strangers.count > 1 && server.metrics.limitHits.value(.gatheredBytes) == 1)
            let body: String = "[\"h:5\"" + String(repeating: " ", count: 40_000) + "]"
            let head: String =
                "POST \(client.path)/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            try peer.send(raw: Array((head + body.prefix(30_000)).utf8))
            for _ in 0..<2 { #expect(try HTTPPeer.ask(server.port, "GET", "/health/live").status == 200) }
            try peer.send(raw: Array(body.dropFirst(30_000).utf8))
            #expect(try peer.answer().status == 204)
            #expect(server.metrics.limitHits.value(.gatheredBytes) == 1)
        }
    }

    @Test("a connection goes back to the strangers when a session that nobody is known for uses it")
    func backToStrangers() throws {
        try withSockJS {
            $0.limits.gatheredBytesPerUserMax = 64 << 10
        } _: { (server: TestServer) throws in
            let client: SockJSClient = try Self.open(server, "user")
            let peer: HTTPPeer = try .init(port: server.port)
            #expect(try peer.ask("POST", client.path + "/xhr_send", body: "[\"h:1\"]").status == 204)
            #expect(try peer.ask("POST", "/sock/1/app/000/anonymous/xhr", body: "").body == "o\n")
            let strangers: [HTTPPeer] = try Self.fillStrangers(server)
            defer { withExtendedLifetime(strangers) {} }
            let head: String =
                "POST /sock/1/app/000/anonymous/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n"
            try peer.send(raw: Array((head + String(repeating: " ", count: 30_000)).utf8))
            #expect(try peer.answer().status == 503)
        }
    }

    @Test("a stream that ends leaves its connection with the session's user for the next one")
    func stream() throws {
        try withSockJS { (config: inout ServerConfig) in
            config.limits.gatheredBytesPerUserMax = 64 << 10
            config.limits.sockJSResponseBytes = 4_096
        } _: { (server: TestServer) throws in
            let client: SockJSClient = try Self.open(server, "streaming")
            let stream = try client.stream("POST", "xhr_streaming")
            let long: String = "[" + (0..<900).map { "\"h:\($0)\"" }.joined(separator: ",") + "]"
            #expect(try client.send(long).status == 204)
            while try stream.peer.chunk() != nil {}
            let strangers: [HTTPPeer] = try Self.fillStrangers(server)
            defer { withExtendedLifetime(strangers) {} }
            let body: String = "[\"h:5\"" + String(repeating: " ", count: 40_000) + "]"
            let head: String =
                "POST \(client.path)/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            try stream.peer.send(raw: Array((head + body.prefix(30_000)).utf8))
            for _ in 0..<2 { #expect(try HTTPPeer.ask(server.port, "GET", "/health/live").status == 200) }
            try stream.peer.send(raw: Array(body.dropFirst(30_000).utf8))
            #expect(try stream.peer.answer().status == 204)
        }
    }

    @Test("what waits for all sessions of a user is bounded: who is behind is told 1013, other users are not touched")
    func userBytes() throws {
        try withSockJS {
            $0.limits.pendingBytesPerUserMax = 64 << 10
        } _: { (server: TestServer) throws in
            let sessions: [SockJSClient] = try (0..<4).map { try Self.open(server, "ann\($0)") }
            let bob: SockJSClient = try Self.open(server, "bob", token: "bob-token")
            for client: SockJSClient in sessions {
                #expect(try client.send("[\"0:i::::1\"]").status == 204)
                #expect(try client.poll().body.hasPrefix("a[\"0:i:"))
            }
            let writer: TestClient = try server.client("writer")
            let text: String = .init(repeating: "x", count: 10_000)
            for number: Int in 0..<4 { _ = try writer.ask(edit("k\(number)", "c\(number)", to: text)) }
            #expect(waitUntil { server.metrics.limitHits.value(.userPendingBytes) > 0 })
            let said: [String] = try sessions.map { try $0.poll().body }
            #expect(said.contains("c[1013,\"too slow\"]\n"), "\(said.map { $0.prefix(30) })")
            #expect(said.contains { $0.hasPrefix("a[") }, "not all of them")
            #expect(try bob.send("[\"h:1\"]").status == 204)
            #expect(try bob.poll().body == "a[\"h:2\"]\n")
            #expect(try writer.ask("h:1") == "h:2")
        }
    }

    @Test("the sessions of a user open as many channels as a user may have, and one that ends makes room")
    func userChannels() throws {
        try withSockJS {
            $0.limits.channelsPerUserMax = 2
            $0.sockJSPatience = .milliseconds(200)
        } _: { (server: TestServer) throws in
            let first: SockJSClient = try Self.open(server, "one")
            let second: TestClient = try server.client("two")
            let third: SockJSClient = .init(server, "three")
            #expect(try third.poll().body == "o\n")
            #expect(try third.send(Self.initialize("ann-token")).status == 204)
            #expect(try third.poll().body.contains(#"\"code\":500"#))
            _ = first
            #expect(try second.ask("h:1") == "h:2")
            // The first has no receiver and is forgotten.
            #expect(waitUntil { (try? Self.openAgain(server)) == true })
        }
    }

    private static func openAgain(_ server: TestServer) throws -> Bool {
        let client: SockJSClient = .init(server, "again\(server.metrics.sockJSOpened.value(.xhr))")
        _ = try client.poll()
        _ = try client.send(initialize("ann-token"))
        return try client.poll().body == "a[\"0:auth:ann@example.com\"]\n"
    }
}
