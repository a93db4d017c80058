import Glibc
import ThicketAuth
import ThicketClient
import ThicketCrypto
import ThicketOnions
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// A real server on a real store with a notes app, whose operator is the test.
final class NotesServer: Sendable {
    static let app = "onions"
    private let folder = "/tmp/thicket-onions-\(getpid())-\(RandomBytes.hex(6))"
    let server: TestServer
    let apiKey: String

    init(notes: AppNotes = .on, versions: String = "none") throws {
        mkdir(folder, 0o700)
        let path = folder + "/thicket.db"
        let store = try SQLiteStore(path: path)
        let key: ServerKey = try .load(folder + "/key")
        let operators = try StoreAdmin(path: path)
        let app = try AppID(Self.app)
        try operators.createApp(app, now: 0)
        try operators.setPasswords(.notes, of: app)
        try operators.setNotes(notes, of: app)
        apiKey = try operators.addKey(of: app, isAdmin: false, now: 1)
        server = try TestServer(
            store: store, accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path) }
        ) { config in
            config.registrationsPerMinute = 10_000
            config.failedLoginsPerMinute = 10_000
            config.appVersions = versions
        }
    }

    deinit {
        server.stop()
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/key", ""] { remove(folder + name) }
    }

    /// The operator's access while the server runs.
    func operators() throws -> StoreAdmin { try .init(path: folder + "/thicket.db") }
    func accounts() throws -> AccountStore { try .init(path: folder + "/thicket.db") }

    func account() throws -> OnionAccount {
        try OnionAccount(
            server: "http://127.0.0.1:\(server.port)", app: Self.app, apiKey: apiKey, patience: .seconds(120))
    }

    /// A new user's notes.
    func vault(_ name: String = "hello", _ password: String = "World") async throws -> Vault {
        try await account().signUp(username: secret(name), password: secret(password))
    }

    /// A second login of the same user.
    func again(_ name: String = "hello", _ password: String = "World") async throws -> Vault {
        try await account().signIn(username: secret(name), password: secret(password))
    }

    /// Every byte of the server's database and its write-ahead log.
    func stored() -> [UInt8] {
        ["/thicket.db", "/thicket.db-wal"].flatMap { name -> [UInt8] in
            guard let file = fopen(folder + name, "r") else { return [] }
            defer { fclose(file) }
            var bytes = [UInt8]()
            var chunk = [UInt8](repeating: 0, count: 1 << 16)
            while case let count = fread(&chunk, 1, chunk.count, file), count > 0 { bytes += chunk[..<count] }
            return bytes
        }
    }
}

func secret(_ text: String) -> SecureBytes { SecureBytes(copying: Array(text.utf8)) }
func note(_ title: String, _ info: String = "") -> NoteText { NoteText(title: secret(title), info: secret(info)) }

extension [UInt8] {
    func holds(_ part: [UInt8]) -> Bool {
        guard let first = part.first, count >= part.count else { return false }
        return withUnsafeBytes { whole in
            part.withUnsafeBytes { part in
                guard let start = whole.baseAddress, let wanted = part.baseAddress
                else { return false }
                var place = 0
                while let found = memchr(
                    start + place, Int32(first), whole.count - part.count - place + 1)
                {
                    if memcmp(found, wanted, part.count) == 0 { return true }
                    place = start.distance(to: UnsafeRawPointer(found)) + 1
                    if place > whole.count - part.count { return false }
                }
                return false
            }
        }
    }
}
