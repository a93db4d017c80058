import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// The loop's state of all connections, channels and live buckets: a state machine without I/O, clock or threads.
///
/// Events are method calls, with the time where it matters; the resulting actions are taken from `takeActions()`
/// and performed in order. Belongs to the loop's thread (or to a simulation's).
///
/// Invariants:
/// - A channel gets changes from its first `cv` or `i` on, each once, in the order of the log; its own changes come
///   in that order too and are their acknowledgement. A channel that has not asked yet, or was answered `cv:?`,
///   gets its own changes only; the former gets all changes since its admission after a second, or with a change.
/// - Reads go up to the feed's `published`; broadcasts begin above it.
/// - Everything that has been sent is on disk.
public final class Hub {
    /// The bounds in force.
    public private(set) var limits: ServerLimits
    let codec: ChangeVersionCodec
    let metrics: Metrics
    let tailGauge: Gauge

    private var sessionTable = SessionTable()
    /// Connections open now, requests of the data API excluded.
    public private(set) var connectionCount = 0
    var feeds = [BucketID: BucketFeed]()
    var tenants = [Tenant.Name: Tenant]()
    var tenantsByID = [TenantID: Tenant]()
    var lastTenantID: TenantID = 0
    var recentlyDisconnected = RecentlyDisconnected()
    var actions = [HubAction]()
    private var performed = [HubAction]()
    var nextGeneration: UInt64 = 1

    var slowed = [ConnectionID]()
    var scanningChannels = [Channel]()
    /// Channels that have asked for nothing yet, the oldest first, each for a second. Their number is bounded by
    /// the `init` messages and new tokens that `messages-per-second` admits for each connection in that time.
    var silent = [SilentChannel]()
    var heldByReads = [ConnectionID]()
    var heldByQueue = [ConnectionID]()
    var readsOutstanding = 0
    var inFlight = InFlight()
    /// Bytes of large changes that readers are parsing.
    var bytesBeingRead = 0
    var tailBytes = 0
    var asks = [Ask]()
    var signedOut = SignedOut()
    /// The keys by which copies into other trees are verified; nil: such copies are refused.
    public var keyDirectory: (any KeyDirectory)?
    /// Whether tokens that look like a partner's are checked (`HubAction.admit`).
    public var knowsPartners = false
    /// Channels open by tokens of partners, by user and `Channel.generation`.
    var partnerChannels = [UserID: [UInt64: Channel]]()
    var ends = TokenEnds()
    /// Channels whose token ended during this event.
    var ended = [Channel]()
    /// Connections that were closed during this event, and requests that were answered.
    var leaving = [Session]()
    /// Requests of the data API in progress.
    var calls = 0
    /// Requests of administrators for all users' changes.
    var allCalls = [Session]()
    /// Requests that wait for changes, each with its deadline (nanoseconds).
    var waiting = [ConnectionID: Int64]()

    /// - Parameter codec: made from the store's identity.
    public init(limits: ServerLimits, codec: ChangeVersionCodec, metrics: Metrics) {
        self.limits = limits
        self.codec = codec
        self.metrics = metrics
        tailGauge = metrics.cacheBytes.gauge(.tails)
    }

    /// Sets other bounds from now on, for open connections too.
    public func use(_ limits: ServerLimits) {
        self.limits = limits
        sessionTable.all.forEach { $0.use(limits) }
    }

    deinit {
        // A connection and its channels reference each other.
        sessionTable.all.forEach { $0.channels = [] }
    }

    /// Passes the pending actions to `perform`, in order. Must be called after each event and before the next.
    ///
    /// Two buffers alternate, so that a busy loop does not allocate here. `perform` must not call the hub.
    public func drainActions(_ perform: (HubAction) -> Void) {
        guard !actions.isEmpty else { return }
        swap(&actions, &performed)
        for action in performed { perform(action) }
        performed.removeAll(keepingCapacity: performed.count < Self.actionsKept)
    }

    /// The pending actions as an array, for simulations and tests.
    public func takeActions() -> [HubAction] {
        defer { actions = [] }
        return actions
    }

    /// Actions whose memory is kept for the next turn.
    private static let actionsKept = 65_536

