import Glibc
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

/// The published requests as bytes on a socket, against a server on a real store whose clock shows the time of the
/// requests.
@Suite("Partner requests to a server")
struct PartnerServerTests {
    @Test(
        "T9, T11, T13: every one of the 83 published requests gets its answer",
        .enabled(if: Vectors.has("jwt/requests.json")))
    func vectors() throws {
        let file: RequestVectors = try .load()
        #expect(file.cases.count == 83)
        try Self.withServer(file) { server in
            for each in file.cases {
                let answer = try TestClient.http(port: server.port, each.text(closing: true))
                each.check(try Self.response(answer))
            }
            #expect(server.metrics.tokens.value(.good) > 0)
            #expect(server.metrics.tokens.value(.denied) >= 55)
            #expect(server.metrics.tokens.value(.expired) >= 5)
        }
    }

    @Test(
        "T12: every refusal is the same, byte for byte, but for the date",
        .enabled(if: Vectors.has("jwt/requests.json")))
    func masked() throws {
        let file: RequestVectors = try .load()
        try Self.withServer(file) { server in
            var seen = Set<String>()
            for each in file.cases where each.status == 403 {
                let answer = try TestClient.http(port: server.port, each.text(closing: true))
                seen.insert(
                    answer.split(separator: "\r\n", omittingEmptySubsequences: false)
                        .filter { !$0.lowercased().hasPrefix("date:") }.joined(separator: "\n"))
            }
            #expect(seen.count == 1, "\(seen)")
            #expect(seen.first?.contains("www-authenticate") == false)
        }
    }

    @Test(
        "requests pipelined on one connection are answered in order", .enabled(if: Vectors.has("jwt/requests.json")))
    func pipelined() throws {
        let file: RequestVectors = try .load()
        try Self.withServer(file) { server in
            let cases = Array(file.cases.prefix(20))
            var text = ""
            for (place, each) in cases.enumerated() { text += each.text(closing: place == cases.count - 1) }
            let answer = try TestClient.http(port: server.port, text)
            let statuses = answer.split(separator: "HTTP/1.1 ").compactMap { Int($0.prefix(3)) }
            #expect(statuses == cases.map(\.status))
        }
    }

    @Test("other methods and a server without partners")
    func others() throws {
        let server = try TestServer(store: try MemoryStore.forTests())
        defer { server.stop() }
        let request = "POST /api/v1/authentication/register HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        #expect(try TestClient.http(port: server.port, request).hasPrefix("HTTP/1.1 404"))
    }

    // MARK: Parts

    /// A server whose store knows the file's partners and users, at the file's time.
    private static func withServer(_ file: RequestVectors, _ body: (TestServer) throws -> Void) throws {
        let folder = "/tmp/thicket-auth-\(getpid())-\(RandomBytes.hex(6))"
        mkdir(folder, 0o700)
        defer {
            for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] {
                remove(folder + name)
            }
        }
        let store = try SQLiteStore(path: folder + "/thicket.db")
        let key: ServerKey = try .load(folder + "/key")
        try file.fill(path: store.path, key: key)
        let now = Int64(file.cases[0].now * 1_000)
        #expect(file.cases.allSatisfy { $0.now == file.cases[0].now })
        let server = try TestServer(
            store: store,
            partners: TestPartners(
                directory: { try PartnerStore(path: folder + "/thicket.db", key: key) }, clock: { now })
        ) { $0.registrationsPerMinute = 1_000 }
        defer { server.stop() }
        try body(server)
    }

    private static func response(_ text: String) throws -> HTTPResponse {
        let parts: [Substring] = text.split(separator: "\r\n\r\n", maxSplits: 1)
        let status = try #require(Int(text.dropFirst("HTTP/1.1 ".count).prefix(3)), "\(text)")
        return HTTPResponse(status: status, body: Array((parts.count > 1 ? parts[1] : "").utf8))
    }
}
