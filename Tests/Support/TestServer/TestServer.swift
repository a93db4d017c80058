import ThicketAuth
import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestSupport

/// Partners for a server, and the time by which their tokens are judged.
public struct TestPartners: Sendable {
    let directory: @Sendable () throws -> any PartnerDirectory
    let outbox: @Sendable () -> (any MailOutbox)?
    let clock: @Sendable () -> Int64

    public init(
        directory: @escaping @Sendable () throws -> any PartnerDirectory,
        outbox: @escaping @Sendable () -> (any MailOutbox)? = { nil }, clock: @escaping @Sendable () -> Int64
    ) {
        (self.directory, self.outbox, self.clock) = (directory, outbox, clock)
    }
}

/// A whole server in this process: own thread, real sockets on a port that the kernel chose.
public final class TestServer: Sendable {
    /// The report of the server's thread once it listens.
    private struct Started: Sendable {
        let port: Int
        let handle: ServerHandle
        let metrics: Metrics
        let health: Health
    }

    /// The reason why the server did not start.
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    public let port: Int
    public let metrics: Metrics
    public let health: Health
    public let handle: ServerHandle
    private let thread: OwnThread

    /// Starts serving `store`; `configure` changes the settings before.
    public init(
        store: any Store, retention: RetentionSettings = .init(), log: Log = .silent,
        partners: TestPartners? = nil, accounts: AccountAccess? = nil,
        keyLog: KeyLogAccess? = nil, blobs: (any BlobStore)? = nil,
        configure: @Sendable (inout ServerConfig) -> Void = { _ in }
    ) throws {
        var config = ServerConfig()
        config.listen = ListenAddress(host: "127.0.0.1", port: 0)
        config.readerThreads = 2
        config.drainTimeout = .seconds(5)
        // The loop commits every change that it may, however slow the machine, so that both ways are tested everywhere.
        config.limits.inlineCommitMicroseconds = 1_000_000
        if SecureEdge.isOn { (config.tlsCertificate, config.tlsKey) = SecureEdge.files }
        configure(&config)
        let settings = config
        let outbox: @Sendable () -> (any MailOutbox)? = { partners?.outbox() }
        let started = BlockingQueue<Result<Started, Failure>>(bound: 1)
        thread = OwnThread("test-server", stackBytes: 16 << 20) {
            do throws(NetError) {
                let server: Server = try Server(
                    config: settings, store: store, retention: retention, log: log, directory: partners?.directory,
                    accounts: accounts, keyLog: keyLog, blobs: blobs, outbox: outbox, clock: partners?.clock)
                started.add(
                    .success(
                        Started(
                            port: server.listener.port, handle: server.handle, metrics: server.metrics,
                            health: server.health)))
                server.run()
            } catch {
                started.add(.failure(Failure(description: error.description)))
            }
        }
        let parts = try started.takeAll().first?.get()
        guard let parts else { throw Failure(description: "the server did not start") }
        port = parts.port
        metrics = parts.metrics
        health = parts.health
        handle = parts.handle
        if settings.tlsCertificate != "none" { SecureEdge.add(port: port) }
    }

    /// Ends the server as SIGTERM does, and waits for it.
    public func stop() {
        handle.stop()
        thread.join()
        SecureEdge.remove(port: port)
    }

    /// Breaks all connections without a close frame, and waits until the threads have ended.
    public func abort() {
        handle.abort()
        thread.join()
        SecureEdge.remove(port: port)
    }

    public func client(app: String = "app") throws -> TestClient { try TestClient(port: port, app: app) }

    /// A client whose channel 0 is authorized on a bucket; `auth` has been read.
    public func client(
        _ name: String, token: String = "ann-token", bucket: String = "notes", library: String = "test",
        command: String? = nil
    ) throws -> TestClient {
        let client = try client()
        try client.open(name, token: token, bucket: bucket, library: library, command: command)
        return client
    }
}

extension MemoryStore {
    /// A store that knows app `app` with `ann-token`, `bob-token` and the read-only `read-token` (ann's).
    public static func forTests(faults: FaultPlan? = nil) throws -> MemoryStore {
        let store = MemoryStore(identity: .seeded(11), faults: faults)
        let app = try AppID("app")
        store.addApp(app)
        for (token, user, isReadOnly) in [
            ("ann-token", "ann@example.com", false), ("bob-token", "bob@example.com", false),
            ("read-token", "ann@example.com", true),
        ] {
            store.addGrant(
                TokenGrant(app: app, user: try UserID(user), isReadOnly: isReadOnly),
                tokenHash: Hash.sha256(Array(token.utf8)))
        }
        return store
    }
}
