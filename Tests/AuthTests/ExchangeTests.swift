import Glibc
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// The exchanges in docs/AUTH.md are made here with a server and compared with the document.
@Suite("Exchanges in AUTH.md")
struct ExchangeTests {
    private static let apiKey = "6d0f5d0e-8a0c-4a53-9d0b-0a4b1c1f5b0e"
    private static let authKey = Base64.encode(Array(1...64))
    /// What the document shows instead of the id that the server makes up.
    private static let entity = "0f9e8d7c-6b5a-4948-9736-251403f2e1d0"
    private static let device = "wlkCDA2Hy/CfMqVAShslBAR"
    private static let now: Int64 = 1_800_000_000
    private static let begin = "<!-- made by Tests/AuthTests/ExchangeTests.swift -->\n"
    private static let end = "<!-- end -->\n"

    @Test("every exchange is what a server answers; THICKET_WRITE_EXCHANGES=1 writes it to the document")
    func document() throws {
        let made = try Self.run()
        let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let path = root + "/docs/AUTH.md"
        let text = try Self.read(path)
        let start = try #require(text.firstRange(of: Self.begin)?.upperBound)
        let stop: String.Index = try #require(text[start...].firstRange(of: Self.end)?.lowerBound)
        if getenv("THICKET_WRITE_EXCHANGES") != nil {
            let file = open(path, O_WRONLY | O_TRUNC)
            let bytes: [UInt8] = Array((text[..<start] + made + text[stop...]).utf8)
            #expect(file >= 0 && write(file, bytes, bytes.count) == bytes.count)
            close(file)
            return
        }
        #expect(text[start..<stop] == made)
    }

    private static func read(_ path: String) throws -> String {
        let file = open(path, O_RDONLY)
        try #require(file >= 0)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = Glibc.read(file, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    // MARK: The run

    private static func run() throws -> String {
        let folder = "/tmp/thicket-exchange-\(getpid())-\(RandomBytes.hex(6))"
        mkdir(folder, 0o700)
        defer {
            for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] {
                remove(folder + name)
            }
        }
        let path = folder + "/thicket.db"
        let key: ServerKey = try .load(folder + "/key")
        try PartnerAdmin(path: path, key: key).add(id: "1000", apiKey: apiKey, authKey: authKey, now: 1)
        try StoreAdmin(path: path).createApp(try AppID("shop"), partner: "1000", now: 1)
        let server = try TestServer(
            store: try SQLiteStore(path: path),
            partners: TestPartners(directory: { try PartnerStore(path: path, key: key) }, clock: { now * 1_000 }))
        defer { server.stop() }
        return try Flow(server).exchanges()
    }

    /// The exchanges one after the other, as text.
    private final class Flow {
        private let server: TestServer
        private var reported = ""
        private var real = ""

        init(_ server: TestServer) { self.server = server }

        func exchanges() throws -> String {
            let registration = TokenMaker.registration(
                partnerEntity: "ann-17", expiry: "\(now + 900)", key: authKey)
            record("A registration token for the partner's user `ann-17`, good for 15 minutes:", [registration])
            let made = try ask(
                "The partner's server registers the user:", "POST /api/v1/authentication/register",
                ["authorization: Bearer REGISTRATION"], #"{"email":"ann@example.com"}"#, registration)
            let id = try JSONDocument(parsing: Array(made.utf8)).root
            real = try #require(id["entity_id"]?.string)
            let shown = login(entity, now + 900)
            record("A login token for that user on one device:", [shown])
            let token = login(real, now + 900)
            let fields = ["x-rezolve-device-id: \(device)", "authorization: Bearer LOGIN"]
            let path = "/api/v1/partner/1000/customer/\(real)/"
            let keys =
                #"{"public_key":"\#(Base64.encode(Array(1...32)))","sign_key":"\#(Base64.encode(Array(33...64)))"}"#
            _ = try ask("The user's device uploads its public keys, once:", "PUT \(path)publickey", fields, keys, token)
            try sync(token)
            _ = try ask("The user's devices:", "GET \(path)devices", fields, nil, token)
            _ = try ask(
                "The same with a token whose time is over, and with nothing else wrong:", "GET \(path)devices", fields,
                nil,
                login(real, now))
            _ = try ask(
                "And with one that another key has signed:", "GET \(path)devices", fields, nil,
                TokenMaker.login(
                    entity: real, partnerEntity: "ann-17", device: device, expiry: "\(now + 900)",
                    key: Base64.encode(Array(2...65))))
            _ = try ask("The user signs out on this device:", "POST /v1/user/logout", fields, "", token)
            _ = try ask("From then on the token is refused:", "GET \(path)devices", fields, nil, token)
            return reported.replacing(real, with: entity)
        }

        private func login(_ entity: String, _ expiry: Int64) -> String {
            TokenMaker.login(
                entity: entity, partnerEntity: "ann-17", device: device, expiry: "\(expiry)", key: authKey)
        }

        private func record(_ what: String, _ lines: [String]) {
            reported += "\n\(what)\n\n```\n\(lines.joined(separator: "\n"))\n```\n"
        }

        /// Makes a request and records it with its answer.
        private func ask(
            _ what: String, _ line: String, _ fields: [String], _ body: String?, _ token: String
        ) throws -> String {
            let all = ["x-rezolve-partner-apikey: \(apiKey)"] + fields
            var head = ["\(line) HTTP/1.1", "host: 127.0.0.1", "connection: close"]
            head += all.map { $0.replacing("REGISTRATION", with: token).replacing("LOGIN", with: token) }
            if let body { head.append("content-length: \(body.utf8.count)") }
            let answer = try TestClient.http(
                port: server.port, head.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
            let parts: [Substring] = answer.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
            let said = parts.count > 1 ? String(parts[1]) : ""
            var lines = ["C  \(line)"] + all.map { "   " + $0 }
            if let body, !body.isEmpty { lines.append("   " + body) }
            lines.append("S  " + (parts[0].split(separator: "\r\n").first.map(String.init) ?? ""))
            if !said.isEmpty { lines.append("   " + said) }
            record(what, lines)
            return said
        }

        /// The token as a sync token.
        private func sync(_ token: String) throws {
            let client = try server.client(app: "shop")
            let start: (String) -> String = {
                #"0:init:{"clientid":"phone-1","api":"1.1","token":"\#($0)","device_id":"\#(device)","app_id":"shop","name":"notes"}"#
            }
            let change =
                #"0:c:{"clientid":"phone-1","id":"milk","o":"M","v":{"done":{"o":"+","v":false}},"ccid":"7d1f"}"#
            var lines: [String] = ["C  GET /sock/1/shop/websocket (upgrade)", "C  " + start("LOGIN")]
            lines.append("S  " + (try client.ask(start(token))))
            lines.append("C  " + change)
            let answer = try client.ask(change)
            let cv = try #require(
                answer.firstRange(of: "\"cv\":\"").map { String(answer[$0.upperBound...].prefix(32)) })
            lines.append("S  " + answer.replacing(cv, with: "5f1d0c6e2b7a49388f4e3d2c1b0a9988"))
            record("It opens a stream, in an app that is tied to the partner, and makes a change:", lines)
        }
    }
}
