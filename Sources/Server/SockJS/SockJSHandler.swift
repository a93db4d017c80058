import ThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// The server as seen by SockJS sessions, which it treats like other connections.
protocol SockJSHost: AnyObject {
    /// A session begins.
    func sessionOpened(_ session: ConnectionID, app: String)
    /// The session's client sent a message.
    func sessionReceived(_ session: ConnectionID, _ text: [UInt8])
    /// The session is over. Never called from inside another call for it.
    func sessionClosed(_ session: ConnectionID)
    /// The session's tenant: `Hub.tenant(of:)`.
    func tenant(of session: ConnectionID) -> TenantID
}

/// Connects SockJS sessions with the sockets that serve them for a while. Belongs to the loop's thread.
///
/// For the hub a session is a connection whose id has a slot below 0, which no socket has. Output of the hub is queued
/// and leaves at the end of the turn if the session has a receiver. Messages are passed to the hub a few per turn, and
/// the request that brought them is answered when all are passed and the hub accepts more: a client that sends too fast
/// waits, like one whose socket is not read.
final class SockJSHandler {
    /// Messages of one session passed on in one turn.
    static let messagesPerTurn = 32
    /// Longest name of a JSONP callback, in bytes.
    static let callbackBytesMax = 128
    /// Number of deadline checks within the shortest wait of a session.
    static let looksPerWait: Int64 = 4
    static let lookMax: Int64 = 1_000_000_000

    unowned let loop: EventLoop
    unowned let host: any SockJSHost
    let metrics: Metrics
    let entropy: () -> UInt32
    private(set) var settings: SockJSSettings

    /// By place: slot -1 is place 0.
    var entries = [Entry?]()
    private var freePlaces = [Int]()
    private var lastSerial: UInt32 = 0
    private(set) var count = 0
    var byKey = [Key: Entry]()
    /// By the slot of the socket.
    private var bySocket = [Entry?]()

    var dirty = [Entry]()
    var pumping = [Entry]()
    private var ended = [ConnectionID]()
    /// Refused receivers' responses that are still to be written.
    var farewells = [(connection: ConnectionID, bytes: [UInt8])]()
    private var timer: TimerID?
    private(set) var isStopping = false

    private var queuedTotal = 0
    private var queuedByTenant = [TenantID: Int]()
    /// The newest message as a JSON string, and the frame it was made from: one change goes to many sessions.
    private var last: (frame: [UInt8], element: [UInt8]) = ([], [])

    init(
        loop: EventLoop, host: any SockJSHost, settings: SockJSSettings, metrics: Metrics,
        entropy: @escaping () -> UInt32
    ) {
        self.loop = loop
        self.host = host
        self.settings = settings
        self.metrics = metrics
        self.entropy = entropy
    }

    /// Applies settings to sessions that begin from now on.
    func use(_ settings: SockJSSettings) { self.settings = settings }

    // MARK: Lookup

    func entry(_ id: ConnectionID) -> Entry? {
        let place = -1 - Int(id.slot)
        guard place >= 0, place < entries.count, let entry = entries[place], entry.id == id else { return nil }
        return entry
    }

    /// The session that a socket currently serves.
    func entry(servedBy socket: ConnectionID) -> Entry? {
        let slot = Int(socket.slot)
        guard slot >= 0, slot < bySocket.count, let entry = bySocket[slot], entry.socket == socket else {
            return nil
        }
        return entry
    }

    /// The address of the session's first receiver.
    func address(of id: ConnectionID) -> String { entry(id)?.address ?? "" }

    // MARK: Sessions

    /// - Parameter key: nil for a session that is bound to one socket, which no other request refers to.
    func makeEntry(_ key: Key?, app: String, _ transport: SockJSTransport) -> Entry {
        lastSerial = lastSerial == .max ? 1 : lastSerial + 1
        let place = freePlaces.popLast() ?? entries.count
        if place == entries.count { entries.append(nil) }
        let id = ConnectionID(slot: Int32(-1 - place), serial: lastSerial)
        let entry = Entry(
            id: id, key: key, session: SockJSSession(rules: settings.rules, now: loop.now), transport: transport)
        entries[place] = entry
        count += 1
        if let key { byKey[key] = entry }
        metrics.sockJSSessions.add()
        if let label = Metrics.SockJSTransportLabel(rawValue: transport.rawValue) {
            metrics.sockJSOpened.add(1, label)
        }
        host.sessionOpened(id, app: app)
        watchClock()
        return entry
    }

