import Glibc
import Synchronization
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// A partner's users over real sockets, on a real store, with a clock that the test steps.
@Suite("Partner tokens over sockets", .serialized)
final class PartnerSyncTests {
    private let folder = "/tmp/thicket-sync-\(getpid())-\(RandomBytes.hex(6))"
    private let mails = Mails()
    private let box = ClockBox(clock: 1_800_000_000_000)
    private let admin: PartnerAdmin
    private let server: TestServer
    private let apiKey: String
    private let authKey: String
    private let partner: String

    init() throws {
        mkdir(folder, 0o700)
        let path = folder + "/thicket.db"
        let store = try SQLiteStore(path: path)
        let key: ServerKey = try .load(folder + "/key")
        admin = try .init(path: path, key: key)
        (partner, apiKey, authKey) = try admin.create(id: nil, now: 0)
        _ = try StoreAdmin(path: path).createApp(try AppID("app"), partner: partner, now: 0)
        let box = self.box
        server = try TestServer(
            store: store,
            partners: TestPartners(
                directory: { try PartnerStore(path: path, key: key) }, outbox: { [mails] in mails },
                clock: { box.now }))
    }

    /// The server's clock, which the test advances.
    private final class ClockBox: Sendable {
        private let value: Mutex<Int64>
        init(clock: Int64) { value = Mutex(clock) }
        var now: Int64 { value.withLock { $0 } }
        func pass(_ seconds: Int64) { value.withLock { $0 += seconds * 1_000 } }
    }

