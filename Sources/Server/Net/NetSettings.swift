import ThicketProtocol

/// What the event loop is told at its start. Durations are of the monotonic clock.
public struct NetSettings: Sendable {
    /// Connections of all kinds; one more is answered 503 and closed. The limit on open files counts too.
    public var connectionsMax: Int = 100_000
    /// Connections the kernel keeps for us between two accepts.
    public var backlog: Int32 = 4_096
    /// File descriptors never given to connections: database, logs, readers, this loop's own.
    public var descriptorsReserved: Int = 64
    /// Nanoseconds of one turn for accepting connections, so that a storm of them does not starve those that are there.
    public var acceptNanosecondsPerTurn: Int64 = 20_000
    /// Nanoseconds of one turn for ending connections whose time is over, and as many for those whose peers have gone.
    public var endNanosecondsPerTurn: Int64 = 25_000

    /// Bytes of one WebSocket message; more is closed with 1009.
    public var messageBytesMax: Int = 8 << 20
    /// Whether binary messages are delivered; otherwise they are closed with 1003.
    public var takesBinary: Bool = false
    /// Bytes queued for one connection. The frame that passes it still fits, the next one closes with 1013.
    public var pendingBytesMax: Int = 16 << 20
    /// Bytes queued for one connection above which nothing more is read from it until they are gone.
    public var pendingBytesPause: Int = 256 << 10
    /// Bytes queued for all connections together. Above it a connection that is behind by `pendingBytesPause` is closed
    /// with 1013 when more is sent to it.
    public var pendingBytesTotalMax: Int = 2 << 30
    /// Bytes of unfinished requests and messages of all connections together, which a stranger can fill before any
    /// token is shown. Above it a connection that holds more than its share (`gatheredBytesFree`) gets 503, or 1013.
    public var gatheredBytesTotalMax: Int = 512 << 20
    /// The same of one user's connections, and of all that are nobody's yet.
    public var gatheredBytesPerGroupMax: Int = 16 << 20
    /// Bytes of an unfinished request or message that every connection may hold, however much the others do.
    public var gatheredBytesFree: Int = 1 << 10
    /// Bytes queued for one user's connections together, as `pendingBytesTotalMax`.
    public var pendingBytesPerGroupMax: Int = 32 << 20
    /// Bytes queued for one connection above which it is closed when its user has too much queued.
    public var pendingBytesFree: Int = 4 << 10
    /// Nanoseconds of one turn for what one user's connections say, and as many for what they are told. All that are
    /// nobody's yet have a quarter of it: a turn also accepts and ends them.
    public var turnNanosecondsPerGroup: Int64 = 100_000
    /// The part of the time in percent that one user's connections, and all that are nobody's yet, have of the loop
    /// while others want it; 100: all.
    public var percentPerGroup: Int = 25
    /// Bounds of the HTTP parser.
    public var http: HTTPLimits = .init()

    /// For how long browsers that came over TLS are told to come over TLS only; 0: they are not told.
    public var hstsSeconds: Int64 = 0

    /// Bytes a second that a body, a message or the reading of a response has to keep to on average; 0: any.
    public var paceBytesPerSecond: Int = 1 << 10
    /// Whose word about their clients' addresses is taken.
    public var trustedProxies: TrustedProxies = .init()
    /// Whether connections of trusted proxies begin with the PROXY protocol.
    public var takesPrefaces: Bool = false

    /// From accept, or from the first byte of a later request, to the end of its head; and the patience with its body.
    public var requestTimeout: Duration = .seconds(10)
    /// Between two requests of one connection.
    public var keepAliveTimeout: Duration = .seconds(60)
    /// Without a byte read from or taken by a WebSocket peer. Clients send `h:` after 20 s (wire contract, section 5).
    public var idleTimeout: Duration = .seconds(60)
    /// From our close frame to the peer's.
    public var closeTimeout: Duration = .seconds(5)
    /// From our last byte to the peer's end of the connection; a close before that could destroy what we sent.
    public var lingerTimeout: Duration = .seconds(2)

    public init() {}

    /// The same with what an operator has set.
    public init(_ config: ServerConfig) {
        connectionsMax = config.limits.connectionsMax
        messageBytesMax = config.limits.frameBytesMax
        http.bodyBytesMax = config.limits.frameBytesMax
        pendingBytesMax = config.limits.pendingBytesPerConnectionMax
        pendingBytesTotalMax = config.limits.pendingBytesTotalMax
        gatheredBytesTotalMax = config.limits.gatheredBytesTotalMax
        pendingBytesPerGroupMax = config.limits.pendingBytesPerUserMax
        gatheredBytesPerGroupMax = config.limits.gatheredBytesPerUserMax
        turnNanosecondsPerGroup = Int64(config.limits.turnMicrosecondsPerUser) * 1_000
        percentPerGroup = config.limits.threadPercentPerUser
        idleTimeout = config.idleTimeout
        requestTimeout = config.requestTimeout
        paceBytesPerSecond = config.paceBytesPerSecond
        trustedProxies = config.trustedProxies
        takesPrefaces = config.proxyProtocol
        hstsSeconds = config.hsts.components.seconds
    }
}

extension ServerConfig {
    /// `trustProxy`, read. The setting was checked when it was set.
    var trustedProxies: TrustedProxies { (try? TrustedProxies.parse(self.trustProxy).get()) ?? .init() }
}

/// Why the network could not be set up.
public enum NetError: Error, Equatable, CustomStringConvertible {
    /// An address that cannot be listened on, and why.
    case listen(address: String, reason: String)
    /// The kernel refused a descriptor the loop cannot do without.
    case setup(call: String, reason: String)
    /// Certificate or key cannot be used.
    case tls(TLSError)

    public var description: String {
        switch self {
        case .listen(let address, let reason): "cannot listen on \(address): \(reason)"
        case .tls(let error): error.description
        case .setup(let call, let reason): "\(call) failed: \(reason)"
        }
    }
}
