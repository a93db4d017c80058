import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// One SockJS session of a test, by the transport that each call names.
struct SockJSClient {
    let port: Int
    let base: String
    let path: String

    /// - Parameter name: of the session, which no other test of the same server uses.
    init(_ server: TestServer, _ name: String, app: String = "app") {
        port = server.port
        base = "/sock/1/\(app)"
        path = "\(base)/000/\(name)"
    }

    /// The answer to a poll.
    func poll(_ fields: [String: String] = [:]) throws -> HTTPPeer.Answer {
        try HTTPPeer.ask(port, "POST", path + "/xhr", fields)
    }

    func send(_ body: String, _ fields: [String: String] = [:]) throws -> HTTPPeer.Answer {
        try HTTPPeer.ask(port, "POST", path + "/xhr_send", fields, body: body)
    }

    /// A streaming response, whose prelude has been read.
    func stream(_ method: String, _ last: String) throws -> (peer: HTTPPeer, head: HTTPPeer.Answer, prelude: String) {
        let peer = try HTTPPeer(port: port)
        try peer.send(method, "\(path)/\(last)")
        let head = try peer.head()
        return (peer, head, try peer.chunk() ?? "")
    }

    /// Messages of the next poll, without their frame.
    func messages() throws -> [String] { try Self.messages(try poll().body) }

    /// The texts of an `a` frame; none of others.
    static func messages(_ frame: String) throws -> [String] {
        guard frame.hasPrefix("a[") else { return [] }
        let document = try JSONDocument(parsing: Array(frame.dropFirst().utf8.prefix { $0 != 0x0A }))
        return document.root.elements.compactMap(\.string)
    }
}

/// Runs `body` with a server whose SockJS is configured for the test.
func withSockJS(
    _ configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in }, _ body: (TestServer) throws -> Void
) throws {
    let server = try TestServer(store: try MemoryStore.forTests(), configure: configure)
    defer { server.stop() }
    try body(server)
}
