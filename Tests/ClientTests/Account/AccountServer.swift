import Glibc
import Synchronization
import Testing
import ThicketAuth
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketSQLite
import ThicketServer
import ThicketTestServer

/// A real server on a real store with a partner's app `app` and an app `notes` with accounts, by a clock that the test
/// steps.
final class AccountServer: Sendable {
    private let folder = "/tmp/thicket-session-\(getpid())-\(RandomBytes.hex(6))"
    let server: TestServer
    let partner: String
    let apiKey: String
    let authKey: String
    let accountKey: String

    private final class Box: Sendable {
        let time: Mutex<Int64> = Mutex(1_800_000_000_000)
    }
    private let box = Box()
    private let mails = Mails()

    /// The mails that the server sends.
    private final class Mails: MailOutbox, Sendable {
        private let row = BlockingQueue<Mail>(bound: 10)
        func put(_ mail: Mail, now: Double) throws(DirectoryError) { row.add(mail) }
        func rehearse(_ mail: Mail, now: Double) throws(DirectoryError) {}

        func next() -> Mail? { row.takeAll(until: SystemClock.steadyTime() + .seconds(120)).first }
    }

    /// The code in the next mail, once it is sent.
    func nextCode() throws -> SecureBytes {
        let mail = try #require(mails.next())
        return SecureBytes(copying: Array(mail.text.utf8.filter { (0x30...0x39).contains($0) }.prefix(8)))
    }

    init() throws {
        mkdir(folder, 0o700)
        let path = folder + "/thicket.db"
        let store = try SQLiteStore(path: path)
        let key: ServerKey = try .load(folder + "/key")
        let admin = try PartnerAdmin(path: path, key: key)
        (partner, apiKey, authKey) = try admin.create(id: nil, now: 0)
        try admin.setKeepsPasswords(true, id: partner)
        let operators = try StoreAdmin(path: path)
        try operators.createApp(try AppID("app"), partner: partner, now: 0)
        try operators.createApp(try AppID("notes"), now: 0)
        accountKey = try operators.addKey(of: try AppID("notes"), isAdmin: false, now: 1)
        let box = box
        server = try TestServer(
            store: store,
            partners: TestPartners(
                directory: { try PartnerStore(path: path, key: key) }, outbox: { [mails] in mails },
                clock: { box.time.withLock { $0 } }),
            accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path) }
        ) { config in
            config.registrationsPerMinute = 10_000
            config.failedLoginsPerMinute = 10_000
        }
    }

    deinit {
        server.stop()
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] { remove(folder + name) }
    }

    /// The bytes of the database as they are on disk, its write-ahead log included.
    func dump() throws -> [UInt8] {
        var bytes = [UInt8]()
        for name in ["/thicket.db", "/thicket.db-wal"] {
            let file = open(folder + name, O_RDONLY | O_CLOEXEC)
            guard file >= 0 else { throw ClientError(.store, "cannot read \(name)") }
            defer { close(file) }
            var chunk = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = read(file, &chunk, chunk.count)
                guard count > 0 else { break }
                bytes += chunk[..<count]
            }
        }
        return bytes
    }

    /// Salts and hashes that the server keeps of passwords that were sent, of accounts and of partners' users.
    func sentPasswords() throws -> [(salt: [UInt8], hash: [UInt8])] {
        let database = try Database(path: folder + "/thicket.db")
        var found = [(salt: [UInt8], hash: [UInt8])]()
        for query in [
            "SELECT salt, verifier FROM account WHERE scheme = 0", "SELECT salt, verifier FROM credential",
        ] {
            let rows = try database.statement(query)
            defer { rows.reset() }
            while try rows.step() { found.append((salt: rows.bytes(0), hash: rows.bytes(1))) }
        }
        return found
    }

    /// The sealed bundle of a user, as a backup of this moment has it.
    struct StoredBundle: Sendable {
        let user: String
        let version: Int64
        let content: [UInt8]
        let isPartners: Bool
    }

    func backup(of user: String, isPartners: Bool = false) throws -> StoredBundle {
        let database = try Database(path: folder + "/thicket.db")
        let rows = try database.statement(
            isPartners
                ? "SELECT version, content FROM entity_bundle WHERE entity = ?1"
                : "SELECT version, content FROM bundle WHERE user = ?1"
        ).bind(1, user)
        defer { rows.reset() }
        guard try rows.step() else { throw ClientError(.store, "there is no bundle") }
        return StoredBundle(user: user, version: rows.integer(0), content: rows.bytes(1), isPartners: isPartners)
    }

    /// Puts the bundle back as a restore of that backup does.
    func restore(_ backup: StoredBundle) throws {
        let database = try Database(path: folder + "/thicket.db")
        try database.statement(
            backup.isPartners
                ? "UPDATE entity_bundle SET version = ?2, content = ?3 WHERE entity = ?1"
                : "UPDATE bundle SET version = ?2, content = ?3 WHERE user = ?1"
        ).bind(1, backup.user).bind(2, backup.version).bind(3, backup.content).run()
    }

    var address: String { "http://127.0.0.1:\(server.port)" }
    /// Seconds since 1970 at the server.
    var seconds: Int64 { box.time.withLock { $0 } / 1_000 }
    func pass(_ seconds: Int64) { box.time.withLock { $0 += seconds * 1_000 } }

    /// A partner's app; tokens are signed by the test.
    func app(device: String = "d/1", store: StoreLocation = .memory, apiKey: String? = nil) throws -> ThicketApp {
        try ThicketApp(server: address, app: "app", apiKey: apiKey ?? self.apiKey, store: store, deviceId: device)
    }

    /// The app with built-in accounts.
    func notes(store: StoreLocation = .memory) throws -> ThicketApp {
        try ThicketApp(server: address, app: "notes", apiKey: accountKey, store: store)
    }

    // MARK: - The partner's auth server

    func login(_ user: Registered, seconds: Int64, device: String = "d/1") -> String {
        sign(
            #"{"alg":"HS512","auth":"v2","typ":"JWT"}"#,
            #"{"rezolve_entity_id":"\#(user.entity)","partner_entity_id":"\#(user.name)","device_id":"\#(device)","#
                + #""exp":\#(self.seconds + seconds)}"#)
    }

    struct Registered: Sendable {
        let name: String
        let entity: String
    }

    /// Registers a new user.
    func register() throws -> Registered {
        let name = "user-\(RandomBytes.hex(6))"
        let token = sign(
            #"{"alg":"HS512","typ":"JWT"}"#,
            #"{"rezolve_entity_id":":NONE:","partner_entity_id":"\#(name)","exp":\#(seconds + 600)}"#)
        let body = #"{"email":"a@example.com"}"#
        let answer = try TestClient.http(
            port: server.port,
            "POST /api/v1/authentication/register HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                + "x-rezolve-partner-apikey: \(apiKey)\r\nauthorization: Bearer \(token)\r\n"
                + "content-length: \(body.utf8.count)\r\n\r\n\(body)")
        let parsed: Substring = try #require(answer.split(separator: "\r\n\r\n").last)
        let entity = try #require(
            try JSONDocument(parsing: Array(parsed.utf8)).root["entity_id"]?.string, "\(answer)")
        return Registered(name: name, entity: entity)
    }

    private func sign(_ header: String, _ payload: String) -> String {
        let signed = Base64.encodeURL(Array(header.utf8)) + "." + Base64.encodeURL(Array(payload.utf8))
        return signed + "."
            + Base64.encodeURL(Hash.hmacSHA512(key: Array(authKey.utf8), Array(signed.utf8)[...]))
    }
}

