import ThicketProtocol

/// What an operator chose for SockJS.
struct SockJSSettings: Sendable, Equatable {
    var rules = SockJSRules()
    /// Sessions without a socket of their own; one more is answered 503.
    var sessionsMax = 20_000
    /// Bytes that wait for all sessions together, and for one user's. Above it sessions that are behind are closed.
    var queueBytesTotalMax = 512 << 20
    var queueBytesPerUserMax = 32 << 20
    /// Bytes that every session may have waiting, however much the others have.
    var queueBytesFree = 4 << 10
    /// Whether sessions may be WebSockets.
    var takesWebSockets = true
    /// Whether answers bear a cookie for load balancers.
    var setsCookie = false
    /// The client library for the iframe page.
    var library = SockJSLibrary.none

    init() {}

    /// - Parameter read: gives a file of at most so many bytes.
    init(_ config: ServerConfig, read: (_ path: String, _ bytesMax: Int) -> [UInt8]? = FileText.readBytes) {
        rules.heartbeat = config.sockJSHeartbeat.nanoseconds
        rules.patience = config.sockJSPatience.nanoseconds
        rules.responseBytesMax = config.limits.sockJSResponseBytes
        rules.queueBytesMax = config.limits.pendingBytesPerConnectionMax
        sessionsMax = config.limits.sockJSSessionsMax
        queueBytesTotalMax = config.limits.pendingBytesTotalMax / 4
        queueBytesPerUserMax = config.limits.pendingBytesPerUserMax
        takesWebSockets = config.sockJSWebSocket
        setsCookie = config.sockJSCookie
        library = SockJSLibrary(config.sockJSScript, read: read)
    }
}
