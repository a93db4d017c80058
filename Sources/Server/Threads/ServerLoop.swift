import ThicketAuth
import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketScheduling

/// Passes the event loop's events to the hub and performs the hub's actions. Runs on the loop's thread.
final class ServerLoop: LoopDelegate {
    /// Changes collected in one turn before the shard receives a first part of them.
    private static let requestsAtOnce = 64
    /// Bytes queued for a connection above which the next part of a long answer waits.
    private static let pendingBytesPart = 1 << 20
    /// Milliseconds between two checks whether a slow reader can take the next part.
    private static let partMilliseconds = 5

    unowned let loop: EventLoop
    let hub: Hub
    private let shard: ServerShard
    /// What the shard has committed.
    private let commits: Mailbox<ServerShard.Report>
    private let readers: ServerReaders
    private let maintenance: MaintenanceWorker
    /// nil without partners.
    let access: ServerAccess?
    /// nil without built-in accounts.
    let accounts: ServerAccounts?
    /// nil without key logs.
    let keyLog: ServerKeyLog?
    /// nil without a blob store.
    let blobs: BlobDesk?
    private var router: HTTPRouter
    var pages: ServerPages
    private let log: Log
    /// Milliseconds since 1970.
    private let clock: @Sendable () -> Int64
    private var drainTimeout: Duration
    /// nil for plain HTTP.
    private let tls: TLSFiles?
    private let reload: @Sendable () -> ServerConfig?
    private var meter: CostMeter
    private var penaltyBox = PenaltyBox()
    private var watch = BusyPollWindow(cores: EventLoop.cores)

    private var blobOrders = [(ConnectionID, BlobOrder)]()
    private var requests = [(tenant: TenantID, work: ServerShard.Work)]()
    private var reads = [(tenant: TenantID, work: ReadRequest)]()
    /// Reads that were not handed to the readers yet.
    private var window = ReadWindow<ReadRequest> { $0.question.hasLargeAnswer }
    /// Parts of long answers that wait until their clients have read earlier parts.
    private var waitingReads = [ReadRequest]()
    /// How many at the end of `waitingReads` were added in this turn.
    private var freshReads = 0
    private var instant = HubInstant(monotonic: .min, unix: 0)
    private var nextTick: Int64?
    private var timer: TimerID?
    private var askers = [AskID: @Sendable (RemoteReply) -> Void]()
    private var lastAsk: AskID = 0
    private var drain = Drain.none
    private let sockJSSettings: SockJSSettings
    private lazy var sockjs = SockJSHandler(
        loop: loop, host: self, settings: sockJSSettings, metrics: hub.metrics
    ) { RandomBytes.make(4).reduce(0) { (number: UInt32, byte: UInt8) in number << 8 | UInt32(byte) } }

    /// Progress of the shutdown.
    private enum Drain {
        case none
        /// Nothing more is read; work in progress is finished. The deadline is in nanoseconds.
        case waiting(deadline: Int64)
        case stopping
    }

    init(
        loop: EventLoop, hub: Hub, shard: ServerShard, commits: Mailbox<ServerShard.Report>, readers: ServerReaders,
        maintenance: MaintenanceWorker, access: ServerAccess?, accounts: ServerAccounts?,
        keyLog: ServerKeyLog?, blobs: BlobDesk?,
        router: HTTPRouter, pages: ServerPages,
        log: Log,
        drainTimeout: Duration,
        clock: @escaping @Sendable () -> Int64, sockJS: SockJSSettings, tls: TLSFiles?,
        reload: @escaping @Sendable () -> ServerConfig?
    ) {
        self.loop = loop
        self.hub = hub
        self.shard = shard
        self.commits = commits
        self.readers = readers
        self.maintenance = maintenance
        self.access = access
        self.accounts = accounts
        self.keyLog = keyLog
        self.blobs = blobs
        self.router = router
        self.pages = pages
        self.log = log
        self.clock = clock
        self.drainTimeout = drainTimeout
        self.tls = tls
        self.reload = reload
        sockJSSettings = sockJS
        meter = CostMeter(costlyMicroseconds: hub.limits.costlyMicroseconds)
        hub.knowsPartners = access != nil
    }

    // MARK: From the network

