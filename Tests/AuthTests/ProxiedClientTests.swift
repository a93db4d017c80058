import Testing
import ThicketAuth
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Limits of one address, where all requests come through one proxy.
@Suite("Lockouts behind a proxy")
struct ProxiedClientTests {
    private static func withServer(trust: String, _ body: (HTTPPeer) throws -> Void) throws {
        let bench = try AccountBench()
        let key: ServerKey = try .load(bench.folder + "/server.key")
        let path = bench.path
        let server = try TestServer(
            store: try SQLiteStore(path: path),
            accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path) }
        ) { $0.trustProxy = trust }
        defer { server.stop() }
        try body(try HTTPPeer(port: server.port))
    }

    /// A request with an API key that does not exist, by way of `forwarded`.
    private static func guess(_ proxy: HTTPPeer, _ forwarded: String) throws -> Int {
        try proxy.ask(
            "POST", "/1/notes/authorize/", ["X-Simperium-API-Key": "none", "X-Forwarded-For": forwarded],
            body: #"{"username":"ann","password":"x"}"#
        ).status
    }

    private static let tries = AccountService.failedKeysPerMinute

    @Test("a guessing client is locked out alone, and addresses written in front of its own do not free it")
    func trusted() throws {
        try Self.withServer(trust: "127.0.0.1, 10.0.0.0/8") { (proxy: HTTPPeer) throws in
            for _ in 0..<Self.tries { #expect(try Self.guess(proxy, "203.0.113.5") == 401) }
            #expect(try Self.guess(proxy, "203.0.113.5") == 429)
            #expect(try Self.guess(proxy, "203.0.113.6, 203.0.113.5") == 429)
            #expect(try Self.guess(proxy, "10.0.0.7, 203.0.113.5, 10.0.0.8") == 429)
            #expect(try Self.guess(proxy, "203.0.113.6") == 401)
            #expect(try Self.guess(proxy, "203.0.113.5, 203.0.113.7") == 401)
        }
    }

    @Test("an untrusted client that writes another address into each request is locked out all the same")
    func untrusted() throws {
        try Self.withServer(trust: "10.0.0.0/8") { (outsider: HTTPPeer) throws in
            for number in 0..<Self.tries { #expect(try Self.guess(outsider, "203.0.113.\(number)") == 401) }
            #expect(try Self.guess(outsider, "203.0.113.250") == 429)
        }
    }
}
