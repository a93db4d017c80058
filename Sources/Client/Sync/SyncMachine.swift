import ThicketPlatform
package import ThicketProtocol

/// The client's side of the protocol for one account: several buckets over one connection.
///
/// Pure: the time (milliseconds of a monotonic clock), randomness and the store are passed in, and actions are
/// returned. Everything a turn decides is stored, in one transaction, before its actions are returned; if that fails,
/// the machine drops the turn, goes offline and reads the store again.
///
/// The machine itself only runs the turns and passes calls and messages to the buckets. `SyncLink` is the connection,
/// `BucketMachine` one bucket on it, `ObjectRules` how its objects are merged, and `SyncTurn` what they work with.
///
/// For each object a bucket holds the ghost (the newest state known to be on the server), the change in flight
/// (`pending`), and the edits made since (`later`). The app always sees the ghost with `pending` and `later` applied,
/// in this order. Edits are rebased over foreign changes by exact transformation, never by comparing texts
/// (docs/decisions/0005).
package struct SyncMachine {
    var turn: SyncTurn
    var buckets = [BucketMachine]()
    var numbers = [BucketName: Int]()
    package internal(set) var status: SyncStatus
    private var storeBackoff = Backoff(
        shortest: SyncLimits.retryMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    /// The connection at the beginning of the turn.
    private var linkBefore = SyncLink.State.parked(.requested)
    /// The store could not be read after a failure: no connection is made before it can.
    private var mustReload = false
    /// Actions that could not be returned because their turn threw.
    private var overdue = [SyncAction]()

    /// - Throws: `store` when the store cannot be read.
    package init(
        options: SyncOptions, store: any LocalStore, random: any RandomNumberGenerator & Sendable
    ) throws(ClientError) {
        var random = random
        let fresh = "thicket-" + hexText(random.next()) + hexText(random.next())
        guard let freshID = try? ClientID(fresh) else {
            throw ClientError(.invalidName, "the generated client id is invalid")
        }
        let link = SyncLink(options, try store.clientID(fresh: freshID))
        turn = SyncTurn(link, store: store, random: random)
        status = options.startsOnline ? .connecting : .offline(.requested)
        for record in try store.buckets() { try addBucket(record) }
    }

    mutating func addBucket(_ record: BucketRecord) throws(ClientError) {
        var bucket = BucketMachine(buckets.count, record)
        try bucket.read(turn.store)
        numbers[record.name] = bucket.number
        buckets.append(bucket)
    }

    /// What the client connects to, and as whom.
    package var options: SyncOptions {
        get { turn.link.options }
        set { turn.link.options = newValue }
    }
    /// The identity of this local copy, which never changes.
    package var clientID: ClientID { turn.link.clientID }
    var store: any LocalStore { turn.store }
    /// Counts every change that the app sees; never decreases within a session.
    package var revision: Int64 { turn.revision }
    /// The buckets whose events have a reader; nil: all. Changes of objects are not reported for other buckets.
    package var bucketsWithReaders: Set<BucketName>? {
        get { turn.bucketsWithReaders }
        set { turn.bucketsWithReaders = newValue }
    }
    /// Number of objects in memory.
    package var cachedObjects: Int { turn.entities.count }

    // MARK: - Turns

    /// Runs `body`, stores what it decided, and returns the actions.
    mutating func runTurn(
        _ now: Int64, _ body: (inout SyncMachine) throws(ClientError) -> Void
    ) throws(ClientError) -> [SyncAction] {
        turn.now = max(turn.now, now)
        turn.actions = overdue
        overdue = []
        linkBefore = turn.link.state
        turn.sendsNewChange = false
        do throws(ClientError) {
            let unread = mustReload ? reload() : nil
            try body(&self)
            if let unread, turn.link.isOpen || turn.link.isConnecting { throw unread }
            for number in buckets.indices { try buckets[number].pump(&turn) }
            // The back-off is reset only now: a server that closes connections earlier must not be contacted at full
            // rate.
            if isCaughtUp, !buckets.contains(where: { !$0.outbox.inFlight.isEmpty }) { turn.link.backoff.reset() }
            updateStatus()
            try keep()
        } catch {
            if error.code == .store { fail(error) } else { forgetTurn() }
            throw error
        }
        let done = turn.actions
        turn.actions = []
        return done
    }

    /// As `runTurn`, for external events: a failing store causes actions, not an error.
    mutating func runQuietTurn(
        _ now: Int64, _ body: (inout SyncMachine) throws(ClientError) -> Void
    ) -> [SyncAction] {
        do {
            return try runTurn(now, body)
        } catch {
            if error.code != .store { fail(error) }
            defer { overdue = [] }
            return overdue
        }
    }

    private mutating func keep() throws(ClientError) {
        guard turn.hasDecided else { return }
        try turn.store.commit(turn.batch(buckets))
        storeBackoff.reset()
        turn.stored()
    }

    /// An input was rejected before it changed anything: only reads need undoing.
    private mutating func forgetTurn() {
        overdue = turn.actions
        turn.actions = []
        guard turn.hasDecided else { return }
        fail(ClientError(.store, "a turn was aborted"))
    }

    /// The store did not accept the turn: handled like a crash and a restart.
    private mutating func fail(_ error: ClientError) {
        for (number, known) in turn.forgotten where buckets.indices.contains(number) {
            buckets[number].undelivered = known
        }
        turn.drop()
        var undone = [SyncAction]()
        if linkBefore == .open || turn.link.isOpen || turn.link.isConnecting { undone.append(.disconnect) }
        var reason = OfflineReason.storeFailed(error.detail)
        // A session that must not connect stays offline.
        if case .parked(let parked) = turn.link.state {
            reason = parked
        } else {
            turn.link.state = .waiting(until: turn.now + storeBackoff.next(turn.random.next()), reason)
        }
        for number in buckets.indices {
            buckets[number].disconnected()
            buckets[number].sealing?.hasReadOn = false
        }
        _ = reload()
        if status != .offline(reason) {
            status = .offline(reason)
            undone.append(.status(status))
        }
        overdue = undone
        turn.actions = []
    }

    /// Reads the buckets from the store; returns the error when that fails.
    private mutating func reload() -> ClientError? {
        var renewed = buckets
        mustReload = true
        do throws(ClientError) {
            let records = try turn.store.buckets()
            for number in renewed.indices {
                let name = renewed[number].record.name
                renewed[number].record =
                    records.first { $0.name == name }
                    ?? BucketRecord(name: name, isSealed: renewed[number].record.isSealed)
                if !renewed[number].record.isSealed { renewed[number].sealing = nil }
                try renewed[number].read(turn.store)
            }
        } catch {
            return error
        }
        buckets = renewed
        mustReload = false
        return nil
    }

    /// Whether every bucket has caught up, as far as the server opens it.
    var isCaughtUp: Bool { turn.link.isOpen && !buckets.isEmpty && buckets.allSatisfy(\.isCaughtUp) }

    var isFirstAttempt: Bool { turn.link.backoff.failures == 0 && storeBackoff.failures == 0 }

    /// The server's key of the app's object.
    package func wireKey(_ bucket: BucketName, _ key: EntityKey) throws(ClientError) -> EntityKey {
        try wireKey(try number(bucket), key)
    }

    func wireKey(_ number: Int, _ key: EntityKey) throws(ClientError) -> EntityKey {
        // Without a copy of the bucket, which a call of its function may need.
        guard buckets[number].record.isSealed else { return key }
        return try buckets[number].wireKey(key)
    }

    func number(_ bucket: BucketName) throws(ClientError) -> Int {
        guard let number = numbers[bucket] else { throw ClientError(.notFound, "the bucket is not open") }
        return number
    }
}

/// Sixteen lower-case hexadecimal digits.
func hexText(_ value: UInt64) -> String { withUnsafeBytes(of: value.bigEndian) { Hex.encode($0) } }