    func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition {
        let route = router.route(request)
        switch route {
        case .sockJS(let path): return sockjs.answer(request, path, on: connection, unixTime: now().unix)
        case .webSocket:
            hub.metrics.httpRequests.add(1, .websocket)
            return request.method == "GET" ? .upgrade : .respond(ServerPages.methodNotAllowed)
        case .account(let account): return answer(account, request, on: connection)
        case .keyLog(let keys): return answer(keys, request, on: connection)
        case .partner(let partner): return answer(partner, request, on: connection)
        case .data: return answerData(request, on: connection)
        case .start, .live, .ready, .metrics, .openAPI, .version, .unknown:
            return .respond(pages.answer(route, request))
        }
    }

    func opened(_ connection: ConnectionID, _ request: HTTPRequest) {
        guard !sockjs.opened(connection, request) else { return }
        hub.opened(connection, app: HTTPRouter.app(ofSocket: request.path)?.text ?? "")
        perform()
    }

    func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {
        guard !sockjs.received(connection, text) else { return }
        meter.start()
        hub.received(connection, text, now: now())
        if let cost = meter.lap() { throttle(connection, after: cost) }
        perform()
    }

    func received(_ connection: ConnectionID, gathered text: [UInt8]) {
        guard !text.withUnsafeBytes({ sockjs.received(connection, $0) }) else { return }
        sessionReceived(connection, text)
    }

    func closed(_ connection: ConnectionID, _ end: ConnectionEnd) {
        switch end {
        case .refused(let failure) where failure.problem == .messageTooBig: hub.metrics.limitHits.add(1, .frameBytes)
        case .slowReader: hub.metrics.limitHits.add(1, .pendingBytes)
        default: break
        }
        if log.writes(.debug) {
            log.debug("session.closed", ["session": .text(connection.description), "reason": .text("\(end)")])
        }
        guard !sockjs.closed(connection) else { return }
        blobs?.closed(connection)
        hub.closed(connection)
        perform()
    }

    func tenant(behind connection: ConnectionID) -> TenantID {
        hub.tenant(of: sockjs.entry(servedBy: connection)?.id ?? connection)
    }

    func othersWait(than tenant: TenantID) -> Bool { hub.othersWait(than: tenant) }

    func signaled(_ signal: LoopSignal) {
        switch signal {
        case .terminate: beginStop()
        case .reload:
            if let config = reload() { use(config) }
            if let tls { loop.renew(tls, log) }
        }
    }

    /// Applies settings; those that only a start can change keep their values (`ServerSettings.fixed`).
    private func use(_ config: ServerConfig) {
        loop.use(NetSettings(config))
        hub.use(config.limits)
        shard.use(config.limits)
        meter = CostMeter(costlyMicroseconds: config.limits.costlyMicroseconds)
        readers.use(config.limits)
        maintenance.use(config.retention)
        access?.use(ServerAccess.Settings(config))
        accounts?.use(AccountService.Rules(config))
        router.showsMetrics = config.metrics
        router.showsPage = config.page
        pages.cors = CORSPolicy(config.corsOrigins)
        pages.versions = AppVersions(config.appVersions)
        sockjs.use(SockJSSettings(config))
        drainTimeout = config.drainTimeout
    }

    func turnEnded() {
        if freshReads > 0 { releaseReads(from: waitingReads.count - freshReads) }
        handOverReads()
        if !commitNow() { handOver() }
        sockjs.flush()
        scheduleTick()
        meter.begin()
        if case .waiting(let deadline) = drain { continueStop(deadline) }
    }

    var expectsAnswerUntil: Int64? { watch.end(changes: hub.changeCount) }

    // MARK: From the other threads

    func committed(_ reports: [ServerShard.Report]) { committed(reports, at: now()) }

    private func committed(_ reports: [ServerShard.Report], at instant: HubInstant) {
        for report in reports { hub.committed(report.outcome, now: instant) }
        watch.begin(now: SystemClock.monotonic())
        perform()
    }

    func answered(_ answers: [ServerReaders.Answered]) {
        // Many short answers cost the loop more time than their requests. Follow-up requests are timed with them.
        loop.timed(answers.lazy.map(\.tenant)) {
            for answered in answers {
                window.done(answered.request, of: answered.tenant)
                hub.answered(answered.request, answered.answer, now: now())
            }
            perform()
            handOverReads()
        }
    }