/// A token source that the test controls: it counts requests, waits at a gate and returns the given token.
final class TestSource: TokenSource {
    private struct State {
        var count = 0
        var running = 0
        var mostAtOnce = 0
        var isShut = false
        var waiting = [CheckedContinuation<Void, Never>]()
        var watchers = [(Int, CheckedContinuation<Void, Never>)]()
    }
    private let state = Mutex(State())
    private let make: @Sendable (TokenRequest) async throws -> String

    init(_ make: @escaping @Sendable (TokenRequest) async throws -> String) { self.make = make }

    /// Number of requests.
    var count: Int { state.withLock { $0.count } }
    /// The most requests that ran at the same time.
    var mostAtOnce: Int { state.withLock { $0.mostAtOnce } }

    func shut() { state.withLock { $0.isShut = true } }
    func open() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            state.isShut = false
            return state.waiting
        }
        for one in waiting { one.resume() }
    }

    /// Returns once there were `times` requests.
    func asked(_ times: Int) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isSo = state.withLock { state in
                if state.count < times { state.watchers.append((times, continuation)) }
                return state.count >= times
            }
            if isSo { continuation.resume() }
        }
    }

    func token(for request: TokenRequest) async throws -> String {
        let reached = state.withLock { state in
            state.count += 1
            state.running += 1
            state.mostAtOnce = max(state.mostAtOnce, state.running)
            let count = state.count
            defer { state.watchers.removeAll { $0.0 <= count } }
            return state.watchers.filter { $0.0 <= count }.map(\.1)
        }
        for one in reached { one.resume() }
        defer { state.withLock { $0.running -= 1 } }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = state.withLock { state in
                if state.isShut { state.waiting.append(continuation) }
                return !state.isShut
            }
            if goesOn { continuation.resume() }
        }
        return try await make(request)
    }
}

/// A clock that the test advances.
final class SteppedClock: SessionClock {
    private struct State {
        var now: Int64 = 0
        var unixSeconds: Double
        var sleepers = [(moment: Int64, continuation: CheckedContinuation<Void, Never>)]()
    }
    private let state: Mutex<State>

    init(unixSeconds: Double) { state = Mutex(State(unixSeconds: unixSeconds)) }

    func milliseconds() -> Int64 { state.withLock { $0.now } }
    func unixSeconds() -> Double { state.withLock { $0.unixSeconds } }

    func pass(_ milliseconds: Int64) {
        let due = state.withLock { state in
            state.now += milliseconds
            state.unixSeconds += Double(milliseconds) / 1_000
            let now = state.now
            defer { state.sleepers.removeAll { $0.moment <= now } }
            return state.sleepers.filter { $0.moment <= now }.map(\.continuation)
        }
        for one in due { one.resume() }
    }

    /// Sleepers that are never woken end with the clock; a cancelled sleeper sleeps on, as nothing waits for it.
    func sleep(until moment: Int64) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isDue = state.withLock { state in
                if moment > state.now { state.sleepers.append((moment, continuation)) }
                return moment <= state.now
            }
            if isDue { continuation.resume() }
        }
    }

    deinit {
        for one in state.withLock({ $0.sleepers.map(\.continuation) }) {
            one.resume()
        }
    }
}
