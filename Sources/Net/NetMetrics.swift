import ThicketPlatform
import ThicketProtocol

/// Everything that a loop counts. One instance belongs to one loop; any thread may read it.
public final class NetMetrics: Sendable {
    /// Called for each limit that was reached, on the loop's thread.
    let limitHit: @Sendable (NetLimit) -> Void

    /// All metrics, at 0.
    /// - Parameter limitHit: called for each limit that was reached, on the loop's thread.
    public init(limitHit: @escaping @Sendable (NetLimit) -> Void = { _ in }) { self.limitHit = limitHit }

    /// Connections open now.
    public let connections = Gauge("thicket_connections", "Connections open now.")
    /// Connections accepted.
    public let connectionsAccepted = Counter(
        "thicket_connections_accepted_total", "Connections accepted.")
    /// Connections closed at once: no file descriptor was free, or the limit was reached.
    public let connectionsRefused = Counter(
        "thicket_connections_refused_total", "Connections closed at once: no free descriptor, or over the limit.")
    /// Connections closed, by reason.
    public let connectionsClosed = CounterFamily<CloseReason>(
        "thicket_connections_closed_total", by: "reason", "Connections closed, by reason.")
    /// WebSockets open now.
    public let webSockets = Gauge("thicket_websockets", "WebSocket connections open now.")
    /// Bytes read from sockets.
    public let receivedBytes = Counter("thicket_received_bytes_total", "Bytes read from sockets.")
    /// Bytes written to sockets.
    public let sentBytes = Counter("thicket_sent_bytes_total", "Bytes written to sockets.")
    /// Write calls on sockets.
    public let socketWrites = Counter(
        "thicket_socket_writes_total", "Write calls on sockets; one carries everything a turn has for a connection.")
    /// Bytes queued for slow readers.
    public let outboxBytes = Gauge("thicket_outbox_bytes", "Bytes queued for slow readers.")
    /// Slow readers whose queue exceeded its bound.
    public let outboxOverflows = Counter(
        "thicket_outbox_overflows_total", "Slow readers whose queue exceeded its bound.")
    /// Responses of unbounded length in progress.
    public let httpStreams = Gauge(
        "thicket_http_streams", "HTTP responses of unbounded length in progress.")
    /// HTTP requests refused before routing, by status.
    public let httpErrors = CounterFamily<HTTPFault>(
        "thicket_http_errors_total", by: "code", "HTTP requests refused before they reached a route.")
    /// WebSockets that the server ended, by close code.
    public let webSocketErrors = CounterFamily<CloseCode>(
        "thicket_websocket_errors_total", by: "code", "WebSocket connections that the server failed, by close code.")
    /// Time of one turn of the loop, without waiting.
    public let loopSeconds: Histogram = .seconds(
        "thicket_loop_turn_seconds", "Time of one turn of the network loop, without waiting.")
    /// TLS handshakes, by outcome.
    public let tlsHandshakes = CounterFamily<Handshake>(
        "thicket_tls_handshakes_total", by: "result", "TLS handshakes, by outcome.")
    /// Reloads of certificate and key, by outcome.
    public let tlsReloads = CounterFamily<Reload>(
        "thicket_tls_reloads_total", by: "result", "Times certificate and key were read again, by outcome.")
    /// End of the certificate, seconds since 1970; 0 without TLS.
    public let tlsCertificateEnd = Gauge(
        "thicket_tls_certificate_end_seconds",
        "When the certificate in use ends, in seconds since 1970; 0 without TLS.")
    /// PROXY headers, by outcome.
    public let proxyPrefaces = CounterFamily<Preface>(
        "thicket_proxy_prefaces_total", by: "result",
        "Connections of proxies that must begin with the PROXY protocol, by outcome.")

    /// All instruments, in the order of declaration.
    public var instruments: [any Instrument] {
        Mirror(reflecting: self).children.compactMap { (child: Mirror.Child) in child.value as? any Instrument }
    }
}
