import Glibc
import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer

@testable import ThicketAuth

/// Built-in accounts over a real file; requests are made at a time that the test sets.
final class AccountBench {
    let folder = "/tmp/thicket-accounts-\(getpid())-\(RandomBytes.hex(6))"
    var path: String { folder + "/thicket.db" }
    let admin: StoreAdmin
    let store: AccountStore
    let apiKey: String
    let adminKey: String
    var service: AccountService
    /// Seconds since 1970.
    var now: Double = 1_800_000_000
    var address = "192.0.2.1"
    /// The outcome of the newest request.
    private(set) var outcome: AccountService.Outcome?

    init() throws {
        mkdir(folder, 0o700)
        admin = try StoreAdmin(path: folder + "/thicket.db")
        let app = try AppID("notes")
        try admin.createApp(app, now: 1)
        (apiKey, adminKey) = (
            try admin.addKey(of: app, isAdmin: false, now: 1), try admin.addKey(of: app, isAdmin: true, now: 2)
        )
        store = try AccountStore(path: folder + "/thicket.db")
        let key: ServerKey = try .load(folder + "/server.key")
        service = AccountService(directory: store, secrets: key.accountSecrets, random: RandomBytes.make)
        service.cost = Scrypt.Cost(n: 16, r: 1, p: 1)
    }

    deinit {
        for name: String in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/server.key", ""] {
            remove(folder + name)
        }
    }

    func seconds(_ count: Double) { now += count }

    /// Sends a body to a path below `/1/notes/`, with the API key.
    @discardableResult
    func post(_ path: String, _ body: String, key: String? = nil) throws -> HTTPResponse {
        try send("POST", "/1/notes/" + path, ["x-simperium-api-key: \(key ?? apiKey)"], body)
    }

    /// The same with a token instead of the key.
    @discardableResult
    func send(_ method: String, _ path: String, token: String, _ body: String = "") throws -> HTTPResponse {
        try send(method, "/1/notes/" + path, ["x-simperium-token: \(token)"], body)
    }

    @discardableResult
    func send(_ method: String, _ path: String, _ fields: [String], _ body: String) throws -> HTTPResponse {
        let head = ["\(method) \(path) HTTP/1.1", "host: x", "content-length: \(body.utf8.count)"] + fields
        let request = try RequestVectors.request(
            Array((head.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8))
        let route = try #require(AccountRoute(request.path))
        try #require(route.accepts(method))
        let outcome: AccountService.Outcome = service.answer(request, to: route, from: address, now: now)
        self.outcome = outcome
        return outcome.response
    }

    func create(_ name: String, _ password: String = "open sesame") throws -> HTTPResponse {
        try post("create/", #"{"username":"\#(name)","password":"\#(password)"}"#)
    }

    func authorize(_ name: String, _ password: String = "open sesame") throws -> HTTPResponse {
        try post("authorize/", #"{"username":"\#(name)","password":"\#(password)"}"#)
    }

    /// The bytes of the file, or of the file beside it with that ending.
    func bytes(_ ending: String) throws -> [UInt8] {
        let file = open(path + ending, O_RDONLY)
        try #require(file >= 0)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 24)
        let count = read(file, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }

    /// The grant of a token, as the server sees it at an `init`.
    func grant(_ token: String) throws -> TokenGrant? {
        try SQLiteStore(path: path).makeReader().grant(tokenHash: StoreAdmin.hash(ofToken: token))
    }
}

extension HTTPResponse {
    var text: String { String(decoding: body, as: UTF8.self) }

    func member(_ name: String) -> JSONValue? {
        (try? JSONDocument(parsing: body[...]))?.root.object?[name]
    }

    func string(_ name: String) throws -> String { try #require(member(name)?.stringValue, "\(text)") }

    var names: [String] { (try? JSONDocument(parsing: body[...]))?.root.object?.keys ?? [] }
}
