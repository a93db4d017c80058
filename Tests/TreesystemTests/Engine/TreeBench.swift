import Synchronization
import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestServer
import ThicketTree
import ThicketTreeShape

@testable import ThicketClient
@testable import ThicketServer
@testable import ThicketTreesystem

/// A real server in this process, and devices of two accounts whose keys were made by the test.
final class TreeBench: Sendable {
    static let patience = Duration.seconds(120)

    let store: MemoryStore
    private let blobs: any BlobStore
    private let running: Mutex<TestServer>
    let port: Int
    let ann: OpenAccount
    let bob: OpenAccount

    init(blobs: any BlobStore = MemoryBlobStore()) throws {
        self.blobs = blobs
        store = try MemoryStore.forTests()
        let server = try TestServer(store: store, blobs: blobs)
        port = server.port
        running = Mutex(server)
        (ann, bob) = (try Self.account("ann@example.com"), try Self.account("bob@example.com"))
    }

    deinit { running.withLock { $0.stop() } }

    /// Keys that no other account has.
    static func account(_ user: String) throws -> OpenAccount {
        OpenAccount(
            app: "app", user: user, name: user, accessKey: .random(), bundle: .make(), version: 1, pin: nil)
    }

    func app(_ store: StoreLocation = .memory) throws -> ThicketApp {
        try ThicketApp(
            server: "http://127.0.0.1:\(port)", app: "app", apiKey: "key", store: store, deviceId: "device")
    }

    /// A signed-in device.
    func session(_ account: OpenAccount? = nil, _ store: StoreLocation = .memory) async throws -> ClientSession {
        let account = account ?? ann
        let name = account.user.prefix { $0 != "@" }
        return try await app(store).resume(account, accessToken: "\(name)-token")
    }

    /// Permits another token of ann's, until a time in milliseconds since 1970.
    func permit(_ token: String, until expires: Int64? = nil, isReadOnly: Bool = false) throws {
        store.addGrant(
            TokenGrant(
                app: try AppID("app"), user: try UserID("ann@example.com"), isReadOnly: isReadOnly, expires: expires),
            tokenHash: Hash.sha256(Array(token.utf8)))
    }

    /// Registers an account that the server calls by another name than its id.
    func permitAccount(_ user: String, name: String, token: String) throws -> OpenAccount {
        store.addGrant(
            TokenGrant(app: try AppID("app"), user: try UserID(user), isReadOnly: false, name: try UserID(name)),
            tokenHash: Hash.sha256(Array(token.utf8)))
        return OpenAccount(
            app: "app", user: user, name: name, accessKey: .random(), bundle: .make(), version: 1, pin: nil)
    }

    /// Ends the server without a farewell, and starts it again on the same port.
    ///
    /// - Parameters:
    ///   - other: another store than before, for example a copy of an earlier state.
    ///   - meanwhile: called while no server runs.
    func restartServer(_ other: MemoryStore? = nil, _ meanwhile: () throws -> Void = {}) throws {
        try running.withLock { server in
            server.abort()
            try meanwhile()
            server = try TestServer(store: other ?? store, blobs: blobs) {
                [port] in $0.listen = ListenAddress(host: "127.0.0.1", port: UInt16(port))
            }
        }
    }
}

extension TreeBench {
    /// The day is over after which the server removes blobs without a node.
    func removeOrphans() {
        store.shared.withLock { shared in
            for (id, blob) in shared.state.blobs.blobs where blob.orphaned != nil { shared.state.blobs.remove(id) }
        }
    }

    /// A copy of the server's rows under another identity, as a restored backup is. It knows only the blobs that were
    /// complete when it was made.
    func backup() -> MemoryStore {
        let copy = MemoryStore(identity: .seeded(12))
        let (state, row) = store.shared.withLock { ($0.state, $0.lastRow) }
        copy.shared.withLock { ($0.state, $0.lastRow) = (state, row) }
        return copy
    }
}

extension Treesystem {
    /// Returns once something is so, which is looked at after each event.
    func wait(until isSo: @Sendable (isolated Treesystem) throws -> Bool) async throws {
        let stream = events
        if try isSo(self) { return }
        for await _ in stream where try isSo(self) { return }
        throw TreeError(.closed, "the events ended")
    }

    /// Paths of all nodes below home, sorted as `walk` gives them.
    func paths() async throws -> [String] {
        var paths = [String]()
        for try await (path, _) in walk(from: TreePath(.home)) { paths.append(path.description) }
        return paths
    }
}

extension TreePath {
    /// A path below home.
    static func home(_ names: String...) throws -> TreePath { try TreePath(.home, names) }
}

extension NodeSections {
    /// A content with a data section that fits into a record.
    static func text(_ text: String) -> NodeSections { NodeSections(data: .bytes(Array(text.utf8))) }
}