    func answered(_ answers: [ServerAccess.Answered]) {
        for answer in answers {
            switch answer {
            case .response(let connection, let response): loop.respond(connection, response)
            case .admission(let request, let answer): hub.admitted(request, answer, now: now())
            case .revoked(let revocation):
                let tokens = hub.revoke(revocation, now: now())
                // These belong to a user that signs out; tokens of a disabled partner are refused in any case.
                if case .partner = revocation { break }
                if !tokens.isEmpty { access?.deny(tokens) }
            }
        }
        perform()
    }

    func answered(_ answers: [ServerAccounts.Answered]) {
        for answer in answers {
            loop.respond(answer.connection, answer.response)
            if let ended = answer.ended { hub.signOut(ended) }
        }
        perform()
    }

    func answered(_ answers: [ServerKeyLog.Answered]) {
        for answer in answers { loop.respond(answer.connection, answer.response) }
        perform()
    }

    // MARK: Actions

    func perform() {
        hub.drainActions(perform)
        // The hub may be called again only after its actions.
        while !blobOrders.isEmpty {
            let orders = blobOrders
            blobOrders = []
            for (connection, order) in orders { blobs?.begin(connection, order) }
            hub.drainActions(perform)
        }
        if requests.count >= Self.requestsAtOnce { handOver() }
    }

    private func perform(_ action: HubAction) {
        switch action {
        case .send(let connection, let frame):
            connection.isSocket ? loop.send(connection, frame) : sockjs.send(connection, frame)
        case .close(let connection, let code, let reason):
            connection.isSocket
                ? loop.close(connection, code, reason: reason) : sockjs.close(connection, code, reason: reason)
        case .pause(let connection):
            connection.isSocket ? loop.pauseReading(connection) : sockjs.pause(connection)
        case .resume(let connection):
            connection.isSocket ? loop.resumeReading(connection) : sockjs.resume(connection)
        case .submit(let request): requests.append((request.tenant, .request(request)))
        case .read(let request): window.append(request, of: hub.tenant(of: request.origin.connection))
        case .readWhenDrained(let request):
            waitingReads.append(request)
            freshReads += 1
        case .admit(let request): access?.admit(request, from: address(of: request.origin.connection))
        case .report(let id, let reply): report(id, reply)
        case .blob(let connection, let order): blobOrders.append((connection, order))
        case .respond(let connection, let response, let tenant):
            // The hub may end a request itself, such as when its token ends; the body is not received further then.
            blobs?.closed(connection)
            loop.respond(connection, response, tenant: tenant)
        }
    }

    /// Moves reads to the readers, the users in turn. A client that does not take its answers waits for its next ones.
    private func dispatchReads() {
        while let (tenant, request) = window.takeOne() {
            if request.question.hasLargeAnswer, !mayAnswer(request.origin.connection) {
                window.done(request, of: tenant)
                waitingReads.append(request)
            } else {
                reads.append((tenant, request))
            }
        }
    }

    private func mayAnswer(_ connection: ConnectionID) -> Bool {
        connection.isSocket
            ? loop.pendingBytes(connection) <= Self.pendingBytesPart && !loop.isCrowded(connection)
            : sockjs.pendingBytes(connection) <= Self.pendingBytesPart && !sockjs.isCrowded(connection)
    }

    /// Wakes the other threads, once for everything that one turn brought.
    private func handOver() {
        if !requests.isEmpty {
            shard.push(requests)
            requests = []
            watch.begin(now: SystemClock.monotonic())
        }
        handOverReads()
    }

    private func handOverReads() {
        dispatchReads()
        guard !reads.isEmpty else { return }
        readers.push(reads)
        reads.removeAll(keepingCapacity: true)
    }

    /// Commits the changes of this turn on the loop's thread if that takes no longer than to wake the shard's thread.
    private func commitNow() -> Bool {
        guard !requests.isEmpty else { return false }
        // What the shard's thread has committed before; taken while it cannot commit.
        var earlier = [ServerShard.Report]()
        let reports = shard.commitNow(requests) {
            earlier = commits.takeAll()
            // Output of this turn for other clients is sent first, so that it does not wait for the disk.
            sendAll()
        }
        guard let reports else {
            if !earlier.isEmpty { committed(earlier) }
            return false
        }
        requests = []
        // Both clocks are read again: the turn began before the wait for the disk.
        committed(earlier + reports, at: HubInstant(monotonic: SystemClock.monotonic(), unix: clock()))
        return true
    }

    private func sendAll() {
        sockjs.flush()
        loop.flushDirty()
    }

