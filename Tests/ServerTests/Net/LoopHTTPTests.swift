import CThicketNet
import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

@Suite("HTTP over the event loop", .serialized)
struct LoopHTTPTests {
    private let get = " HTTP/1.1\r\nHost: x\r\n\r\n"

    @Test("every refused request gets its status and the end of the connection, every good one an answer")
    func table() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let port: Int = try server.port
        for each in HTTPCase.all {
            let peer = try TestPeer(port: port)
            try peer.send(each.bytes)
            let answer = try peer.readResponse()
            if let problem: HTTPFailure.Problem = each.problem {
                #expect(answer.status == HTTPFailure(problem).status, "\(each.title)")
                #expect(try peer.readToEnd().isEmpty, "\(each.title)")
            } else {
                #expect([100, 200, 404].contains(answer.status), "\(each.title)")
            }
        }
        #expect(server.metrics.net.httpErrors.value(.headTooLarge) > 0)
        try server.stop()
    }

    @Test("requests sent at once are answered in order, also when one is answered later")
    func pipelining() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        let paths: [String] = ["/hello", "/none", "/later", "/hello", "/later", "/later", "/none", "/hello"]
        try peer.send(paths.map { "GET \($0)\(get)" }.joined())
        let bodies: [String: String] = ["/hello": "hello", "/later": "at last", "/none": "not found"]
        for path in paths {
            #expect(String(decoding: try peer.readResponse().body, as: UTF8.self) == bodies[path])
        }
        try server.stop()
    }

    @Test("a peer that sends many requests and reads no answer is not read further, and loses no answer")
    func pipeliningWithoutReading() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.send(String(repeating: "GET /big\(get)", count: 300))
        let bound: Int = 2 * NetSettings().pendingBytesPause
        waitFor { server.metrics.net.outboxBytes.value > 0 ? true : nil }
        for _: Int in 0..<300 {
            #expect(server.metrics.net.outboxBytes.value <= bound)
            #expect(try peer.readResponse().body.count == 100_000)
        }
        try server.stop()
    }

    @Test("'100 Continue' is sent before the body arrives")
    func continues() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        #expect(try peer.readResponse().status == 100)
        try peer.send("abc")
        #expect(try peer.readResponse().body == Array("abc".utf8))
        try server.stop()
    }

    @Test("a peer that shuts down its sending side after the request still gets the answer")
    func halfClosed() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        for path: String in ["/hello", "/big"] {
            let peer = try TestPeer(port: server.port)
            try peer.send("GET \(path)\(get)")
            _ = thicket_shut_write(peer.socket)
            #expect(try peer.readToEnd().hasPrefix("HTTP/1.1 200 OK\r\n"))
        }
        try server.stop()
    }

    @Test("'Connection: close' and HTTP/1.0 end the connection after the answer")
    func closing() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        for text: String in [
            "GET /hello HTTP/1.0\r\n\r\n", "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        ] {
            let peer = try TestPeer(port: server.port)
            try peer.send(text)
            #expect(try peer.readToEnd().hasSuffix("connection: close\r\n\r\nhello"))
        }
        try server.stop()
    }

    @Test("a request for a WebSocket path is refused without an upgrade (400) and with a bad version (426)")
    func badUpgrades() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let plain = try TestPeer(port: server.port)
        try plain.send("GET /ws\(get)")
        #expect(try plain.readResponse().status == 400)
        let old = try TestPeer(port: server.port)
        try old.send(
            "GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n")
        let answer = try old.readResponse()
        #expect(answer.status == 426)
        #expect(answer.fields["sec-websocket-version"] == "13")
        try server.stop()
    }

    @Test("frames in the same packet as the upgrade request are not lost, and no extension is agreed to")
    func eagerFrames() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        let opening: [UInt8] = WebSocketHandshake.request(
            host: "x", target: "/ws", nonce: Array(0..<16),
            fields: [.init("sec-websocket-extensions", "permessage-deflate")])
        try peer.send(opening + WebSocketWriter.frame(.text, Array("early".utf8), mask: 1))
        let answer = try peer.readResponse()
        #expect(answer.status == 101)
        #expect(answer.fields["sec-websocket-extensions"] == nil)
        #expect(try peer.readAnswer() == .text(Array("early".utf8)))
        try server.stop()
    }

    @Test("an incomplete request is answered 408, and a silent connection is closed")
    func timeouts() throws {
        var settings = NetSettings()
        settings.requestTimeout = .milliseconds(60)
        settings.keepAliveTimeout = .milliseconds(60)
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let half = try TestPeer(port: server.port)
        try half.send("GET / HTTP/1.1\r\nHo")
        #expect(try half.readResponse().status == 408)
        let silent = try TestPeer(port: server.port)
        #expect(try silent.readToEnd().isEmpty)
        let kept = try TestPeer(port: server.port)
        try kept.send("GET /hello\(get)")
        #expect(try kept.readResponse().status == 200)
        #expect(try kept.readToEnd().isEmpty)
        try server.stop()
    }

    @Test("a head that arrives byte by byte does not hold the connection beyond the timeout")
    func slowHead() throws {
        var settings = NetSettings()
        settings.requestTimeout = .milliseconds(80)
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.send("GET / HTTP/1.1\r\nA: ")
        let isAnswered: Bool = waitFor {
            guard (try? peer.send("b")) != nil else { return true }
            return server.metrics.net.httpErrors.value(.timeout) == 1 ? true : nil
        }
        #expect(isAnswered)
        try server.stop()
    }

    @Test("connections above the limit get 503, and a freed place is given to the next connection")
    func tooMany() throws {
        var settings = NetSettings()
        settings.connectionsMax = 2
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let first = try TestPeer(port: server.port)
        do {
            let second = try TestPeer(port: server.port)
            for peer: TestPeer in [first, second] {
                try peer.send("GET /hello\(get)")
                #expect(try peer.readResponse().status == 200)
            }
            let third = try TestPeer(port: server.port)
            #expect(try third.readResponse().status == 503)
            #expect(server.metrics.net.connectionsRefused.value == 1)
        }
        waitFor { server.metrics.net.connections.value == 1 ? true : nil }
        let fourth = try TestPeer(port: server.port)
        try fourth.send("GET /hello\(get)")
        #expect(try fourth.readResponse().status == 200)
        try server.stop()
    }

    @Test("a listener that is muted because the kernel has no memory accepts again after a while")
    func mutedListener() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let start: Int64 = thicket_monotonic_ns()
        _ = try server.onLoop { loop in
            for (descriptor, listener) in loop.listeners { loop.mute(descriptor, listener) }
            return true
        }
        let peer = try TestPeer(port: try server.port)
        try peer.send("GET /hello HTTP/1.1\r\nhost: x\r\n\r\n")
        #expect(try peer.readResponse().status == 200)
        #expect(thicket_monotonic_ns() - start >= 90_000_000, "no connection was accepted meanwhile")
        try server.stop()
    }

    @Test("unfinished bodies of all connections are bounded together")
    func gatheredTotal() throws {
        var settings = NetSettings()
        (settings.gatheredBytesTotalMax, settings.gatheredBytesFree) = (100_000, 1_000)
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
        let half: String = head + String(repeating: "a", count: 60_000)
        let (first, second): (TestPeer, TestPeer) = (try .init(port: server.port), try .init(port: server.port))
        try first.send(half)
        waitFor { server.metrics.net.receivedBytes.value >= half.utf8.count ? true : nil }
        try second.send(half)
        #expect(try second.readResponse().status == 503)
        try first.send(String(repeating: "a", count: 40_000))
        #expect(try first.readResponse().body.count == 100_000)
        try server.stop()
    }

    @Test("a Unix-domain socket is served; a dead socket's file is replaced, a live socket's and other files are not")
    func unixSocket() throws {
        let path = "/tmp/thicket-net-\(getpid()).socket"
        defer { unlink(path) }
        let diary = Diary()
        let server = try LoopThread(socketPath: path) { EchoDelegate($0, diary) }
        let peer = try TestPeer(path: path)
        try peer.send("GET /hello\(get)")
        #expect(try peer.readResponse().status == 200)
        #expect(diary.lines == ["GET /hello via 1"])
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(throws: NetError.self) { try LoopThread(socketPath: path) { EchoDelegate($0) } }
        try server.stop()
        let next = try LoopThread(socketPath: path) { EchoDelegate($0) }
        try next.stop()
        unlink(path)
        let file: Int32 = creat(path, 0o600)
        close(file)
        #expect(throws: NetError.self) { try LoopThread(socketPath: path) { EchoDelegate($0) } }
    }

    @Test("listening on an address that is in use or not the host's fails with the address and a reason")
    func listenErrors() throws {
        let loop = try EventLoop()
        let listener: Listener = try loop.listen(host: "127.0.0.1", port: 0)
        #expect(listener.port > 0 && listener.address == "127.0.0.1:\(listener.port)")
        for (host, port): (String, Int) in [
            ("127.0.0.1", listener.port), ("192.0.2.1", 0), ("no.such.host.invalid", 0),
        ] {
            let error: NetError? = #expect(throws: NetError.self) { _ = try loop.listen(host: host, port: port) }
            if case .listen(let address, let reason)? = error {
                #expect(address == "\(host):\(port)" && !reason.isEmpty)
            }
        }
    }
}