    func serve(_ entry: Entry, by socket: ConnectionID, _ transport: SockJSTransport) {
        let slot = Int(socket.slot)
        while bySocket.count <= slot { bySocket.append(nil) }
        bySocket[slot] = entry
        (entry.socket, entry.transport) = (socket, transport)
        if entry.address.isEmpty { entry.address = loop.peerAddress(socket) }
        touch(entry)
    }

    private func part(_ entry: Entry) {
        guard let socket = entry.socket else { return }
        if self.entry(servedBy: socket) === entry { bySocket[Int(socket.slot)] = nil }
        (entry.socket, entry.answer) = (nil, nil)
    }

    private func forget(_ entry: Entry) {
        guard !entry.isForgotten else { return }
        entry.isForgotten = true
        part(entry)
        account(entry)
        let place = -1 - Int(entry.id.slot)
        entries[place] = nil
        freePlaces.append(place)
        count -= 1
        if let key = entry.key, byKey[key] === entry { byKey[key] = nil }
        metrics.sockJSSessions.subtract()
    }

    // MARK: From the loop

    /// A WebSocket on a session's path is open.
    /// - Returns: false when the path is not a SockJS path.
    func opened(_ socket: ConnectionID, _ request: HTTPRequest) -> Bool {
        guard let path = SockJSPath(request.path), case .session(_, .websocket) = path.place else {
            return false
        }
        let entry = makeEntry(nil, app: path.app, .websocket)
        _ = entry.session.attach(SockJSReceiver(.websocket), now: loop.now)
        serve(entry, by: socket, .websocket)
        return true
    }

    /// Handles a message of such a socket.
    /// - Returns: false when the socket does not serve a session.
    func received(_ socket: ConnectionID, _ text: UnsafeRawBufferPointer) -> Bool {
        guard let entry = entry(servedBy: socket) else { return false }
        do throws(SockJSPayload.Failure) {
            let messages = try SockJSPayload.messages(ofSocket: [UInt8](text))
            receive(messages, entry)
            if !entry.inbound.isEmpty { loop.pauseReading(socket) }
        } catch {
            // The protocol requires an end without a session frame before it.
            loop.close(socket, error == .tooMany ? .messageTooBig : .invalidPayload, reason: error.text)
        }
        return true
    }

    /// Handles the end of a socket, or of the peer of an unfinished answer.
    /// - Returns: false when it did not serve a session.
    func closed(_ socket: ConnectionID) -> Bool {
        guard let entry = entry(servedBy: socket) else { return false }
        part(entry)
        perform(entry.session.vanished(now: loop.now), entry)
        // A session that is bound to one socket ends with it.
        if entry.key == nil { forget(entry) }
        return true
    }

    // MARK: From the hub

    /// Queues a message.
    func send(_ id: ConnectionID, _ frame: SharedFrame) {
        guard let entry = entry(id) else { return }
        guard entry.session.enqueue(element(of: frame)) else {
            metrics.limitHits.add(1, .pendingBytes)
            return giveUp(entry)
        }
        touch(entry)
    }

    private func element(of frame: SharedFrame) -> [UInt8] {
        let isLast = frame.bytes.withUnsafeBufferPointer { (new: UnsafeBufferPointer<UInt8>) in
            last.frame.withUnsafeBufferPointer { $0.baseAddress == new.baseAddress && $0.count == new.count }
        }
        if !isLast { (last.frame, last.element) = (frame.bytes, SockJSText.element(frame.text)) }
        return last.element
    }

    func close(_ id: ConnectionID, _ code: WebSocketCloseCode, reason: String) {
        guard let entry = entry(id) else { return }
        close(entry, code, reason)
    }

    private func close(_ entry: Entry, _ code: WebSocketCloseCode, _ reason: String) {
        entry.closeCode = code
        perform(entry.session.close(code.rawValue, reason, now: loop.now), entry)
    }

    private func giveUp(_ entry: Entry) {
        metrics.net.outboxOverflows.add()
        close(entry, .tryAgainLater, "too slow")
    }

    func pause(_ id: ConnectionID) {
        guard let entry = entry(id) else { return }
        entry.isPaused = true
        if entry.transport == .websocket, let socket = entry.socket { loop.pauseReading(socket) }
    }

    func resume(_ id: ConnectionID) {
        guard let entry = entry(id) else { return }
        entry.isPaused = false
        pumpLater(entry)
    }

    /// Bytes queued for the session's client.
    func pendingBytes(_ id: ConnectionID) -> Int {
        guard let entry = entry(id) else { return 0 }
        return entry.session.queueBytes + (entry.socket.map(loop.pendingBytes) ?? 0)
    }

