/// The settings of an operator. `ServerSettings.all` lists each with its bounds; the loader fills this value.
public struct ServerConfig: Sendable, Equatable {
    /// The data folder: the database, the lock and the control socket.
    public var data = "thicket-data"

    /// Where clients connect.
    public var listen = ListenAddress(host: "127.0.0.1", port: 8_000)

    /// PEM file of the certificate with its intermediate certificates; `none`: no TLS.
    public var tlsCertificate = "none"

    /// PEM file of the certificate's private key.
    public var tlsKey = "none"

    /// How long browsers must use TLS only (HSTS), 0 (no such header)...3,650 days.
    public var hsts: Duration = .zero

    /// Lines below this level are not written.
    public var logLevel: LogLevel = .info

    /// Longest silence before the server closes a connection, 5 s...1 h.
    ///
    /// Clients send `h:` after 20 s of silence (streaming API, "Heartbeat"), so values below 40 s drop healthy clients
    /// on slow links.
    public var idleTimeout: Duration = .seconds(60)

    /// Proxies whose statements about client addresses are trusted: `none`, or networks separated by commas.
    public var trustProxy = "none"

    /// Whether connections of those proxies begin with the PROXY protocol.
    public var proxyProtocol = false

    /// Lowest average rate in bytes per second for sending bodies and messages and for reading responses, 0 (any)...1
    /// GiB.
    public var paceBytesPerSecond: Int = 1 << 10

    /// Longest wait for a complete HTTP request head, 1 s...5 min.
    public var requestTimeout: Duration = .seconds(10)

    /// Longest drain after SIGTERM before the remaining connections are closed, 0 s...10 min.
    public var drainTimeout: Duration = .seconds(10)

    /// Threads that read from the store, 0...64; 0 means one per core.
    public var readerThreads = 0

    /// Time between two checks of the database file while it is served, 0 (never) or 1 min...365 days.
    public var checkInterval: Duration = .seconds(86_400)

    /// Whether `/metrics` is served on the clients' port.
    public var metrics = true

    /// Whether `/` is served with a page that describes the server and tests every transport.
    public var page = true

    /// File of the key that encrypts secrets in the database; a name without a slash is in the data folder.
    public var keyFile = "server.key"
    /// File of the secret that signs the key logs; without a slash, in the data folder.
    public var keyLogKeyFile = "keylog.key"
    /// Keys of the witnesses whose confirmations of the key logs are accepted: hexadecimal, with commas; or none.
    public var keyLogWitnesses = "none"

    /// How long a partner's token is accepted after its end, 0 s...2 min.
    public var tokenLeeway: Duration = .zero

    /// Registrations per minute of one partner, 1...1,000,000.
    public var registrationsPerMinute: Int = 60

    /// Failed logins per minute from one address, 1...1,000,000.
    public var failedLoginsPerMinute: Int = 30

    /// Guests of one account, which its links have, 0...10,000.
    public var guestsPerAccountMax: Int = 100

    /// How long the token of a login is valid, 0 (until it is revoked) or 1 min...3,650 days.
    public var tokenLifetime: Duration = .zero

    /// Web origins whose pages may use the data API from a browser: `none`, `*`, or a list separated by commas.
    public var corsOrigins = "none"

    /// Newest versions of client programs, for `/version`: `none`, or `PLATFORM=VERSION` entries separated by commas.
    public var appVersions = "none"

    /// Whether SockJS sessions may be WebSockets; off spares clients behind a proxy without WebSockets the attempt.
    public var sockJSWebSocket = true

    /// Silence after which a SockJS client gets a heartbeat, 1 s...10 min. It must be below `idleTimeout`, which ends a
    /// response that nothing is written to.
    public var sockJSHeartbeat: Duration = .seconds(25)

    /// How long a SockJS session waits for its client's next request, 1 s...5 min.
    public var sockJSPatience: Duration = .seconds(5)

    /// Whether to set the cookie `JSESSIONID`, by which some load balancers distinguish sessions.
    public var sockJSCookie = false

    /// Where browsers get the SockJS client for the iframe page: `auto` (from this machine, if installed), a path or an
    /// http address; any other word disables it.
    public var sockJSScript = "auto"

    /// Folder for messages to users; a name without a slash is in the data folder.
    public var mailFolder = "outbox"

    /// Sender of messages to users.
    public var mailFrom = "thicket@localhost"

    /// Mail server for messages to users, `smtp://host:port` or `smtps://host:port`; `none`: another program empties
    /// the folder.
    public var smtpURL = "none"

    /// File of two lines, user and password for the mail server; `none`: the server requires none.
    public var smtpLoginFile = "none"

    /// Whether an `smtp://` connection must switch to TLS.
    public var smtpStartTLS = true

    /// File of the authorities that sign the mail server's certificate; `none`: those of the system.
    public var smtpCA = "none"

    /// Bounds of everything that grows.
    public var limits = ServerLimits()

    /// How much of the past is kept.
    public var retention = RetentionSettings()

    /// The defaults.
    public init() {}
}

// Retention settings as the durations and plain numbers that the settings table uses.
extension RetentionSettings {
    var logAge: Duration {
        get { .milliseconds(logAgeMin) }
        set {
            logAgeMin = newValue.wholeMilliseconds
            // A short retention also needs short intervals between two sweeps.
            sweepInterval = min(Self().sweepInterval, max(1_000, logAgeMin / 4))
        }
    }
    var changeIDAge: Duration {
        get { .milliseconds(changeIDAgeMin) }
        set { changeIDAgeMin = newValue.wholeMilliseconds }
    }
    var newestCount: Int {
        get { Int(versionsNewest) }
        set { versionsNewest = Int64(newValue) }
    }
    var sparseCount: Int {
        get { Int(versionsSparse) }
        set { versionsSparse = Int64(newValue) }
    }
}
