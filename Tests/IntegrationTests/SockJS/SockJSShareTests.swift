import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// A SockJS request counts for its session's user, within the bounds of users.
@Suite("Shares and bounds of SockJS sessions", .serialized)
struct SockJSShareTests {
    private static func initialize(_ token: String) -> String {
        #"["0:init:{\"clientid\":\"s\",\"api\":\"1.1\",\"token\":\"\#(token)\",\"app_id\":\"app\",\"name\":\"notes\"}"]"#
    }

    private static func open(_ server: TestServer, _ name: String, token: String = "ann-token") throws -> SockJSClient {
        let client = SockJSClient(server, name)
        #expect(try client.poll().body == "o\n")
        #expect(try client.send(initialize(token)).status == 204)
        #expect(try client.poll().body.hasPrefix("a[\"0:auth:"))
        return client
    }

    /// Unauthenticated connections use their whole bound: one more is refused.
    private static func fillUnauthenticated(_ server: TestServer) throws -> [HTTPPeer] {
        var held = [HTTPPeer]()
        while held.count < 20 {
            let peer = try HTTPPeer(port: server.port)
            let head =
                "POST /sock/1/app/000/nobody/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n"
            try peer.send(raw: Array((head + String(repeating: " ", count: 30_000)).utf8))
            // After two answers the loop has read what was sent before.
            for _ in 0..<2 { #expect(try HTTPPeer.ask(server.port, "GET", "/health/live").status == 200) }
            held.append(peer)
            if server.metrics.limitHits.value(.gatheredBytes) > 0 { return held }
        }
        return held
    }

    @Test(
        "requests of a session count for its user: unauthenticated connections at their bound do not block them",
        arguments: ["xhr", "xhr_send", "jsonp_send"])
    func ofTheUser(last: String) throws {
        try withSockJS {
            $0.limits.gatheredBytesPerUserMax = 64 << 10
        } _: { (server: TestServer) throws in
            let client = try Self.open(server, "user")
            // A connection that has served the session once, and stays.
            let peer = try HTTPPeer(port: server.port)
            #expect(try client.send("[\"h:1\"]").status == 204)
            let path = "\(client.path)/\(last)"
            let first = try peer.ask("POST", path, body: last == "xhr" ? "" : "[\"h:1\"]")
            #expect(first.status < 300)
            let unauthenticated = try Self.fillUnauthenticated(server)
            defer { withExtendedLifetime(unauthenticated) {} }
            #expect(unauthenticated.count > 1 && server.metrics.limitHits.value(.gatheredBytes) == 1)
            let body = "[\"h:5\"" + String(repeating: " ", count: 40_000) + "]"
            let head =
                "POST \(client.path)/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            try peer.send(raw: Array((head + body.prefix(30_000)).utf8))
            for _ in 0..<2 { #expect(try HTTPPeer.ask(server.port, "GET", "/health/live").status == 200) }
            try peer.send(raw: Array(body.dropFirst(30_000).utf8))
            #expect(try peer.answer().status == 204)
            #expect(server.metrics.limitHits.value(.gatheredBytes) == 1)
        }
    }

    @Test("a connection counts as unauthenticated again when a session without a user uses it")
    func backToUnauthenticated() throws {
        try withSockJS {
            $0.limits.gatheredBytesPerUserMax = 64 << 10
        } _: { (server: TestServer) throws in
            let client = try Self.open(server, "user")
            let peer = try HTTPPeer(port: server.port)
            #expect(try peer.ask("POST", client.path + "/xhr_send", body: "[\"h:1\"]").status == 204)
            #expect(try peer.ask("POST", "/sock/1/app/000/anonymous/xhr", body: "").body == "o\n")
            let unauthenticated = try Self.fillUnauthenticated(server)
            defer { withExtendedLifetime(unauthenticated) {} }
            let head =
                "POST /sock/1/app/000/anonymous/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: 50000\r\n\r\n"
            try peer.send(raw: Array((head + String(repeating: " ", count: 30_000)).utf8))
            #expect(try peer.answer().status == 503)
        }
    }

    @Test("a stream that ends leaves its connection with the session's user for the next request")
    func stream() throws {
        try withSockJS { (config: inout ServerConfig) in
            config.limits.gatheredBytesPerUserMax = 64 << 10
            config.limits.sockJSResponseBytes = 4_096
        } _: { (server: TestServer) throws in
            let client = try Self.open(server, "streaming")
            let stream = try client.stream("POST", "xhr_streaming")
            let long = "[" + (0..<900).map { "\"h:\($0)\"" }.joined(separator: ",") + "]"
            #expect(try client.send(long).status == 204)
            while try stream.peer.chunk() != nil {}
            let unauthenticated = try Self.fillUnauthenticated(server)
            defer { withExtendedLifetime(unauthenticated) {} }
            let body = "[\"h:5\"" + String(repeating: " ", count: 40_000) + "]"
            let head =
                "POST \(client.path)/xhr_send HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
            try stream.peer.send(raw: Array((head + body.prefix(30_000)).utf8))
            for _ in 0..<2 { #expect(try HTTPPeer.ask(server.port, "GET", "/health/live").status == 200) }
            try stream.peer.send(raw: Array(body.dropFirst(30_000).utf8))
            #expect(try stream.peer.answer().status == 204)
        }
    }

    @Test("queued bytes over all sessions of a user are bounded: a slow session gets 1013, other users are unaffected")
    func userBytes() throws {
        try withSockJS {
            $0.limits.pendingBytesPerUserMax = 64 << 10
        } _: { (server: TestServer) throws in
            let sessions = try (0..<4).map { try Self.open(server, "ann\($0)") }
            let bob = try Self.open(server, "bob", token: "bob-token")
            for client in sessions {
                #expect(try client.send("[\"0:i::::1\"]").status == 204)
                #expect(try client.poll().body.hasPrefix("a[\"0:i:"))
            }
            let writer = try server.client("writer")
            let text = String(repeating: "x", count: 10_000)
            for number in 0..<4 { _ = try writer.ask(edit("k\(number)", "c\(number)", to: text)) }
            #expect(waitUntil { server.metrics.limitHits.value(.userPendingBytes) > 0 })
            let said = try sessions.map { try $0.poll().body }
            #expect(said.contains("c[1013,\"too slow\"]\n"), "\(said.map { $0.prefix(30) })")
            #expect(said.contains { $0.hasPrefix("a[") }, "not all of them")
            #expect(try bob.send("[\"h:1\"]").status == 204)
            #expect(try bob.poll().body == "a[\"h:2\"]\n")
            #expect(try writer.ask("h:1") == "h:2")
        }
    }

    @Test("the sessions of a user open as many channels as a user may have, and one that ends frees its place")
    func userChannels() throws {
        try withSockJS {
            $0.limits.channelsPerUserMax = 2
            $0.sockJSPatience = .milliseconds(200)
        } _: { (server: TestServer) throws in
            let first = try Self.open(server, "one")
            let second = try server.client("two")
            let third = SockJSClient(server, "three")
            #expect(try third.poll().body == "o\n")
            #expect(try third.send(Self.initialize("ann-token")).status == 204)
            #expect(try third.poll().body.contains(#"\"code\":500"#))
            _ = first
            #expect(try second.ask("h:1") == "h:2")
            // The first has no receiver and is removed.
            #expect(waitUntil { (try? Self.openAgain(server)) == true })
        }
    }

    private static func openAgain(_ server: TestServer) throws -> Bool {
        let client = SockJSClient(server, "again\(server.metrics.sockJSOpened.value(.xhr))")
        _ = try client.poll()
        _ = try client.send(initialize("ann-token"))
        return try client.poll().body == "a[\"0:auth:ann@example.com\"]\n"
    }
}
