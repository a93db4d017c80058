package import ThicketProtocol

/// Runs one session's `SyncMachine` on a dedicated thread: performs its actions, and passes it messages and the time.
///
/// The store is used on the same thread, so that a turn reads, decides and stores without suspension.
package actor SyncEngine {
    /// What exists while the session is open.
    private struct Core {
        var machine: SyncMachine
        let store: any LocalStore
        let transport: any Transport
    }

    private struct SyncWaiter {
        let bucket: BucketName
        let deadline: Int64
        let continuation: CheckedContinuation<Result<Void, ClientError>, Never>
    }

    private struct FetchWaiter {
        let deadline: Int64
        let continuation: CheckedContinuation<Result<FetchedVersion, ClientError>, Never>
    }

    private struct FetchID: Hashable {
        let address: EntityAddress
        let version: Version
    }

    private let loop: EngineLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Receives notices about the token, on the engine's thread, at the end of a turn.
    private var tokenHandler: (@Sendable (TokenNotice) -> Void)?
    private var core: Core?
    private var bucketHubs = [BucketName: EventHub<BucketEvent>]()
    /// Buckets with conflicts and integrity reports that no reader has taken. All of them are in the store.
    private var undelivered = [BucketName: Undelivered]()
    private var statusHub: EventHub<SyncStatus> = EventHub(overrun: nil)
    private var syncWaiters = [UInt64: SyncWaiter]()
    private var fetchWaiters = [FetchID: [FetchWaiter]]()
    var removalWaiters = [BucketName: [RemovalWaiter]]()
    private var waiterCount: UInt64 = 0

    /// The undelivered events of a bucket, read from the store once a reader exists; nil: not read yet. Holds at most
    /// `StreamLimits.undeliveredMax` events and one overrun, and at most `StreamLimits.undeliveredBytesMax` bytes.
    private struct Undelivered {
        var events: [BucketEvent]?
        /// More events occurred after these were read; they follow them in the store.
        var hasMore = false

        mutating func more() {
            hasMore = true
            // A new event makes the overrun's count obsolete and may have to come before it.
            if case .overrun? = events?.last { events?.removeLast() }
        }
    }

    /// Most messages taken from the transport in one turn, and so in one transaction.
    private static let messagesPerTurn = 256
    /// Milliseconds between checks of readers that fell behind.
    private static let overrunPause: Int64 = 100

    /// Counted since the session was opened.
    package private(set) var traffic = Traffic()

    package init(loop: EngineLoop) { self.loop = loop }
    deinit { loop.stop() }

    /// The engine's executor, for an actor that works with the engine in one turn.
    package nonisolated var executor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Opens the store and starts to sync.
    ///
    /// - Parameter onToken: receives notices about the token, for a session that renews it.
    package func start(
        options: SyncOptions, makeStore: @Sendable () throws(ClientError) -> any LocalStore,
        makeTransport: @Sendable () -> any Transport, onToken: (@Sendable (TokenNotice) -> Void)? = nil
    ) throws(ClientError) {
        guard core == nil else { return }
        tokenHandler = onToken
        let store = try makeStore()
        var machine: SyncMachine
        do {
            try Self.claim(store, options.app)
            machine = try SyncMachine(options: options, store: store, random: SystemRandomNumberGenerator())
            // No reader exists yet.
            machine.bucketsWithReaders = []
        } catch {
            store.close()
            throw error
        }
        let transport: any Transport = makeTransport()
        core = Core(machine: machine, store: store, transport: transport)
        loop.drive(
            turn: { [weak self] in self?.assumeIsolated { $0.turn() } },
            sleep: { wake, pause in transport.wait(wake: wake, milliseconds: pause) })
    }

    /// A store belongs to one app for good.
    private static func claim(_ store: any LocalStore, _ app: AppID) throws(ClientError) {
        guard let owner: String = try store.namedValue("app") else {
            return try store.setNamedValue("app", to: app.text)
        }
        guard owner.utf8.elementsEqual(app.text.utf8) else {
            throw ClientError(.storeMismatch, "the local store belongs to the app \(owner)")
        }
    }

    /// Ends the session. Unsent edits stay in the store.
    ///
    /// When this returns, the transport has been destroyed together with its libraries' state: the process may exit at
    /// once.
    package func close() {
        guard core != nil else { return }
        endCore()
        loop.release()
        statusHub.yield(.offline(.closed))
        statusHub.finish()
        for name in bucketHubs.keys { bucketHubs[name]?.finish() }
        bucketHubs = [:]
        undelivered = [:]
        failWaiters(ClientError(.closed, "the session was closed"))
    }

    /// A separate function, so that its local copy of the core is destroyed when it returns.
    private func endCore() {
        guard var ending: Core = core else { return }
        core = nil
        tokenHandler = nil
        _ = ending.machine.goOffline(.closed, now: monotonicMilliseconds())
        ending.transport.close()
        ending.store.close()
    }

    // MARK: - The machine

    /// Reads or changes through the machine, then performs the returned actions.
    package func act<Value: Sendable>(
        _ body: (inout SyncMachine, _ now: Int64) throws(ClientError) -> (Value, [SyncAction])
    ) throws(ClientError) -> Value {
        guard core != nil else { throw ClientError(.closed, "the session is closed") }
        guard let (value, actions): (Value, [SyncAction]) = try withMachine(body) else {
            throw ClientError(.closed, "the session is closed")
        }
        perform(actions)
        return value
    }

    private func withMachine<Value>(
        _ body: (inout SyncMachine, _ now: Int64) throws(ClientError) -> (Value, [SyncAction])
    ) throws(ClientError) -> (Value, [SyncAction])? {
        try core.mutate { (core: inout Core) throws(ClientError) in try body(&core.machine, monotonicMilliseconds()) }
    }

    /// One turn on the engine's thread: messages, then timers. Returns the milliseconds until the next turn.
    private func turn() -> Int64? {
        guard core != nil else { return nil }
        let events: [TransportEvent] = core?.transport.events(limit: Self.messagesPerTurn) ?? []
        var texts = [[UInt8]]()
        for event in events {
            if case .text(let text) = event {
                texts.append(text)
                continue
            }
            deliver(&texts)
            feed { machine, now in
                switch event {
                case .opened: machine.opened(now: now)
                case .moved: machine.moved(now: now)
                case .closed(let closure): machine.closed(closure, now: now)
                case .text: []
                }
            }
        }
        deliver(&texts)
        if let due: Int64 = core?.machine.deadline, due <= monotonicMilliseconds() {
            feed { machine, now in machine.tick(now: now) }
        }
        return attend()
    }

    private func deliver(_ texts: inout [[UInt8]]) {
        guard !texts.isEmpty else { return }
        let batch: [[UInt8]] = texts
        texts = []
        traffic.messagesReceived += Int64(batch.count)
        traffic.bytesReceived += batch.reduce(0) { $0 + Int64($1.count) }
        let read = ServerBatch(batch)
        feed { machine, now in machine.ahead(of: read, now: now) }
        core?.transport.flush()
        feed { machine, now in machine.received(read, now: now) }
    }

    private func feed(_ body: (inout SyncMachine, Int64) -> [SyncAction]) {
        let actions: [SyncAction]? = core.mutate { core in body(&core.machine, monotonicMilliseconds()) }
        perform(actions ?? [])
    }

    private func perform(_ actions: [SyncAction]) {
        var notices = [TokenNotice]()
        var delivered = [BucketName: Int]()
        for action in actions {
            switch action {
            case .connect: core?.transport.connect()
            case .disconnect: core?.transport.close()
            case .send(let text):
                traffic.messagesSent += 1
                traffic.bytesSent += Int64(text.count)
                core?.transport.send(text)
            case .event(let bucket, let event):
                if publish(event, in: bucket) { delivered[bucket, default: 0] += 1 }
            case .status(let status):
                statusHub.yield(status)
                if case .offline = status { failFetches(ClientError(.offline, "the connection was lost")) }
            case .fetched(let address, let version, let value):
                for waiter in fetchWaiters.removeValue(forKey: FetchID(address: address, version: version))
                    ?? []
                {
                    waiter.continuation.resume(returning: .success(value))
                }
            case .removals(let bucket, let list): answer(removalsOf: bucket, list)
            case .tokenEnded(let number): notices.append(.ended(number))
            case .tokenGood(let number): notices.append(.good(number))
            }
        }
        for (bucket, count) in delivered {
            feed { machine, now in machine.delivered(bucket, count: count, now: now) }
        }
        for notice in notices { tokenHandler?(notice) }
    }

    /// Serves waiters and slow readers. Returns the milliseconds until the next turn is needed.
    private func attend() -> Int64? {
        let isSomebodySlow: Bool = attendReaders()
        let now: Int64 = monotonicMilliseconds()
        var next: Int64? = core?.machine.deadline
        if isSomebodySlow { next = min(next ?? .max, now + Self.overrunPause) }
        for (id, waiter) in syncWaiters { resumeIfDone(id, waiter, now, &next) }
        for (id, waiters) in fetchWaiters {
            for waiter in waiters where waiter.deadline <= now {
                waiter.continuation.resume(returning: .failure(ClientError(.deadline, "the server did not answer")))
            }
            let left: [FetchWaiter] = waiters.filter { $0.deadline > now }
            fetchWaiters[id] = left.isEmpty ? nil : left
            for waiter in left { next = min(next ?? .max, waiter.deadline) }
        }
        expireRemovalWaiters(now, &next)
        return next.map { max(0, $0 - now) }
    }

    // MARK: - Streams

    /// Adds a reader of the bucket's events.
    ///
    /// - Parameter reportsCaughtUp: whether the stream begins with `caughtUp` when the bucket had caught up before.
    package func listen(
        _ bucket: BucketName, reportsCaughtUp: Bool = false, _ continuation: AsyncStream<BucketEvent>.Continuation
    ) {
        guard core != nil else { return continuation.finish() }
        bucketHubs[bucket, default: EventHub(overrun: { .overrun(missed: $0) })].add(continuation)
        core?.machine.bucketsWithReaders?.insert(bucket)
        // Before the undelivered events, which may fill the buffer.
        if reportsCaughtUp, core?.machine.hasCaughtUp(bucket) == true { continuation.yield(.caughtUp) }
        // A refusal lasts until it is resolved, so each reader gets it. If the store cannot be read now, `refused()`
        // lists the refusals later.
        for edit in (try? core?.machine.refusals(bucket)) ?? [] {
            bucketHubs[bucket]?.greet(.refused(edit))
        }
        undelivered[bucket] = Undelivered()
        deliver(bucket)
    }

    /// Takes the conflicts and integrity reports that no reader has taken, also from earlier runs; they are not
    /// reported again. If the store cannot be read now, they stay in it.
    package func takeUndelivered(_ bucket: BucketName) -> [BucketEvent] {
        let taken: [BucketEvent]? = try? act { (machine, now) throws(ClientError) in
            try machine.takeUndelivered(bucket, now: now)
        }
        if taken != nil { undelivered[bucket] = nil }
        return taken ?? []
    }

    /// - Returns: whether the event is one that comes once, and a reader has taken it.
    private func publish(_ event: BucketEvent, in bucket: BucketName) -> Bool {
        guard event.comesOnce else {
            bucketHubs[bucket]?.yield(event)
            return false
        }
        // Only `yield` reveals that a reader has gone. Events that are still undelivered must come before this one.
        if undelivered[bucket] == nil, bucketHubs[bucket]?.yield(event) ?? false { return true }
        undelivered[bucket, default: Undelivered()].more()
        return false
    }

    /// Gives readers the conflicts and integrity reports for which no reader had room. Those taken are deleted from the
    /// store; the rest follow when a reader has room.
    private func deliver(_ bucket: BucketName) {
        while let known: Undelivered = undelivered[bucket], bucketHubs[bucket]?.canOffer ?? false {
            // If the store cannot be read now, the read is repeated after `overrunPause` at the latest. The status
            // reports a failed store (`storeFailed`) when a turn cannot read it; waiting loses nothing here.
            guard let events: [BucketEvent] = known.events ?? (try? core?.machine.undelivered(bucket)) else { return }
            let hasMore: Bool = known.events != nil && known.hasMore
            var count = 0
            while count < events.count, bucketHubs[bucket]?.offer(events[count]) ?? false { count += 1 }
            let left = Array(events[count...])
            undelivered[bucket] =
                left.isEmpty ? (hasMore ? Undelivered() : nil) : Undelivered(events: left, hasMore: hasMore)
            if count > 0 { feed { machine, now in machine.gave(bucket, count: count, now: now) } }
            if !left.isEmpty { return }
        }
    }

    /// Reports their misses to slow readers, and gives them the undelivered events.
    ///
    /// - Returns: whether a reader still has no room.
    private func attendReaders() -> Bool {
        var isSomebodySlow = false
        // This runs after every turn, and mostly no reader is slow.
        for name in bucketHubs.keys where undelivered[name] != nil || bucketHubs[name]?.hasOverrun ?? false {
            bucketHubs[name]?.reportMissed()
            deliver(name)
            guard let hub: EventHub<BucketEvent> = bucketHubs[name] else { continue }
            if hub.hasOverrun || (undelivered[name] != nil && !hub.isEmpty) { isSomebodySlow = true }
        }
        return isSomebodySlow
    }

    package func listenStatus(_ continuation: AsyncStream<SyncStatus>.Continuation) {
        guard let status: SyncStatus = core?.machine.status else { return continuation.finish() }
        continuation.yield(status)
        statusHub.add(continuation)
    }

    package var status: SyncStatus { core?.machine.status ?? .offline(.closed) }

    // MARK: - Waiting

    /// Waits until the bucket is connected, every edit is sent and answered, and everything has been received.
    package func waitUntilSynced(_ bucket: BucketName, milliseconds: Int64) async throws(ClientError) {
        waiterCount += 1
        let id: UInt64 = waiterCount
        let deadline = monotonicMilliseconds() + milliseconds
        let result: Result<Void, ClientError> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let waiter = SyncWaiter(bucket: bucket, deadline: deadline, continuation: continuation)
                if core == nil {
                    continuation.resume(returning: .failure(ClientError(.closed, "the session is closed")))
                } else {
                    syncWaiters[id] = waiter
                    if Task.isCancelled { cancel(id) }
                }
            }
        } onCancel: {
            Task { await self.cancel(id) }
        }
        try result.get()
    }

    private func cancel(_ id: UInt64) {
        syncWaiters.removeValue(forKey: id)?.continuation.resume(
            returning: .failure(ClientError(.deadline, "the wait was cancelled")))
    }

    private func resumeIfDone(_ id: UInt64, _ waiter: SyncWaiter, _ now: Int64, _ next: inout Int64?) {
        guard let machine: SyncMachine = core?.machine else { return }
        let result: Result<Void, ClientError>
        if machine.isSynced(waiter.bucket) {
            let refused = machine.unconfirmed(waiter.bucket).refused
            let number: Int? = (try? machine.refusals(waiter.bucket))?.first?.error.number
            result =
                refused == 0
                ? .success(())
                : .failure(ClientError(.refused, "the server refused \(refused) objects", number: number))
        } else if let reason: ClientError = machine.unavailability(waiter.bucket) {
            result = .failure(reason)
        } else if machine.isReadOnly(waiter.bucket), machine.isAnswered(waiter.bucket) {
            result = .failure(ClientError(.unauthorized, "the token does not permit changes", number: 401))
        } else if case .offline(.unauthorized(let text)) = machine.status {
            result = .failure(ClientError(.unauthorized, text, number: 401))
        } else if case .offline(.wrongAccount) = machine.status {
            result = .failure(ClientError(.storeMismatch, "the local store belongs to another user"))
        } else if waiter.deadline <= now {
            result = .failure(ClientError(.deadline, "not synced in time: \(machine.status.text)"))
        } else {
            next = min(next ?? .max, waiter.deadline)
            return
        }
        syncWaiters.removeValue(forKey: id)?.continuation.resume(returning: result)
    }

    /// Requests an old version from the server.
    package func fetch(
        _ bucket: BucketName, _ key: EntityKey, _ version: Version, milliseconds: Int64
    ) async throws(ClientError) -> FetchedVersion {
        let wire: EntityKey = try act { (machine, _) throws(ClientError) in (try machine.wireKey(bucket, key), []) }
        return try await fetchStored(bucket, wire, version, milliseconds: milliseconds)
    }

    /// As above, by the server's key.
    package func fetchStored(
        _ bucket: BucketName, _ wire: EntityKey, _ version: Version, milliseconds: Int64
    ) async throws(ClientError) -> FetchedVersion {
        let result: Result<FetchedVersion, ClientError> = await withCheckedContinuation { continuation in
            do throws(ClientError) {
                try act { (machine, now) throws(ClientError) in
                    ((), try machine.fetchStored(bucket, wire, version, now: now))
                }
                let id = FetchID(address: EntityAddress(bucket: bucket, key: wire), version: version)
                let deadline: Int64 = monotonicMilliseconds() + milliseconds
                fetchWaiters[id, default: []].append(FetchWaiter(deadline: deadline, continuation: continuation))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
        return try result.get()
    }

    private func failFetches(_ error: ClientError) {
        failRemovalWaiters(error)
        let waiters: [FetchWaiter] = fetchWaiters.values.flatMap { $0 }
        fetchWaiters = [:]
        for waiter in waiters { waiter.continuation.resume(returning: .failure(error)) }
    }

    private func failWaiters(_ error: ClientError) {
        failFetches(error)
        let waiters: [SyncWaiter] = Array(syncWaiters.values)
        syncWaiters = [:]
        for waiter in waiters { waiter.continuation.resume(returning: .failure(error)) }
    }
}

/// What the live connection learns about the token with a given number.
package enum TokenNotice: Sendable, Equatable {
    case ended(Int)
    case good(Int)
}

extension Optional {
    /// Changes the value in place, without a copy; returns nil when the optional is nil.
    fileprivate mutating func mutate<Result, Failure: Error>(
        _ body: (inout Wrapped) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        guard self != nil else { return nil }
        return try self.withUnwrapped(body)
    }

    private mutating func withUnwrapped<Result, Failure: Error>(
        _ body: (inout Wrapped) throws(Failure) -> Result
    ) throws(Failure) -> Result? {
        guard var value: Wrapped = self else { return nil }
        self = nil
        defer { self = .some(value) }
        return try body(&value)
    }
}