    /// Whether the session's user has more than half of its allowed bytes queued.
    func isCrowded(_ id: ConnectionID) -> Bool {
        guard let entry = entry(id) else { return false }
        return (queuedByTenant[entry.countedTenant] ?? 0) > settings.queueBytesPerUserMax / 2
            || (entry.socket.map(loop.isCrowded) ?? false)
    }

    // MARK: Turns

    /// Sends the turn's output to the receivers; called at the end of the turn.
    func flush() {
        for (connection, bytes) in farewells {
            loop.write(connection, chunk: bytes)
            loop.finish(connection, closes: isStopping)
        }
        farewells = []
        while !dirty.isEmpty {
            let batch = dirty
            dirty = []
            for entry in batch {
                entry.isDirty = false
                perform(entry.session.flush(now: loop.now), entry)
                account(entry)
            }
        }
        (last.frame, last.element) = ([], [])
        while !ended.isEmpty {
            let batch = ended
            ended = []
            for id in batch { host.sessionClosed(id) }
        }
    }

    func touch(_ entry: Entry) {
        guard !entry.isDirty else { return }
        entry.isDirty = true
        dirty.append(entry)
    }

    /// Closes every session because the server stops.
    func stop() {
        isStopping = true
        for case let entry? in entries { close(entry, .goingAway, "the server stops") }
        flush()
    }

    private func perform(_ actions: [SockJSSession.Action], _ entry: Entry) {
        for action in actions {
            switch action {
            case .write(let bytes): write(bytes, entry)
            case .finish: finish(entry)
            case .ended:
                ended.append(entry.id)
                touch(entry)
                dropInbound(entry)
            case .forget: forget(entry)
            }
        }
    }

    private func write(_ bytes: [UInt8], _ entry: Entry) {
        guard let socket = entry.socket else { return }
        switch entry.transport.role {
        case .poll: entry.answer?.body = bytes
        case .stream: loop.write(socket, chunk: bytes)
        case .socket: loop.send(socket, text: bytes)
        case .send: break
        }
    }

    private func finish(_ entry: Entry) {
        guard let socket = entry.socket else { return }
        switch entry.transport.role {
        case .poll:
            if var answer = entry.answer {
                answer.closes = isStopping
                loop.respond(socket, answer, tenant: host.tenant(of: entry.id))
            }
            part(entry)
        case .stream:
            loop.finish(socket, closes: isStopping)
            part(entry)
        // The loop reports its end.
        case .socket: loop.close(socket, entry.closeCode)
        case .send: break
        }
    }

    // MARK: Bounds

    /// Keeps the sums of queued bytes, and enforces their bounds.
    private func account(_ entry: Entry) {
        let before = entry.countedBytes
        recount(entry)
        guard entry.countedBytes != before, entry.countedBytes > settings.queueBytesFree else { return }
        if (queuedByTenant[entry.countedTenant] ?? 0) > settings.queueBytesPerUserMax {
            metrics.limitHits.add(1, .userPendingBytes)
        } else if queuedTotal > settings.queueBytesTotalMax {
            metrics.limitHits.add(1, .pendingBytes)
        } else {
            return
        }
        giveUp(entry)
        // Its queued bytes are released at once; otherwise they would count against the user's other sessions.
        recount(entry)
    }

    private func recount(_ entry: Entry) {
        let bytes = entry.isForgotten ? 0 : entry.session.queueBytes
        guard bytes != entry.countedBytes else { return }
        let tenant = entry.isForgotten ? entry.countedTenant : host.tenant(of: entry.id)
        add(-entry.countedBytes, to: entry.countedTenant)
        add(bytes, to: tenant)
        (entry.countedBytes, entry.countedTenant) = (bytes, tenant)
    }

    private func add(_ bytes: Int, to tenant: TenantID) {
        queuedTotal += bytes
        metrics.sockJSQueuedBytes.add(bytes)
        let sum = (queuedByTenant[tenant] ?? 0) + bytes
        queuedByTenant[tenant] = sum == 0 ? nil : sum
    }

    // MARK: Time

    private func watchClock() {
        guard timer == nil, count > 0 else { return }
        let shortest = min(settings.rules.heartbeat, settings.rules.patience) / Self.looksPerWait
        timer = loop.schedule(after: .nanoseconds(max(1_000_000, min(Self.lookMax, shortest)))) { [unowned self] in
            timer = nil
            for case let entry? in entries { perform(entry.session.tick(now: loop.now), entry) }
            watchClock()
        }
    }
}
