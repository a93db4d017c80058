public import ThicketClient
import ThicketPlatform
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// The tree of encrypted nodes of one account in one app, as this device has it.
///
/// Reads are local. Changes are local and durable when their call returns, and reach the server from a queue. Changes
/// of other devices arrive by themselves: a `TreeDelegate` is called inside of the local transaction, and `events`
/// reports them afterwards. Get it from `ClientSession.tree()`. It ends with the session.
///
/// ```swift
/// let tree = try await session.tree()
/// try await tree.createNode(at: TreePath(.home, ["notes"]))
/// try await tree.createNode(at: TreePath(.home, ["notes", "today"]), content: NodeSections(data: .bytes(text)))
/// ```
public actor Treesystem: SessionPart {
    /// What exists while the tree is open.
    struct Core {
        var machine: TreeMachine
        let transport: any Transport
        let contents: TreeContents
    }

    let connection: TreeConnection
    let loop: EngineLoop
    /// The tree's thread.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    var core: Core?
    var delegate: (any TreeDelegate)?
    var policy = DownloadPolicy.nothing
    private var isClosed = false
    private var statusHub: EventHub<SyncStatus> = EventHub(overrun: nil)
    private var eventHub = EventHub<TreeEvent>(overrun: { .gap(missed: $0) })
    /// Work on the contents of operations.
    var jobs = [OperationID: ContentJob]()
    /// Contents that can be made in this run of the program only.
    var promises = [OperationID: NodeSections]()
    /// The plans of operations whose content is in a spool file.
    var spools = SpoolRecords()
    let progress = ProgressBoard()
    /// Readers of events of shared branches.
    nonisolated let shareEvents = ShareEvents()
    var waiters = QueueWaiters()
    /// Numbers jobs and waiting calls.
    var counter: UInt64 = 0
    /// Compares the spool files with the operations; nothing is spooled before.
    var opening: Task<Void, Never>?
    /// The request of the queue that is in flight.
    var batchTask: Task<Void, Never>?
    var drain: Task<Void, Never>?

    /// Most messages of the server in one turn, and so in one transaction.
    private static let messagesPerTurn = 256
    /// Milliseconds between checks of readers that fell behind.
    private static let overrunPause: Int64 = 100

    init(_ connection: TreeConnection, loop: EngineLoop) { (self.connection, self.loop) = (connection, loop) }

    deinit {
        for job in jobs.values { job.task.cancel() }
        drain?.cancel()
        loop.stop()
    }

    // MARK: - Opening and closing

    /// Opens the store, and starts to sync. Does nothing when it is open already.
    ///
    /// - Throws: `closed`, `store`, `limit`.
    func start(
        _ options: TreeOptions, _ keys: TreeKeys, delegate: (any TreeDelegate)?, policy: DownloadPolicy,
        makeStore: () throws(TreeError) -> (store: TreeStore, contents: TreeContents)
    ) async throws(TreeError) {
        if isClosed { throw .closed }
        if core == nil { try open(options, keys, delegate, policy, makeStore) }
        await opening?.value
    }

    private func open(
        _ options: TreeOptions, _ keys: TreeKeys, _ delegate: (any TreeDelegate)?, _ policy: DownloadPolicy,
        _ makeStore: () throws(TreeError) -> (store: TreeStore, contents: TreeContents)
    ) throws(TreeError) {
        let (store, contents) = try makeStore()
        let machine = try TreeMachine(
            store: store, keys: keys, options: options, random: SystemRandomNumberGenerator(), delegate: delegate)
        (self.delegate, self.policy) = (delegate, policy)
        let transport = connection.makeTransport()
        core = Core(machine: machine, transport: transport, contents: contents)
        spools = try SpoolRecords(store, machine.queue.ids)
        loop.drive(
            turn: { [weak self] in self?.assumeIsolated { $0.turn() } },
            sleep: { wake, pause in transport.wait(wake: wake, milliseconds: pause) })
        opening = Task { await self.compareSpools() }
    }

    /// Ends the tree and releases its store. Changes that were not sent stay in the store. The session's `close` calls
    /// it.
    public func close() async {
        isClosed = true
        guard let contents = core?.contents else { return }
        for job in jobs.values { job.task.cancel() }
        jobs = [:]
        drain?.cancel()
        endCore()
        loop.release()
        statusHub.yield(.offline(.closed))
        statusHub.finish()
        eventHub.finish()
        shareEvents.finish()
        waiters.end(.closed)
        progress.removeAll()
        await contents.close()
    }

    /// A separate function, so that its copy of the core, and with it the store's lock, ends when it returns.
    private func endCore() {
        core?.transport.close()
        core = nil
        delegate = nil
    }

    // MARK: - The machine

    static var time: TreeTime {
        TreeTime(monotonic: monotonicMilliseconds(), unix: SystemClock.unixMilliseconds())
    }

    /// A local change: one transaction.
    ///
    /// - Parameter prepare: runs behind the transaction and before its actions.
    func act<Value>(
        _ body: (inout TreeMachine) throws(TreeError) -> Value, then prepare: (Value) -> Void = { _ in }
    ) throws(TreeError) -> Value {
        guard let outcome = try core?.machine.turn(Self.time, body) else { throw .closed }
        prepare(outcome.value)
        perform(outcome.actions)
        return outcome.value
    }

    /// Reads without a transaction: the tree's thread is the only one that writes.
    func read<Value>(_ body: (inout TreeMachine) throws(TreeError) -> Value) throws(TreeError) -> Value {
        guard core != nil, let value = try core?.machine.reading(body) else { throw .closed }
        return value
    }

    /// As `act`, for what comes from outside.
    func feed(_ body: (inout TreeMachine) throws(TreeError) -> Void) {
        perform(core?.machine.quietTurn(Self.time, body) ?? [])
    }

    /// One turn on the tree's thread: messages, then timers. Returns the milliseconds until the next turn.
    private func turn() -> Int64? {
        guard core != nil else { return nil }
        var texts = [[UInt8]]()
        for event in core?.transport.events(limit: Self.messagesPerTurn) ?? [] {
            if case .text(let text) = event {
                texts.append(text)
                continue
            }
            deliver(&texts)
            feed { machine throws(TreeError) in
                switch event {
                case .opened: try machine.opened()
                case .moved: machine.moved()
                case .closed(let closure): machine.closed(closure)
                case .text: break
                }
            }
        }
        deliver(&texts)
        if let due = core?.machine.deadline, due <= monotonicMilliseconds() {
            feed { machine throws(TreeError) in machine.tick() }
        }
        return pause()
    }

    private func deliver(_ texts: inout [[UInt8]]) {
        guard !texts.isEmpty else { return }
        let batch = ServerBatch(texts)
        texts = []
        feed { machine throws(TreeError) in try machine.received(batch) }
    }

    private func pause() -> Int64? {
        eventHub.reportMissed()
        let now = monotonicMilliseconds()
        var times = [core?.machine.deadline, waiters.deadline]
        if eventHub.hasOverrun { times.append(now + Self.overrunPause) }
        resumeWaiters(now)
        return times.compactMap { $0 }.min().map { max(0, $0 - now) }
    }

    // MARK: - Actions

    private func perform(_ actions: [TreeAction]) {
        for action in actions {
            switch action {
            case .connect: core?.transport.connect()
            case .disconnect: core?.transport.close()
            case .send(let text): core?.transport.send(text)
            case .batch(let id, let body): TreeRequests.post(id, body, self)
            case .children(let number, let query): TreeRequests.list(number, query, self)
            case .ask(let id, let node, let path): ask(id, node, path)
            case .spool(let id, let path): spool(id, path)
            case .upload(let id): upload(id)
            case .keepFile(let id): keepFile(id)
            case .message(let action): MessageAction.start(action, self)
            case .merging(let action): MergeAction.start(action, self)
            case .forget(let id): forget(id)
            case .event(let event): report(event)
            case .sharing(let event): shareEvents.report(event)
            case .status(let status): report(status)
            case .tokenEnded(let number): renew(number)
            }
        }
        resumeWaiters(monotonicMilliseconds())
    }

    private func report(_ event: TreeEvent) {
        eventHub.yield(event)
        if case .caughtUp = event { didReconnect() }
    }

    private func report(_ status: SyncStatus) {
        statusHub.yield(status)
        switch status {
        case .indexing, .syncing, .upToDate:
            guard let number = core?.machine.link.options.tokenNumber else { return }
            let connection = connection
            Task { await connection.tokenWorked(number) }
        case .connecting, .offline: break
        }
    }

    // MARK: - The token

    /// The server refused the token: the session renews it once for all of its connections.
    private func renew(_ number: Int) {
        let connection = connection
        Task { [weak self] in
            // Without success the session reports the next token, or the sign-out, when it has it (`follow`).
            guard let token = try? await connection.token(number) else { return }
            await self?.adopt(token.text, token.number)
        }
    }

    func follow(_ fate: TokenFate) {
        switch fate {
        case .adopted(let token): adopt(token.text, token.number)
        case .ended(let reason):
            feed { machine throws(TreeError) in machine.goOffline(.unauthorized(reason.text)) }
        }
    }

    private func adopt(_ token: String, _ number: Int) {
        feed { machine throws(TreeError) in
            guard number >= machine.link.options.tokenNumber else { return }
            // An open channel was opened with its own token: the server's report that this one has expired may still
            // arrive, and must not count for the next one. `renew` fetches that then.
            let isOpen = machine.link.isOpen && machine.channel.phase != .closed
            guard !isOpen || machine.push.waitsForToken else { return }
            machine.adopt(token: token, number: number)
        }
    }

    // MARK: - Observing

    /// What happens to the tree from now on, after the transaction that made it. Each reader has its own stream of at
    /// most `StreamLimits.eventsMax` events; `gap` reports those that a slow reader missed.
    public var events: AsyncStream<TreeEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: TreeEvent.self, bufferingPolicy: .bufferingOldest(StreamLimits.eventsMax))
        if isClosed { continuation.finish() } else { eventHub.add(continuation) }
        return stream
    }

    /// The current status and its changes; a slow reader gets only the newest statuses.
    public var status: AsyncStream<SyncStatus> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: SyncStatus.self, bufferingPolicy: .bufferingNewest(StreamLimits.statusesMax))
        continuation.yield(currentStatus)
        if isClosed { continuation.finish() } else { statusHub.add(continuation) }
        return stream
    }

    /// The current status.
    public var currentStatus: SyncStatus { core?.machine.status ?? .offline(.closed) }

    /// Connects now.
    public func goOnline() { feed { machine throws(TreeError) in machine.goOnline() } }

    /// Ends the connection until `goOnline()`. Reads and changes still work.
    public func goOffline() { feed { machine throws(TreeError) in machine.goOffline() } }
}
