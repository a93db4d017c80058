import ThicketNet
import ThicketProtocol

extension NetSettings {
    /// Takes the defaults and the operator's settings.
    public init(_ config: ServerConfig) {
        self.init()
        connectionsMax = config.limits.connectionsMax
        // Each may have a file open.
        descriptorsReserved += config.limits.blobTransfersMax
        messageBytesMax = config.limits.frameBytesMax
        http.bodyBytesMax = config.limits.frameBytesMax
        pendingBytesMax = config.limits.pendingBytesPerConnectionMax
        pendingBytesTotalMax = config.limits.pendingBytesTotalMax
        gatheredBytesTotalMax = config.limits.gatheredBytesTotalMax
        pendingBytesPerTenantMax = config.limits.pendingBytesPerUserMax
        gatheredBytesPerTenantMax = config.limits.gatheredBytesPerUserMax
        turnNanosecondsPerTenant = Int64(config.limits.turnMicrosecondsPerUser) * 1_000
        percentPerTenant = config.limits.threadPercentPerUser
        idleTimeout = config.idleTimeout
        requestTimeout = config.requestTimeout
        paceBytesPerSecond = config.paceBytesPerSecond
        trustedProxies = config.trustedProxies
        acceptsPrefaces = config.proxyProtocol
        hstsSeconds = config.hsts.components.seconds
    }
}

extension ServerConfig {
    /// The parsed `trustProxy` setting, which was validated when it was set.
    var trustedProxies: TrustedProxies { (try? TrustedProxies.parse(self.trustProxy).get()) ?? .init() }
}
