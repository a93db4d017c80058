import Glibc
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// Tokens and heads at their bounds, over a socket: 8,192 bytes of a token, 64 KiB of a head.
@Suite("Sizes of tokens and heads")
struct TokenSizeTests {
    private static let authKey = String(repeating: "k", count: 88)
    private static let now: Int64 = 1_800_000_000

    /// A registration token of the given number of bytes.
    private static func token(_ bytes: Int) throws -> String {
        for padding in 0...8_000 {
            let payload =
                #"{"rezolve_entity_id":":NONE:","partner_entity_id":"p","exp":\#(now + 900),"x":"\#(String(repeating: "x", count: max(0, bytes * 3 / 4 - 400) + padding))"}"#
            let made = TokenMaker.sign(TokenMaker.registrationHeader, payload, key: authKey)
            if made.utf8.count == bytes { return made }
            try #require(made.utf8.count < bytes, "no token has \(bytes) bytes")
        }
        return ""
    }

    @Test("a token of 8,192 bytes is accepted, a longer one gets 403, and a head above 64 KiB gets 431")
    func bounds() throws {
        let folder = "/tmp/thicket-size-\(getpid())-\(RandomBytes.hex(6))"
        mkdir(folder, 0o700)
        defer {
            for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] {
                remove(folder + name)
            }
        }
        let path = folder + "/thicket.db"
        let key: ServerKey = try .load(folder + "/key")
        try PartnerAdmin(path: path, key: key).add(id: "12", apiKey: "api-key-12", authKey: Self.authKey, now: 1)
        let server = try TestServer(
            store: try SQLiteStore(path: path),
            partners: TestPartners(directory: { try PartnerStore(path: path, key: key) }, clock: { Self.now * 1_000 }))
        defer { server.stop() }
        let ask: (String, Int) throws -> String = { token, extra in
            let body = #"{"email":"a@b"}"#
            let head =
                "POST /api/v1/authentication/register HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                + "x-rezolve-partner-apikey: api-key-12\r\nauthorization: Bearer \(token)\r\n"
                + String(repeating: "x: \(String(repeating: "y", count: 2_000))\r\n", count: extra / 2_000)
                + "content-length: \(body.utf8.count)\r\n\r\n"
            return String(try TestClient.http(port: server.port, head + body).prefix(12))
        }
        #expect(try ask(try Self.token(8_192), 0) == "HTTP/1.1 200")
        #expect(try ask(try Self.token(8_192), 50_000) == "HTTP/1.1 200")
        #expect(try ask(try Self.token(8_194), 0) == "HTTP/1.1 403")
        #expect(try ask("x.y.z", 66_000) == "HTTP/1.1 431")
    }
}
