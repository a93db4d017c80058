import Glibc
import Synchronization
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// A whole server with a partner and accounts, on one file, with a clock that the test steps: the app `app` is the
/// partner's, `notes` has accounts.
final class AccountAPIFixture {
    private let folder = "/tmp/thicket-doors-\(getpid())-\(RandomBytes.hex(6))"
    private let clock = Clock()
    let server: TestServer
    let partners: PartnerAdmin
    let partner: String
    let partnerKey: String
    let authKey: String
    let apiKey: String
    let adminKey: String
    let user: String

    private final class Clock: Sendable {
        private let value = Mutex<Int64>(1_800_000_000_000)
        var now: Int64 { value.withLock { $0 } }
        func pass(_ seconds: Int64) { value.withLock { $0 += seconds * 1_000 } }
    }

    init(configure: @Sendable (inout ServerConfig) -> Void = { _ in }) throws {
        mkdir(folder, 0o700)
        let path = folder + "/thicket.db"
        let store = try SQLiteStore(path: path)
        let key: ServerKey = try .load(folder + "/key")
        partners = try .init(path: path, key: key)
        (partner, partnerKey, authKey) = try partners.create(id: nil, now: 0)
        try partners.setKeepsPasswords(true, id: partner)
        let admin = try StoreAdmin(path: path)
        try admin.createApp(try AppID("app"), partner: partner, now: 0)
        let notes = try AppID("notes")
        try admin.createApp(notes, now: 0)
        apiKey = try admin.addKey(of: notes, isAdmin: false, now: 0)
        adminKey = try admin.addKey(of: notes, isAdmin: true, now: 0)
        let directory = try PartnerStore(path: path, key: key)
        user = try directory.register(
            partner: partner, partnerEntity: "p1", email: "a@b", newID: "e-1", now: 0
        ).id
        let clock = self.clock
        server = try TestServer(
            store: store,
            partners: TestPartners(directory: { try PartnerStore(path: path, key: key) }, clock: { clock.now }),
            accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path) },
            configure: configure)
    }

    deinit {
        server.stop()
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] { remove(folder + name) }
    }

    func pass(_ seconds: Int64) { clock.pass(seconds) }

    /// A login token of the partner's user.
    func login(seconds: Int64 = 600, key: String? = nil) -> String {
        TokenMaker.login(
            entity: user, partnerEntity: "p1", device: "d", expiry: "\(clock.now / 1_000 + seconds)",
            key: key ?? authKey)
    }

    /// Fields of a request of the partner's app.
    func partnerFields(_ token: String? = nil, _ more: [String: String] = [:]) -> [String: String] {
        var fields = ["x-rezolve-partner-apikey": partnerKey, "x-rezolve-device-id": "d"]
        if let token { fields["authorization"] = "Bearer \(token)" }
        return fields.merging(more) { _, new in new }
    }

    func peer() throws -> HTTPPeer { try HTTPPeer(port: server.port) }

    /// The value of a member of an answer.
    static func member(_ name: String, of answer: HTTPPeer.Answer) -> String? {
        (try? JSONValue(parsing: answer.body))?.objectValue?[name]?.stringValue
    }
}