    /// Milliseconds until `tick` should be called; nil while it has nothing to do.
    public var tickMilliseconds: Int? {
        if !slowed.isEmpty { return 50 }
        if !silent.isEmpty { return 250 }
        let isIdle = scanningChannels.isEmpty && asks.isEmpty && ends.isEmpty && waiting.isEmpty
        return isIdle ? nil : 1_000
    }

    /// Reads that await their answer.
    public var readCount: Int { readsOutstanding }
    /// Changes that await their outcome.
    public var changeCount: Int { inFlight.count }

    /// Whether a change or a read of any other tenant is in progress.
    func othersWait(than tenant: TenantID) -> Bool {
        let tenant = tenantsByID[tenant]
        return inFlight.count > tenant?.changes ?? 0 || readsOutstanding > tenant?.reads ?? 0
    }

    // MARK: Connections

    /// A WebSocket was opened, or a session that is not tied to a socket (its slot is below 0).
    /// - Parameter app: the app as written in the path.
    public func opened(_ id: ConnectionID, app: String) {
        insert(Session(id: id, app: try? AppID(app), limits: limits))
        connectionCount += 1
    }

    func insert(_ session: Session) {
        if let old = sessionTable[session.id.slot] { closed(old.id) }
        sessionTable[session.id.slot] = session
        if session.exchange != nil { calls += 1 }
    }

    /// A connection has closed, for whatever reason; or the connection of a request that waited for changes has.
    public func closed(_ id: ConnectionID) {
        guard let session = session(id) else { return }
        sessionTable[id.slot] = nil
        if session.exchange == nil { connectionCount -= 1 } else { calls -= 1 }
        session.isClosing = true
        empty(session)
    }

    /// Closes all connections because the server stops.
    public func closeAll() {
        sessionTable.all.forEach { close($0, .goingAway, "the server stops") }
        emptyLeaving()
    }

    /// The session with this id; nil when it is closed, even if its slot is used again.
    func session(_ id: ConnectionID) -> Session? {
        guard let session = sessionTable[id.slot], session.id == id else { return nil }
        return session
    }

    var sessions: [Session] { sessionTable.all }

    // MARK: Messages

    /// A text message came. Bad input is answered and never ends the connection.
    public func received(_ id: ConnectionID, _ text: UnsafeRawBufferPointer, now: HubInstant) {
        received(id, [UInt8](text), now: now)
    }

    /// The same for a message in an array.
    public func received(_ id: ConnectionID, _ text: [UInt8], now: HubInstant) {
        defer { emptyLeaving() }
        expireDue(now)
        guard let session = session(id), !session.isClosing else { return }
        let isRefused = meter(&session.messages, of: session, limit: .messageRate, now: now)
        let message: UnparsedMessage
        do {
            message = try UnparsedMessage(parsing: text[...])
        } catch {
            metrics.messagesReceived.add(1, .unknown)
            // The channel is unknown; clients log a `?` wherever it comes.
            return send(Reply.notUnderstood(0), to: session)
        }
        switch message {
        case .heartbeat(let count):
            metrics.messagesReceived.add(1, .heartbeat)
            send(Reply.heartbeat(count < .max ? count + 1 : 1), to: session)
        case .log(let json):
            metrics.messagesReceived.add(1, .remoteLog)
            report(json, from: session)
        case .channel(let number, let request):
            metrics.messagesReceived.add(1, request.command.label)
            guard !isRefused else { return refuse(request, on: number, of: session, bytes: text.count) }
            if request.command == .initialize, case .initialize(let request) = request.read() {
                initialize(number, of: session, with: request, now: now)
            } else {
                dispatch(request, on: number, of: session, bytes: text.count, now: now)
            }
        }
    }

    /// Runs a command on its channel, or keeps it while the channel's `init` is in progress.
    private func dispatch(
        _ request: UnreadRequest, on number: ChannelNumber, of session: Session, bytes: Int, now: HubInstant
    ) {
        guard let channel = session.channel(number) else {
            return send(Reply.notUnderstood(number), to: session)
        }
        guard channel.isReady else {
            if !channel.awaitsAnswer || !channel.keep(request, bytes: bytes) {
                send(Reply.notUnderstood(number), to: session)
            }
            return
        }
        run(request, on: channel, bytes: bytes, now: now)
    }

