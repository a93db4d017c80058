import Glibc
import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketSQLite
import ThicketServer

@testable import ThicketAuth

/// A service over a store in a file, with a partner whose users' passwords the server keeps. Derivations of passwords
/// are cheap, and counted.
final class CredentialBench {
    final class Mails: MailOutbox {
        var all = [Mail]()
        var isBroken = false
        func put(_ mail: Mail, now: Double) throws(DirectoryError) {
            if isBroken { throw DirectoryError("the disk is full") }
            all.append(mail)
        }
        /// How often a message was prepared without being sent.
        private(set) var rehearsed = 0
        func rehearse(_ mail: Mail, now: Double) throws(DirectoryError) {
            if isBroken { throw DirectoryError("the disk is full") }
            rehearsed += 1
        }
    }

    private let folder = "/tmp/thicket-users-\(getpid())-\(RandomBytes.hex(6))"
    var path: String { folder + "/thicket.db" }
    let admin: PartnerAdmin
    let store: PartnerStore
    let partner: String
    let apiKey: String
    let authKey: String
    let mails = Mails()
    var service: PartnerService
    var now: Double = 1_800_000_000
    private let counted = Counted()

    private final class Counted { var stretches = 0 }

    var stretches: Int { counted.stretches }

    init(keepsPasswords: Bool = true) throws {
        mkdir(folder, 0o700)
        let key: ServerKey = try .load(folder + "/key")
        admin = try .init(path: folder + "/thicket.db", key: key)
        (partner, apiKey, authKey) = try admin.create(id: nil, now: 0)
        try admin.setKeepsPasswords(keepsPasswords, id: partner)
        _ = try StoreAdmin(path: folder + "/thicket.db").createApp(try AppID("app"), partner: partner, now: 0)
        store = try .init(path: folder + "/thicket.db", key: key)
        service = PartnerService(directory: store, random: RandomBytes.make)
        service.derive = { [counted] password, salt in
            counted.stretches += 1
            return Scrypt.derive(password, salt: salt, cost: Scrypt.Cost(n: 2, r: 1, p: 1))
        }
    }

    deinit {
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] { remove(folder + name) }
    }

    /// Makes one request, as bytes, from an address.
    func ask(
        _ line: String, _ body: String = "", token: String? = nil, device: String? = nil, apiKey: String? = nil,
        from address: String = "192.0.2.1"
    ) throws -> PartnerService.Outcome {
        var head = [
            "\(line) HTTP/1.1", "host: x", "content-length: \(body.utf8.count)",
            "x-rezolve-partner-apikey: \(apiKey ?? self.apiKey)",
        ]
        if let token { head.append("authorization: Bearer \(token)") }
        if let device { head.append("x-rezolve-device-id: \(device)") }
        let request: HTTPRequest = try RequestVectors.request(
            Array((head.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8))
        let route: PartnerService.Route = try #require(PartnerService.route(of: request.path))
        #expect(PartnerService.accepts(request.method, route))
        return service.answer(request, to: route, from: address, now: now)
    }

    func register(_ name: String, _ password: String = "correct horse") throws -> HTTPResponse {
        try ask(
            "POST /v2/credentials/register", #"{"username":"\#(name)","password":"\#(password)","phone":"+1"}"#,
            from: "registrar \(name)"
        ).response
    }

    func login(
        _ name: String, _ password: String = "correct horse", device: String = "d", from address: String = "192.0.2.1"
    ) throws -> HTTPResponse {
        try ask(
            "POST /v2/credentials/login",
            #"{"deviceId":"\#(device)","username":"\#(name)","password":"\#(password)"}"#, from: address
        ).response
    }

    /// The token of an answer, without its scheme.
    func token(_ response: HTTPResponse) throws -> String {
        let value = try #require(response.fields["authorization"])
        #expect(value.hasPrefix("Bearer "))
        return String(value.dropFirst(7))
    }

    func ping(_ token: String, device: String = "d") throws -> PartnerService.Outcome {
        try ask("GET /v2/credentials/ping", token: token, device: device)
    }

    /// The token that a renewal gave.
    func renewed(_ outcome: PartnerService.Outcome) throws -> String {
        let text: String = try #require(member("accessToken", of: outcome.response)?.stringValue)
        #expect(text.hasPrefix("Bearer "))
        return String(text.dropFirst(7))
    }

    func admits(_ token: String, device: String = "d") -> Bool {
        if case .admitted = service.admit(token, device: device, app: "app", from: "a", now: now) { return true }
        return false
    }

    func member(_ name: String, of response: HTTPResponse) -> JSONValue? {
        (try? JSONDocument(parsing: response.body[...]))?.root[name]?.value
    }

    /// Erases an ended account to the end, as the server does in the background.
    func erase(_ user: String) throws {
        try Database(path: path).execute("INSERT INTO erasure (app, user, created) VALUES ('app', '\(user)', 1)")
        let server = try SQLiteStore(path: path)
        let (writer, keeper) = (
            try server.makeWriter(), try server.makeMaintenance(RetentionSettings())
        )
        while let batch = try keeper.nextBatch(now: Int64(now * 1_000)) {
            _ = try writer.apply(batch)
        }
    }

    /// Asks for a code; returns the answer and the code that was sent.
    func forget(_ name: String, from address: String = "192.0.2.1") throws -> (response: HTTPResponse, code: String?) {
        let outcome = try ask(
            "POST /v2/credentials/forgot", #"{"username":"\#(name)"}"#, from: address)
        guard let forgetful: PartnerService.Forgetful = outcome.forgetful,
            try service.sendCode(to: forgetful, outbox: mails, now: now)
        else { return (outcome.response, nil) }
        let text = try #require(mails.all.last?.text)
        return (outcome.response, String(text.filter { ("0"..."9").contains($0) }.prefix(ResetCode.digits)))
    }

    func verify(_ name: String, _ code: String, _ password: String = "another one") throws -> PartnerService.Outcome {
        try ask(
            "POST /v2/credentials/verify",
            #"{"username":"\#(name)","code":"\#(code)","password":"\#(password)"}"#)
    }
}
