import Glibc
import ThicketAuth
import ThicketNet
import ThicketPlatform
import ThicketProtocol

/// The sync server. One process serves one data folder.
public enum ThicketServer {
    /// The version that `thicketd version` prints.
    public static let version = "0.1.0"
}

/// The server: event loop, hub, shard, readers and maintenance over one store.
///
/// Threads: the caller of `run` is the loop's thread and owns the network, the sessions and the feeds; `shard` decides
/// and writes, unless the loop does so in its place; `reader-N` read; `keeper` plans retention and segments; `checker`
/// reads the database file at intervals; `blob-N` write and read blobs, and `blob-sweep` removes
/// them; `keylog` answers questions about keys. Values cross
/// between them, never objects.
public final class Server {
    private let config: ServerConfig
    private let store: any Store
    private let retention: RetentionSettings
    private let reload: @Sendable () -> ServerConfig?
    private let directory: (@Sendable () throws -> any PartnerDirectory)?
    private let accounts: AccountAccess?
    private let keyLog: KeyLogAccess?
    private let blobs: (any BlobStore)?
    private let keys: (any KeyDirectory)?
    private let outbox: @Sendable () -> (any MailOutbox)?
    private let clock: @Sendable () -> Int64
    private let loop: EventLoop
    private let tls: TLSFiles?
    /// The metrics that the server records.
    public let metrics: Metrics
    /// The readiness that `/health/ready` reports.
    public let health: Health
    /// The log that the server writes to.
    public let log: Log
    /// Where clients connect; reports the chosen port when the configured port was 0.
    public let listener: Listener
    /// For other threads and for the control socket.
    public let handle: ServerHandle

    /// Opens the listener. Nothing is served before `run`.
    ///
    /// - Parameters:
    ///   - store: the caller closes it after `run` has returned.
    ///   - reload: called on the loop's thread at SIGHUP; must be quick. Returns the settings to apply, or nil to
    ///     change nothing.
    ///   - directory: opens the directory of partners and their users, on its own thread; without it the server has no
    ///     partners.
    ///   - accounts: the same for built-in accounts.
    ///   - keyLog: where key logs are kept; without it the server has none.
    ///   - blobs: where the bytes of blobs are kept; without it the server has no blobs.
    ///   - keys: the newest keys of accounts, by which copies into other trees are verified, if not those of `keyLog`;
    ///     without either such copies are refused with 503.
    ///   - outbox: accepts messages to users, such as codes for a new password; without it none is sent.
    ///   - clock: milliseconds since 1970, used to check tokens and to date changes; nil uses the machine's clock.
    /// - Throws: when the address cannot be bound or the certificate cannot be used.
    public init(
        config: ServerConfig, store: any Store, retention: RetentionSettings = .init(), metrics: Metrics = .init(),
        health: Health = .init(), log: Log = .silent, reload: @escaping @Sendable () -> ServerConfig? = { nil },
        directory: (@Sendable () throws -> any PartnerDirectory)? = nil, accounts: AccountAccess? = nil,
        keyLog: KeyLogAccess? = nil, blobs: (any BlobStore)? = nil, keys: (any KeyDirectory)? = nil,
        outbox: @escaping @Sendable () -> (any MailOutbox)? = { nil },
        clock: (@Sendable () -> Int64)? = nil
    ) throws(NetError) {
        self.directory = directory
        self.accounts = accounts
        self.keyLog = keyLog
        self.blobs = blobs
        self.keys = keys
        self.outbox = outbox
        self.clock = clock ?? { SystemClock.unixMilliseconds() }
        self.config = config
        self.store = store
        self.retention = retention
        self.reload = reload
        self.metrics = metrics
        self.health = health
        self.log = log
        loop = try EventLoop(settings: NetSettings(config), metrics: metrics.net)
        tls = TLSFiles(config)
        if let tls { loop.use(try Self.certificate(tls, log)) }
        listener = try loop.listen(
            host: config.listen.host, port: Int(config.listen.port), isSecure: tls != nil)
        handle = ServerHandle(loop: loop.handle)
    }