    /// Runs a command of an authorized channel. Its argument is parsed only here, and not at all if it was not
    /// asked for.
    func run(_ request: UnreadRequest, on channel: Channel, bytes: Int, now: HubInstant) {
        guard !channel.isReading else {
            if !channel.keep(request, bytes: bytes) { send(Reply.notUnderstood(channel.number), to: channel.session) }
            return
        }
        guard request.command != .indexState || awaitsState(of: channel) else { return }
        guard !readElsewhere(request, on: channel, bytes: bytes) else { return }
        if request.command == .change {
            switch request.readChanges() {
            case .one(let change): submit(change, on: channel, bytes: bytes, now: now)
            case .many(let changes): submit(changes, on: channel, bytes: bytes, now: now)
            }
            return
        }
        switch request.read() {
        case .change(let change): submit(change, on: channel, bytes: bytes, now: now)
        case .changes(let changes): submit(changes, on: channel, bytes: bytes, now: now)
        case .changesSince(let text): changesSince(text, on: channel, now: now)
        case .entity(let key, let version): entity(key, version, on: channel, now: now)
        case .index(let index): self.index(index, on: channel, now: now)
        case .unreadableEntity(let argument):
            send(Reply.noEntity(channel.number, argument), to: channel.session)
        case .removed(let request): removed(request, on: channel)
        case .indexState(let state): report(state, from: channel)
        case .initialize, .unknown: send(Reply.notUnderstood(channel.number), to: channel.session)
        }
    }

    // MARK: Time

    /// Ends waits whose time is over.
    public func tick(_ now: HubInstant) {
        expireDue(now)
        resumeSlowed(now)
        releaseScanningChannels(now)
        releaseSilent(now)
        releaseWaiting(now)
        expireAsks(now)
        emptyLeaving()
    }

    // MARK: Actions

    func send(_ frame: SharedFrame, to session: Session) {
        // The answer of a request takes another path.
        guard !session.isClosing, session.exchange == nil else { return }
        actions.append(.send(session.id, frame))
    }

    private func empty(_ session: Session) {
        endWaiting(session)
        if session.exchange?.all != nil { allCalls.removeAll { $0 === session } }
        for channel in session.channels { leave(channel) }
        session.channels = []
        let dropped = session.dropWaitingReads()
        readsOutstanding -= dropped
        session.tenant?.reads -= dropped
        part(session)
    }

    /// Closes a connection. Nothing more is read for it or sent to it. Its channels leave at the end of the event,
    /// because the caller may be iterating over the channels of a bucket.
    func close(_ session: Session, _ code: WebSocketCloseCode, _ reason: String) {
        guard !session.isClosing else { return }
        guard session.exchange == nil else { return answer(session, RESTAnswer.busy("The server is busy: \(reason).")) }
        session.isClosing = true
        leaving.append(session)
        actions.append(.close(session.id, code, reason: reason))
    }

    /// Must end every event that may have closed a connection.
    func emptyLeaving() {
        guard !leaving.isEmpty else { return }
        let sessions = leaving
        leaving = []
        for session in sessions {
            empty(session)
            // The HTTP connection stays open for the next request.
            guard session.exchange != nil, sessionTable[session.id.slot] === session else { continue }
            sessionTable[session.id.slot] = nil
            calls -= 1
        }
    }
}

extension ConnectionID {
    /// Both numbers in one, for messages to the shard.
    var packed: UInt64 { UInt64(UInt32(bitPattern: slot)) << 32 | UInt64(serial) }

    init(packed: UInt64) {
        self.init(slot: Int32(truncatingIfNeeded: packed >> 32), serial: UInt32(truncatingIfNeeded: packed))
    }
}

extension UnreadRequest.Command {
    /// The label under which the message is counted.
    var label: Metrics.Command {
        switch self {
        case .initialize: .initialize
        case .index: .index
        case .entity: .entity
        case .changesSince: .changesSince
        case .change: .change
        case .indexState: .remoteIndex
        case .removed: .removed
        case .unknown: .unknown
        }
    }
}
