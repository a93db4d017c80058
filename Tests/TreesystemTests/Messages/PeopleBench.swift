import Glibc
import Synchronization
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketSQLite
import ThicketServer
import ThicketTestServer
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// A whole server in this process with accounts, a key log and blobs, and people who sign up there.
final class PeopleBench: Sendable {
    static let patience = Duration.seconds(120)

    private let folder = "/tmp/thicket-people-\(getpid())-\(RandomBytes.hex(6))"
    private let running: Mutex<TestServer?>
    private let blobs = MemoryBlobStore()
    private let witnesses: [Ed25519.VerifyingKey]
    private let limits: ServerLimits
    let port: Int
    let apiKey: String
    private let clock: (@Sendable () -> Int64)?

    /// - Parameter clock: of the server, milliseconds since 1970; nil: the machine's.
    init(
        witnesses: [Ed25519.VerifyingKey] = [], limits: ServerLimits = ServerLimits(),
        clock: (@Sendable () -> Int64)? = nil
    ) throws {
        mkdir(folder, 0o700)
        let path = folder + "/thicket.db"
        (self.witnesses, self.limits, self.clock) = (witnesses, limits, clock)
        let server = try Self.server(folder, blobs, witnesses, limits, clock: clock) {
            let admin = try StoreAdmin(path: path)
            let app = try AppID("notes")
            try admin.createApp(app, now: 0)
            return try admin.addKey(of: app, isAdmin: false, now: 0)
        }
        running = Mutex(server.running)
        (port, apiKey) = (server.running.port, server.made)
    }

