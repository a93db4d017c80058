import ThicketPlatform
import ThicketProtocol

/// The operator's settings for SockJS.
struct SockJSSettings: Sendable, Equatable {
    var rules = SockJSRules()
    /// Sessions without a socket of their own; a further one is answered 503.
    var sessionsMax = 20_000
    /// Queued bytes of all sessions together, and of one user's. Above it sessions that are behind are closed.
    var queueBytesTotalMax = 512 << 20
    var queueBytesPerUserMax = 32 << 20
    /// Bytes that every session may have queued, however much the others have.
    var queueBytesFree = 4 << 10
    /// Whether sessions may be WebSockets.
    var acceptsWebSockets = true
    /// Whether answers carry a cookie for load balancers.
    var setsCookie = false
    /// The client library for the iframe page.
    var library = SockJSLibrary.none

    init() {}

    /// - Parameter read: returns a file of at most the given number of bytes.
    init(_ config: ServerConfig, read: (_ path: String, _ bytesMax: Int) -> [UInt8]? = FileText.readBytes) {
        rules.heartbeat = config.sockJSHeartbeat.nanoseconds
        rules.patience = config.sockJSPatience.nanoseconds
        rules.responseBytesMax = config.limits.sockJSResponseBytes
        rules.queueBytesMax = config.limits.pendingBytesPerConnectionMax
        sessionsMax = config.limits.sockJSSessionsMax
        queueBytesTotalMax = config.limits.pendingBytesTotalMax / 4
        queueBytesPerUserMax = config.limits.pendingBytesPerUserMax
        acceptsWebSockets = config.sockJSWebSocket
        setsCookie = config.sockJSCookie
        library = SockJSLibrary(config.sockJSScript, read: read)
    }
}