    /// Makes SIGTERM and SIGINT stop the server in order, and SIGHUP call `reload`. Call `EventLoop.blockSignals()`
    /// before the first thread is started.
    public func watchSignals() throws(NetError) { try loop.watchSignals() }

    /// Serves on the calling thread until the server is told to stop. Returns when every thread has ended and all
    /// acknowledged changes are on disk.
    ///
    /// - Parameter listening: called once, when the store has been opened and connections are about to be served.
    public func run(listening: () -> Void = {}) {
        let commits = loop.mailbox { [unowned loop] reports in
            Self.delegate(of: loop)?.committed(reports)
        }
        let answers: Mailbox<ServerReaders.Answered> = loop.mailbox { [unowned loop] answers in
            Self.delegate(of: loop)?.answered(answers)
        }
        let shard = ServerShard(
            store: store, settings: ShardSettings(config.limits), limits: config.limits, metrics: metrics,
            health: health, log: log
        ) { commits.post($0) }
        let readers = ServerReaders(
            count: readerCount, store: store, limits: config.limits, metrics: metrics, log: log
        ) { answers.post($0) }
        let addresses = SharedMeter(perMinute: config.failedLoginsPerMinute)
        let access = makeAccess(addresses)
        let accounts = makeAccounts(addresses)
        let keyLog = makeKeyLog()
        let maintenance = MaintenanceWorker(store: store, settings: retention, shard: shard, metrics: metrics, log: log)
        let checker = ServerChecker(
            store: store, seconds: Double(config.checkInterval.components.seconds), metrics: metrics, log: log)
        let blobs = makeBlobs()
        let hub = Hub(limits: config.limits, codec: ChangeVersionCodec(store.identity), metrics: metrics)
        hub.keyDirectory = keys ?? self.keyLog?.logs
        loop.delegate = ServerLoop(
            loop: loop, hub: hub, shard: shard, commits: commits, readers: readers, maintenance: maintenance,
            access: access, accounts: accounts, keyLog: keyLog,
            blobs: blobs.map { BlobDesk(loop: loop, workers: $0.workers, hub: hub) },
            router: HTTPRouter(
                hasPartners: access != nil, hasAccounts: accounts != nil, hasKeyLogs: keyLog != nil,
                showsMetrics: config.metrics, showsPage: config.page),
            pages: ServerPages(
                metrics: metrics, health: health, cors: CORSPolicy(config.corsOrigins),
                versions: AppVersions(config.appVersions)),
            log: log, drainTimeout: config.drainTimeout, clock: clock,
            sockJS: SockJSSettings(config), tls: tls, reload: reload)
        log.info("server.started", ["address": .text(listener.address), "readers": .int(readerCount)])
        shard.awaitOpening()
        listening()
        EventLoop.requestShortTimeSlice()
        loop.run()
        health.stop()
        access?.finish()
        accounts?.finish()
        keyLog?.finish()
        blobs?.workers.finish()
        blobs?.sweeper.finish()
        checker.finish()
        maintenance.finish()
        readers.finish()
        shard.finish()
        log.info("server.stopped")
    }

    private static func certificate(_ files: TLSFiles, _ log: Log) throws(NetError) -> TLSContext {
        do throws(TLSError) {
            let context = try TLSContext(files)
            context.describe(files, to: log)
            return context
        } catch {
            throw NetError.tls(error)
        }
    }

    private func makeAccess(_ addresses: SharedMeter) -> ServerAccess? {
        guard let directory: @Sendable () throws -> any PartnerDirectory else { return nil }
        let answers: Mailbox<ServerAccess.Answered> = loop.mailbox { [unowned loop] answers in
            Self.delegate(of: loop)?.answered(answers)
        }
        return ServerAccess(
            settings: ServerAccess.Settings(config), addresses: addresses, metrics: metrics, log: log, now: clock,
            open: directory, outbox: outbox
        ) { answers.post($0) }
    }