    /// Starts a server on a folder, after something was done with its database.
    private static func server<Made>(
        _ folder: String, _ blobs: MemoryBlobStore, _ witnesses: [Ed25519.VerifyingKey], _ limits: ServerLimits,
        port: Int = 0, clock: (@Sendable () -> Int64)?, _ before: () throws -> Made
    ) throws -> (running: TestServer, made: Made) {
        let path = folder + "/thicket.db"
        let store = try SQLiteStore(path: path)
        let key: ServerKey = try .load(folder + "/server.key")
        let made = try before()
        let logs = KeyLogs(path: path)
        // Partners come with a clock; this server has none.
        let partners = clock.map { clock in
            TestPartners(directory: { try PartnerStore(path: path, key: key, keyLogs: logs) }, clock: clock)
        }
        let server = try TestServer(
            store: store, partners: partners,
            accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path, keyLogs: logs) },
            keyLog: KeyLogAccess(path: path, key: try .load(folder + "/keylog.key"), logs: logs, witnesses: witnesses),
            blobs: blobs
        ) { config in
            config.listen = ListenAddress(host: "127.0.0.1", port: UInt16(port))
            let commit = config.limits.inlineCommitMicroseconds
            config.limits = limits
            config.limits.inlineCommitMicroseconds = commit
        }
        return (server, made)
    }

    /// Ends the server without a farewell, and starts it again on the same port.
    func restart() throws {
        running.withLock { server in
            server?.abort()
            server = nil
        }
        let (server, _) = try Self.server(folder, blobs, witnesses, limits, port: port, clock: clock) {}
        running.withLock { $0 = server }
    }

    /// Changes of trees that the server has refused for a reason since its start.
    func refused(_ reason: RefusalReason) -> Int {
        running.withLock { Int($0?.metrics.treeRefused.value(reason) ?? 0) }
    }

    /// The bytes of a blob as the server has them; nil when it has none.
    func blob(_ id: BlobID) throws -> [UInt8]? {
        guard let reader = try blobs.open(id) else { return nil }
        return try reader.read(at: 0, count: Int(reader.length))
    }

    /// All bytes of the server's database.
    func stored() throws -> Stored {
        var bytes = [UInt8]()
        for end in ["", "-wal"] {
            let file = open(folder + "/thicket.db" + end, O_RDONLY)
            guard file >= 0 else { continue }
            defer { Glibc.close(file) }
            var part = [UInt8](repeating: 0, count: 1 << 20)
            while case let count = read(file, &part, part.count), count > 0 { bytes += part.prefix(count) }
        }
        return Stored(bytes: bytes)
    }

    /// Bytes that a server has stored.
    struct Stored {
        let bytes: [UInt8]

        func contains(_ text: [UInt8]) -> Bool {
            guard let first = text.first else { return false }
            return bytes.withUnsafeBytes { all in
                var place = 0
                while place + text.count <= all.count {
                    guard let start = all.baseAddress.map({ $0 + place }),
                        let found = memchr(start, Int32(first), all.count - place - text.count + 1)
                    else { return false }
                    if memcmp(found, text, text.count) == 0 { return true }
                    place += start.distance(to: found) + 1
                }
                return false
            }
        }
    }

    /// Whether a record refers to a blob; nil when the server does not know it.
    func isReferenced(_ id: BlobID) throws -> Bool? {
        let database = try Database(path: folder + "/thicket.db", mode: .readOnly)
        return try database.statement("SELECT orphaned IS NULL FROM blob WHERE id = ?1").bind(1, id.octets)
            .first { $0.integer(0) == 1 }
    }

    deinit {
        running.withLock { $0?.stop() }
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/server.key", "/keylog.key", ""] {
            remove(folder + name)
        }
    }

    /// A person with an account, and a device of it.
    struct Person {
        let session: ClientSession
        let tree: Treesystem
        let user: UserID
        fileprivate let signed: SignedIn
    }

    private func app(_ name: String, _ store: StoreLocation) throws -> ThicketApp {
        try ThicketApp(
            server: "http://127.0.0.1:\(port)", app: "notes", apiKey: apiKey, store: store, deviceId: name + "-device")
    }

    /// Logs a person in on another device.
    func device(of name: String, _ device: String) async throws -> Person {
        let app = try ThicketApp(
            server: "http://127.0.0.1:\(port)", app: "notes", apiKey: apiKey, deviceId: device)
        let result = try await app.accounts().signIn(name: name, password: Self.password(name))
        guard case .open(let signed) = result else { throw AccountError.locked }
        let session = try await app.resume(signed)
        return Person(
            session: session, tree: try await session.tree(), user: try UserID(signed.account.user), signed: signed)
    }

    /// Replaces a person's keys on one device.
    ///
    /// - Parameter isCutShort: the device ends before the key log has the new keys.
    func replaceKeys(of person: Person, isCutShort: Bool = false) async throws {
        let app = try ThicketApp(
            server: "http://127.0.0.1:\(port)", app: "notes", apiKey: apiKey, deviceId: "rotation")
        let known = try #require(person.session.account)
        let next = try await app.accounts().replaceKeys(of: known, accessToken: await person.session.accessToken)
        try await person.session.useKeys(of: next)
        if isCutShort { return }
        #expect(try await person.session.people().checkOwn() == .appended(2), "one for the id and one for the name")
    }

    private static func password(_ name: String) -> SecureBytes {
        SecureBytes(copying: Array("sesame of \(name)".utf8))
    }

    /// Signs a person up.
    func person(
        _ name: String, _ store: StoreLocation = .memory, delegate: (any TreeDelegate)? = nil
    ) async throws -> Person {
        let app = try app(name, store)
        let signed = try await app.accounts().signUp(
            name: name, password: Self.password(name))
        return try await person(signed, app, delegate)
    }

    /// The same login in a later run of its program, or on another device.
    func again(_ person: Person, _ store: StoreLocation = .memory) async throws -> Person {
        try await self.person(person.signed, try app(person.signed.account.name, store), nil)
    }

    private func person(
        _ signed: SignedIn, _ app: ThicketApp, _ delegate: (any TreeDelegate)?
    ) async throws -> Person {
        let session = try await app.resume(signed)
        return Person(
            session: session, tree: try await session.tree(delegate: delegate), user: try UserID(signed.account.user),
            signed: signed)
    }
}
