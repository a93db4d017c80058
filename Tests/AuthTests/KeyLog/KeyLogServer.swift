import Glibc
import Synchronization
import Testing
import ThicketAuth
import ThicketCrypto
import ThicketKeyLog
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// A whole server with accounts, partners' users and key logs, on one folder, with a clock that the test steps. The app
/// `notes` has accounts, `app` is a partner's.
final class KeyLogServer {
    let folder: String
    let clock: Clock
    let server: TestServer
    let logs: KeyLogs
    let apiKey: String
    let partner: String
    let authKey: String
    /// Keeps the folder until this server has ended.
    private let before: KeyLogServer?

    final class Clock: Sendable {
        private let value = Mutex<Int64>(1_800_000_000_000)
        var now: Int64 { value.withLock { $0 } }
        func pass(seconds: Int64) { value.withLock { $0 += seconds * 1_000 } }
    }

    static let app = "notes"
    var path: String { folder + "/thicket.db" }

    /// A new server, or one on the folder of another that has stopped.
    init(after before: KeyLogServer? = nil, witnesses: [Ed25519.VerifyingKey] = []) throws {
        folder = before?.folder ?? "/tmp/thicket-keylog-\(getpid())-\(RandomBytes.hex(6))"
        clock = before?.clock ?? Clock()
        self.before = before
        mkdir(folder, 0o700)
        let path = folder + "/thicket.db"
        let store = try SQLiteStore(path: path)
        let key: ServerKey = try .load(folder + "/server.key")
        if let before {
            (partner, authKey, apiKey) = (before.partner, before.authKey, before.apiKey)
        } else {
            let admin = try StoreAdmin(path: path)
            (partner, _, authKey) = try PartnerAdmin(path: path, key: key).create(id: nil, now: 0)
            let notes = try AppID(Self.app)
            try admin.createApp(notes, now: 0)
            try admin.createApp(try AppID("app"), partner: partner, now: 0)
            apiKey = try admin.addKey(of: notes, isAdmin: false, now: 0)
            _ = try PartnerStore(path: path, key: key).register(
                partner: partner, partnerEntity: "p1", email: "a@b", newID: "e-1", now: 0)
        }
        let logs = KeyLogs(path: path)
        self.logs = logs
        let clock = self.clock
        server = try TestServer(
            store: store,
            partners: TestPartners(
                directory: { try PartnerStore(path: path, key: key, keyLogs: logs) }, clock: { clock.now }),
            accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path, keyLogs: logs) },
            keyLog: KeyLogAccess(path: path, key: try .load(folder + "/keylog.key"), logs: logs, witnesses: witnesses))
    }

    func stop() { server.stop() }

    deinit {
        guard before == nil else { return }
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/server.key", "/keylog.key", ""] {
            remove(folder + name)
        }
    }

    // MARK: Requests

    /// A request with a user's token, below the app's path.
    func ask(
        _ method: String, _ path: String, token: String?, app: String = KeyLogServer.app, body: String = ""
    ) throws -> Answer {
        var fields = ["x-rezolve-device-id": "d"]
        if let token { fields["x-simperium-token"] = token }
        let answer = try HTTPPeer.ask(server.port, method, "/1/\(app)/\(path)", fields, body: body)
        return Answer(status: answer.status, fields: answer.fields, body: answer.body)
    }

    /// Signs a user up; `entries` nil: without any.
    func signUp(_ person: Person, entries: [KeyLogEntry]?) throws -> Answer {
        let list = entries.map { #","entries":\#(Self.list($0))"# } ?? ""
        let answer = try HTTPPeer.ask(
            server.port, "POST", "/1/\(Self.app)/auth/signup", ["x-simperium-api-key": apiKey],
            body: SealedBodies.signup(person.name, words: person.words, more: list))
        return Answer(status: answer.status, fields: answer.fields, body: answer.body)
    }

    /// Signs a user up with both entries; returns its token.
    func token(of person: Person) throws -> String {
        let answer = try signUp(person, entries: person.firsts(at: clock.now))
        try #require(answer.status == 200, "\(answer.body)")
        return try answer.string("access_token")
    }

    static func list(_ entries: [KeyLogEntry]) -> String {
        "[" + entries.map { #""\#(Base64.encodeURL($0.bytes))""# }.joined(separator: ",") + "]"
    }

    /// A device that trusts the log's key as the server reports it.
    func device(_ token: String, app: String = KeyLogServer.app) throws -> KeyLogDevice {
        KeyLogDevice(self, token, try KeyLogReader(app: app, logKey: try logKey(token, app: app)))
    }

    func logKey(_ token: String, app: String = KeyLogServer.app) throws -> Ed25519.VerifyingKey {
        try Ed25519.VerifyingKey(try ask("GET", "keylog/head", token: token, app: app).bytes("key"))
    }

    /// An answer and its members.
    struct Answer {
        let status: Int
        let fields: HTTPFields
        let body: String

        var object: JSONObject? { (try? JSONValue(parsing: body))?.objectValue }

        func string(_ name: String) throws -> String { try #require(object?[name]?.stringValue, "\(status) \(body)") }

        func bytes(_ name: String) throws -> [UInt8] {
            try #require(Base64.decodeURL(Array(try string(name).utf8)[...]))
        }

        /// The code of a refusal.
        var code: String? { object?["code"]?.stringValue }
        var reason: String? { object?["reason"]?.stringValue }
        var appended: Int64? { object?["appended"]?.intValue }
    }

    /// A user with keys that tests derive from numbers.
    struct Person {
        let name: String
        /// The byte of its recovery words, from which its id follows.
        let words: UInt8
        private(set) var generation: UInt8 = 0

        init(_ name: String, _ words: UInt8) { (self.name, self.words) = (name, words) }

        var user: String {
            get throws {
                try AccountPlace.userID(
                    app: KeyLogServer.app, recoveryDigest: Hash.sha256([UInt8](repeating: words, count: 32)))
            }
        }

        var handle: String {
            get throws { try KeyLogHandle.name(KeyLogHandle.folded(name), app: KeyLogServer.app) }
        }

        var identity: Ed25519.SigningKey {
            get throws { try .init(seed: SecureBytes(copying: seed("signs"))) }
        }

        var encryption: X25519.PublicKey {
            get throws { try X25519.PrivateKey(SecureBytes(copying: seed("opens"))).publicKey }
        }

        private func seed(_ use: String) -> [UInt8] { Digest256.of(Array("\(words) \(use) \(generation)".utf8)).bytes }

        func first(of user: String, at time: Int64, app: String = KeyLogServer.app) throws -> KeyLogEntry {
            try .first(
                app: app, user: user, identity: try identity, encryption: try encryption, validFrom: UInt64(time))
        }

        /// The entries of user id and name.
        func firsts(at time: Int64) throws -> [KeyLogEntry] {
            [try first(of: try user, at: time), try first(of: try handle, at: time)]
        }

        /// Changes the keys.
        /// - Returns: an entry for each of the given ones.
        mutating func rotate(_ last: [KeyLogEntry], at time: Int64) throws -> [KeyLogEntry] {
            let old = try identity
            generation += 1
            return try last.map {
                try $0.rotated(
                    to: try identity, encryption: try encryption, signedBy: old, validFrom: UInt64(time))
            }
        }

        /// The same without the old key's signature.
        mutating func reset(_ last: [KeyLogEntry], at time: Int64) throws -> [KeyLogEntry] {
            generation += 1
            return try last.map {
                try $0.reset(to: try identity, encryption: try encryption, validFrom: UInt64(time))
            }
        }
    }
}

/// A device that verifies what the server shows.
final class KeyLogDevice {
    var reader: KeyLogReader
    /// Another one after a restart.
    var bench: KeyLogServer
    /// Another one after the account of the first has ended.
    var token: String

    init(_ bench: KeyLogServer, _ token: String, _ reader: KeyLogReader) {
        (self.bench, self.token, self.reader) = (bench, token, reader)
    }

    func lookUp(_ user: String) throws -> KeyLogVerdict {
        let question = reader.question(user)
        let answer = try bench.ask(
            "GET", "keys/\(user)?from=\(question.from)&known=\(question.known)", token: token, app: reader.app)
        return receive(try KeyLogLookup(try answer.bytes("lookup")), of: user)
    }

    func receive(_ lookup: KeyLogLookup, of user: String) -> KeyLogVerdict {
        reader.receive(lookup, of: user, now: UInt64(bench.clock.now))
    }
}