    /// Hands over the reads from index `start` on whose clients have read what was sent. New reads are checked in their
    /// own turn, the others every few milliseconds.
    private func releaseReads(from start: Int) {
        let waiting = waitingReads[start...]
        waitingReads.removeSubrange(start...)
        freshReads = 0
        for request in waiting {
            if mayAnswer(request.origin.connection) {
                window.append(request, of: hub.tenant(of: request.origin.connection))
            } else {
                waitingReads.append(request)
            }
        }
    }

    /// Both clocks, read once per turn.
    func now() -> HubInstant {
        if instant.monotonic != loop.now {
            instant = HubInstant(monotonic: loop.now, unix: clock())
        }
        return instant
    }

    private func scheduleTick() {
        let wanted = waitingReads.isEmpty ? hub.tickMilliseconds : Self.partMilliseconds
        guard let wanted else { return }
        let time = loop.now + Int64(wanted) * 1_000_000
        guard nextTick == nil || time < nextTick ?? .max else { return }
        if let timer { loop.cancel(timer) }
        nextTick = time
        timer = loop.schedule(after: .milliseconds(wanted)) { [unowned self] in
            (nextTick, timer) = (nil, nil)
            releaseReads(from: 0)
            hub.tick(now())
            perform()
        }
    }

    func signOut(_ name: Tenant.Name) {
        hub.signOut(name)
        perform()
    }

    func changeMode(_ app: AppID, _ name: BucketName, _ mode: BucketMode) {
        hub.changeMode(app, name, mode)
        perform()
    }

    // MARK: Asking clients

    func ask(_ question: RemoteQuestion, report: @escaping @Sendable (RemoteReply) -> Void) -> AskID {
        lastAsk += 1
        askers[lastAsk] = report
        hub.ask(lastAsk, question, now: now())
        perform()
        return lastAsk
    }

    func cancelAsk(_ id: AskID) {
        askers[id] = nil
        hub.cancelAsk(id)
    }

    private func report(_ id: AskID, _ reply: RemoteReply) {
        guard let report = askers[id] else { return }
        report(reply)
        switch reply {
        case .ended, .failed: askers[id] = nil
        case .asked, .answer: break
        }
    }

    // MARK: Shutdown

    /// Reads nothing more, finishes work in progress, then closes all connections.
    func beginStop() {
        guard case .none = drain else { return }
        log.info("server.stopping", ["connections": .int(hub.connectionCount)])
        pages.health.stop()
        loop.quiesce()
        hub.endWaiting()
        perform()
        drain = .waiting(deadline: loop.now + drainTimeout.nanoseconds)
        loop.schedule(after: drainTimeout) {}
    }

    private func continueStop(_ deadline: Int64) {
        let isDone = hub.changeCount == 0 && hub.readCount == 0 && blobs?.isIdle != false
        guard isDone || loop.now >= deadline else { return }
        drain = .stopping
        sockjs.stop()
        let left = max(1_000_000_000, deadline - loop.now)
        loop.stop(within: .nanoseconds(left))
    }
}

// SockJS sessions are treated like other connections.
extension ServerLoop: SockJSHost {
    func sessionOpened(_ session: ConnectionID, app: String) {
        hub.opened(session, app: app)
        perform()
    }

    func sessionReceived(_ session: ConnectionID, _ text: [UInt8]) {
        meter.start()
        hub.received(session, text, now: now())
        if let cost = meter.lap() { throttle(session, after: cost) }
        perform()
    }

    func sessionClosed(_ session: ConnectionID) {
        hub.closed(session)
        perform()
    }

    /// Throttles the user of a message that took much of the loop's time.
    private func throttle(_ session: ConnectionID, after cost: Int64) {
        guard isShared(session) else { return }
        let until = penaltyBox.throttle(
            of: hub.tenant(of: session), cost: cost, factor: hub.limits.costlyThrottleFactor,
            now: SystemClock.monotonic())
        if let until { hub.throttle(session, until: until) }
    }

    /// A session without a socket of its own always counts as shared.
    private func isShared(_ session: ConnectionID) -> Bool { !session.isSocket || loop.isShared(session) }

    func tenant(of session: ConnectionID) -> TenantID { hub.tenant(of: session) }

    /// The key under which a client's attempts are counted. Only through this function do other parts of the server
    /// learn the address of a client.
    func address(of connection: ConnectionID) -> String {
        ClientAddress.counted(connection.isSocket ? loop.peerAddress(connection) : sockjs.address(of: connection))
    }
}
