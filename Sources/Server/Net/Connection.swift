import ThicketProtocol

/// One accepted socket. Belongs to the loop's thread; small, because most of them only wait.
final class Connection {
    enum Phase: UInt8 {
        /// Requests are read.
        case http
        /// A WebSocket.
        case open
        /// Our close frame is queued or out, the peer's is awaited; its messages are dropped.
        case closing
        /// What is queued goes out, then our end is shut; whatever comes in is thrown away until the peer ends too.
        case draining
        /// The descriptor is closed.
        case dead
    }

    let id: ConnectionID
    let listener: Listener
    var group: LoopGroup
    var phase = Phase.http

    /// The delegate wants no more messages for now.
    var isPaused = false
    /// Too much is queued to read on.
    var isThrottled = false
    /// The socket takes no more; epoll tells when it does.
    var isBlocked = false
    /// In the loop's list of connections with something to write.
    var isDirty = false
    /// In the loop's list of connections to read on with.
    var isResuming = false
    /// Its group's, while it stands there: it is not listened to until it is its turn.
    var row: ConnectionRow?
    /// Its place there.
    var place = 0
    /// In its group's list of those that are written to when the group has rested.
    var isResting = false
    /// In the loop's list of those that are to be ended.
    var isBroken = false
    /// The peer sends no more.
    var sawEnd = false
    /// The peer takes nothing more: a WebSocket that is heard to its end and written to no more.
    var isGone = false
    /// Our direction is shut.
    var isShut = false
    /// What epoll was last told.
    var watchesReads = true
    var watchesWrites = false
    var watchesOnce = false

    var outbox = Outbox()
    var reader: WebSocketReader
    /// Of a connection that speaks TLS, from its first byte on.
    var tls: TLSStream?
    /// Where proxies are trusted.
    var names: PeerNames?
    /// Present until what comes before the first request has come.
    var greeting: Greeting?
    /// Present until the connection becomes a WebSocket.
    var exchange: HTTPExchange?
    /// Bytes of its unfinished message, as counted into the loop's sum.
    var gathered = 0
    /// Input that was read and may not be handled yet.
    var backlog = [UInt8]()

    init(id: ConnectionID, listener: Listener, group: LoopGroup, settings: NetSettings) {
        self.id = id
        self.group = group
        self.listener = listener
        reader = WebSocketReader(
            role: .server, messageBytesMax: settings.messageBytesMax, takesBinary: settings.takesBinary)
        exchange = HTTPExchange(limits: settings.http)
    }

    /// Whether it waits for its turn to be read.
    var isQueued: Bool { row != nil }

    /// Whether a request waits for its answer that nobody needs when the peer is gone.
    var isWatched: Bool { phase == .http && exchange?.isWatched == true }

    /// Whether there is input that epoll does not know of: read from the socket, and not handled yet.
    var hasUnread: Bool { !backlog.isEmpty || tls?.hasMore == true }

    /// Whether input may be handed to the delegate now.
    var mayConsume: Bool {
        switch phase {
        case .http: !isThrottled && exchange?.awaited == nil
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
    /// The peer's end is watched for while it waits.
    var isWatched = false
    /// The answer has begun and has no end yet.
    var stream: HTTPStream?

    init(limits: HTTPLimits) { requests = HTTPRequestReader(limits: limits) }
}

/// How the rest of a response is written whose length nobody knows.
struct HTTPStream {
    /// In chunks (HTTP/1.1); otherwise the end of the connection is the end of the body.
    let isChunked: Bool
}
