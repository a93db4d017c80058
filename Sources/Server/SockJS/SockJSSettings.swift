import ThicketProtocol

/// What an operator chose for SockJS.
struct SockJSSettings: Sendable, Equatable {
    var rules: SockJSRules = .init()
    /// Sessions without a socket of their own; one more is answered 503.
    var sessionsMax: Int = 20_000
    /// Bytes that wait for all sessions together, and for one user's. Above it sessions that are behind are closed.
    var queueBytesTotalMax: Int = 512 << 20
    var queueBytesPerUserMax: Int = 32 << 20
    /// Bytes that every session may have waiting, however much the others have.
    var queueBytesFree: Int = 4 << 10
    /// Whether sessions may be WebSockets.
    var takesWebSockets: Bool = true
    /// Whether answers bear a cookie for load balancers.
    var setsCookie: Bool = false
    /// Address of the client library for the iframe page; nil: no such page.
    var script: String?

    init() {}

    init(_ config: ServerConfig) {
        rules.heartbeat = config.sockJSHeartbeat.nanoseconds
        rules.patience = config.sockJSPatience.nanoseconds
        rules.responseBytesMax = config.limits.sockJSResponseBytes
        rules.queueBytesMax = config.limits.pendingBytesPerConnectionMax
        sessionsMax = config.limits.sockJSSessionsMax
        queueBytesPerUserMax = config.limits.pendingBytesPerUserMax
        takesWebSockets = config.sockJSWebSocket
        setsCookie = config.sockJSCookie
        script = Self.address(config.sockJSScript)
    }

    /// Only what cannot end the attribute it stands in.
    private static func address(_ text: String) -> String? {
        guard text.hasPrefix("/") || text.hasPrefix("https://") || text.hasPrefix("http://") else { return nil }
        let isClean: Bool = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"'<>&".utf8.contains($0) }
        return isClean ? text : nil
    }
}
