import ThicketProtocol

/// Settings of the event loop. Durations are measured by the monotonic clock.
public struct NetSettings: Sendable {
    /// Connections of all kinds; a further one is answered 503 and closed. The limit on open files applies too.
    public var connectionsMax: Int = 100_000
    /// Connections that the kernel queues between two accepts.
    public var backlog: Int32 = 4_096
    /// File descriptors never used for connections: database, logs, readers, the loop's own.
    public var descriptorsReserved: Int = 64
    /// Nanoseconds of one turn for accepting connections, so that a storm of new ones does not starve the existing
    /// ones.
    public var acceptNanosecondsPerTurn: Int64 = 20_000
    /// Nanoseconds of one turn for ending expired connections, and the same again for those whose peers are gone.
    public var endNanosecondsPerTurn: Int64 = 25_000

    /// Bytes of one WebSocket message; a larger one is closed with 1009.
    public var messageBytesMax: Int = 8 << 20
    /// Whether binary messages are delivered; otherwise they are closed with 1003.
    public var acceptsBinary = false
    /// Bytes queued for one connection. The frame that exceeds the bound is still queued, the next one closes with
    /// 1013.
    public var pendingBytesMax: Int = 16 << 20
    /// Bytes queued for one connection above which it is not read until they are sent.
    public var pendingBytesPause: Int = 256 << 10
    /// Bytes queued for all connections together. Above it, sending to a connection that is behind by
    /// `pendingBytesPause` closes that connection with 1013.
    public var pendingBytesTotalMax: Int = 2 << 30
    /// Bytes of unfinished requests and messages of all connections together, which can be filled without
    /// authentication. Above it a connection that holds more than its share (`gatheredBytesFree`) gets 503 or 1013.
    public var gatheredBytesTotalMax: Int = 512 << 20
    /// The same bound for one user's connections, and for all unauthenticated connections together.
    public var gatheredBytesPerTenantMax: Int = 16 << 20
    /// Bytes of an unfinished request or message that every connection may hold, however much the others hold.
    public var gatheredBytesFree: Int = 1 << 10
    /// Bytes queued for one user's connections together. Above it, sending to one above `pendingBytesFree` closes it.
    public var pendingBytesPerTenantMax: Int = 32 << 20
    /// Bytes queued for one connection above which it is closed when its user has too much queued.
    public var pendingBytesFree: Int = 4 << 10
    /// Nanoseconds of one turn for the input of one user's connections, and the same again for their output. All
    /// unauthenticated connections together have a quarter of it, because a turn also accepts and ends them.
    public var turnNanosecondsPerTenant: Int64 = 100_000
    /// Percent of the loop's time for one user's connections, and for all unauthenticated ones, while other users want
    /// the loop; 100 disables the bound.
    public var percentPerTenant: Int = 25
    /// Bounds of the HTTP parser.
    public var http = HTTPLimits()

    /// How long browsers that connected over TLS must use TLS only (HSTS), in seconds; 0 sends no such header.
    public var hstsSeconds: Int64 = 0

    /// Lowest average rate in bytes per second for sending a body or message, or reading a response; 0 accepts any.
    public var paceBytesPerSecond: Int = 1 << 10
    /// Proxies whose statements about client addresses are accepted.
    public var trustedProxies = TrustedProxies()
    /// Whether connections of trusted proxies begin with the PROXY protocol.
    public var acceptsPrefaces = false

    /// From accept, or from the first byte of a later request, to the end of its head; also the patience for its body.
    public var requestTimeout: Duration = .seconds(10)
    /// Between two requests of one connection.
    public var keepAliveTimeout: Duration = .seconds(60)
    /// Longest time without a byte read from, or accepted by, a WebSocket peer. Clients send `h:` after 20 s (wire
    /// contract, section 5).
    public var idleTimeout: Duration = .seconds(60)
    /// From our close frame to the peer's.
    public var closeTimeout: Duration = .seconds(5)
    /// From our last byte to the peer's end of the connection; an earlier close could destroy what we sent.
    public var lingerTimeout: Duration = .seconds(2)

    /// Creates settings with their defaults.
    public init() {}
}
