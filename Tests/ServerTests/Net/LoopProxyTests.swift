import CThicketNet
import Glibc
import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Answers each client with the address that the server knows it by.
private final class NamingDelegate: LoopDelegate {
    private unowned let loop: EventLoop
    init(_ loop: EventLoop) { self.loop = loop }

    func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition {
        request.path == "/ws" ? .upgrade : .respond(.text(200, loop.peerAddress(connection)))
    }
    func opened(_ connection: ConnectionID, _ request: HTTPRequest) {
        loop.send(connection, text: Array(loop.peerAddress(connection).utf8))
    }
    func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {}
    func closed(_ connection: ConnectionID, _ end: ConnectionEnd) {}
}

@Suite("Clients behind proxies", .serialized)
struct LoopProxyTests {
    private func serve(
        _ trusted: String, prefaces: Bool = false, isSecure: Bool = false, milliseconds: Int = 10_000
    ) throws -> LoopThread {
        var settings = NetSettings()
        settings.trustedProxies = try TrustedProxies.parse(trusted).get()
        settings.acceptsPrefaces = prefaces
        settings.requestTimeout = .milliseconds(milliseconds)
        let all: NetSettings = settings
        return try SecureEdge.$isOn.withValue(isSecure) { try LoopThread(settings: all) { NamingDelegate($0) } }
    }

    private func get(_ fields: [String] = []) -> String {
        "GET / HTTP/1.1\r\nHost: x\r\n" + fields.map { "X-Forwarded-For: \($0)\r\n" }.joined() + "\r\n"
    }

    private func body(_ peer: TestPeer) throws -> String {
        let answer = try peer.readResponse()
        return answer.status == 200 ? String(decoding: answer.body, as: UTF8.self) : "\(answer.status)"
    }

    @Test(
        "each request on a trusted proxy's connection has its own client, and a WebSocket has the client that opened it"
    )
    func forwarded() throws {
        let server: LoopThread = try serve("127.0.0.0/8, 10.0.0.0/8")
        let peer = try TestPeer(port: server.port)
        let table: [([String], String)] = [
            (["203.0.113.5"], "203.0.113.5"), (["1.1.1.1, 203.0.113.6, 10.0.0.9"], "203.0.113.6"), ([], "127.0.0.1"),
            (["2001:db8::7"], "2001:db8::7"), (["nonsense"], "127.0.0.1"),
            (["203.0.113.8", "127.0.0.1"], "203.0.113.8"),
        ]
        try peer.send(table.map { get($0.0) }.joined())
        for (_, client) in table { #expect(try body(peer) == client) }
        let socket = try TestPeer(port: server.port)
        try socket.send(
            WebSocketHandshake.request(
                host: "x", target: "/ws", nonce: Array(0..<16), fields: [.init("x-forwarded-for", "203.0.113.9")]))
        #expect(try socket.readResponse().status == 101)
        #expect(try socket.readAnswer() == .text(Array("203.0.113.9".utf8)))
        try server.stop()
    }

    @Test("an untrusted peer's X-Forwarded-For is ignored, and its PROXY preface is refused with 400")
    func unauthenticated() throws {
        for (trusted, prefaces): (String, Bool) in [("none", false), ("10.0.0.0/8", false), ("10.0.0.0/8", true)] {
            let server: LoopThread = try serve(trusted, prefaces: prefaces)
            let peer = try TestPeer(port: server.port)
            try peer.send(get(["203.0.113.5"]))
            #expect(try body(peer) == "127.0.0.1")
            for preface: String in [
                "PROXY TCP4 203.0.113.5 10.0.0.1 1 2\r\n", "\r\n\r\n\0\r\nQUIT\n\u{21}\u{11}\0\u{0C}",
            ] {
                let liar = try TestPeer(port: server.port)
                try liar.send(preface + get())
                #expect(try body(liar) == "400")
            }
            try server.stop()
        }
    }

    @Test(
        "a PROXY preface names the client of the whole connection, with and without TLS after it",
        arguments: [false, true])
    func prefaces(isSecure: Bool) throws {
        guard !isSecure || SecureEdge.hasOpenSSL else { return }
        let server: LoopThread = try serve("127.0.0.1", prefaces: true, isSecure: isSecure)
        let six: [UInt8] =
            [0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 11) + [7] + [UInt8](repeating: 0, count: 20)
        let signature: [UInt8] = Array("\r\n\r\n\0\r\nQUIT\n".utf8)
        let table: [([UInt8], String)] = [
            (Array("PROXY TCP4 203.0.113.5 10.0.0.1 1 2\r\n".utf8), "203.0.113.5"),
            (signature + [0x21, 0x21, 0, 36] + six, "2001:db8::7"),
            (signature + [0x20, 0, 0, 0], "127.0.0.1"),
            (Array("PROXY UNKNOWN\r\n".utf8), "127.0.0.1"),
        ]
        for (bytes, client) in table {
            for cut: Int in [bytes.count, 1, 7] {
                let peer = try TestPeer(port: server.port, isPlain: true)
                try peer.send(Array(bytes[..<cut]))
                if cut < bytes.count { try peer.send(Array(bytes[cut...])) }
                if isSecure { try peer.shakeHands() }
                // The client is not a proxy: its claim about itself is not believed, even where the proxy does not know
                // it.
                try peer.send(get(["8.8.8.8"]) + get())
                #expect(try body(peer) == client)
                #expect(try body(peer) == client)
            }
        }
        #expect(server.metrics.net.proxyPrefaces.value(.taken) == 12)
        try server.stop()
    }

    @Test("a proxy that does not begin with a valid preface is refused with 400, one that does not end it is given up")
    func missing() throws {
        let server: LoopThread = try serve("127.0.0.1", prefaces: true)
        for text: String in [get(), "PROXY TCP4 nonsense\r\n" + get(), "PROXY " + String(repeating: "x", count: 200)] {
            let peer = try TestPeer(port: server.port)
            try peer.send(text)
            #expect(try body(peer) == "400")
        }
        #expect(server.metrics.net.proxyPrefaces.value(.refused) == 3)
        try server.stop()
        let hasty: LoopThread = try serve("127.0.0.1", prefaces: true, milliseconds: 100)
        let half = try TestPeer(port: hasty.port)
        try? half.send("PROXY TCP4")
        #expect(try half.readToEnd().isEmpty)
        try hasty.stop()
    }

    @Test("of two chained proxies the preface names the second, whose X-Forwarded-For then counts")
    func chained() throws {
        let server: LoopThread = try serve("127.0.0.1, 10.0.0.0/8", prefaces: true)
        let peer = try TestPeer(port: server.port)
        try peer.send("PROXY TCP4 10.0.0.5 10.0.0.1 1 2\r\n" + get(["6.6.6.6, 203.0.113.5"]))
        #expect(try body(peer) == "203.0.113.5")
        try server.stop()
    }
}
