import Glibc
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTree

@testable import ThicketTreesystem

/// A whole server in this process with accounts, a key log and blobs, and people who sign up there.
final class PeopleBench: Sendable {
    static let patience = Duration.seconds(120)

    private let folder = "/tmp/thicket-people-\(getpid())-\(RandomBytes.hex(6))"
    let server: TestServer
    private let apiKey: String

    init(witnesses: [Ed25519.VerifyingKey] = []) throws {
        mkdir(folder, 0o700)
        let path = folder + "/thicket.db"
        let store = try SQLiteStore(path: path)
        let key: ServerKey = try .load(folder + "/server.key")
        let admin = try StoreAdmin(path: path)
        let app = try AppID("notes")
        try admin.createApp(app, now: 0)
        apiKey = try admin.addKey(of: app, isAdmin: false, now: 0)
        let logs = KeyLogs(path: path)
        server = try TestServer(
            store: store,
            accounts: AccountAccess(secrets: key.accountSecrets) { try AccountStore(path: path, keyLogs: logs) },
            keyLog: KeyLogAccess(path: path, key: try .load(folder + "/keylog.key"), logs: logs, witnesses: witnesses),
            blobs: MemoryBlobStore())
    }

    deinit {
        server.stop()
        for name in ["/thicket.db", "/thicket.db-wal", "/thicket.db-shm", "/server.key", "/keylog.key", ""] {
            remove(folder + name)
        }
    }

    /// A person with an account, and a device of it.
    struct Person {
        let session: ClientSession
        let tree: Treesystem
        let user: UserID
    }

    /// Logs a person in on another device.
    func device(of name: String, _ device: String) async throws -> Person {
        let app = try ThicketApp(
            server: "http://127.0.0.1:\(server.port)", app: "notes", apiKey: apiKey, deviceId: device)
        let result = try await app.accounts().signIn(name: name, password: Self.password(name))
        guard case .open(let signed) = result else { throw AccountError.locked }
        let session = try await app.resume(signed)
        return Person(session: session, tree: try await session.tree(), user: try UserID(signed.account.user))
    }

    /// Replaces a person's keys on one device.
    ///
    /// - Parameter isCutShort: the device ends before the key log has the new keys.
    func replaceKeys(of person: Person, isCutShort: Bool = false) async throws {
        let app = try ThicketApp(
            server: "http://127.0.0.1:\(server.port)", app: "notes", apiKey: apiKey, deviceId: "rotation")
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
    func person(_ name: String, delegate: (any TreeDelegate)? = nil) async throws -> Person {
        let app = try ThicketApp(
            server: "http://127.0.0.1:\(server.port)", app: "notes", apiKey: apiKey, deviceId: name + "-device")
        let signed = try await app.accounts().signUp(
            name: name, password: Self.password(name))
        let session = try await app.resume(signed)
        return Person(
            session: session, tree: try await session.tree(delegate: delegate), user: try UserID(signed.account.user))
    }
}
