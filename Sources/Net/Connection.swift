import ThicketProtocol

/// One accepted socket. Belongs to the loop's thread. Small, because most connections only wait.
final class Connection {
    enum Phase: UInt8 {
        /// Requests are read.
        case http
        /// A WebSocket.
        case open
        /// Our close frame is queued or sent, the peer's is awaited; its messages are dropped.
        case closing
        /// Queued bytes are sent, then our direction is shut; input is discarded until the peer ends too.
        case draining
        /// The descriptor is closed.
        case dead
    }

    let id: ConnectionID
    let listener: Listener
    var tenant: LoopTenant
    var phase = Phase.http

    /// The delegate accepts no more messages for now.
    var isPaused = false
    /// Too much is queued to read on.
    var isThrottled = false
    /// The socket accepts no more; epoll reports when it does.
    var isBlocked = false
    /// In the loop's list of connections with something to write.
    var isDirty = false
    /// In the loop's list of connections whose waiting input can be handled.
    var isResuming = false
    /// Its tenant's queue, while it waits in it: it is not read until its turn.
    var row: ReadyQueue?
    /// Its place in `row`.
    var place = 0
    /// In its tenant's list of connections to write to after the throttle.
    var isTenantThrottled = false
    /// In the loop's list of broken connections to end.
    var isBroken = false
    /// The peer sends no more.
    var sawEnd = false
    /// The peer accepts nothing more: a WebSocket that is read to its end and no longer written to.
    var isGone = false
    /// Our direction is shut.
    var isShut = false
    /// The interest last registered with epoll.
    var watchesReads = true
    var watchesWrites = false
    var watchesOnce = false

    var outbox = Outbox()
    var reader: WebSocketReader
    /// Of a connection that speaks TLS, from its first byte on.
    var tls: TLSStream?
    /// Set where proxies are trusted.
    var names: PeerNames?
    /// Set until everything that precedes the first request has arrived.
    var greeting: Greeting?
    /// Set until the connection becomes a WebSocket.
    var exchange: HTTPExchange?
    /// Bytes of its unfinished message, as counted in the loop's sum.
    var gathered = 0
    /// Input that was read and may not be handled yet.
    var backlog = [UInt8]()

    init(id: ConnectionID, listener: Listener, tenant: LoopTenant, settings: NetSettings) {
        self.id = id
        self.tenant = tenant
        self.listener = listener
        reader = WebSocketReader(
            role: .server, messageBytesMax: settings.messageBytesMax, acceptsBinary: settings.acceptsBinary)
        exchange = HTTPExchange(limits: settings.http)
    }

    /// Whether it waits for its turn to be read.
    var isQueued: Bool { row != nil }

    /// Whether it waits for an answer that is not needed once the peer is gone.
    var isWatched: Bool { phase == .http && exchange?.isWatched == true }

    /// Whether input was read from the socket and not handled yet; epoll does not report it.
    var hasUnread: Bool { !backlog.isEmpty || tls?.hasMore == true }

    /// Whether it has something to write, now or once the delegate has supplied it.
    var hasOutput: Bool { !outbox.isEmpty || exchange?.download?.isAsking == false }

    /// Whether input may be passed to the delegate now.
    var mayConsume: Bool {
        switch phase {
        case .http: !isThrottled && exchange?.mayConsume != false
        case .open: !isThrottled && !isPaused
        case .closing, .draining: true
        case .dead: false
        }
    }
}

/// The HTTP side of a connection.
final class HTTPExchange {
    var requests: HTTPRequestReader
    /// The request whose answer comes later.
    var awaited: HTTPRequest?
    /// Whether the end of the peer is watched for during the wait.
    var isWatched = false
    /// Set while an answer has begun and not ended.
    var stream: HTTPStream?
    /// The request whose body is passed to the delegate in pieces, until the last piece.
    var incoming: HTTPRequest?
    /// The delegate accepts no more of that body for now.
    var isHeld = false
    /// Set while an answer is sent whose body the delegate supplies in pieces.
    var download: HTTPDownload?

    /// Whether the peer's bytes may be passed on.
    var mayConsume: Bool { awaited == nil && !isHeld }

    init(limits: HTTPLimits) { requests = HTTPRequestReader(limits: limits) }
}

/// How to write a response whose length is not known in advance.
struct HTTPStream {
    /// In chunks (HTTP/1.1); otherwise the end of the connection ends the body.
    let isChunked: Bool
}