    deinit {
        server.stop()
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] { remove(folder + name) }
    }

    private func login(_ entity: String, seconds: Int64, device: String = "d/1") -> String {
        TokenMaker.login(
            entity: entity, partnerEntity: "p1", device: device, expiry: "\(box.now / 1_000 + seconds)", key: authKey)
    }

    private func http(_ line: String, _ token: String, device: String? = nil, body: String = "") throws -> String {
        let device = device.map { "x-rezolve-device-id: \($0)\r\n" } ?? ""
        return try TestClient.http(
            port: server.port,
            "\(line) HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-rezolve-partner-apikey: \(apiKey)\r\n"
                + "\(device)authorization: Bearer \(token)\r\ncontent-length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    private func register() throws -> String {
        let token = TokenMaker.registration(
            partnerEntity: "p1", expiry: "\(box.now / 1_000 + 600)", key: authKey)
        let answer = try http("POST /api/v1/authentication/register", token, body: #"{"email":"a@b"}"#)
        let body: Substring = try #require(answer.split(separator: "\r\n\r\n").last)
        return try #require(try JSONDocument(parsing: Array(body.utf8)).root["entity_id"]?.string)
    }

    private func initialize(_ token: String, device: String = "d/1", channel: Int = 0) -> String {
        "\(channel):init:{\"clientid\":\"c\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"app\","
            + "\"name\":\"notes\",\"device_id\":\"\(device)\"}"
    }

    private static let invalid = #"0:auth:{"msg":"Token invalid","code":401}"#
    private static let expired = #"0:auth:{"msg":"Token expired","code":401}"#

    @Test("a client whose token expires continues with a new token; no change is lost, none comes twice")
    func whole() throws {
        let entity = try register()
        let client = try server.client()
        #expect(try client.ask(initialize(login(entity, seconds: 60))) == "0:auth:\(entity)")
        #expect(try client.ask("0:i:1:::10").hasPrefix("0:i:"))
        let change = #"0:c:{"id":"k","o":"M","ccid":"x1","v":{"t":{"o":"+","v":"a"}}}"#
        #expect(try client.ask(change).contains(#""ccids":["x1"]"#))
        let other = try server.client()
        #expect(try other.ask(initialize(login(entity, seconds: 1_800))) == "0:auth:\(entity)")
        box.pass(60)
        #expect(try client.receive() == Self.expired)
        #expect(try client.ask("0:cv:x") == "0:?")
        let edit = #"0:c:{"id":"k","o":"M","ccid":"x2","sv":1,"v":{"t":{"o":"r","v":"b"}}}"#
        #expect(try other.ask(edit).contains(#""ccids":["x2"]"#))
        #expect(try client.drain().isEmpty)
        #expect(try client.ask(initialize(login(entity, seconds: 0))) == Self.expired)
        #expect(try client.ask(initialize(login(entity, seconds: 60))) == "0:auth:\(entity)")
        #expect(try client.receive().contains(#""ccids":["x2"]"#))
        #expect(try client.drain().isEmpty)
        box.pass(60)
        #expect(try client.receive() == Self.expired)
        box.pass(60)
        #expect(try client.end() == .policyViolation)
        #expect(try other.drain().isEmpty)
    }

    @Test("T10: a token from another device, or without a device, is refused")
    func device() throws {
        let entity = try register()
        let token = login(entity, seconds: 60)
        let client = try server.client()
        #expect(try client.ask(initialize(token, device: "d/2")) == Self.invalid)
        #expect(
            try client.ask(
                #"0:init:{"clientid":"c","api":"1.1","token":"\#(token)","app_id":"app","name":"notes"}"#)
                == Self.invalid)
        #expect(try client.ask(initialize(token)) == "0:auth:\(entity)")
        let listed = try http(
            "GET /api/v1/partner/\(partner)/customer/\(entity)/devices", token, device: "d/1")
        #expect(listed.contains(#""device_id":"d/1""#) && !listed.contains("d/2"))
    }

    @Test("T18: logout ends the connections of the device, and their tokens with them")
    func logout() throws {
        let entity = try register()
        let (first, second) = (login(entity, seconds: 60), login(entity, seconds: 61))
        let client = try server.client()
        #expect(try client.ask(initialize(first)) == "0:auth:\(entity)")
        let other = try server.client()
        #expect(try other.ask(initialize(login(entity, seconds: 60, device: "x"), device: "x")) == "0:auth:\(entity)")
        #expect(try http("POST /v1/user/logout", second, device: "d/1").hasPrefix("HTTP/1.1 204"))
        #expect(try client.receive() == #"0:auth:{"msg":"Signed out","code":401}"#)
        #expect(try client.end() == .policyViolation)
        let again = try server.client()
        for token in [first, second] { #expect(try again.ask(initialize(token)) == Self.invalid) }
        #expect(try http("POST /v1/user/logout", second, device: "d/1").hasPrefix("HTTP/1.1 403"))
        #expect(try again.ask(initialize(login(entity, seconds: 62))) == "0:auth:\(entity)")
        #expect(try other.drain().isEmpty)
    }

    @Test("disabling a partner by a command ends its users' connections; enabled again, it lets them connect")
    func disabled() throws {
        let entity = try register()
        let client = try server.client()
        #expect(try client.ask(initialize(login(entity, seconds: 60))) == "0:auth:\(entity)")
        try admin.setEnabled(false, id: partner)
        #expect(try client.receive() == #"0:auth:{"msg":"Signed out","code":401}"#)
        #expect(try client.end() == .policyViolation)
        let again = try server.client()
        #expect(try again.ask(initialize(login(entity, seconds: 60))) == Self.invalid)
        try admin.setEnabled(true, id: partner)
        #expect(try again.ask(initialize(login(entity, seconds: 60))) == "0:auth:\(entity)")
    }

    @Test("a user whose password is kept here registers, logs in, syncs, renews; a reset ends every connection")
    func passwords() throws {
        try admin.setKeepsPasswords(true, id: partner)
        func post(_ call: String, _ body: String) throws -> String {
            try TestClient.http(
                port: server.port,
                "POST /v2/credentials/\(call) HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                    + "x-rezolve-partner-apikey: \(apiKey)\r\ncontent-length: \(body.utf8.count)\r\n\r\n\(body)")
        }
        let name = #""username":"ann@example.com","password":"correct horse""#
        #expect(try post("register", "{\(name)}").hasPrefix("HTTP/1.1 200"))
        let answer = try post("login", #"{"deviceId":"d/1",\#(name)}"#)
        let line: Substring = try #require(
            answer.split(separator: "\r\n").first { $0.hasPrefix("authorization: Bearer ") })
        let token = String(line.dropFirst("authorization: Bearer ".count))
        let client = try server.client()
        #expect(try client.ask(initialize(token)).hasPrefix("0:auth:"))
        box.pass(1_800)
        #expect(try client.receive() == Self.expired)
        let renewed = try http("GET /v2/credentials/ping", token, device: "d/1")
        let body: Substring = try #require(renewed.split(separator: "\r\n\r\n").last)
        let next = try #require(
            try JSONDocument(parsing: Array(body.utf8)).root["accessToken"]?.string?.split(separator: " ").last
                .map(String.init))
        #expect(try client.ask(initialize(next)).hasPrefix("0:auth:"))
        #expect(try post("forgot", #"{"username":"ann@example.com"}"#).hasPrefix("HTTP/1.1 200"))
        let code = try #require(mails.nextCode())
        #expect(
            try post("verify", #"{"username":"ann@example.com","code":"\#(code)","password":"another one"}"#)
                .hasPrefix("HTTP/1.1 204"))
        #expect(try client.receive() == #"0:auth:{"msg":"Signed out","code":401}"#)
        #expect(try client.end() == .policyViolation)
        #expect(try http("GET /v2/credentials/ping", next, device: "d/1").hasPrefix("HTTP/1.1 403"))
    }

    /// The server's mails, for the test's thread.
    final class Mails: Sendable, MailOutbox {
        private let row = BlockingQueue<Mail>(bound: 10)
        func put(_ mail: Mail, now: Double) throws(DirectoryError) { row.add(mail) }
        func rehearse(_ mail: Mail, now: Double) throws(DirectoryError) {}

        /// Waits for the next mail; returns its code.
        func nextCode() -> String? {
            let now = SystemClock.steadyTime()
            return row.takeAll(until: now + .seconds(120)).first.map { mail in
                String(mail.text.filter { ("0"..."9").contains($0) }.prefix(8))
            }
        }
    }
}