    private func makeAccounts(_ addresses: SharedMeter) -> ServerAccounts? {
        guard let accounts else { return nil }
        let answers: Mailbox<ServerAccounts.Answered> = loop.mailbox { [unowned loop] answers in
            Self.delegate(of: loop)?.answered(answers)
        }
        return ServerAccounts(
            rules: AccountService.Rules(config), secrets: accounts.secrets, addresses: addresses, metrics: metrics,
            log: log, now: clock, open: accounts.directory, outbox: outbox
        ) { answers.post($0) }
    }

    private func makeKeyLog() -> ServerKeyLog? {
        guard let keyLog else { return nil }
        let answers: Mailbox<ServerKeyLog.Answered> = loop.mailbox { [unowned loop] answers in
            Self.delegate(of: loop)?.answered(answers)
        }
        return ServerKeyLog(
            access: keyLog, partners: directory, rules: ServerAccess.Settings(config).rules, metrics: metrics, log: log,
            now: clock
        ) { answers.post($0) }
    }

    private func makeBlobs() -> (workers: ServerBlobs, sweeper: BlobSweeper)? {
        guard let blobs else { return nil }
        let reports: Mailbox<ServerBlobs.Report> = loop.mailbox { [unowned loop] reports in
            Self.delegate(of: loop)?.answered(reports)
        }
        let workers = ServerBlobs(store: store, blobs: blobs, metrics: metrics, log: log, now: clock) {
            reports.post($0)
        }
        return (workers, BlobSweeper(store: store, blobs: blobs, metrics: metrics, log: log, now: clock))
    }

    private static func delegate(of loop: EventLoop) -> ServerLoop? { loop.delegate as? ServerLoop }

    private var readerCount: Int {
        config.readerThreads > 0 ? config.readerThreads : max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    }
}

/// What a server needs to offer its own accounts.
public struct AccountAccess: Sendable {
    let secrets: AccountSecrets
    let directory: @Sendable () throws -> any AccountDirectory

    /// - Parameter directory: opens the directory, on its own thread.
    public init(secrets: AccountSecrets, directory: @escaping @Sendable () throws -> any AccountDirectory) {
        (self.secrets, self.directory) = (secrets, directory)
    }
}

/// What other threads may hold of a running server.
public struct ServerHandle: Sendable {
    let loop: LoopHandle

    /// Stops the server as SIGTERM does: finishes work in progress, closes every connection with 1001, and makes `run`
    /// return.
    public func stop() {
        loop.post { loop in (loop.delegate as? ServerLoop)?.beginStop() }
    }

    /// Ends as a killed process would, from the clients' view: connections break without a close, and unacknowledged
    /// changes may or may not be on disk. For tests.
    public func abort() {
        loop.post { loop in loop.abort() }
    }

    /// Closes connections that were opened with a user's ended tokens; for the control socket.
    public func signOut(_ app: AppID, _ user: UserID) {
        loop.post { loop in (loop.delegate as? ServerLoop)?.signOut(Tenant.Name(app: app, user: user)) }
    }

    /// Notifies clients that buckets with this name have another mode; for the control socket.
    public func changeMode(_ app: AppID, _ name: BucketName, _ mode: BucketMode) {
        loop.post { loop in (loop.delegate as? ServerLoop)?.changeMode(app, name, mode) }
    }

    /// Asks the clients of a bucket; for the control socket.
    ///
    /// `report` is called on the loop's thread and must not block. The returned function cancels the question.
    public func ask(
        _ question: RemoteQuestion, report: @escaping @Sendable (RemoteReply) -> Void
    ) -> @Sendable () -> Void {
        let place = AskPlace()
        loop.post { loop in
            guard let server = loop.delegate as? ServerLoop else {
                return report(.failed("the server is stopping"))
            }
            place.id = server.ask(question, report: report)
        }
        return {
            loop.post { loop in
                if let id = place.id { (loop.delegate as? ServerLoop)?.cancelAsk(id) }
            }
        }
    }

    /// Holds the identifier of a question between two visits of the loop.
    private final class AskPlace: @unchecked Sendable {
        // Accessed on the loop's thread only.
        var id: AskID?
    }
}
